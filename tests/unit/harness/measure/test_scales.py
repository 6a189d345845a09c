"""Parts of an output that are on scales of their own."""

import numpy as np
import pytest

from harness.compile.oracle.leeway import Leeway
from harness.measure.correctness import compare_answers
from harness.measure.facts import Accuracy

CHANCE = np.random.default_rng(0)
TOLERANCE = 1e-5


def detector(scores_axis: int) -> np.ndarray:
    """Four places of boxes and eight of scores along an axis."""
    shape = [12, 12, 12, 12]
    shape[0] = 1
    output = CHANCE.uniform(0.02, 0.95, shape)
    index: list[slice | int] = [slice(None)] * 4
    index[scores_axis] = slice(0, 4)
    output[tuple(index)] *= 600
    return output.astype(np.float32)


def judged(
    answer: np.ndarray,
    want: np.ndarray,
    moved: float = 1e-7,
    own: np.ndarray | None = None,
    decided: np.ndarray | None = None,
) -> Accuracy:
    leeway = Leeway(moved=np.abs(want) * np.float32(moved), smallest=2.0**-126, own=own, decided=decided)
    return compare_answers([answer], [want], 2e-2, (), [leeway])


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_scores_beside_boxes_are_held_to_their_own_scale(axis: int) -> None:
    want = detector(axis)
    answer = want.copy()
    answer[want < 1] = 0
    verdict = judged(answer, want)
    assert compare_answers([answer], [want], 2e-2).right  # by the peak of all of it
    assert not verdict.right
    assert verdict.tolerance < 0.02
    assert f"{int((want[want < 1] > verdict.tolerance).sum())} of {want.size} elements beyond" in verdict.complaint


def test_scores_beside_boxes_of_an_output_without_a_batch_are_held_to_their_own_scale() -> None:
    want = detector(1)[0]
    answer = want.copy()
    answer[want < 1] *= np.float32(1.01)
    assert compare_answers([answer], [want], 1e-3).right
    leeway = Leeway(moved=np.abs(want) * np.float32(1e-7), smallest=2.0**-126)
    assert not compare_answers([answer], [want], 1e-3, (), [leeway]).right


def test_many_small_errors_of_one_part_are_seen_in_its_root_mean_square() -> None:
    want = detector(1)
    want[:, 4] = 0.95
    answer = want.copy()
    answer[:, 5:] += np.float32(0.017)
    verdict = judged(answer, want)
    assert not verdict.right
    assert "root mean square of 8 of 12 places along axis 1" in verdict.complaint


def test_what_rounding_does_to_a_part_is_allowed() -> None:
    want = detector(1)
    answer = want.copy()
    answer[:, 5] *= np.float32(1.2)
    assert not judged(answer, want).right
    assert judged(answer, want, moved=0.3).right


def test_what_the_judge_and_decisions_are_off_by_is_allowed_in_a_part() -> None:
    want = detector(1)
    want[:, 4] = 0.95
    answer = want.copy()
    answer[:, 5:] += np.float32(0.017)
    off = np.full_like(want, 0.02)
    assert not judged(answer, want).right
    assert judged(answer, want, own=off).right
    assert judged(answer, want, decided=off).right


def test_one_scale_and_few_numbers_are_judged_as_a_whole() -> None:
    one = CHANCE.standard_normal((1, 8, 16, 16)).astype(np.float32)
    few = np.array([[1000.0, 1000.0, 0.5, 0.5]], np.float32)
    for want in (one, few):
        answer = want + np.float32(0.015) * np.abs(want).max()
        assert judged(answer, want).right is compare_answers([answer], [want], 2e-2).right


def test_numbers_that_are_all_zero_and_that_no_format_holds_are_no_scale() -> None:
    want = detector(1)
    want[:, 4:8] = 0
    want[:, 8:] *= np.float32(1e-42)
    answer = want.copy()
    answer[:, 8:] = 0
    assert judged(answer, want).right
