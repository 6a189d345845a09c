"""An answer that would be right whatever the network does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.compile.oracle.leeway import Leeway
from harness.measure.correctness import compare_answers, vacuity

TOLERANCE = 1e-3
CHANCE = np.random.default_rng(0)
LOGITS = CHANCE.standard_normal((1, 1000)).astype(np.float32)
OTHER = CHANCE.standard_normal((1, 1000)).astype(np.float32)


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max())
    return np.asarray(powers / powers.sum(), np.float32)


@pytest.mark.parametrize(
    ("oracle", "reason"),
    [
        (np.zeros((1, 10), np.float32), "is all zero"),
        (np.full((1, 1000), 0.001, np.float32), "is constant: 0.001 everywhere"),
        (0.001 + 1e-9 * LOGITS, "is constant: 0.001 everywhere"),
        (np.full((2, 3), 7, np.int64), "is constant: 7 everywhere"),
        (np.zeros(2, np.int64), "is all zero"),
        (np.full(2, 7, np.int64), "is constant: 7 everywhere"),
        (softmax(LOGITS * 1000), "is saturated: every element is 0 or 1"),
        (np.clip(LOGITS * 1e6, 0, 6), "is saturated: every element is 0 or 6"),
        (1 / (1 + np.exp(-np.float32(20) * np.array([3, -3], np.float32))), "is saturated: every element is"),
        (np.array([[0.99999]], np.float32), "is saturated: its only element, 0.99999, lies within the tolerance of 1"),
        (OTHER, "does not depend on the input: the answer to another one would be right"),
        (OTHER * np.float32(1.0001), "does not depend on the input"),
        (np.array([7], np.int64), ""),
        (LOGITS, ""),
        (softmax(LOGITS), ""),
        (np.array([[0.3, 0.7]], np.float32), ""),
        (np.array([0.0, 0.0, 0.0, 5.123], np.float32), ""),
        (np.array([0], np.int64), ""),
        (np.maximum(LOGITS, 0), ""),
    ],
)
def test_what_a_right_answer_proves(oracle: np.ndarray, reason: str) -> None:
    other = OTHER if oracle.shape == OTHER.shape else oracle + np.ones_like(oracle)
    if reason == "is all zero":
        other = oracle
    told = vacuity([oracle.astype(oracle.dtype)], [other.astype(oracle.dtype)], TOLERANCE).reasons
    assert [line.startswith(f"output 0 of 1 {reason}") for line in told] == [True] * bool(reason)


def test_a_small_number_by_itself_is_at_no_bound_however_wide_its_tolerance_is() -> None:
    probability = np.array([[0.05]], np.float32)
    assert vacuity([probability], [2 * probability], relative_tolerance=0.06).reasons == []


def test_the_output_is_named_and_the_others_are_not() -> None:
    same = np.ones((1, 4), np.float32)
    assert vacuity([LOGITS, same], [OTHER, same], TOLERANCE).reasons == ["output 1 of 2 is constant: 1 everywhere"]


def test_outputs_that_prove_something_make_the_others_a_part() -> None:
    same = np.ones((1, 4), np.float32)
    assert not vacuity([LOGITS, same], [OTHER, same], TOLERANCE).whole
    assert not vacuity([LOGITS, same], [], TOLERANCE).whole
    assert vacuity([same, same], [same, same], TOLERANCE).whole


def test_the_count_of_a_detector_that_finds_nothing_does_not_prove_its_boxes() -> None:
    count, boxes = np.array([0]), np.zeros((1, 100, 4), np.float32)
    assert vacuity([count, boxes], [count, boxes], TOLERANCE).whole
    assert not vacuity([count, boxes], [count + 1, boxes], TOLERANCE).whole


def test_a_network_that_refused_other_inputs_is_believed() -> None:
    assert vacuity([LOGITS], [], TOLERANCE).reasons == []


def test_the_cases_own_tolerance_decides() -> None:
    near = LOGITS * np.float32(1.01)
    assert vacuity([LOGITS], [near], 1e-3).reasons == []
    assert vacuity([LOGITS], [near], 2e-2).reasons != []


def test_an_output_that_rounding_alone_may_replace_is_named() -> None:
    assert vacuity([LOGITS], [OTHER], 1e-5, [0.1]).reasons == []
    assert vacuity([LOGITS], [OTHER], 1e-5, [2.0]).reasons == [
        "output 0 of 1 is lost in rounding, which may move it by 2 of its scale"
    ]


@given(
    hnp.arrays(np.float32, hnp.array_shapes(max_dims=3, max_side=6), elements=st.floats(-1e3, 1e3, width=32)),
    st.floats(-40, 30),
)
def test_no_answer_that_knows_nothing_is_right_without_being_told(array: np.ndarray, scale: float) -> None:
    oracle = (array.astype(np.float64) * 10.0**scale).astype(np.float32)
    other = oracle[::-1].copy()
    if not vacuity([oracle], [other], TOLERANCE).reasons:
        lazy = (np.zeros_like(oracle), other, *([np.full_like(oracle, oracle.mean())] if oracle.size > 1 else []))
        assert not any(compare_answers([answer], [oracle], TOLERANCE).right for answer in lazy)


def test_an_answer_that_ties_may_move_by_more_than_rounding_may_proves_nothing() -> None:
    rms = float(np.sqrt(np.square(LOGITS.astype(np.float64)).mean()))
    assert vacuity([LOGITS], [OTHER], 1e-5, [0.0], [Leeway(spread=0.1 * rms)]).reasons == []
    assert vacuity([LOGITS], [OTHER], 1e-5, [0.0], [Leeway(spread=0.5 * rms)]).reasons == [
        "output 0 of 1 is lost in ties, which may move it by 1 of its scale"
    ]


def test_an_answer_whose_judge_is_off_by_more_than_rounding_may_be_proves_nothing() -> None:
    """One quotient of two roundings, as of a norm of zeros, widened the tolerance of all other numbers."""
    own = np.zeros_like(LOGITS)
    peak = float(np.abs(LOGITS).max())
    own.flat[3] = 0.1 * peak
    assert vacuity([LOGITS], [OTHER], 1e-5, [0.0], [Leeway(own=own)]).reasons == []
    own.flat[3] = 0.5 * peak
    assert vacuity([LOGITS], [OTHER], 1e-5, [0.0], [Leeway(own=own)]).reasons == [
        "output 0 of 1 is lost in its judge's sums, off by 0.5 of its scale"
    ]
