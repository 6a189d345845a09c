"""Which combinations of several parameters `make test` runs, where all of them would show little more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pytest


def one_at_a_time(*values: Sequence[Any]) -> Iterator[Any]:
    """All combinations. Those in which more than one value is not the first of its kind are left to `make test-rest`.

    So each value of each parameter is seen beside the first ones of the others.
    """
    for chosen in product(*(range(len(kind)) for kind in values)):
        picked = [kind[index] for kind, index in zip(values, chosen, strict=True)]
        more = sum(index > 0 for index in chosen) > 1
        yield pytest.param(*picked, marks=[pytest.mark.rest] if more else [])
