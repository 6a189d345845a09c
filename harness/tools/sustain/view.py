"""How `run --sustain`, `sustained` and a report show sustained runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harness.base.tables import table
from harness.judge.report import words
from harness.judge.report.part_view import PartView
from harness.judge.report.table import complaints, milliseconds
from harness.measure.records.record import Record
from harness.tools.sustain.part import FIGURE_S, Energy, Sustained

COLUMNS = (
    "case",
    "device",
    "outcome",
    "lasted",
    "first ms",
    "last ms",
    "last / first",
    "throttled",
    "hottest",
    "battery used",
    "mJ each",
)
SPARE = ("device", "battery used", "mJ each", "hottest", "outcome", "lasted")
"""What a narrow terminal gets along without, the least important first."""


def sustained_table(records: Sequence[Record]) -> str:
    """Return a row for each sustained run, and a line for whatever is not plainly `ok`."""
    runs = [(record, run) for record in records if (run := record.part(Sustained))]
    rows = [(record.case, record.device, record.outcome.value, *_figures(record, run)) for record, run in runs]
    text = table(rows, COLUMNS, right=COLUMNS[3:], spare=SPARE)
    return "\n".join([text, *_explained(runs), *complaints(records)])


def _figures(record: Record, run: Sustained) -> tuple[str, ...]:
    figures = run.figures
    lasted = f"{run.lasted_s:.0f} of {run.asked_s:g} s"
    if not figures:
        return (lasted, "emulated" if record.path in record.emulated else "-", "-", "-", "-", "-", "-", "-")
    return (
        lasted,
        milliseconds(figures.first_ms),
        milliseconds(figures.last_ms),
        f"{figures.ratio:.2f}",
        throttled_text(run),
        "-" if figures.hottest_c is None else f"{figures.hottest_c:.0f} °C",
        "-" if figures.battery_used_percent is None else f"{figures.battery_used_percent} %",
        format_energy(figures.energy),
    )


def format_energy(energy: Energy | None) -> str:
    """Return the energy of one inference and its resolution, in mJ; `-` if it is not known."""
    return "-" if energy is None else f"{energy.each_mj:.3g} ± {energy.resolution_mj:.2g}"


def throttled_text(run: Sustained) -> str:
    """Say when heat slowed the phone down, and for what share of the time."""
    if run.throttled_after_s is not None:
        share = run.figures.throttled_share if run.figures else None
        return f"after {run.throttled_after_s:.0f} s" + ("" if share is None else f", for {share:.0%}")
    return "never" if run.shows_throttling else "unknown"


def _explained(runs: Iterable[tuple[Record, Sustained]]) -> list[str]:
    throttled, stopped, windows = [], [], []
    for record, run in runs:
        if run.throttled_after_s is not None:
            throttled.append(f"  {record.case}: after {run.throttled_after_s:.0f} s {run.throttled_why}")
        if run.stopped:
            why = f"stopped by hand after {run.lasted_s:.0f} s; what was measured is kept"
            stopped.append(f"  {record.case}: {why}")
        windows += [run.figures.window_s] if run.figures else []
    lines = [*throttled, *stopped]
    if any(window < FIGURE_S for window in windows):
        lines.append(f"  first and last: {min(windows):g} s each, half of a run that is shorter than two minutes")
    return ["", *lines] if lines else []


def figures_of(record: Record) -> dict[str, Any]:
    """Return the figures of a record for programs, to stand beside what they are made of."""
    run = record.part(Sustained)
    return {"figures": run.figures._asdict() if run and run.figures else None}


def _facts(record: Record) -> list[tuple[str, str]]:
    run = record.part(Sustained)
    figures = run.figures if run else None
    if figures is None:
        return []
    first, last = words.latency(figures.first_ms), words.latency(figures.last_ms)
    window = f"{first} in the first {figures.window_s:.0f} s, {last} in the last ({figures.ratio:.2f} times)"
    facts = [("without a pause", window)]
    if figures.energy:
        each = format_energy(figures.energy)
        facts.append(("energy", f"{each} mJ for an inference, with all else that the phone did"))
    return facts


VIEW = PartView(table=sustained_table, facts=_facts)
