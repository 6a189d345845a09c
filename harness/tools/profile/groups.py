"""Operators of one kind: the kinds of a profile, and which of them make the difference between two profiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.base.tables import counted
from harness.judge.compare import KernelChange
from harness.tools.shared.kernels.operators import OperatorKind, label_of
from harness.tools.shared.kernels.profile import Operator, Profile

FEW_THREADS = 0.5
"""Threads against the other side's, below which it is said that there are few."""
MUCH_REDONE = 1.5
MOST_WORDS = 3
NEGLIGIBLE_MS = 1e-6


@dataclass(frozen=True)
class Group:
    """The operators of one kind on both sides; a side without any does that work elsewhere, or not at all."""

    kind: OperatorKind
    label: str
    mine: tuple[Operator, ...]
    other: tuple[Operator, ...]

    @property
    def mine_ms(self) -> float:
        """Time of its kernels here."""
        return sum(operator.ms for operator in self.mine)

    @property
    def other_ms(self) -> float:
        """Time of its kernels there."""
        return sum(operator.ms for operator in self.other)

    @property
    def more_ms(self) -> float:
        """How much longer it takes here."""
        return self.mine_ms - self.other_ms

    @property
    def same_source(self) -> bool | None:
        """Whether both sides run the same kernels; None if one side has none, or the source of one is not known."""
        mine, other = ({operator.source for operator in side} for side in (self.mine, self.other))
        return mine == other if mine and other and "" not in mine | other else None

    @property
    def source(self) -> str:
        """Change of their source: `same`, `changed`, `new` or `gone`; empty where that is not known."""
        if not self.other:
            return "new"
        if not self.mine:
            return "gone"
        return {True: "same", False: "changed", None: ""}[self.same_source]


def by_kind(profile: Profile) -> list[tuple[str, list[Operator]]]:
    """Return the operators of a profile, those of one kind together with what they are called; the longest first."""
    named = [(label_of(alike[0].function, alike[0].work), alike) for alike in profile.by_kind.values()]
    return sorted(named, key=lambda pair: -sum(operator.ms for operator in pair[1]))


def groups_of(mine: Profile, other: Profile) -> list[Group]:
    """Return all kinds of operators of two profiles, those with the largest difference first."""
    sides = [mine.by_kind, other.by_kind]
    kinds = dict.fromkeys(kind for side in sides for kind in side)
    groups = [_group(kind, *(tuple(side.get(kind, ())) for side in sides)) for kind in kinds]
    return sorted(groups, key=lambda group: -abs(group.more_ms))


def _group(kind: OperatorKind, mine: tuple[Operator, ...], other: tuple[Operator, ...]) -> Group:
    operator = (mine or other)[0]
    return Group(kind, label_of(operator.function, operator.work), mine, other)


def in_words(mine: Profile, other: Profile) -> Iterator[str]:
    """Yield what makes the difference, in a few lines: the operators behind it, and what tells their kernels apart."""
    more = mine.kernels_ms - other.kernels_ms
    comparison = f"{abs(more):.3g} ms {'longer' if more > 0 else 'shorter'} than"
    yield (
        f"{mine.case}: {mine.kernels_ms:.3g} ms in {counted(mine.launches, 'kernel')}, "
        f"{comparison if abs(more) > NEGLIGIBLE_MS else 'as long as'} {other.case} "
        f"({other.kernels_ms:.3g} ms in {other.launches})."
    )
    leading = [group for group in groups_of(mine, other) if group.more_ms * more > 0][:MOST_WORDS]
    for group in leading:
        share = group.more_ms / more if abs(more) > NEGLIGIBLE_MS else 0
        line = f"{group.label}: {group.mine_ms:.3g} ms against {group.other_ms:.3g}, {share:.0%} of the difference"
        yield "; ".join([line, *_reasons(group, mine, other)]) + "."


def _reasons(group: Group, mine: Profile, other: Profile) -> Iterator[str]:
    """Yield what tells the slower side's kernels apart: facts beside a difference, no proof that they cause it."""
    slow, fast = (group.mine, group.other) if group.more_ms > 0 else (group.other, group.mine)
    if not slow or not fast:
        there = mine.case if group.mine else other.case
        yield f"only {there} has it by itself"
        return
    worst, best = (max(side, key=lambda operator: operator.ms) for side in (slow, fast))
    if group.same_source:
        yield "the kernels' source is the same"
    if worst.redone > MUCH_REDONE * best.redone:
        yield (
            f"the slower kernel's loops go {worst.redone:.1f} times over the operations that are needed "
            f"({best.redone:.1f} in the other)"
        )
    if worst.threads < FEW_THREADS * best.threads:
        yield f"it has {worst.threads} work-items for {group.kind.writes} numbers, the other {best.threads}"
    peak = (mine if group.more_ms > 0 else other).roof.gflop_s
    of_worst, of_best = (
        side.flops / side.ms / 1e6 / peak if peak and side.flops and side.ms else 0 for side in (worst, best)
    )
    if of_worst and max(of_worst, of_best) <= 1:  # above, the peak was measured while the device was slow
        yield f"{of_worst:.1%} of the device's peak against {f'{of_best:.1%}' if of_best else 'unknown'}"


def kernel_changes(base: Profile, head: Profile) -> tuple[KernelChange, ...]:
    """Return the change of each kind of operator, the largest first."""
    return tuple(
        KernelChange(
            group.label,
            group.other_ms if group.other else None,
            group.mine_ms if group.mine else None,
            (sum(operator.launches for operator in group.other), sum(operator.launches for operator in group.mine)),
            group.source,
        )
        for group in groups_of(head, base)
    )
