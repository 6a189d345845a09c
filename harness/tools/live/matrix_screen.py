"""Progress of a run with its matrix above what is going on; where there is no terminal, lines as without it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.progress import Progress
from rich.text import Text

from harness.base.terminal import plain
from harness.judge.report.screen import Screen, paint
from harness.tools.live.live_matrix import LiveMatrix

if TYPE_CHECKING:
    from device_runner.device import Pulse
    from harness.measure.records.record import Record


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
