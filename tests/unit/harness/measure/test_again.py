"""A program that was right at first is judged again."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from device_runner.device import PushResult, Steadiness
from device_runner.failures import NotRunAgain
from harness.base.outcome import Outcome
from harness.measure.again import LONGEST_MS, MOST_LOOKS, RUNS, TRIES, judge_again
from harness.measure.correctness import Truth
from harness.measure.decide import decide
from harness.measure.facts import Accuracy, Answer, Facts, Latency, Timing

OWN, OTHER = np.array([1.0, 2.0], np.float32), np.array([5.0, -3.0], np.float32)
TRUTH = Truth([OWN], [2 * OWN], 1e-5, other_inputs=[OTHER], other_expected=[2 * OTHER])


@dataclass
class Doubling:
    """Doubles its input, and adds an error to chosen answers."""

    errors: Sequence[float] = ()
    drops: bool = False
    """Whether launches are dropped: the answer is the one before."""
    init_ms: float = 0.0
    pushed: PushResult = field(default_factory=lambda: PushResult("", 0))
    inferences: int = 57
    asked: list[Any] = field(default_factory=list)

    def run(self, inputs: Sequence[Any], *, timeout_s: float) -> tuple[list[Any], float]:
        self.asked.append(inputs[0])
        errors = [*self.errors, *[0.0] * len(self.asked)]
        return [2 * (OWN if self.drops else inputs[0]) + np.float32(errors[len(self.asked) - 1])], 1.0


def judged(program: Any, truth: Truth = TRUTH) -> tuple[bool, Facts]:
    facts = Facts()
    facts.add(Answer([2 * OWN]))
    facts.add(truth.judge([2 * OWN]))
    return judge_again(program, truth, facts, 1.0), facts


def test_a_program_that_is_still_right_is_run_on_other_inputs_and_on_its_own() -> None:
    program = Doubling()
    right, facts = judged(program)
    assert right
    assert decide(facts).outcome is Outcome.OK
    assert [array.tolist() for array in program.asked] == [OTHER.tolist(), OWN.tolist()]


def test_a_later_answer_that_is_wrong_says_which_and_that_it_is_wrong_each_time() -> None:
    right, facts = judged(Doubling(errors=[0.0, *[1.0] * TRIES]))
    decision = decide(facts)
    assert not right
    assert decision.outcome is Outcome.WRONG_RESULT
    assert decision.message.startswith("the first answer was right, answer 57 is not: output 0 is off by 1 at [0]")
    assert decision.message.endswith("(wrong each time then)")


def test_a_later_answer_that_is_wrong_once_is_not_reproducible() -> None:
    _, facts = judged(Doubling(errors=[0.0, 1.0]))
    assert decide(facts).message.endswith(f"(wrong 1 of {TRIES} times then)")


def test_launches_that_are_all_dropped_leave_the_right_answer_and_are_seen_by_other_inputs() -> None:
    right, facts = judged(Doubling(drops=True))
    assert not right
    assert "its answer to other inputs equals that to the case's own" in decide(facts).message


def test_a_network_that_does_not_look_at_its_inputs_is_no_stale_one() -> None:
    blind = Truth([OWN], [2 * OWN], 1e-5, other_inputs=[OTHER], other_expected=[2 * OWN])
    assert judged(Doubling(drops=True), blind)[0]


@pytest.mark.parametrize(("error", "varies"), [(0.0, False), (1e-5, True)])
def test_a_later_answer_that_is_another_right_one_is_noted(error: float, varies: bool) -> None:
    right, facts = judged(Doubling(errors=[0.0, error]))
    accuracy = facts.get(Accuracy)
    assert right
    assert accuracy is not None
    assert accuracy.varies is varies


@pytest.mark.parametrize("error", [0.0, 1.0])
def test_of_a_slow_program_the_answer_that_was_timed_is_judged(error: float) -> None:
    class Slow(Doubling):
        def timed_answer(self, *, timeout_s: float) -> list[Any]:
            return [2 * OWN + np.float32(error)]

    program, facts = Slow(), Facts()
    facts.add(Answer([2 * OWN]))
    facts.add(Latency(Timing([2 * LONGEST_MS], [], [], warmed_up=True, inferences=3), None, Steadiness()))
    assert judge_again(program, TRUTH, facts, 1.0) is (error == 0)  # type: ignore[arg-type]
    assert len(program.asked) == (TRIES - 1 if error else 0)


def test_a_short_program_is_looked_at_several_times() -> None:
    program, facts = Doubling(errors=[0.0] * (2 * MOST_LOOKS - 1) + [1.0] * TRIES), Facts()
    facts.add(Answer([2 * OWN]))
    facts.add(Latency(Timing([1.0], [], [], warmed_up=True, inferences=3), None, Steadiness()))
    assert not judge_again(program, TRUTH, facts, 1.0, clock_s=lambda: 0.0)  # type: ignore[arg-type]


def test_a_look_that_takes_long_on_a_busy_host_is_the_only_one() -> None:
    program, facts = Doubling(errors=[0.0] * 2 * MOST_LOOKS), Facts()
    facts.add(Answer([2 * OWN]))
    facts.add(Latency(Timing([1.0], [], [], warmed_up=True, inferences=3), None, Steadiness()))
    times_s = itertools.count(0.0, LONGEST_MS / 1e3)
    assert judge_again(program, TRUTH, facts, 1.0, clock_s=lambda: next(times_s))  # type: ignore[arg-type]
    assert len(program.asked) == RUNS


def test_a_session_that_is_over_has_nothing_to_look_at() -> None:
    class Over(Doubling):
        def run(self, inputs: Sequence[Any], *, timeout_s: float) -> tuple[list[Any], float]:
            raise NotRunAgain("over")

    assert judged(Over())[0]
