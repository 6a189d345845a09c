"""The class that a network gives an input: where its first output is largest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from harness.failures import ModelError

if TYPE_CHECKING:
    from device_runner.device import Array


def top_classes(ask: Callable[[Array], Sequence[Array]], inputs: Array, batch: int) -> Array:
    """The class of each of the inputs, which `ask` answers in batches of so many; int64, one for each row.

    Raises ModelError if the first output has not one row of scores for each input.
    """
    import numpy as np

    return np.concatenate([_classes(ask(inputs[at : at + batch])[0], batch) for at in range(0, len(inputs), batch)])


def _classes(scores: Array, batch: int) -> Array:
    if scores.ndim < 2 or scores.shape[0] != batch:
        raise ModelError(
            f"the first output has the shape {list(scores.shape)}, and labelled data need {batch} rows of scores",
            hint="leave `labelled` out, or let the model's first output be its scores",
        )
    classes: Array = scores.reshape(batch, -1).argmax(axis=1)
    return classes
