"""What `run --live` shows: a row a model, a column a path, and heat and clock of each device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.base.case import Case
from harness.base.tables import table
from harness.judge.report import words
from harness.judge.stats.session import location_ms

if TYPE_CHECKING:
    from device_runner.device import Pulse
    from harness.measure.records.record import Record

WAITING = "."
MOST_ROWS = 20
"""Models that a screen has room for: those that are not finished come first."""
ON = " on "


class LiveMatrix:
    """The state of each case of a run, by what a run tells its watcher."""

    def __init__(self) -> None:
        self._cells: dict[str, str] = {}
        self._open: set[str] = set()
        self._devices: dict[str, str] = {}
        self._clocks_mhz: dict[str, int | None] = {}

    def expect(self, case_ids: Sequence[str]) -> None:
        """Add cases that wait."""
        self._cells |= dict.fromkeys(case_ids, WAITING)
        self._open |= set(case_ids)

    def step(self, name: str, step: str) -> None:
        """Show what a case is doing, by its id or, of several devices, by id and device; ignore whatever else."""
        case = name.partition(ON)[0]
        if step and case in self._open:
            self._cells[case] = step.partition(":")[0]

    def done(self, record: Record) -> None:
        """Show how a case ended."""
        timed = record.outcome == "ok" and record.wall_ms and record.path not in record.emulated
        latency = f" {words.latency(location_ms(record.wall_ms))}" if timed else ""
        self._cells[record.case] = f"{record.outcome.value}{latency}"
        self._open.discard(record.case)

    def pulse(self, device: str, pulse: Pulse) -> None:
        """Show the state of a device, with the clock of its last work; what it does not tell is left out."""
        self._clocks_mhz[device] = clock_mhz = pulse.clock_mhz or self._clocks_mhz.get(device)
        heat = f"{pulse.gpu_c:.1f} °C" if pulse.gpu_c is not None else ""
        clock = f"{clock_mhz} MHz" if clock_mhz else ""
        if state := ", ".join(filter(None, (heat, clock, pulse.slowed))):
            self._devices[device] = f"{device}: {state}"

    @property
    def devices(self) -> list[str]:
        """A line for each device that tells its state."""
        return list(self._devices.values())

    def text(self) -> str:
        """Return the matrix and a line for each device; empty without cases."""
        if not self._cells:
            return ""
        cases = [Case.parse(case) for case in self._cells]
        paths = list(dict.fromkeys(case.path for case in cases))
        models = sorted(dict.fromkeys(case.model for case in cases), key=self._finished)
        rows = [(model, *(self._cell(cases, model, path) for path in paths)) for model in models[:MOST_ROWS]]
        more = [f"and {len(models) - MOST_ROWS} models more"] if len(models) > MOST_ROWS else []
        return "\n".join([table(rows, ("model", *paths), prose=paths), *more, *self.devices])

    def _finished(self, model: str) -> bool:
        return not any(Case.parse(case).model == model for case in self._open)

    def _cell(self, cases: Sequence[Case], model: str, path: str) -> str:
        return ", ".join(self._cells[case.id] for case in cases if (case.model, case.path) == (model, path))
