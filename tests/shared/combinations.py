"""Which combinations of several parameters `make test` runs, where all of them would show little more."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest


def one_at_a_time(*values: Sequence[Any]) -> list[Any]:
    """All combinations. Those in which more than one value is not the first of its kind are left to `make test-rest`.

    So each value of each parameter is seen beside the first ones of the others.
    """

    def param(*chosen: tuple[int, Any]) -> Any:
        others = sum(index > 0 for index, _ in chosen)
        return pytest.param(*(value for _, value in chosen), marks=[pytest.mark.rest] if others > 1 else [])

    return [param(*chosen) for chosen in product(*map(enumerate, values))]
