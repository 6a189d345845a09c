"""What the daemon tells the host that has the phone: what it cannot change itself, and what it injected.

One line of JSON each, on its standard output. The phone's programs could write there too, so nothing but these few
things can be asked for.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any

from device_runner.virtual import phone
from device_runner.virtual.phone import GPU_ZONE, INJECTED_JSONL, PhoneState

MAX_LINE_BYTES = 4096
MAX_LOG_BYTES = 16 << 20
HOT_MC = {GPU_ZONE: 95_000, "skin-therm": 52_000}
SEVERE = 3
THROTTLED_LEVEL = 2


class Events:
    """Carries out what the daemon tells, in a thread that ends with its output."""

    def __init__(self, told: IO[bytes], home: Path) -> None:
        self._told = told
        self._home = home
        self._before: PhoneState | None = None
        self._handlers: Mapping[str, Callable[[], object]] = {
            "reset_gpu": lambda: phone.edit(home, _reset),
            "overheat": lambda: phone.edit(home, self._heated),
            "cool": lambda: phone.edit(home, self._cooled),
            "reboot": lambda: phone.reboot(home),
        }
        threading.Thread(target=self._listen, name="virtual-phone-events", daemon=True).start()

    def _listen(self) -> None:
        while line := self._told.readline(MAX_LINE_BYTES):
            try:
                told = json.loads(line)
                self._carry_out(told)
            except (ValueError, TypeError, AttributeError):
                continue  # not the daemon's

    def _carry_out(self, told: dict[str, Any]) -> None:
        event = told.pop("event", None)
        if event == "injected":
            with (self._home / INJECTED_JSONL).open("a") as log:
                if log.tell() < MAX_LOG_BYTES:
                    log.write(json.dumps({"time_s": round(time.time(), 3), **told}) + "\n")
        elif event in self._handlers:
            self._handlers[event]()

    def _heated(self, state: PhoneState) -> PhoneState:
        self._before = self._before or state
        level = min(THROTTLED_LEVEL, len(state.gpu.levels_mhz) - 1)
        return replace(
            state,
            gpu=replace(state.gpu, thermal_level=level),
            temperatures_mc={**state.temperatures_mc, **HOT_MC},
            thermal_status=SEVERE,
        )

    def _cooled(self, state: PhoneState) -> PhoneState:
        before, self._before = self._before or state, None
        return state.changed(
            {
                "gpu": {"thermal_level": before.gpu.thermal_level},
                "temperatures_mc": asdict(before)["temperatures_mc"],
                "thermal_status": before.thermal_status,
            }
        )


def _reset(state: PhoneState) -> PhoneState:
    return replace(state, gpu=replace(state.gpu, resets=state.gpu.resets + 1))
