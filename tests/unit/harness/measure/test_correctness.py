"""The oracle's judgement."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.compile.oracle.leeway import Leeway
from harness.measure.correctness import compare_answers

ARRAYS = hnp.arrays(np.float32, hnp.array_shapes(max_dims=4, max_side=5), elements=st.floats(-1e3, 1e3, width=32))


@given(ARRAYS)
def test_an_answer_equal_to_the_oracle_is_right(array: np.ndarray) -> None:
    verdict = compare_answers([array], [array], 1e-3)
    assert verdict.right
    assert verdict.max_abs_err == 0
    assert verdict.complaint == ""


@given(ARRAYS, st.floats(1.01, 100))
def test_an_error_beyond_the_tolerance_is_wrong_and_located(array: np.ndarray, factor: float) -> None:
    peak = np.abs(array).max()
    tolerance = max(1e-3 * float(peak), float(np.spacing(peak)))
    off = array.astype(np.float64)
    off.flat[off.size // 2] += factor * tolerance
    verdict = compare_answers([off], [array], 1e-3)
    where = [int(i) for i in np.unravel_index(off.size // 2, off.shape)]
    assert not verdict.right
    assert f"output 0 is off by {verdict.max_abs_err:.3g} at {where}" in verdict.complaint


def test_the_tolerance_follows_the_oracles_peak_so_that_small_softmax_values_are_judged() -> None:
    oracle = np.full((1, 1000), 0.001, np.float32)
    assert not compare_answers([np.zeros_like(oracle)], [oracle], 1e-3).right


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_wrong(bad: float) -> None:
    oracle = np.ones((2, 3), np.float32)
    answer = oracle.copy()
    answer[1, 2] = bad
    verdict = compare_answers([answer], [oracle], 1e-3)
    assert not verdict.right
    assert verdict.max_abs_err == math.inf
    assert "at [1, 2]" in verdict.complaint


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_on_purpose_has_to_be_the_same(special: float) -> None:
    oracle = np.array([1.0, special, 3.0], np.float32)
    assert compare_answers([oracle], [oracle], 1e-3).right
    off = oracle.copy()
    off[2] = 3.1
    assert not compare_answers([off], [oracle], 1e-3).right
    for other in (1.0, *({math.nan, math.inf, -math.inf} - {special})):
        answer = oracle.copy()
        answer[1] = other
        if not (math.isnan(other) and math.isnan(special)):
            assert not compare_answers([answer], [oracle], 1e-3).right


def test_integers_have_to_be_equal() -> None:
    oracle = np.array([1000, 2000], np.int64)
    assert compare_answers([oracle], [oracle], 1.0).right
    assert not compare_answers([oracle + 1], [oracle], 1.0).right


@pytest.mark.parametrize(
    ("outputs", "complaint"),
    [([], "0 outputs, expected 1"), ([np.ones(3, np.float32)], r"output 0 has shape (3,), expected (2,)")],
)
def test_another_number_or_shape_of_outputs_is_wrong(outputs: list[np.ndarray], complaint: str) -> None:
    verdict = compare_answers(outputs, [np.ones(2, np.float32)], 1e-3)
    assert not verdict.right
    assert verdict.complaint == complaint


def test_the_worst_output_decides_and_is_named() -> None:
    good = np.ones(4, np.float32)
    verdict = compare_answers([good, good + 1], [good, good], 1e-3)
    assert not verdict.right
    assert "output 1" in verdict.complaint
    assert verdict.max_abs_err == 1


def test_top1_and_cosine_tell_a_small_error_from_another_answer() -> None:
    oracle = np.array([0.1, 0.9, 0.2], np.float32)
    near, other = (
        compare_answers([oracle * 1.0001], [oracle], 1e-3),
        compare_answers([oracle[::-1].copy() * -1], [oracle], 1e-3),
    )
    assert (near.top1, round(near.cosine, 6)) == (True, 1.0)
    assert other.top1 is False
    assert other.cosine < 0


@pytest.mark.parametrize("scale", [np.float32(1e-30), np.float32(1e30), np.float64(1e-200), np.float64(1e200)])
def test_the_cosine_of_answers_whose_squares_leave_the_range_is_theirs(scale: np.floating) -> None:
    oracle = np.array([0.1, 0.9, 0.2], scale.dtype) * scale
    assert round(compare_answers([oracle], [oracle], 1e-3).cosine, 6) == 1.0
    assert compare_answers([-oracle], [oracle], 1e-3).cosine < 0


def test_an_answer_that_is_not_finite_has_no_cosine() -> None:
    oracle = np.array([0.1, 0.9], np.float32)
    assert compare_answers([np.array([0.1, np.nan], np.float32)], [oracle], 1e-3).cosine == 0.0


def test_the_element_that_is_farthest_beyond_its_own_tolerance_is_named() -> None:
    oracle = np.tile(np.array([600.0] * 4 + [0.5] * 8, np.float32), (64, 1))
    leeway = Leeway(moved=np.abs(oracle) * np.float32(1e-7), smallest=2.0**-126)
    answer = oracle.copy()
    answer[3, 0] += 20
    answer[5, 7] += 5
    assert "at [5, 7]" in compare_answers([answer], [oracle], 2e-2, (), [leeway]).complaint


def test_an_exact_output_of_integers_never_decides_before_a_real_one() -> None:
    whole, real = np.array([3, 4]), np.array([1.0, 0.5], np.float32)
    verdict = compare_answers([whole, real + np.float32(1e-5)], [whole, real], 1e-3)
    assert verdict.max_abs_err == pytest.approx(1e-5, rel=0.1)


@pytest.mark.parametrize("scale", [1e-40, 1e-30, 1e-7, 1.0, 1e7, 1e30])
def test_a_wrong_answer_is_wrong_at_every_scale(scale: float) -> None:
    chance = np.random.default_rng(0)
    oracle, other = (chance.standard_normal(1000).astype(np.float32) * np.float32(scale) for _ in range(2))
    verdict = compare_answers([other], [oracle], 1e-3)
    assert not verdict.right
    assert verdict.tolerance == pytest.approx(1e-3 * float(np.abs(oracle).max()), rel=1e-2)
    assert compare_answers([oracle * np.float32(1.0001)], [oracle], 1e-3).right


def test_no_tolerance_is_finer_than_the_numbers_are_at_that_scale() -> None:
    oracle = np.array([1e-44, 0.0], np.float32)
    assert compare_answers([np.nextafter(oracle, np.float32(1))], [oracle], 1e-3).right
    assert not compare_answers([oracle * np.float32(3)], [oracle], 1e-3).right


def test_an_oracle_of_zeros_lets_nothing_else_pass() -> None:
    oracle = np.zeros(4, np.float32)
    assert compare_answers([oracle], [oracle], 1e-3).right
    assert not compare_answers([oracle + np.float32(1e-9)], [oracle], 1e-3).right


def test_an_output_whose_peak_hides_another_answer_is_wrong() -> None:
    chance = np.random.default_rng(0)
    oracle = chance.standard_normal(1_000_000).astype(np.float32)
    oracle[0] = 1e5
    other = oracle + chance.uniform(-90, 90, oracle.size).astype(np.float32)
    verdict = compare_answers([other], [oracle], 1e-3)
    assert verdict.max_abs_err < verdict.tolerance
    assert not verdict.right
    assert verdict.complaint.startswith("output 0 is off by 51.9 in the root mean square, of 100 (tolerance 0.1)")


@given(ARRAYS, st.integers(0, 2**32 - 1), st.floats(-45, 30), st.floats(0, 2))
def test_what_is_right_contradicts_neither_the_direction_nor_the_largest_element(
    array: np.ndarray, seed: int, scale: float, error: float
) -> None:
    oracle = (array.astype(np.float64) * 10.0**scale).astype(np.float32)
    noise = np.random.default_rng(seed).uniform(-error, error, oracle.shape) * 1e-3 * float(np.abs(oracle).max())
    answer = (oracle + noise).astype(np.float32)
    verdict = compare_answers([answer], [oracle], 1e-3)
    if verdict.right and oracle.any():
        assert verdict.cosine >= 0.999_999
        chosen = float(oracle.flat[int(answer.argmax())])
        assert verdict.top1 or float(oracle.max()) - chosen <= 2 * verdict.tolerance


def test_many_small_errors_are_wrong_though_none_of_them_is_large() -> None:
    chance = np.random.default_rng(0)
    oracle = chance.standard_normal(10_000).astype(np.float32)
    oracle[0] = 100.0
    off = oracle + 1e-2 * np.sign(chance.standard_normal(oracle.size)).astype(np.float32)
    verdict = compare_answers([off], [oracle], 1e-3)
    assert verdict.max_abs_err < verdict.tolerance
    assert not verdict.right
    assert verdict.rel_rms_err == pytest.approx(1e-2 / float(np.sqrt(np.mean(oracle**2))), rel=1e-2)


@pytest.mark.parametrize(("rounding", "right"), [((), False), ((1e-4,), False), ((1e-2,), True), ((1.0,), True)])
def test_what_rounding_does_to_an_output_is_allowed(rounding: tuple[float, ...], right: bool) -> None:
    oracle = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    assert compare_answers([oracle * np.float32(1.005)], [oracle], 1e-5, rounding).right is right
    assert not compare_answers([-oracle], [oracle], 1e-5, rounding).right


def test_integers_have_the_same_largest_element_or_another_and_none_of_them_is_right() -> None:
    want = np.array([1, 5, 2])
    assert compare_answers([want], [want], 1e-3).top1
    assert not compare_answers([np.array([7, 5, 2])], [want], 1e-3).top1
    nothing = np.zeros(0, np.int64)
    empty = compare_answers([nothing], [nothing], 1e-3)
    assert (empty.right, empty.top1) == (True, True)
