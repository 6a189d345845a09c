"""Whether a GPU of this host held its pace: a pure function of two readings."""

from __future__ import annotations

from collections.abc import Callable

from device_runner.device import Pulse, Steadiness, T
from device_runner.stability.host_gpu.reading import GpuReading, Source


def steadily(work: Callable[[], T], source: Source | str) -> tuple[T, Steadiness]:
    """Do `work`, and say whether the GPU kept its pace; `source` is why nothing can be read if it is a text."""
    if isinstance(source, str):
        return work(), Steadiness(facts={"unavailable": [source]} if source else {})
    before = source.read()
    done = work()
    return done, judge(before, source.read())


def judge(before: GpuReading, after: GpuReading) -> Steadiness:
    """Compare what a GPU said before and after it was measured."""
    reasons = [f"{what} slowed the GPU down" for what in _slowed(before, after)]
    if before.slowed_ms is not None and after.slowed_ms is not None and after.slowed_ms > before.slowed_ms:
        reasons.append(f"heat slowed the GPU down for {after.slowed_ms - before.slowed_ms:.0f} ms meanwhile")
    notes = ["the power limit held the clock down"] if before.capped or after.capped else []
    facts = {"before": before.known, "after": after.known, **({"notes": notes} if notes else {})}
    return Steadiness(throttled=bool(reasons), why="; ".join(reasons), facts=facts)


def _slowed(*readings: GpuReading) -> list[str]:
    return list(dict.fromkeys(what for reading in readings for what in reading.slowed or ()))


def pulses(source: Source | str) -> Callable[[], Pulse]:
    """What looks at the GPU whenever it is called."""

    def pulse() -> Pulse:
        now = source.read() if not isinstance(source, str) else GpuReading()
        return Pulse(
            clock_mhz=now.clock_mhz,
            gpu_c=now.gpu_c,
            shows_heat=now.slowed is not None,
            slowed="; ".join(now.slowed or ()),
        )

    return pulse
