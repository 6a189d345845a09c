"""A profile as text: the words first, then the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.base.tables import counted, table
from harness.measure.probes.batches import format_batches
from harness.tools.profile.groups import Group, by_kind, groups_of, in_words
from harness.tools.shared.kernels.profile import Operator, Profile

ROWS_LIMIT = 15
"""Rows of a table; the rest is one line."""
MOST_APART = 0.01
"""How far the rows together may be from the whole before it is explained."""


def pages(mine: Profile, other: Profile | None) -> Iterator[str]:
    """Yield the parts of the text about a profile, alone or beside another one."""
    if other:
        yield "\n".join(in_words(mine, other))
        yield _difference(groups_of(mine, other), mine, other)
    else:
        yield _in_words(mine)
        yield _operators(mine)
    yield _remarks(mine)


def _in_words(mine: Profile) -> str:
    between = mine.span_ms - mine.kernels_ms
    label, leading = by_kind(mine)[0]
    ms = sum(operator.ms for operator in leading)
    lines = [
        f"{mine.case} on {mine.gpu}: {mine.kernels_ms:.3g} ms in {counted(mine.launches, 'kernel')}, and "
        f"{between:.2g} ms between them while they were watched; {mine.wall_ms:.3g} ms to the answer.",
        f"{ms / mine.kernels_ms:.0%} of it is {label}: {ms:.3g} ms, {leading[0].threads} work-items in a launch.",
    ]
    return "\n".join(lines)


def _operators(mine: Profile) -> str:
    kinds = by_kind(mine)
    rows = [_row(label, alike, mine) for label, alike in kinds[:ROWS_LIMIT]]
    if rest := [operator for _, alike in kinds[ROWS_LIMIT:] for operator in alike]:
        rows.append([f"{counted(len(kinds) - ROWS_LIMIT, 'other')}", *_shares(rest, mine)])
    headers = ["operator", "launches", "ms", "share", "work-items", "GFLOP/s", "of peak", "GB/s", "of peak ", "redone"]
    return table(rows, headers, right=headers[1:], spare=["work-items", "of peak ", "GB/s", "redone"])


def _row(label: str, alike: Sequence[Operator], mine: Profile) -> list[object]:
    return [
        label,
        *_shares(alike, mine),
        max(operator.threads for operator in alike),
        *(text for rate, peak in _rates(alike, mine) for text in _rate_cells(rate, peak)),
        f"{max(operator.redone for operator in alike):.1f}",
    ]


def _shares(operators: Sequence[Operator], mine: Profile) -> list[object]:
    ms = sum(operator.ms for operator in operators)
    return [sum(operator.launches for operator in operators), f"{ms:.3f}", f"{ms / mine.kernels_ms:.1%}"]


Rate = tuple[float | None, float | None]
"""Operations or bytes in a second, in billions, and the peak of these; None where that is not known."""


def _rates(alike: Sequence[Operator], mine: Profile) -> tuple[Rate, Rate]:
    """Return the rates of arithmetic and memory."""
    ms = sum(operator.ms for operator in alike)

    def rate(counts: Sequence[int | None]) -> float | None:
        numbers = [count for count in counts if count]
        return sum(numbers) / ms / 1e6 if ms and len(numbers) == len(counts) else None

    return (
        (rate([operator.flops for operator in alike]), mine.roof.gflop_s),
        (rate([operator.bytes for operator in alike]), mine.roof.gb_s),
    )


def _rate_cells(rate: float | None, peak: float | None) -> tuple[str, str]:
    """Return the rate and its share of the peak."""
    return ("", "") if rate is None else (f"{rate:.3g}", f"{rate / peak:.1%}" if peak else "")


def _difference(groups: list[Group], mine: Profile, other: Profile) -> str:
    rows = [
        [group.label, f"{group.mine_ms:.3f}", f"{group.other_ms:.3f}", f"{group.more_ms:+.3f}", *_counts(group)]
        for group in groups[:ROWS_LIMIT]
    ]
    headers = ["operator", "here ms", "there ms", "difference", "launches", "work-items", "redone"]
    legend = f"here: {mine.case}\nthere: {other.case}{'' if mine.gpu == other.gpu else f' on {other.gpu}'}"
    return f"{legend}\n\n{table(rows, headers, right=headers[1:], spare=['redone', 'work-items'])}"


def _counts(group: Group) -> tuple[str, str, str]:
    sides = [group.mine, group.other]
    launches = [sum(operator.launches for operator in side) for side in sides]
    threads = [str(max((operator.threads for operator in side), default=0)) for side in sides]
    redone = [f"{max((operator.redone for operator in side), default=0):.1f}" if side else "" for side in sides]
    return f"{launches[0]} | {launches[1]}", " | ".join(threads), " | ".join(redone)


def _remarks(mine: Profile) -> str:
    peaks = mine.peaks
    measured = {
        "copy": (peaks.copy_gb_s, "GB/s"),
        "image read": (peaks.image_gb_s, "GB/s"),
        "float32": (peaks.float32_gflop_s, "GFLOP/s"),
        "float16": (peaks.float16_gflop_s, "GFLOP/s"),
    }
    rates = ", ".join(f"{name} {value:.3g} {unit}" for name, (value, unit) in measured.items() if value)
    lines = ["GFLOP/s and GB/s count what the operator needs; `redone`: how many times over its schedule's loops go."]
    lines.append(f"Peaks measured on this device: {rates}." if rates else "This device's peaks could not be measured.")
    rows = sum(operator.ms for operator in mine.operators) / mine.kernels_ms
    if abs(rows - 1) > MOST_APART:
        lines.append(f"Rows are medians over inferences; together they are {rows:.1%} of the median of all kernels.")
    above = [label for label, alike in by_kind(mine) if any(r and p and r > p for r, p in _rates(alike, mine))]
    if above:
        why = "its data stay in a cache, or the peak was measured while the device was slow"
        lines.append(f"Above 100% of a peak: {', '.join(above)}: {why}.")
    if batches := format_batches(mine.batches, (mine.kernels_ms,)):
        lines.append(f"{mine.case}: {batches}.")
    if "-clml-" in mine.case:
        lines.append("What OpenCL ML runs are no kernels of TVM's, and are not in this table.")
    return "\n".join(lines)
