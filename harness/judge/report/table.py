"""The table that a run ends with, and the words that tables share."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.base.case import Case
from harness.base.outcome import Outcome
from harness.base.request import AS_SHIPPED
from harness.base.tables import size, table
from harness.base.tool import places
from harness.judge.remarks import Remark, remarks, row_remarks, spread_within
from harness.judge.report.part_view import part_columns, view_of
from harness.measure.probes.latency import KERNELS, device_clock

if TYPE_CHECKING:
    from harness.measure.records.record import Record


COLUMNS = (
    *("model", "path", "precision", "tuning", "outcome"),
    *("wall ms", "± % within", "n", "device ms", "error / tolerance", "library"),
)
NUMBERS = COLUMNS[5:]
TIMES = "times default"
"""A column of tables in which some case has tuned schedules: how many times as fast it is as with TVM's own."""
ALIKE = ("precision", "tuning")
SPARE = ("library", "n", "device ms", "± % within", "error / tolerance")
"""Columns that a narrow terminal leaves out, the least important first."""


HALF, HALF_DOCS = "cl_khr_fp16", "docs/explanation/virtual-device.md"
"""What a device lacks that cannot compute in half precision, and what tells of one that can."""
OF_ANOTHER_KIND = "*"
CLML_DEVICE_MS = (
    "of clml the device's time is that of whole recordings, with a wait at every subgraph: not to be compared with "
    "other paths"
)


def json_array(records: Sequence[Record]) -> str:
    """Return records as a JSON array, one to a line, each with the remarks on it."""

    def line(record: Record) -> str:
        texts = json.dumps([remark._asdict() for remark in remarks(record)])
        return f'{record.line().removesuffix("}")},"remarks":{texts}}}'

    return "[" + ",\n".join(map(line, records)) + "]"


def results_table(records: Sequence[Record]) -> str:
    """Return the final table of a run, and a line for each case that is not plainly `ok`.

    Cases that a device does not support have no row: one line counts them, with the reason.
    """
    supported = [record for record in records if record.outcome is not Outcome.UNSUPPORTED]
    if not supported:
        return "\n".join(complaints(records)[1:])
    notes = ["", f"{OF_ANOTHER_KIND} {CLML_DEVICE_MS}"] if any(map(_is_of_another_kind, supported)) else []
    return "\n".join([_table(supported), *notes, *complaints(records)])


def run_tables(records: Sequence[Record]) -> str:
    """Return the tables of a run: the usual one, and those of parts that have their own."""
    views = {name: view for name, _ in places("part_views") if (view := view_of(name)).instead}
    others = [record for record in records if not views.keys() & record.parts.keys()]
    texts = [results_table(others)] if others or not records else []
    for name, view in views.items():
        texts += [view.table(own)] if (own := [record for record in records if name in record.parts]) else []
    return "\n\n".join(texts)


def _table(records: Sequence[Record]) -> str:
    many = len({record.device for record in records}) > 1
    remarks_of, _ = row_remarks(records)
    rows = [
        (*([record.device] if many else []), *_row(record, mine))
        for record, mine in zip(records, remarks_of, strict=True)
    ]
    headers = ("device", *COLUMNS) if many else COLUMNS
    if len({record.as_shipped for record in records}) > 1:
        quirks = [AS_SHIPPED if record.as_shipped else "with workarounds" for record in records]
        rows = [(*row, own) for row, own in zip(rows, quirks, strict=True)]
        headers = (*headers, "quirks")
    if any(record.schedules for record in records):
        ratios = by_default(records)
        rows = [(*row, ratios.get(id(record), "-")) for row, record in zip(rows, records, strict=True)]
        headers = (*headers, TIMES)
    columns = [part_columns(record) for record in records]
    added = tuple(dict.fromkeys(name for own in columns for name in own))
    rows = [(*row, *(own.get(name, "-") for name in added)) for row, own in zip(rows, columns, strict=True)]
    right = (*NUMBERS, TIMES, *added)
    return table(rows, (*headers, *added), right=right, alike=ALIKE, spare=(*SPARE, *added))


