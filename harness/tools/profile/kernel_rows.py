"""Rows of a table of kernels: the operators of a profile, or of two side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.base.tables import counted
from harness.tools.profile.groups import Group, groups_of
from harness.tools.profile.roofline import bound_of
from harness.tools.shared.kernels.profile import Profile

MOST_GROUPS = 15
"""Rows of a table; the rest is one more."""


@dataclass(frozen=True)
class KernelRow:
    """One kind of operator on both sides of a comparison; None on a side that has none."""

    label: str
    before_ms: float | None
    now_ms: float | None
    share: float
    """Share of the kernels' time now."""
    launches: str
    """Launches of an inference: now, or before and now."""
    source: str
    """Change of its kernels' source: `same`, `changed`, `new` or `gone`; empty where that is not known."""
    bound: str
    """How near it is to the best that the device can do."""

    @property
    def change_ms(self) -> float:
        """How much longer it takes now."""
        return (self.now_ms or 0.0) - (self.before_ms or 0.0)


def rows_of(profile: Profile) -> list[KernelRow]:
    """Return a profile by itself, the longest first."""
    groups = _longest_first(groups_of(profile, profile.model_copy(update={"operators": ()})))
    return _rows(groups, profile, compared=False)


def rows_between(before: Profile, now: Profile, *, rebuilt: bool) -> list[KernelRow]:
    """Return two profiles side by side.

    What differs most comes first if the build did, too; else the longest, because differences are noise.
    """
    groups = groups_of(now, before)
    return _rows(groups if rebuilt else _longest_first(groups), now, compared=True)


def _longest_first(groups: Sequence[Group]) -> list[Group]:
    return sorted(groups, key=lambda group: -max(group.mine_ms, group.other_ms))


def _rows(groups: Sequence[Group], now: Profile, *, compared: bool) -> list[KernelRow]:
    rows = [_row(group.label, [group], now, compared=compared) for group in groups[:MOST_GROUPS]]
    rest = groups[MOST_GROUPS:]
    return rows + ([_row(f"{counted(len(rest), 'other')}", rest, now, compared=compared)] if rest else [])


def _row(label: str, groups: Sequence[Group], profile: Profile, *, compared: bool) -> KernelRow:
    now = [operator for group in groups for operator in group.mine]
    before = [operator for group in groups for operator in group.other]
    now_ms, before_ms = (sum(operator.ms for operator in side) if side else None for side in (now, before))
    launches = [str(sum(operator.launches for operator in side)) for side in (before, now)]
    bound = bound_of(now, profile.roof)
    return KernelRow(
        label,
        before_ms,
        now_ms,
        (now_ms or 0.0) / profile.kernels_ms if profile.kernels_ms else 0.0,
        " | ".join(launches) if compared else launches[1],
        _source(groups) if compared else "",
        f"{bound.share:.1%} of {bound.of}" if bound else "",
    )


def _source(groups: Sequence[Group]) -> str:
    """Return the change of the groups' source; empty if they changed differently."""
    sources = {group.source for group in groups}
    return sources.pop() if len(sources) == 1 else ""
