"""The answer to "which of the two is faster?", in one sentence."""

from __future__ import annotations

import math

from harness.base.outcome import Outcome
from harness.judge.compare import Comparison
from harness.judge.sides import Side
from harness.judge.stats.shares import LARGEST_SHARE, share_interval, signed_share
from harness.judge.verdict import Verdict


def sentence(comparison: Comparison, names: tuple[str, str], where: str) -> str:
    """Return how many times as fast the faster side is, and whether both are right.

    Args:
        comparison: What the sessions came to.
        names: What people call base and head.
        where: What both have in common, such as the path.
    """
    if wrong := _faults(comparison, names):
        return f"{wrong} on {where}"
    right = f"; {_correctness(comparison, names)}"
    change = comparison.change
    if not change or not math.isfinite(change.relative):
        why = "; ".join(comparison.reasons).removeprefix("right on both sides; ")  # which `right` says
        return f"undecided on {where}: {why}{right}"
    base, head = names
    if comparison.verdict is Verdict.SAME:
        within = share_interval(change.low, change.high) if math.isfinite(change.low) else signed_share(change.relative)
        return f"{head} is as fast as {base} on {where}: its time differs by {within}{right}"
    slower = change.relative > 0
    winner, other = (base, head) if slower else (head, base)
    ends = [1 + end for end in (change.relative, change.low, change.high)]
    middle, *ratios = ends if slower else [1 / end if end > 0 else math.inf for end in ends]
    interval = f", {min(ratios):.2f} to {max(ratios):.2f}" if min(ratios) > 0 and max(ratios) < LARGEST_SHARE else ""
    verdict = f"{winner} is {middle:.2f} times as fast as {other} on {where}{interval}{right}"
    return verdict if comparison.verdict.changed else f"undecided, it looks as if {verdict}"


def _faults(comparison: Comparison, names: tuple[str, str]) -> str:
    """Return which sides have no latency, and why; empty if both are right."""
    sides = [(name, side) for name, side in zip(names, (comparison.base, comparison.head), strict=True) if side]
    faults = [f"{name} is {_word(side)} ({side.message})" for name, side in sides if side.outcome is not Outcome.OK]
    if comparison.verdict in (Verdict.WRONG, Verdict.BROKEN) and not faults:
        faults = [f"{names[1]} is {comparison.verdict.value} ({comparison.reasons[0]})"]
    right = [f"{name} is right" for name, side in sides if side.outcome is Outcome.OK]
    return ", ".join([*faults, *(right if len(faults) < len(sides) else [])]) if faults else ""


def _word(side: Side) -> str:
    return side.finding.value if side.finding else side.outcome.value


def _correctness(comparison: Comparison, names: tuple[str, str]) -> str:
    sides = (comparison.base, comparison.head)
    empty = [name for name, side in zip(names, sides, strict=True) if side and side.vacuous]
    return f"both right, which proves nothing of {' and '.join(empty)}" if empty else "both right"
