"""What is measured of rounding and of ties excuses exactly that: looked for over answers that nobody chose."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harness.compile.oracle.leeway import SINGLE, Measured
from harness.compile.oracle.rounding import AMOUNT, relative_movement
from harness.measure.correctness import compare_answers
from harness.measure.facts import Accuracy

Array = np.ndarray
TOLERANCE, FACTOR = 1e-5, 8.0
SEEDS = st.integers(0, 2**32 - 1)
POWERS = st.lists(st.integers(-30, 30), min_size=1, max_size=8)
"""The scale of each channel, as a power of ten."""
NUMBERS = st.sampled_from([0.0, 1.0, math.nan, math.inf])


def output(powers: list[int], seed: int) -> Array:
    """An output with a channel for each of these scales, in which some numbers are 0."""
    chance = np.random.default_rng(seed)
    numbers = chance.standard_normal((1, len(powers), 8, 8)) * (chance.random((1, len(powers), 8, 8)) > 0.1)
    return np.asarray(numbers * (10.0 ** np.array(powers))[:, None, None]).astype(np.float32)


def measured(want: Array, amount: float, seed: int = 0) -> Measured:
    """What is measured of an output that rounding moves by up to this share of each number."""
    moved = (amount * np.abs(want) * np.random.default_rng(seed).random(want.shape)).astype(np.float32)
    return Measured(rounding={SINGLE: relative_movement(moved, want)}, moved={SINGLE: moved})


def judged(answer: Array, want: Array, by: Measured) -> Accuracy:
    leeway = by.leeway(FACTOR, SINGLE)
    return compare_answers([answer], [want], TOLERANCE, [leeway.rounding], [leeway])


@given(POWERS, SEEDS, st.sampled_from([0.0, 1e-7, 1e-4]))
def test_an_answer_that_rounding_alone_moves_is_never_wrong(powers: list[int], seed: int, amount: float) -> None:
    want = output(powers, seed)
    factors = np.random.default_rng(seed + 1).uniform(1 - AMOUNT[SINGLE], 1 + AMOUNT[SINGLE], want.shape)
    assert judged((want * factors).astype(np.float32), want, measured(want, amount)).complaint == ""


@given(POWERS, SEEDS, st.sampled_from([1e-7, 1e-4, 1e-2]))
def test_an_answer_as_far_as_rounding_may_move_it_is_never_wrong(powers: list[int], seed: int, amount: float) -> None:
    want, by = output(powers, seed), measured(output(powers, seed), amount, seed)
    signs = np.random.default_rng(seed + 1).choice([-1, 1], want.shape)
    answer = want.astype(np.float64) + 0.999 * signs * FACTOR * by.moved[SINGLE].astype(np.float64)
    assert judged(answer, want, by).complaint == ""


@given(POWERS, SEEDS)
def test_numbers_too_small_for_a_device_may_be_0(powers: list[int], seed: int) -> None:
    want = output([power - 40 for power in powers], seed)
    answer = np.where(np.abs(want) < 2.0**-126, 0, want)
    assert judged(answer, want, measured(want, 0.0)).complaint == ""


@given(POWERS, SEEDS, st.sampled_from([math.nan, math.inf, -math.inf]), NUMBERS, NUMBERS, NUMBERS)
def test_what_is_not_finite_where_the_truth_is_finite_is_always_wrong(
    powers: list[int], seed: int, bad: float, moved: float, own: float, decided: float
) -> None:
    want = output(powers, seed)
    answer = want.copy()
    answer.flat[seed % want.size] = bad
    filled = [np.full(want.shape, number, np.float32) for number in (moved, own, decided)]
    by = Measured(rounding={SINGLE: moved}, moved={SINGLE: filled[0]}, own=filled[1], decided={SINGLE: filled[2]})
    assert not judged(answer, want, by).right


@given(POWERS, SEEDS, st.sampled_from(["own", "decided"]))
def test_what_is_not_known_excuses_nothing(powers: list[int], seed: int, field: str) -> None:
    want = output(powers, seed)
    nothing = np.full(want.shape, math.nan, np.float32)
    answer = want + np.float32(0.1) * np.abs(want).max() + np.float32(1e-30)
    by = replace(measured(want, 0.0), own=nothing if field == "own" else None)
    by = replace(by, decided={SINGLE: nothing} if field == "decided" else {})
    assert not judged(answer, want, by).right
    assert judged(want, want, by).right


@given(SEEDS, st.integers(1, 40), st.floats(1.5, 1e6))
def test_the_elements_beyond_the_tolerance_are_counted(seed: int, count: int, factor: float) -> None:
    want = output([0], seed)
    chance = np.random.default_rng(seed)
    off = want.astype(np.float64)
    places = chance.choice(want.size, count, replace=False)
    off.flat[places] += factor * TOLERANCE * np.abs(want).max()
    complaint = judged(off, want, measured(want, 0.0)).complaint
    counted = re.search(r"(\d+) of 64 elements beyond", complaint)
    assert complaint
    assert (int(counted[1]) if counted else 1) == count


@given(SEEDS, st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_integers_within_a_tie_are_counted_and_others_are_wrong(
    seed: int, ties: int, wrong: int, choices: bool
) -> None:
    want = np.random.default_rng(seed).integers(10, 200, 16).astype(np.int64)
    either = want.copy()
    either[:ties] += 2
    answer = either.copy()
    answer[8 : 8 + wrong] += 1
    by = Measured(decided={SINGLE: np.stack([want, either])}, choices=choices)
    verdict = judged(answer, want, by)
    assert verdict.right is (wrong == 0)
    assert verdict.ties == ties
    between = want.copy()
    between[:ties] += 1
    assert judged(between, want, by).right is (not choices or ties == 0)
