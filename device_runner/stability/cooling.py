"""Waiting until a phone is within its thermal limits and has nothing else to do, for a limited time."""

from __future__ import annotations

import time
from collections.abc import Callable

from device_runner.device import ThermalLimits
from device_runner.failures import FlatBattery
from device_runner.stability.reading import Reading

POLL_S = 2.0
IDLE_POLL_S, IDLE_WAIT_S = 0.5, 5.0
"""The driver counts in windows of a second; what keeps a GPU busy for longer than five does not stop soon."""


def too_hot(reading: Reading, limits: ThermalLimits) -> str:
    """Return what is over its limit, in one line; empty if nothing is, or nothing can be read."""
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


def too_busy(reading: Reading, limits: ThermalLimits) -> str:
    """Return what the GPU still does, in one line; empty if it is idle, or if it does not tell."""
    busy = reading.gpu_busy_percent
    return f"GPU {busy} % busy > {limits.gpu_busy_percent}" if (busy or 0) > limits.gpu_busy_percent else ""


def require_charge(reading: Reading, limits: ThermalLimits) -> None:
    """Raise FlatBattery if the battery is below its floor: that takes longer to mend than anybody would wait here."""
    charge = reading.battery_percent
    if charge is not None and charge < limits.battery_percent:
        message = f"nothing was timed: the battery is at {charge} %, below its floor of {limits.battery_percent} %"
        hint = "charge it and run again with --resume, or lower `battery_percent` under [steady] in the suite"
        raise FlatBattery(message, hint=hint)


def wait_until_cool(
    look: Callable[[], Reading],
    limits: ThermalLimits,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Reading, dict[str, object]]:
    """Read the phone until it is cool and idle, or the time for that is over.

    Returns the last reading, and facts about the wait. Raises FlatBattery.
    """
    reading = look()
    require_charge(reading, limits)
    began = clock()

    def waited(why: Callable[[Reading, ThermalLimits], str], wait_s: float, poll_s: float) -> str:
        nonlocal reading
        since = clock()
        while why(reading, limits) and (left_s := wait_s - (clock() - since)) > 0:
            sleep(min(poll_s, left_s))
            reading = look()
        return why(reading, limits)

    hot = waited(too_hot, limits.wait_s, POLL_S)
    busy = waited(too_busy, min(limits.wait_s, IDLE_WAIT_S), IDLE_POLL_S)
    facts: dict[str, object] = {"waited_s": round(clock() - began, 1)}
    started = {"hot_start": hot, "busy_start": busy}
    return reading, {**facts, **{name: why for name, why in started.items() if why}}