def by_default(records: Sequence[Record]) -> dict[int, str]:
    """Speed-up by tuned schedules over the same case without them, by the record's identity."""
    from harness.judge.stats.session import location_ms

    by_case = {(record.device, record.run, record.case): record for record in records}
    ratios: dict[int, str] = {}
    for record in records:
        other = by_case.get((record.device, record.run, Case.parse(record.case).by_default.id))
        if record.schedules and other is not None and record.comparable_ms and other.comparable_ms:
            ratio = location_ms(other.comparable_ms) / location_ms(record.comparable_ms)
            ratios[id(record)] = f"{ratio:.3g}" if math.isfinite(ratio) else "-"
    return ratios


def milliseconds(value_ms: float) -> str:
    """Return a latency, without its unit, to four digits."""
    return f"{value_ms:.0f}" if value_ms >= 1000 else f"{value_ms:.4g}"


def _row(record: Record, own: Sequence[Remark]) -> tuple[str, ...]:
    return (
        record.model,
        record.path,
        record.precision,
        record.tuning,
        ", ".join([record.outcome.value, *(remark.word for remark in own)]),
        "emulated" if record.path in record.emulated else _location(record.wall_ms),
        "-" if (spread := spread_within(record.wall_ms)) is None else f"{100 * spread:.1f}",
        str(len(record.wall_ms) or "-"),
        f"{OF_ANOTHER_KIND if _is_of_another_kind(record) else ''}{_location(record.device_ms)}",
        _error(record),
        size(record.library_bytes),
    )


def _error(record: Record) -> str:
    if record.max_abs_err is None or record.tolerance is None:
        return "-"
    return f"{record.max_abs_err:.1e} / {record.tolerance:.1e}"


def _location(samples_ms: Sequence[float]) -> str:
    """Return the number that verdicts use, so that a run and a comparison show the same for the same samples."""
    from harness.judge.stats.session import location_ms

    latency_ms = location_ms(samples_ms)
    return milliseconds(latency_ms) if math.isfinite(latency_ms) else "-"


def _is_of_another_kind(record: Record) -> bool:
    """Return whether the number of the device's clock is of another kind than those above and below it."""
    return bool(record.device_ms) and device_clock(record.path) != KERNELS


def complaints(records: Sequence[Record]) -> list[str]:
    """Return the lines below a table: why cases are not `ok`, and remarks on those that are.

    Each reason is one line.
    """
    alike: dict[tuple[str, str], list[str]] = {}
    rows = [record for record in records if record.outcome is not Outcome.UNSUPPORTED]
    remarks_by_row, of_all = row_remarks(rows)
    for r, mine in zip(rows, remarks_by_row, strict=True):
        if r.outcome is not Outcome.OK:
            why = f"{r.outcome.value} (owner: {r.owner.value}): {r.message}"
            alike.setdefault((why, r.hint), []).append(r.case)
        for remark in mine:
            alike.setdefault((f"{remark.word}: {remark.why}", ""), []).append(r.case)
    lines = []
    for (why, hint), cases in alike.items():
        lines += [f"  {', '.join(dict.fromkeys(cases))}: {why}", *([f"    {hint}"] if hint else [])]
    lines += [f"  {of_all}"] if of_all else []
    lines += _unsupported(records)
    return ["", *lines] if lines else []


def _unsupported(records: Sequence[Record]) -> list[str]:
    """Return a line for each reason for which a device does not support cases."""
    alike: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if record.outcome is Outcome.UNSUPPORTED:
            alike.setdefault((record.message, record.hint), []).append(record.case)
    lines = []
    for (message, hint), cases in alike.items():
        named = f"{cases[0]} is" if len(cases) == 1 else f"{len(cases)} of {len(records)} cases are"
        more = hint or (f"see {HALF_DOCS}" if HALF in message else "")
        lines.append(f"  {named} unsupported on this device: {message}" + (f"; {more}" if more else ""))
    return lines
