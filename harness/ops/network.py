"""What the sets of operator cases are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from device_runner.device import Array


@dataclass(frozen=True)
class OperatorNetwork:
    """A network about one operator, with what it is run on and what must come of it."""

    name: str
    """Of `[a-z0-9_]`."""
    operator: str
    model: bytes
    inputs: Mapping[str, Array]
    """In the model's order."""
    outputs: Mapping[str, Array]
    """In the model's order."""
