"""An NVIDIA GPU, as its management library tells it (NVML, through the package `nvidia-ml-py`).

Names and numbers: NVIDIA, NVML API Reference, "Device Queries" and "NvmlClocksEventReasons".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from device_runner.stability.host_gpu.reading import GpuReading, Source

SM_CLOCK, GPU_TEMPERATURE, THERMAL_POLICY = 1, 0, 1
POWER_CAP = 0x4
SLOWED_BY = {0x8: "the board", 0x20: "heat (driver)", 0x40: "heat (hardware)", 0x80: "a power brake"}
"""Reasons for a lower clock that are nobody's choice."""


@dataclass(frozen=True)
class Nvml:
    """One GPU of the management library."""

    library: Any
    handle: Any

    def read(self) -> GpuReading:
        """Look once."""
        reasons = self._told("nvmlDeviceGetCurrentClocksThrottleReasons")
        power_mw = self._told("nvmlDeviceGetPowerUsage")
        slowed = self._told("nvmlDeviceGetViolationStatus", THERMAL_POLICY)
        return GpuReading(
            clock_mhz=self._told("nvmlDeviceGetClockInfo", SM_CLOCK),
            gpu_c=self._told("nvmlDeviceGetTemperature", GPU_TEMPERATURE),
            power_w=None if power_mw is None else power_mw / 1e3,
            slowed=None if reasons is None else tuple(why for bit, why in SLOWED_BY.items() if reasons & bit),
            slowed_ms=None if slowed is None else slowed.violationTime / 1e6,
            capped=None if reasons is None else bool(reasons & POWER_CAP),
        )

    def _told(self, function: str, *more: int) -> Any:
        ask: Callable[..., Any] | None = getattr(self.library, function, None)
        try:
            return None if ask is None else ask(self.handle, *more)
        except self.library.NVMLError:
            return None


def source(gpu: str) -> Source | str:
    """The GPU that OpenCL calls so, or why nothing can be read of it."""
    try:
        library = import_module("pynvml")
    except ImportError:
        return "clock, heat and power: nvidia-ml-py is not installed (pip install 'adreno-bench[nvidia]')"
    try:
        library.nvmlInit()
        handles = [library.nvmlDeviceGetHandleByIndex(i) for i in range(library.nvmlDeviceGetCount())]
        found = [handle for handle in handles if _text(library.nvmlDeviceGetName(handle)) == gpu]
    except library.NVMLError as error:
        return f"clock, heat and power: NVML says {error}"
    if len(found) != 1:
        return f"clock, heat and power: this host has {len(found)} GPUs that are called {gpu}"
    return Nvml(library, found[0])


def _text(name: str | bytes) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else name
