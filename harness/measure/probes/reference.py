"""The reference kernel: the same fixed work in every session, once as it is and once with 1.3 times the turns.

Its time has nothing to do with any model. If it moved between two runs, the rig moved; if the one with more turns does
not take longer, this rig cannot show that anything is slower. `harness.compile.artifacts.reference_kernel` makes the
kernel.

How many turns are long enough to be steady is found out once for a device: 25 us on a GPU that changes its clock lay
between 23 and 47 us, and on a clock of 1 us a kernel of a few ticks is always or never slower. The number is a power of
four and is kept, so that all sessions of a device do the same work.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from device_runner.device import Array, Device, Program, Session
from device_runner.failures import Failure, RigFailure
from harness.base.plan import Budget
from harness.compile.artifacts.artifact import CRC, Artifact
from harness.measure.facts import Reference
from harness.measure.probes.latency import warm_up

TURNS = 8192
"""Start of the search for a number of turns, and the number of records that predate the search."""
GROWTH, GROWN = 4, 5
"""Growth factor of the number until it lasts long enough, and maximum number of such steps."""
LONG_MS, TICKS = 1.0, 100
"""Long enough: so many ms, and so many ticks of the device's clock, which then rounds by less than a noise of 0.3 %."""
TOO_LONG_MS = 5.0
"""The search ends at this time in ms, even on a coarse clock, whose ticks are then part of the noise."""
TRIED = (1.0, 1.013, 1.3)
"""Shares of a number of turns to time: times that are nearly equal show the length of a tick."""
FACTOR = 1.3
"""Ratio of turns of the slowed kernel to the plain one (`slowed_ms` in docs/reference/records.md)."""
SAMPLES = 6
"""Samples of each kernel."""
ORDER = ((1.0, SAMPLES // 2), (FACTOR, SAMPLES), (1.0, SAMPLES // 2))
"""Share of the turns, and samples: the slowed one lies in the middle, so that a drifting clock makes it no slower or
faster."""
TIMEOUT_S = 20.0


@dataclass(frozen=True)
class ReferenceKernel:
    """The kernel, made ready for a device."""

    artifact: Artifact
    binaries: Path
    """The device's own compilation of it, which would take longer than all samples."""
    turns: int
    """Turns of its loop: long enough on this device."""

    def measure(self, session: Session) -> Reference | None:
        """Time it in a session that has done its case; None if that fails, which is not the case's fault."""
        ends = time.monotonic() + TIMEOUT_S
        try:
            program = session.load(self.artifact.loadable, timeout_s=TIMEOUT_S)
            program.use_binaries(self.binaries.read_bytes(), timeout_s=ends - time.monotonic())
            samples = [_samples(program, round(share * self.turns), count, ends) for share, count in ORDER]
        except (Failure, OSError):
            return None
        before, slowed, after = samples
        return Reference(f"{self.artifact.compiled.facts[CRC]:08x}-{self.turns}", before + after, slowed)


def find_turns(device: Device, artifact: Artifact, binaries: Path) -> bytes:
    """Return how many turns are long enough on a device, as text, by a session of its own."""
    ends = time.monotonic() + TIMEOUT_S
    with device.session({}, timeout_s=TIMEOUT_S) as session:
        program = session.load(artifact.loadable, timeout_s=TIMEOUT_S)
        program.use_binaries(binaries.read_bytes(), timeout_s=ends - time.monotonic())
        program.run([input_of(TURNS)], timeout_s=ends - time.monotonic())
        warm_up(program, Budget(timeout_s=TIMEOUT_S), time.monotonic)  # a GPU that has rested would seem slow
        for turns in (TURNS * GROWTH**times for times in range(GROWN)):
            plain, *others = (_samples(program, round(share * turns), SAMPLES, ends) for share in TRIED)
            if long_enough(plain, [ms for other in others for ms in other]):
                return str(turns).encode()
    return str(TURNS * GROWTH**GROWN).encode()


def long_enough(samples_ms: Sequence[float], others_ms: Sequence[float]) -> bool:
    """Return whether it lasts `LONG_MS` and `TICKS` ticks, which `others_ms` show, too; or too long to grow."""
    shortest = min(samples_ms)
    tick_ms = math.gcd(*(round(1e6 * ms) for ms in (*samples_ms, *others_ms))) / 1e6
    return shortest >= TOO_LONG_MS or shortest >= max(LONG_MS, TICKS * tick_ms)


def turns_in(file: Path) -> int:
    """Return the stored number. Raises RigFailure if it is not a number."""
    text = file.read_text(encoding="utf-8", errors="replace")
    if not text.isdecimal():
        raise RigFailure(f"the stored number of turns is not a number: {text[:20]!r}", hint=f"remove {file.parent}")
    return int(text)


def _samples(program: Program, turns: int, count: int, ends: float) -> list[float]:
    program.run([input_of(turns)], timeout_s=ends - time.monotonic())
    return program.device_ms(count, timeout_s=ends - time.monotonic())


def input_of(turns: int) -> Array:
    """Return the kernel's input: how many turns its loop makes."""
    return np.array([turns], np.int32)
