"""What rounding does to one compiled function, as `harness.compile.oracle.rounding` finds it for a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from device_runner.device import Array
from harness.compile.oracle.leeway import SINGLE, Measured
from harness.compile.oracle.rounding import AMOUNT, DRAWS, farthest, relative_movement

HALF_AMOUNT = 2.0**-8
"""Most that a number of float16 is moved: four of its units in the last place, or it would often stay."""


def measure_task_rounding(
    ask: Callable[[Sequence[Array]], list[Array]], inputs: Sequence[Array], outputs: Sequence[Array]
) -> list[Measured]:
    """Measure the rounding of one compiled function, of which only the inputs can be moved."""
    amount = HALF_AMOUNT if any(array.dtype == np.float16 for array in inputs) else AMOUNT[SINGLE]
    moved = farthest(outputs, (ask(_move_arrays(inputs, draw)) for draw in range(DRAWS)))
    movements = [relative_movement(*pair) / amount for pair in zip(moved, outputs, strict=True)]
    return [Measured(rounding={name: each * most for name, most in AMOUNT.items()}) for each in movements]


def _move_arrays(arrays: Sequence[Array], draw: int) -> list[Array]:
    """Return every real number with a random factor next to 1."""
    rng = np.random.default_rng(draw)

    def move(array: Array) -> Array:
        amount = HALF_AMOUNT if array.dtype == np.float16 else AMOUNT[SINGLE]
        moved: Array = array.astype(np.float64) * rng.uniform(1 - amount, 1 + amount, array.shape)
        return moved.astype(array.dtype)

    return [move(array) if array.dtype.kind == "f" else array for array in arrays]
