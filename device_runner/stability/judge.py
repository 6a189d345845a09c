"""Whether the phone held its pace, between two readings or look by look: pure functions of readings."""

from __future__ import annotations

from collections.abc import Callable

from device_runner.device import Pulse, Steadiness
from device_runner.stability.reading import Reading

STATUS_WORDS = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")

ONE_LEVEL = 0.95
"""Share of the GPU's time at a single power level from which its clock counts as one."""

LOW_BATTERY_PERCENT = 20


def judge(before: Reading, after: Reading, *, fixed_clock: bool = False, tolerated_status: int = 0) -> Steadiness:
    """Compare what a phone said before and after it was measured.

    `held` says that the clock was held by root, so that it had no reason to change but heat. A thermal status up to
    `tolerated_status` is taken for this phone's normal.
    """
    share = clock_share(before, after)
    reasons = [*_reset(before, after), *slowed_by_heat(before, after, tolerated_status)]
    unsteady = share is not None and share < ONE_LEVEL
    if unsteady and fixed_clock and not reasons:
        reasons.append(f"the clock was held, and yet the GPU spent only {share:.0%} of its time at one level")
    notes = [f"the GPU's clock varied: {share:.0%} of its time at one level"] if unsteady and not fixed_clock else []
    notes += _battery(before)
    histogram = clock_histogram(before, after)
    facts = {
        "before": before.facts,
        "after": after.facts,
        "unavailable": after.unknown,
        **({"clock_share": round(share, 3)} if share is not None else {}),
        **({"clock_histogram": histogram} if histogram else {}),
        **({"notes": notes} if notes else {}),
    }
    return Steadiness(throttled=bool(reasons), why="; ".join(reasons), facts=facts)


def clock_share(before: Reading, after: Reading) -> float | None:
    """Share of the GPU's time between the readings that it spent at its most used level; None if that is unknown."""
    spent = _spent(before, after)
    return max(spent) / sum(spent) if spent else None


def clock_histogram(before: Reading, after: Reading) -> dict[str, float]:
    """Share of the GPU's time between the readings at each of its clocks, by MHz as text; empty if that is unknown."""
    spent = _spent_at_clocks(before, after)
    total = sum(time for _, time in spent)
    shares = {str(clock): round(time / total, 3) for clock, time in spent}
    return {clock: share for clock, share in shares.items() if share}


def slowed_by_heat(before: Reading, after: Reading, tolerated_status: int = 0) -> list[str]:
    """Return the signs that heat slowed the phone down in either reading, a line each."""
    level = max(before.gpu_cooling or 0, after.gpu_cooling or 0)
    cooling = [f"Android's cooling of the GPU was turned up to {level}"] if level else []
    return [*_limited(before, after), *cooling, *_status(before, after, tolerated_status)]


def shows_heat(reading: Reading) -> bool:
    """Return whether a reading would show that heat slows the phone down."""
    signs = (reading.thermal_pwrlevel, reading.max_clock_mhz, reading.gpu_cooling, reading.thermal_status)
    return any(sign is not None for sign in signs)


def busy_clock_mhz(before: Reading, after: Reading) -> float | None:
    """Mean clock of the GPU over the time between the readings in which it was busy; None if that is unknown."""
    spent = _spent_at_clocks(before, after)
    return sum(clock * time for clock, time in spent) / sum(time for _, time in spent) if spent else None


def _spent_at_clocks(before: Reading, after: Reading) -> list[tuple[int, int]]:
    """Return how long the GPU was busy at each of its clocks in MHz between the readings; empty if that is unknown."""
    clocks, spent = after.clocks_mhz, _spent(before, after)
    return list(zip(clocks, spent, strict=True)) if clocks and spent and len(clocks) == len(spent) else []


def _spent(before: Reading, after: Reading) -> list[int] | None:
    """Return how long the GPU was busy at each level between the readings, as its driver counts; None if unknown."""
    if not before.clock_stats or not after.clock_stats or len(before.clock_stats) != len(after.clock_stats):
        return None
    spent = [new - old for old, new in zip(before.clock_stats, after.clock_stats, strict=True)]
    return spent if min(spent) >= 0 and any(spent) else None


def _reset(before: Reading, after: Reading) -> list[str]:
    if before.reset_count is None or after.reset_count in (None, before.reset_count):
        return []
    return [f"the GPU was reset meanwhile (reset_count {before.reset_count} to {after.reset_count})"]


def _limited(before: Reading, after: Reading) -> list[str]:
    """Return what either of the driver's two nodes says of a clock that heat limited."""
    level = max(before.thermal_pwrlevel or 0, after.thermal_pwrlevel or 0)
    slowest = min((r.max_clock_mhz for r in (before, after) if r.max_clock_mhz), default=None)
    top = after.top_clock_mhz or before.top_clock_mhz
    clock = f"{slowest} of {top} MHz" if slowest and top and slowest < top else ""
    if level:
        return [f"heat held the GPU at power level {level}" + (f" ({clock})" if clock else "")]
    return [f"heat held the GPU at {clock}"] if clock else []


def _status(before: Reading, after: Reading, tolerated: int) -> list[str]:
    worst = max(before.thermal_status or 0, after.thermal_status or 0)
    if worst <= tolerated:
        return []
    word = STATUS_WORDS[worst] if worst < len(STATUS_WORDS) else "unknown"
    return [f"Android's thermal status was {worst} ({word})"]


def _battery(before: Reading) -> list[str]:
    low = before.battery_percent is not None and before.battery_percent < LOW_BATTERY_PERCENT
    return [f"the battery was low ({before.battery_percent} %): many phones slow down then"] if low else []


def pulses(look: Callable[[], Reading], tolerated_status: int = 0) -> Callable[[], Pulse]:
    """Return what looks at the phone whenever it is called."""
    before: list[Reading] = []

    def pulse() -> Pulse:
        now = look()
        last = before.pop() if before else now
        before.append(now)
        return _pulse(last, now, tolerated_status)

    return pulse


def _pulse(last: Reading, now: Reading, tolerated_status: int) -> Pulse:
    counted_mhz = busy_clock_mhz(last, now)
    busy_mhz = None if counted_mhz is None else round(counted_mhz)
    return Pulse(
        clock_mhz=busy_mhz if now.clock_stats else now.clock_mhz,
        gpu_c=now.gpu_c,
        power_level=now.thermal_pwrlevel,
        thermal_status=now.thermal_status,
        battery_percent=now.battery_percent,
        battery_c=now.battery_c,
        charge_uah=None if now.plugged is not False else now.charge_uah,
        voltage_mv=None if now.plugged is not False else now.voltage_mv,
        shows_heat=shows_heat(now),
        slowed="; ".join(slowed_by_heat(now, now, tolerated_status)),
    )
