"""`compare a.onnx b.onnx` in a simulated clock: 5 % is found each time, and nothing where there is nothing."""

from __future__ import annotations

from functools import partial

from benchmarks.detection_rigs import phone
from benchmarks.simulated_ab import NOISE, REPEATS, STEP, answer


def test_five_percent_are_found_in_each_repeat_and_none_in_the_same_network_twice() -> None:
    rig = partial(phone, bias=NOISE)
    stepped, still = ([answer(rig, step, seed) for seed in range(REPEATS)] for step in (STEP, 0.0))
    assert [case.verdict.value for verdicts in stepped for case in verdicts.result.cases] == ["slower"] * REPEATS
    assert [case.verdict.value for verdicts in still for case in verdicts.result.cases] == ["same"] * REPEATS
    assert all(verdicts.answer.startswith("a is 1.0") for verdicts in stepped)
    assert all(verdicts.answer.startswith("b is as fast as a on texture") for verdicts in still)


def test_a_gain_is_found_as_well() -> None:
    (case,) = answer(partial(phone, bias=NOISE), -STEP, 1).result.cases
    assert case.verdict.value == "faster"
