"""Kernel times of a case at each commit: a page for each series whose kernels were watched."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.judge.history.events import Event
from harness.judge.history.kernel_times import CaseKernels, Kernels, Key
from harness.judge.history.results import Point, Series
from harness.judge.report import words
from harness.measure.kernels.operators import Group, groups_of, in_words
from harness.measure.kernels.peaks import bound_of
from harness.measure.kernels.profile import Profile

STEPS = 5
"""Newest steps of a case that are taken apart."""
SHOWN = 15
"""Rows of a table; the rest is one more."""


@dataclass(frozen=True)
class Row:
    """One kind of operator on both sides of a comparison; None on a side that has none."""

    label: str
    before_ms: float | None
    now_ms: float | None
    share: float
    """Share of the kernels' time now."""
    launches: str
    """Launches of an inference: now, or before and now."""
    source: str
    """What became of its kernels' source: `same`, `changed`, `new` or `gone`; empty where that is not known."""
    bound: str
    """How near it is to the best that the device can do."""

    @property
    def change_ms(self) -> float:
        """How much longer it takes now."""
        return (self.now_ms or 0.0) - (self.before_ms or 0.0)


@dataclass(frozen=True)
class KernelComparison:
    """A commit against one before it."""

    before: Point
    now: Point
    profiles: tuple[Profile, Profile]
    """Profiles before and after."""
    step: str
    """What the history says of it; empty for what is no step."""

    @property
    def rebuilt(self) -> bool:
        """Whether the build is another one."""
        return self.before.artifact != self.now.artifact

    @property
    def sentences(self) -> list[str]:
        """Say how much longer its kernels take, and which of them step. Other differences are mostly noise."""
        before, now = self.profiles
        lines = list(in_words(_named_by_commit(now, self.now), _named_by_commit(before, self.before)))
        return lines if self.step else lines[:1]

    @property
    def leading(self) -> str:
        """The operator that makes most of a step, in words; empty if there is none."""
        return next(iter(self.sentences[1:]), "")

    @property
    def rows(self) -> list[Row]:
        """Rows of its operators."""
        return rows_between(*self.profiles, rebuilt=self.rebuilt)


@dataclass(frozen=True)
class KernelPage:
    """One series and what became of its kernels."""

    kernels: CaseKernels
    series: Series
    file: str
    rows: list[Row]
    """Rows of the newest profile alone, the longest first."""


def pages_of(kernels: Kernels) -> list[KernelPage]:
    """Return the pages, by case and device."""
    found = sorted(kernels.items(), key=lambda one: (one[0][1], one[0][2], one[0][0]))
    return [KernelPage(one, one.series, file_of(key), rows_of(one.newest[1])) for key, one in found]


def file_of(key: Key) -> str:
    """Return the name of a series' page: the names of cases and devices are anybody's, and no name of a file."""
    return f"kernels-{hashlib.sha256(repr(key).encode()).hexdigest()[:12]}.html"


def comparisons(page: KernelPage, moved: Sequence[Event]) -> list[KernelComparison]:
    """Return the newest commit against the one before it, the last change of the build, and the newest steps."""
    kernels = page.kernels
    events = [event for event in moved if event.series is page.series]
    steps = [one for event in events if (one := comparison_of(event, kernels))][:STEPS]
    pairs = dict.fromkeys([*list(pairwise(kernels.times_ms))[-1:], *([kernels.rebuilt] if kernels.rebuilt else [])])
    told = [(one.before.commit, one.now.commit) for one in steps]
    return [_comparison(kernels, *pair) for pair in pairs if pair not in told] + steps


def comparison_of(event: Event, kernels: CaseKernels | None) -> KernelComparison | None:
    """Return the two sides of a step; None for what is no step, or where one side was not watched."""
    ends = (event.before.commit, event.after.commit)
    if not kernels or not event.step or not set(ends) <= set(kernels.profiles):
        return None
    return _comparison(kernels, *ends, f"{event.verdict.value}: {words.step_text(event)}")


def _comparison(kernels: CaseKernels, before: str, now: str, step: str = "") -> KernelComparison:
    profiles = (kernels.profiles[before], kernels.profiles[now])
    return KernelComparison(kernels.point(before), kernels.point(now), profiles, step)


def _named_by_commit(profile: Profile, point: Point) -> Profile:
    """Return a profile that is named by its commit, as both sides are of one case."""
    return profile.model_copy(update={"case": words.commit_text(point)})


def rows_of(profile: Profile) -> list[Row]:
    """Return a profile by itself, the longest first."""
    groups = _longest_first(groups_of(profile, profile.model_copy(update={"operators": ()})))
    return _rows(groups, profile, compared=False)


def rows_between(before: Profile, now: Profile, *, rebuilt: bool) -> list[Row]:
    """Return two profiles side by side.

    What differs most comes first if the build did, too; else the longest, because differences are noise.
    """
    groups = groups_of(now, before)
    return _rows(groups if rebuilt else _longest_first(groups), now, compared=True)


def _longest_first(groups: Sequence[Group]) -> list[Group]:
    return sorted(groups, key=lambda group: -max(group.mine_ms, group.other_ms))


def _rows(groups: Sequence[Group], now: Profile, *, compared: bool) -> list[Row]:
    rows = [_row(group.label, [group], now, compared=compared) for group in groups[:SHOWN]]
    rest = groups[SHOWN:]
    return rows + ([_row(f"{len(rest)} others", rest, now, compared=compared)] if rest else [])


def _row(label: str, groups: Sequence[Group], profile: Profile, *, compared: bool) -> Row:
    now = [one for group in groups for one in group.mine]
    before = [one for group in groups for one in group.other]
    now_ms, before_ms = (sum(one.ms for one in side) if side else None for side in (now, before))
    launches = [str(sum(one.launches for one in side)) for side in (before, now)]
    bound = bound_of(now, profile.peaks)
    return Row(
        label,
        before_ms,
        now_ms,
        (now_ms or 0.0) / profile.kernels_ms if profile.kernels_ms else 0.0,
        " | ".join(launches) if compared else launches[1],
        _source(groups) if compared else "",
        f"{bound.share:.1%} of {bound.of}" if bound else "",
    )


def _source(groups: Sequence[Group]) -> str:
    """Return the change of their kernels' source; empty if it differs between them."""
    found = {group.source for group in groups}
    return found.pop() if len(found) == 1 else ""
