"""What a person sees of the tests: the message of a case that failed, and the page of all cases.

The message has all that is to be known without running anything. `--adreno-report FILE` asks for the page, which has
the cases of all workers of pytest-xdist.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from device_runner.failures import Failure
from harness.base.suite import Tolerance
from harness.base.terminal import plain
from harness.judge.baseline import Baseline
from harness.judge.report.facts import reproduce
from harness.measure.records.record import Record, parse

PROPERTY = "adreno_bench_record"
LABEL = 11
SHOWN_EVIDENCE = 6
"""Lines of a log that are shown unless pytest is asked for more: TVM's end with what went wrong."""


def explain(
    record: Record, suite: Path, baseline: Baseline | None, justified: Tolerance | None, *, whole: bool = False
) -> str:
    """One line of what happened, then one line for each fact; the end of the evidence, or the `whole`, comes last."""
    facts = {
        "model": record.model,
        "path": record.path,
        "precision": f"{record.precision}, {record.tuning}",
        "error": _error(record, justified),
        "judge": record.judge,
        "baseline": _baseline(record, baseline),
        "quirks": ", ".join(record.quirks) or "none",
        "device": f"{record.device} ({record.identity_key})",
        "tvm": f"{record.tvm} with tvm-ffi {record.ffi}",
        "hint": record.hint,
        "reproduce": reproduce(record, suite),
    }
    lines = [f"{name:{LABEL}} {value}" for name, value in facts.items() if value]
    return plain("\n".join([headline(record), *lines, *_evidence(record, whole=whole)]))


def _evidence(record: Record, *, whole: bool) -> list[str]:
    lines = record.evidence.splitlines()
    tail = lines if whole else lines[-SHOWN_EVIDENCE:]
    left_out = f" (the last {len(tail)} of {len(lines)} lines; -v shows all)" if len(tail) < len(lines) else ""
    return [f"evidence{left_out}", *(f"  {line}" for line in tail)] if lines else []


def headline(record: Record) -> str:
    """Return what happened and whose it is.

    Of a wrong answer the message names the first output and index that differ.
    """
    return plain(f"{record.case}: {record.outcome.value} (owner: {record.owner.value}): {record.message}")


def _error(record: Record, justified: Tolerance | None) -> str:
    if record.max_abs_err is None or record.tolerance is None:
        return ""
    reason = f" (the suite allows {justified.relative:g} of the peak: {justified.reason})" if justified else ""
    return f"{record.max_abs_err:.3g} against tolerance {record.tolerance:.3g}{reason}"


def _baseline(record: Record, baseline: Baseline | None) -> str:
    if baseline is None:
        return f"none on {record.identity_key}"
    error = "" if baseline.max_abs_err is None else f", off by {baseline.max_abs_err:.3g}"
    return f"right{error}, with tvm {baseline.tvm} and quirks {', '.join(baseline.quirks) or 'none'}"


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
        from harness.judge.report.page import environment

        environment()  # which says what to install
        from harness.judge.report.sections import PageFiles, load_details
        from harness.judge.report.suite_page import write_report

        self.file.parent.mkdir(parents=True, exist_ok=True)
        details = load_details(PageFiles((), ()), {record.artifact for record in records})
        write_report(self.file, [[record] for record in records], details=details)
