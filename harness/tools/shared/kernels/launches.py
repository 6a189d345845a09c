"""The kernels of an inference, as a probe of a tool watches them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from device_runner.device import Launch


@dataclass(frozen=True)
class Launches:
    """The kernels of each inference that was watched, in the order in which they were launched."""

    inferences: Sequence[Sequence[Launch]]
