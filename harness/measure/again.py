"""Judge the answer again: a program that was right at first may be wrong at the hundredth inference.

Some drivers drop or mix up launches after a while (google-ai-edge/LiteRT#8065, pytorch/executorch#22327). A dropped
launch leaves the result of the previous inference in its buffer. So the program runs on other inputs first, and then on
its own again. The answer must equal the first one bit for bit, or also be right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from device_runner.device import Array, Program
from device_runner.failures import NotRunAgain
from harness.measure.correctness import Truth
from harness.measure.facts import Answer, Facts, Latency

RUNS = 2
"""Number of inferences per check."""
MOST_LOOKS = 4
"""Maximum number of checks of a program with short inferences: a driver may drop only some launches."""
LARGEST_SHARE = 0.005
"""Share of a case's budget that the look after the warm-up may take; the other one is at the end."""
LONGEST_MS = 100.0
"""Longest inference of a program that is run again at the end: two of these are 1 % of the usual 20 s. Of a longer one
the answer that was timed last is judged, which takes none. Shorter ones together may take as long."""
ENOUGH_MS = LONGEST_MS / 2
"""Time in ms after which no further check begins."""
TRIES = 3
"""Number of runs of a wrong answer, to know whether it is wrong each time."""


class WrongByNow(Exception):
    """A program is wrong after its warm-up."""


def judge_again(
    program: Program, truth: Truth, facts: Facts, timeout_s: float, clock_s: Callable[[], float] = time.monotonic
) -> bool:
    """Judge the answer of a program that was right once more, and return whether it still is.

    What is wrong replaces the first answer and its accuracy in `facts`. A session that is over has nothing to look at.
    """
    latency = facts.get(Latency)
    each_ms = median(latency.timing.wall_ms) if latency else LONGEST_MS
    looks = max(1, min(MOST_LOOKS, int(LONGEST_MS / max(each_ms, 1e-3))))
    began_s = clock_s()
    for _ in range(looks):
        if not _look(program, truth, facts, timeout_s, again=each_ms <= LONGEST_MS):
            return False
        if (clock_s() - began_s) * 1e3 >= ENOUGH_MS:  # an inference is a part of a look, on a busy host a small one
            break
    return True


def _look(program: Program, truth: Truth, facts: Facts, timeout_s: float, *, again: bool) -> bool:
    """Judge the answer once: of the program run `again`, or the one that was timed last."""
    try:
        if not again:
            stale, outputs = False, program.timed_answer(timeout_s=timeout_s)
        else:
            stale = _is_stale(program, truth, timeout_s)
            outputs, _ = program.run(truth.inputs, timeout_s=timeout_s)
    except NotRunAgain:
        return True
    number = program.inferences
    accuracy = truth.judge(outputs)
    if stale:
        complaint = "its answer to other inputs equals that to the case's own: launches are dropped"
        facts.add(replace(accuracy, right=False, complaint=_sentence(complaint, number)))
        return False
    if _equal(outputs, facts[Answer].outputs):
        return True
    if accuracy.right:
        facts.add(replace(accuracy, varies=True))
        return True
    answers = (program.run(truth.inputs, timeout_s=timeout_s)[0] for _ in range(TRIES - 1))
    wrong = 1 + sum(not truth.judge(answer).right for answer in answers)
    often = "each time" if wrong == TRIES else f"{wrong} of {TRIES} times"
    facts.add(replace(accuracy, complaint=f"{_sentence(accuracy.complaint, number)} (wrong {often} then)"))
    facts.add(Answer(outputs))
    return False


def _sentence(complaint: str, number: int) -> str:
    return f"the first answer was right, answer {number} is not: {complaint}"


def _is_stale(program: Program, truth: Truth, timeout_s: float) -> bool:
    """Run other inputs, and return whether the answer is that to the case's own, though it should be another one."""
    if not truth.other_inputs:
        return False
    outputs, _ = program.run(truth.other_inputs, timeout_s=timeout_s)
    return not truth.judge(truth.other_expected).right and truth.judge(outputs).right


def _equal(outputs: Sequence[Array], others: Sequence[Array]) -> bool:
    """Return whether two answers are the same bit for bit."""
    first, second = ([(output.shape, output.tobytes()) for output in answer] for answer in (outputs, others))
    return first == second
