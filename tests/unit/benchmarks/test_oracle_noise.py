"""How far errors may grow until the judge sees them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.oracle_noise import MOST_RESERVE, reserve_of
from harness.compile.oracle.leeway import Leeway
from harness.measure.correctness import compare_answers

if TYPE_CHECKING:
    from device_runner.device import Array

TRUTH: list[Array] = [np.linspace(0.5, 1.0, 128, dtype=np.float32).reshape(2, 64), np.arange(3)]


@pytest.mark.parametrize(("error", "reserve"), [(1e-3, 10.0), (5e-3, 2.0), (2e-2, 0.0), (0.0, MOST_RESERVE)])
def test_it_is_what_errors_may_grow_by(error: float, reserve: float) -> None:
    judge = partial(compare_answers, oracle=TRUTH, relative_tolerance=1e-2)
    answer: list[Array] = [TRUTH[0].copy(), TRUTH[1]]
    answer[0][1, -1] -= error
    assert reserve_of(answer, TRUTH, judge) == pytest.approx(reserve, rel=0.02)


def test_a_part_on_a_scale_of_its_own_bounds_it() -> None:
    want = np.ones((2, 64), np.float32)
    want[1] = 1e-3
    judge = partial(compare_answers, oracle=[want], relative_tolerance=1e-2, leeway=[Leeway(moved=np.zeros((2, 64)))])
    answer = want.copy()
    answer[0, 0] += 1e-3  # a tenth of what is allowed there
    answer[1, 0] += 5e-6  # half of what is allowed here
    assert reserve_of([answer], [want], judge) == pytest.approx(2.0, rel=0.02)
