"""Inferences that take as long as the GPU's clock lets them, and are counted as work that warms it (`virtual.heat`)."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BUSY_FILE = "data/misc/gpu_busy_us"
"""Where what runs on the phone counts for how long its GPU was busy, in microseconds."""

SLICE_S = 0.05
"""Work is told of at least as often."""


class ClockedGpu:
    """The phone's GPU: its clock, and for how long it was busy."""

    def __init__(self) -> None:
        root = Path(os.environ.get("ANDROID_ROOT", "/system")).parent
        self._nodes = root / "sys/class/kgsl/kgsl-3d0"
        busy = root / BUSY_FILE
        busy.parent.mkdir(exist_ok=True)
        self._file = os.open(busy, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self._busy_us = 0.0

    @property
    def slowdown(self) -> float:
        """How much longer than at its fastest clock everything takes; 1 if the phone does not say."""
        try:
            fastest = max(map(int, (self._nodes / "freq_table_mhz").read_text().split()))
            return fastest / int((self._nodes / "max_clock_mhz").read_text())
        except (OSError, ValueError, ZeroDivisionError):
            return 1.0

    def wait(self, seconds: float) -> None:
        """Be busy for so long without computing, and longer if this host wakes us late: that is work as well."""
        began_s = time.monotonic()
        while seconds > 0:
            time.sleep(min(SLICE_S, seconds))
            seconds -= SLICE_S
            self.worked(-began_s + (began_s := time.monotonic()))

    def worked(self, seconds: float) -> None:
        """It was busy for so long."""
        self._busy_us += 1e6 * seconds
        os.pwrite(self._file, b"%020d\n" % int(self._busy_us), 0)

    def stretched(self, timed: Callable[..., Any], number: int) -> Callable[..., bytes]:
        """A function that times inferences, `number` to a sample, made as slow as the clock is when it is called."""

        def call(*arguments: Any) -> bytes:
            data = bytes(timed(*arguments))
            samples = struct.unpack(f"@{len(data) // 8}d", data)
            slowdown, spent_s = self.slowdown, number * sum(samples)
            self.worked(spent_s)
            self.wait((slowdown - 1) * spent_s)
            return struct.pack(f"@{len(samples)}d", *(slowdown * sample for sample in samples))

        return call
