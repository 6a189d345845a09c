"""What of a network went to CLML, as text for a person, and below its case on the page of a run."""

from __future__ import annotations

from collections.abc import Collection

from markupsafe import Markup

from harness.base.tables import counted, size, table
from harness.compile.paths.clml.offload_report import OffloadReport
from harness.judge.report.sections import Details, PageFiles
from harness.measure.records.record import Record

SYMBOL_WIDTH = 44
"""Symbols name every operator of a part: the first of resnet18's has 900 characters."""


def read_details(_files: PageFiles, _artifacts: Collection[str]) -> Details:
    """Return what the page of a run shows of the parts of a case."""

    def block(record: Record) -> str:
        report = record.part(OffloadReport)
        markup = Markup('<details><summary>Parts in CLML</summary><pre tabindex="0">{}</pre></details>')
        return markup.format(render(report)) if report else ""

    return Details(block)


def render(report: OffloadReport) -> str:
    """Lay out how much went to CLML, in which parts, what stayed and why."""
    return "\n\n".join(part for part in (_summary(report), _subgraphs(report), _outside(report)) if part)


def _summary(report: OffloadReport) -> str:
    parts = report.subgraphs
    small = sum(part.may_lose for part in parts)
    untunable = sum(part.untunable * part.calls for part in parts)
    rows = [
        ("subgraphs in CLML", f"{len(parts)}, with {counted(sum(part.calls for part in parts), 'call')} per inference"),
        ("operators", f"{report.operators_offloaded} of {report.operators} ({report.operator_share:.1%})"),
        (
            "multiply-accumulates",
            f"{_short(report.macs_offloaded)} of {_short(report.macs)} ({report.mac_share:.1%})",
        ),
        ("across the boundary", f"{size(report.boundary_bytes)} per inference"),
        ("may lose by offload", f"{small} of the subgraphs, marked *" if small else "none"),
        ("convolutions never tuned", f"{untunable}, those without activation" if untunable else "none"),
    ]
    label = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:{label}}  {value}" for name, value in rows)


def _subgraphs(report: OffloadReport) -> str:
    rows = [
        (
            _abridge(part.symbol) + (" *" if part.may_lose else ""),
            part.calls,
            part.operators,
            _short(part.macs),
            size(part.boundary_bytes),
            ", ".join(f"{count} {name.removeprefix('openclml.')}" for name, count in part.composites.items()),
        )
        for part in report.subgraphs
    ]
    headers = ("subgraph", "calls", "operators", "MACs", "boundary", "composites")
    spare = ("boundary", "calls", "MACs")
    return table(rows, headers, prose=("composites",), spare=spare) if rows else ""


def _outside(report: OffloadReport) -> str:
    rows = [(left.operator, left.count, _short(left.macs), left.why) for left in report.outside]
    headers = ("stays on OpenCL", "count", "MACs", "why")
    return table(rows, headers, prose=("why",), spare=("MACs",))


def _abridge(symbol: str) -> str:
    """Both ends of it: symbols of one network differ at the end, if at all."""
    half = SYMBOL_WIDTH // 2 - 1
    return symbol if len(symbol) <= SYMBOL_WIDTH else f"{symbol[:half]}..{symbol[-half:]}"


def _short(macs: int) -> str:
    return size(macs).removesuffix("B").strip()
