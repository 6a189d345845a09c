"""The one decision: a table over all that can be known of a program."""

from __future__ import annotations

import itertools

import pytest

from device_runner.device import Steadiness
from device_runner.failures import DeviceLost, Failure, Hang, Unsupported
from harness.base.failures import CompileFailure, InputRefused, ModelError
from harness.base.outcome import Outcome, Owner
from harness.measure.decide import decide
from harness.measure.facts import (
    Accuracy,
    Facts,
    HalfRange,
    Latency,
    Proof,
    ScheduleEffect,
    Timing,
    Vacuity,
    WitnessReport,
)
from harness.tools.labelled.part import Score, TopOne

OK = Outcome.OK
RIGHT = Accuracy(True, 0.0, 0.0, 1.0, True, 1e-3)
WRONG = Accuracy(False, 9.0, 9.0, 0.0, False, 1e-3, "output 0 is off")
TIMING = Timing([1.0], [1.0], [], warmed_up=True, inferences=1)

FAILURES: list[tuple[Failure | None, Outcome]] = [
    (None, OK),
    (Hang("hangs"), Outcome.HANG),
    (DeviceLost("gone"), Outcome.DEVICE_LOST),
    (Unsupported("lacks it"), Outcome.UNSUPPORTED),
    (CompileFailure("refused"), Outcome.COMPILE_ERROR),
    (InputRefused("out of bounds"), Outcome.INPUT_REFUSED),
]
SCHEDULES = [
    (None, OK),
    (ScheduleEffect({"took": ["f"]}, ""), OK),
    (ScheduleEffect({}, "the file has none"), Outcome.UNSUPPORTED),
    (ScheduleEffect({"took": ["f"]}, "the kernels are the same"), Outcome.INCONCLUSIVE),
    (ScheduleEffect({"refused": {"f": "no"}}, "none took"), Outcome.INCONCLUSIVE),
]
ANSWERS = [
    ((), OK),
    ((RIGHT,), OK),
    ((RIGHT, HalfRange("too large")), OK),
    ((RIGHT, Vacuity(["is all zero"])), OK),
    ((WRONG,), Outcome.WRONG_RESULT),
    ((WRONG, HalfRange("")), Outcome.WRONG_RESULT),
    ((WRONG, HalfRange("too large")), Outcome.OUT_OF_RANGE),
    ((WRONG, HalfRange("too large"), WitnessReport("LLVM", with_judge=False, with_path=True)), Outcome.WRONG_RESULT),
]
SCORED = (Score("mAP", 0.3, 0.4, 10, 0.396), Outcome.WRONG_RESULT)
LABELLED = [(None, OK), (TopOne(10, 9, 9, 9, 7), OK), (TopOne(10, 2, 9, 2, 7), Outcome.WRONG_RESULT), SCORED]
PROOFS = [
    (None, OK),
    (Proof(), OK),
    (Proof(emulated=True), OK),
    (Proof({}, "built from source all the same"), Outcome.INCONCLUSIVE),
]
PACES = [
    (None, OK),
    (Latency(TIMING, None, Steadiness()), OK),
    (Latency(TIMING, None, Steadiness(throttled=True, why="hot")), Outcome.THROTTLED),
]


def test_the_outcome_is_the_first_that_speaks_against_the_program_whatever_else_is_known() -> None:
    for row in itertools.product(FAILURES, SCHEDULES, ANSWERS, LABELLED, PROOFS, PACES):
        (failure, failed), (schedules, scheduled), (answers, judged), (top_one, labelled), (proof, proved), pace = row
        facts = Facts(failure)
        for fact in (schedules, *answers, top_one, proof, pace[0]):
            if fact is not None:
                facts.add(fact)
        expected = [one for one in (failed, scheduled, judged, labelled, proved, pace[1]) if one is not OK]
        assert decide(facts).outcome is (expected[0] if expected else OK), row


@pytest.mark.parametrize(
    ("fact", "message", "hint"),
    [
        (WRONG, "output 0 is off", ""),
        (ScheduleEffect({}, "the file has none"), "the file has none", "adreno-bench tune"),
        (TopOne(10, 2, 9, 2, 7), "top-1 dropped: 2 of 10", ""),
        (SCORED[0], "mAP dropped: 0.3, and 0.4 by the oracle (less than 0.396 is wrong)", ""),
        (Proof({}, "built from source all the same"), "built from source all the same", ""),
        (Latency(TIMING, None, Steadiness(throttled=True, why="held at level 2")), "held at level 2", "let it cool"),
    ],
)
def test_what_is_decided_says_why_and_what_to_do(fact: object, message: str, hint: str) -> None:
    facts = Facts()
    facts.add(fact)
    decision = decide(facts)
    assert decision.message.startswith(message)
    assert hint in decision.hint


@pytest.mark.parametrize(
    ("accuracy", "with_judge", "with_path", "owner"),
    [
        (RIGHT, None, None, Owner.NOBODY),
        (RIGHT, True, True, Owner.NOBODY),
        (RIGHT, True, False, Owner.NOBODY),
        (RIGHT, False, True, Owner.NOBODY),
        (RIGHT, False, False, Owner.NOBODY),
        (WRONG, None, None, Owner.PATH),
        (WRONG, True, True, Owner.PATH),  # just outside the tolerance of one and inside the other's
        (WRONG, True, False, Owner.PATH),
        (WRONG, False, True, Owner.IMPORTER),
        (WRONG, False, False, Owner.PATH),
    ],
)
def test_the_importer_owns_what_llvm_behind_it_gets_wrong_in_the_same_way(
    accuracy: Accuracy, with_judge: bool | None, with_path: bool | None, owner: Owner
) -> None:
    facts = Facts()
    facts.add(accuracy)
    if with_judge is not None and with_path is not None:
        facts.add(WitnessReport("LLVM", with_judge, with_path))
    decision = decide(facts)
    assert (decision.outcome, decision.owner) == (OK if accuracy.right else Outcome.WRONG_RESULT, owner)
    assert ("behind the same importer" in decision.message) is (owner is Owner.IMPORTER)


def test_a_failure_brings_its_own_words() -> None:
    decision = decide(Facts(Hang("did not end", hint="look at the log", evidence="tail")))
    assert (decision.message, decision.hint, decision.evidence) == ("did not end", "look at the log", "tail")


def test_an_outcome_that_no_record_knows_is_the_rigs() -> None:
    class Strange(Failure):
        outcome = "never heard of"

    assert decide(Facts(Strange("odd"))).outcome is Outcome.INFRA_ERROR


def test_data_that_do_not_fit_the_model_are_its_owners_to_mend() -> None:
    decision = decide(Facts(ModelError("labels.npz: 1 label of 3 cannot be right", hint="count them from 0")))
    assert (decision.outcome, decision.owner) == (Outcome.INPUT_REFUSED, Owner.MODEL)
    assert (decision.message, decision.hint) == ("labels.npz: 1 label of 3 cannot be right", "count them from 0")


def test_nothing_known_speaks_against_nothing() -> None:
    assert decide(Facts()).outcome is OK
