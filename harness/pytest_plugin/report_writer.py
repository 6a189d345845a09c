"""The page that `--adreno-report FILE` asks for: all cases that the tests judged, also by workers of pytest-xdist."""

from __future__ import annotations

from pathlib import Path

import pytest

from device_runner.failures import Failure
from harness.pytest_plugin.fixtures import PROPERTY
from harness.run.record import Record, parse


class ReportWriter:
    """Collects the record of each test, and writes the page when the last one has ended."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.lines: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the record of a test; each of its three phases tells it."""
        self.lines.update((str(value), None) for name, value in report.user_properties if name == PROPERTY)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the page and say where it is."""
        if not self.lines:
            return
        try:
            self._write([parse(line.encode()) for line in self.lines])
        except Failure as failure:
            terminalreporter.write_line(f"no report: {failure}")
        else:
            terminalreporter.write_line(f"report: {self.file}")

    def _write(self, records: list[Record]) -> None:
        from harness.report.page import environment

        environment()  # which says what to install
        from harness.report.suite_page import write_report

        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_report(self.file, [[record] for record in records], {})
