"""A GPU that gets warm when it works, and is slowed down by that.

One body with one temperature: at a load it tends to a temperature above the air's, with a time constant; power goes
with the square of the clock. Above a limit the fastest level that is allowed falls by one step after the other, below
another it rises again, as with Linux's step-wise governor (drivers/thermal/gov_step_wise.c). The numbers are of no
phone: the shape is.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from device_runner.stand_ins.virtual import phone
from device_runner.stand_ins.virtual.fault_file import FaultFile
from device_runner.stand_ins.virtual.faults import Heat
from device_runner.stand_ins.virtual.phone import BOOT_ID, FAULTS_JSON, GPU_ZONE, PhoneState
from device_runner.stand_ins.virtual.tvm_rpc.inference import BUSY_FILE

TICK_S = 0.1
STEP_S = 1.0
"""Longest step of the integration, in the body's own time."""
BETWEEN_STEPS_S = 10.0
"""Shortest time at a level, in the body's own time."""
BATTERY_SHARE, BATTERY_SLOWER = 0.25, 4.0
"""How much of the GPU's warmth the battery gets, and how much more slowly."""
DRAIN_PERCENT_PER_HOUR = 24.0
"""Battery use per hour at full load and the fastest clock."""
LIGHT = 1
"""Android's thermal status of a phone that is slowed down."""


@dataclass(frozen=True)
class Body:
    """How warm the phone is, and what follows from it."""

    gpu_c: float
    battery_c: float
    used_percent: float = 0.0
    """Share of the battery that was used, in percent."""
    level: int = 0
    """Fastest power level that is allowed."""
    at_level_s: float = 0.0

    def after(self, seconds: float, load: float, heat: Heat, levels_mhz: tuple[int, ...]) -> Body:
        """Return the body after so many seconds of its own time, at a load from 0 to 1."""
        body = self
        for _ in range(math.ceil(seconds / STEP_S)):
            body = body._step(seconds / math.ceil(seconds / STEP_S), load, heat, levels_mhz)
        return body

    def _step(self, dt_s: float, load: float, heat: Heat, levels_mhz: tuple[int, ...]) -> Body:
        power = load * (levels_mhz[self.level] / levels_mhz[0]) ** 2
        tends_to_c = heat.air_c + (heat.full_load_c - heat.air_c) * power
        gpu_c = _nearer(self.gpu_c, tends_to_c, dt_s / heat.time_constant_s)
        battery_tends_to_c = heat.air_c + BATTERY_SHARE * (gpu_c - heat.air_c)
        level, at_level_s = self.level, self.at_level_s + dt_s
        if at_level_s >= BETWEEN_STEPS_S:
            target = level + (gpu_c > heat.slow_down_c) - (gpu_c < heat.speed_up_c)
            target = min(max(0, target), len(levels_mhz) - 1)
            level, at_level_s = target, at_level_s if target == level else 0.0
        return Body(
            gpu_c,
            _nearer(self.battery_c, battery_tends_to_c, dt_s / (BATTERY_SLOWER * heat.time_constant_s)),
            self.used_percent + DRAIN_PERCENT_PER_HOUR * power * dt_s / 3600,
            level,
            at_level_s,
        )


def body_of(state: PhoneState) -> Body:
    """Return a phone that has rested, as warm as its state says."""
    return Body(state.temperatures_mc.get(GPU_ZONE, 0) / 1000, state.battery.temperature_dc / 10)


def warmed(state: PhoneState, body: Body, busy_us: tuple[int, ...], load: float) -> PhoneState:
    """Return what the phone shows: its state, and on top of it what the heat does; what is worse counts."""
    idle = len(state.gpu.levels_mhz) - 1
    gpu = replace(
        state.gpu,
        level=max(state.gpu.level, 0 if load else idle),
        thermal_level=max(state.gpu.thermal_level, body.level),
        busy_percent=round(100 * load),
        busy_us=tuple(old + new for old, new in zip(state.gpu.busy_us, busy_us, strict=True)),
    )
    percent = max(1, state.battery.level_percent - int(body.used_percent))
    battery = replace(state.battery, level_percent=percent, temperature_dc=round(10 * body.battery_c))
    gpu_mc = max(state.temperatures_mc.get(GPU_ZONE, 0), round(1000 * body.gpu_c))
    return replace(
        state,
        gpu=gpu,
        battery=battery,
        temperatures_mc={**state.temperatures_mc, GPU_ZONE: gpu_mc},
        thermal_status=max(state.thermal_status, LIGHT if body.level else 0),
    )


class Heating:
    """Warms the phone in a folder for as long as its faults say that it gets warm.

    Nothing of it is kept in the phone's state: the next start finds a phone that has rested.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._faults = FaultFile(home / FAULTS_JSON)
        self._heat: Heat | None = None
        self._body: Body | None = None
        self._boot = ""
        self._busy_us: tuple[int, ...] = ()
        self._seen_us = 0
        self._owed_s = 0.0
        """Work that was told of in one go and is still to be spread over the time that it took."""

    def tick(self, seconds: float) -> None:
        """Advance by the time since the last tick."""
        heat = self._faults.now.heat
        if heat != self._heat:  # another body, which has rested
            self._heat, self._body = heat, None
            phone.show(self._home, lambda state: state)
        if heat:
            phone.show(self._home, lambda state: self._next(state, heat, seconds))

    def _next(self, state: PhoneState, heat: Heat, seconds: float) -> PhoneState:
        self._begin_anew(state)
        assert self._body
        self._owed_s += self._worked_s()
        worked_s = min(self._owed_s, seconds)
        self._owed_s -= worked_s
        level = max(self._body.level, state.gpu.thermal_level)
        busy = list(self._busy_us)
        busy[level] += round(1e6 * worked_s)
        self._busy_us = tuple(busy)
        load = worked_s / seconds
        self._body = self._body.after(seconds * heat.speed, load, heat, state.gpu.levels_mhz)
        return warmed(state, self._body, self._busy_us, load)

    def _begin_anew(self, state: PhoneState) -> None:
        """Begin with a phone that has rested; after a boot its counters begin at 0, and it is as warm as it was."""
        boot = (self._home / BOOT_ID).read_text()
        if self._body is None:
            self._body = body_of(state)
            self._worked_s()
            self._owed_s = 0.0
        if boot != self._boot or len(self._busy_us) != len(state.gpu.levels_mhz):
            self._boot, self._busy_us = boot, (0,) * len(state.gpu.levels_mhz)

    def _worked_s(self) -> float:
        """Seconds of GPU work since the last call."""
        try:
            now_us = max(0, int((self._home / BUSY_FILE).read_text() or 0))
        except (OSError, ValueError):
            return 0.0
        spent_us = now_us - self._seen_us if now_us >= self._seen_us else now_us
        self._seen_us = now_us
        return spent_us / 1e6


@contextlib.contextmanager
def heating(home: Path) -> Iterator[None]:
    """Warm the phone in this folder, beside whatever else goes on, until the context ends."""
    model, ended = Heating(home), threading.Event()

    def run() -> None:
        last_s = time.monotonic()
        while not ended.wait(TICK_S):
            now_s = time.monotonic()
            model.tick(now_s - last_s)
            last_s = now_s

    thread = threading.Thread(target=run, name="virtual-phone-heat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _nearer(value: float, target: float, time_constants: float) -> float:
    return target + (value - target) * math.exp(-time_constants)
