"""What a GPU's driver says at one moment."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class GpuReading:
    """One look. None means that the driver does not say."""

    clock_mhz: int | None = None
    gpu_c: float | None = None
    power_w: float | None = None
    slowed: tuple[str, ...] | None = None
    """What slows the GPU down right now against its will: heat, a power brake. Empty: nothing does."""
    slowed_ms: float | None = None
    """How long heat has slowed it down since its driver was loaded."""
    capped: bool | None = None
    """Whether its power limit holds the clock down, which a GPU at full load may be for ever."""

    @property
    def known(self) -> dict[str, Any]:
        """What it says, ready for JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Source(Protocol):
    """Where readings come from."""

    def read(self) -> GpuReading:
        """Look once; takes milliseconds and raises nothing."""
