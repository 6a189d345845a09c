"""The one place that says what facts mean: whether a program is right, and whose fault it is if not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.base.failures import MisreadOperator, ModelError
from harness.base.outcome import Outcome, Owner
from harness.measure.facts import Accuracy, Facts, HalfRange, Latency, Objection, Proof, ScheduleEffect, WitnessReport

LOOK_FOR_SCHEDULES = "`adreno-bench tune` looks for schedules of this network"
SCALE = "scale the model's weights or inputs, or measure it in float32 only"
WIDE_SUMS = "try `--precision float16_acc32`, which stores half precision and sums in single"
COOL = "let it cool, or raise its `wait_s` under [steady] in the suite"


@dataclass(frozen=True)
class Decision:
    """The outcome, with one line for a person, what to do next, and the evidence for an engineer."""

    outcome: Outcome = Outcome.OK
    message: str = ""
    hint: str = ""
    evidence: str = ""
    blamed: Owner | None = None
    """The owner, where a witness shows that it is not the outcome's usual one."""

    @property
    def owner(self) -> Owner:
        """Who has to act on it."""
        return self.blamed or self.outcome.owner


def decide(facts: Facts) -> Decision:
    """Return what the facts mean: the first rule in this order that the program breaks; `ok` if it breaks none."""
    return next((decision for rule in _RULES if (decision := rule(facts))), Decision())


def _failure(facts: Facts) -> Decision | None:
    """Decide about what a step or a probe raised."""
    if (failure := facts.failure) is None:
        return None
    defined = failure.outcome in Outcome._value2member_map_
    other = Outcome.INPUT_REFUSED if isinstance(failure, ModelError) else Outcome.INFRA_ERROR
    outcome = Outcome(failure.outcome) if defined else other
    blamed = Owner.IMPORTER if isinstance(failure, MisreadOperator) else None
    return Decision(outcome, failure.message, failure.hint, failure.evidence, blamed)


def _schedules(facts: Facts) -> Decision | None:
    """Decide about a build whose tuned schedules are missing or changed no kernel."""
    if not (schedules := facts.get(ScheduleEffect)) or not schedules.complaint:
        return None
    outcome = Outcome.INCONCLUSIVE if schedules.tried else Outcome.UNSUPPORTED
    return Decision(outcome, schedules.complaint, LOOK_FOR_SCHEDULES)


def _accuracy(facts: Facts) -> Decision | None:
    """Decide about an answer that is not the oracle's.

    It is the importer's fault if LLVM behind it gives the same answer, and the model's if no answer in half precision
    could be right.
    """
    if not (accuracy := facts.get(Accuracy)) or accuracy.right:
        return None
    if (report := facts.get(WitnessReport)) and report.blames_importer:
        message = f"{accuracy.complaint}; {report.name} behind the same importer gives the same answer"
        message += f", and the first operator that is off is {report.first}" if report.first else ""
        return Decision(Outcome.WRONG_RESULT, message, blamed=Owner.IMPORTER)
    if (half := facts.get(HalfRange)) and half.complaint:
        return Decision(Outcome.OUT_OF_RANGE, half.complaint, SCALE, accuracy.complaint)
    if report and report.right_in_double:
        shared = f"{report.name} gives the same answer, and in double precision the right one: both round so"
        return Decision(Outcome.WRONG_RESULT, f"{accuracy.complaint}; {shared}")
    if report and report.wrong_in_half_sums:
        shared = f"{report.name} is wrong in float16, too, and right with its sums in float32"
        return Decision(Outcome.WRONG_RESULT, f"{accuracy.complaint}; {shared}", WIDE_SUMS)
    return Decision(Outcome.WRONG_RESULT, accuracy.complaint)


def _objections(facts: Facts) -> Decision | None:
    """Decide about answers that a tool found wrong."""
    complaints = (fact.complaint for fact in facts if isinstance(fact, Objection))
    return next((Decision(Outcome.WRONG_RESULT, complaint) for complaint in complaints if complaint), None)


def _proof(facts: Facts) -> Decision | None:
    """Decide about a run that should be tuned and has no evidence that it was."""
    proof = facts.get(Proof)
    return Decision(Outcome.INCONCLUSIVE, proof.complaint) if proof and proof.complaint else None


def _pace(facts: Facts) -> Decision | None:
    """Decide about a device that did not hold its pace while it was measured."""
    latency = facts.get(Latency)
    if not latency or not latency.steadiness.throttled:
        return None
    return Decision(Outcome.THROTTLED, latency.steadiness.why, COOL)


_RULES: Sequence[Callable[[Facts], Decision | None]] = (_failure, _schedules, _accuracy, _objections, _proof, _pace)
