"""A profile as text: the words first, then the table."""

from __future__ import annotations

from collections.abc import Iterator

from harness.profile.against import Group, groups_of, in_words
from harness.profile.label import label_of
from harness.profile.profile import Operator, Profile
from harness.tables import table

SHOWN = 15
"""Rows of a table; the rest is one line."""


def pages(mine: Profile, other: Profile | None) -> Iterator[str]:
    """The parts of the text about a profile, alone or beside another one."""
    if other:
        yield "\n".join(in_words(mine, other))
        yield _difference(groups_of(mine, other), mine, other)
    else:
        yield _in_words(mine)
        yield _operators(mine)
    yield _remarks(mine)


def _in_words(mine: Profile) -> str:
    between, first = mine.span_ms - mine.kernels_ms, mine.operators[0]
    lines = [
        f"{mine.case} on {mine.gpu}: {mine.kernels_ms:.3g} ms in {mine.launches} kernels, and {between:.2g} ms between "
        f"them while they were watched; {mine.wall_ms:.3g} ms to the answer.",
        f"{first.ms / mine.kernels_ms:.0%} of it is {label_of(first.function, first.work)}: {first.ms:.3g} ms, "
        f"{first.threads} work-items in a launch.",
    ]
    return "\n".join(lines)


def _operators(mine: Profile) -> str:
    rows = [_row(operator, mine) for operator in mine.operators[:SHOWN]]
    if rest := mine.operators[SHOWN:]:
        ms = sum(operator.ms for operator in rest)
        rows.append(
            [f"{len(rest)} others", sum(one.launches for one in rest), f"{ms:.3f}", f"{ms / mine.kernels_ms:.1%}"]
        )
    headers = ["operator", "launches", "ms", "share", "work-items", "GFLOP/s", "of peak", "GB/s", "of peak ", "redone"]
    return table(rows, headers, right=headers[1:], spare=["work-items", "of peak ", "GB/s", "redone"])


def _row(operator: Operator, mine: Profile) -> list[object]:
    flop = operator.flops / operator.ms / 1e6 if operator.flops and operator.ms else None
    byte = operator.bytes / operator.ms / 1e6 if operator.bytes and operator.ms else None
    return [
        label_of(operator.function, operator.work),
        operator.launches,
        f"{operator.ms:.3f}",
        f"{operator.ms / mine.kernels_ms:.1%}",
        operator.threads,
        *_rate(flop, mine.peaks.float32_gflop_s),
        *_rate(byte, mine.peaks.copy_gb_s),
        f"{operator.redone:.1f}",
    ]


def _rate(value: float | None, peak: float | None) -> tuple[str, str]:
    if value is None:
        return "", ""
    return f"{value:.3g}", f"{value / peak:.1%}" if peak else ""


def _difference(groups: list[Group], mine: Profile, other: Profile) -> str:
    rows = [
        [group.label, f"{group.mine_ms:.3f}", f"{group.other_ms:.3f}", f"{group.more_ms:+.3f}", *_counts(group)]
        for group in groups[:SHOWN]
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
    told = ", ".join(f"{name} {value:.3g} {unit}" for name, (value, unit) in measured.items() if value)
    lines = ["GFLOP/s and GB/s count what the operator needs; `redone`: how many times over its schedule's loops go."]
    lines.append(f"Peaks measured on this device: {told}." if told else "This device's peaks could not be measured.")
    if "-clml-" in mine.case:
        lines.append("What OpenCL ML runs are no kernels of TVM's, and are not in this table.")
    return "\n".join(lines)
