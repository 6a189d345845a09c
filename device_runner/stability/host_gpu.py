"""A GPU of this host: which driver tells of it, and whether it held its pace. It is read and never set."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from device_runner.device import Pulse, Steadiness, T
from device_runner.stability import gpu_drivers
from device_runner.stability.gpu_drivers import GpuReading, Source

_AMD = re.compile(r"gfx\d|Radeon")
_INTEL = re.compile(r"Intel.*(Graphics|Arc|Iris)|^(Arc|Iris)\b")


def source(gpu: str) -> Source | str:
    """Return what tells of this OpenCL device, or why nothing does.

    An empty text for what is no GPU of these makers.
    """
    if "NVIDIA" in gpu:
        return gpu_drivers.nvidia_source(gpu)
    vendor = _vendor(gpu)
    return gpu_drivers.card_source(vendor) if vendor else ""


def reading_in(said: Mapping[str, str], gpu: str) -> GpuReading | str:
    """Return the same of what a bundle's look printed, by source: a reading, or why there is none."""
    if "NVIDIA" in gpu:
        return gpu_drivers.nvidia_report(said.get("gpus", ""), gpu)
    vendor = _vendor(gpu)
    return gpu_drivers.card_report(said.get("cards", ""), vendor) if vendor else ""


def _vendor(gpu: str) -> str:
    """PCI vendor of a graphics card with readable files; empty for another device."""
    if _AMD.search(gpu):
        return gpu_drivers.AMD
    return gpu_drivers.INTEL if _INTEL.search(gpu) else ""


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
    facts = {"before": before.facts, "after": after.facts, **({"notes": notes} if notes else {})}
    return Steadiness(throttled=bool(reasons), why="; ".join(reasons), facts=facts)


def _slowed(*readings: GpuReading) -> list[str]:
    return list(dict.fromkeys(what for reading in readings for what in reading.slowed or ()))


def pulses(source: Source | str) -> Callable[[], Pulse]:
    """Return what looks at the GPU whenever it is called."""

    def pulse() -> Pulse:
        now = source.read() if not isinstance(source, str) else GpuReading()
        return Pulse(
            clock_mhz=now.clock_mhz,
            gpu_c=now.gpu_c,
            shows_heat=now.slowed is not None,
            slowed="; ".join(now.slowed or ()),
        )

    return pulse
