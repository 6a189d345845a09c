"""Waiting until a phone is within its thermal limits, for a limited time."""

from __future__ import annotations

import time
from collections.abc import Callable

from device_runner.device import ThermalLimits
from device_runner.stability.reading import Reading

POLL_S = 2.0


def too_hot(reading: Reading, limits: ThermalLimits) -> str:
    """What is over its limit, in one line; empty if nothing is, or nothing can be read."""
    over = [
        f"{name} {value:g} > {limit:g}"
        for name, value, limit in (
            ("GPU °C", reading.gpu_c, limits.gpu_c),
            ("battery °C", reading.battery_c, limits.battery_c),
            ("thermal status", reading.thermal_status, limits.thermal_status),
        )
        if value is not None and value > limit
    ]
    return ", ".join(over)


def cooled(
    look: Callable[[], Reading],
    limits: ThermalLimits,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Reading, dict[str, object]]:
    """Read the phone until it is cool or the time for that is over: the last reading, and facts about the wait."""
    reading = look()
    began = clock()
    while too_hot(reading, limits) and (left_s := limits.wait_s - (clock() - began)) > 0:
        sleep(min(POLL_S, left_s))
        reading = look()
    facts: dict[str, object] = {"waited_s": round(clock() - began, 1)}
    if hot := too_hot(reading, limits):
        facts["hot_start"] = hot
    return reading, facts
