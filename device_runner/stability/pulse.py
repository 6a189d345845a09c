"""What a phone says of its heat and pace while it is kept running, look by look."""

from __future__ import annotations

from collections.abc import Callable

from device_runner.device import Pulse
from device_runner.stability.judge import busy_clock_mhz, shows_heat, slowed_by_heat
from device_runner.stability.reading import Reading


def pulses(look: Callable[[], Reading], tolerated_status: int = 0) -> Callable[[], Pulse]:
    """What looks at the phone whenever it is called."""
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
        shows_heat=shows_heat(now),
        slowed="; ".join(slowed_by_heat(now, now, tolerated_status)),
    )
