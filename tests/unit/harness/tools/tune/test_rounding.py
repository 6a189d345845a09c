"""What rounding does to one compiled function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from harness.base.case import ROUNDING_FACTOR
from harness.compile.oracle.leeway import SINGLE
from harness.compile.oracle.rounding import AMOUNT
from harness.tools.tune.candidate import measure_task_rounding

X = np.random.default_rng(0).standard_normal((1, 64)).astype(np.float32)


def test_a_function_that_is_no_network_moves_with_its_inputs_and_its_indices_are_kept() -> None:
    inputs: list[Any] = [X, np.full_like(X, 1000.0), np.arange(3)]

    def task_rounding(far: float) -> float:
        def ask(arrays: Sequence[Any]) -> list[np.ndarray]:
            assert arrays[2].tolist() == [0, 1, 2]
            return [(arrays[0] + far * arrays[1]) - far * np.float32(1000.0)]

        (found,) = measure_task_rounding(ask, inputs, ask(inputs))
        return found.rounding[SINGLE]

    assert task_rounding(0.0) < 2 * AMOUNT[SINGLE]
    assert task_rounding(1.0) > 100 * AMOUNT[SINGLE]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_difference_of_large_numbers_moves_a_function_by_many_units_of_its_own_format(dtype: Any) -> None:
    factor = ROUNDING_FACTOR[np.dtype(dtype).name]
    numbers = (X * np.float32(3) + np.float32(20)).astype(dtype)

    def ask(arrays: Sequence[Any]) -> list[np.ndarray]:
        return [(arrays[0] - dtype(20)).astype(dtype)]

    (found,) = measure_task_rounding(ask, [numbers], ask([numbers]))
    assert 10 < factor * found.rounding[np.dtype(dtype).name] / float(np.finfo(dtype).eps) < 300
