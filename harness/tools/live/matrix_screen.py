"""Progress of a run with a matrix above what is going on: a row a model, a column a path, and the state of each device.

Where there is no terminal there are lines as without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.progress import Progress
from rich.text import Text

from device_runner.device import Pulse
from harness.base.case import Case
from harness.base.tables import table
from harness.base.terminal import plain
from harness.judge.report import words
from harness.judge.report.screen import Screen, paint
from harness.judge.stats.session import location_ms
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
        unfinished = {Case.parse(case).model for case in self._open}
        models = sorted(dict.fromkeys(case.model for case in cases), key=lambda model: model not in unfinished)
        rows = [(model, *(self._cell(cases, model, path) for path in paths)) for model in models[:MOST_ROWS]]
        more = [f"and {len(models) - MOST_ROWS} models more"] if len(models) > MOST_ROWS else []
        return "\n".join([table(rows, ("model", *paths), prose=paths), *more, *self.devices])

    def _cell(self, cases: Sequence[Case], model: str, path: str) -> str:
        return ", ".join(self._cells[case.id] for case in cases if (case.model, case.path) == (model, path))


class MatrixScreen(Screen):
    """`Screen` with a matrix."""

    watches_devices = True

    def __init__(self) -> None:
        super().__init__()
        self.matrix = LiveMatrix()
        self._live = _MatrixProgress(self.matrix, self._live)

    def expect(self, case_ids: Sequence[str]) -> None:
        """Draw the cells of these cases."""
        self.matrix.expect(case_ids)
        self._draw()

    def step(self, case_id: str, step: str) -> None:
        """Show the step in the case's cell, too."""
        self.matrix.step(case_id, step)
        super().step(case_id, step)

    def pulse(self, device: str, pulse: Pulse) -> None:
        """Show a device's heat and clock."""
        self.matrix.pulse(device, pulse)

    @property
    def _going_on(self) -> dict[str, str]:
        """Name the devices where no matrix does."""
        devices = {} if self.console.is_terminal else {line: line for line in self.matrix.devices}
        return {**super()._going_on, **devices}

    def done(self, record: Record) -> None:
        """Show in its cell how a case ended."""
        self.matrix.done(record)
        super().done(record)


class _MatrixProgress(Progress):
    """The live list of a screen, below the matrix."""

    def __init__(self, matrix: LiveMatrix, below: Progress) -> None:
        self._matrix = matrix
        super().__init__(*below.columns, console=below.console, transient=True)

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the matrix, then the list."""
        if text := self._matrix.text():
            yield Text.from_ansi(paint(plain(text)) + "\n", no_wrap=True)
        yield from super().get_renderables()
