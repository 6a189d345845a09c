"""Where the time of a case went at each commit: a page for each series whose kernels were watched."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.history.events import Event
from harness.history.kernel_times import CaseKernels, Kernels, Key, key_of
from harness.history.results import Point, Series
from harness.profile.against import in_words
from harness.profile.profile import Profile
from harness.report import words
from harness.report.kernel_rows import Row, rows_between, rows_of

STEPS = 5
"""Newest steps of a case that are taken apart."""


@dataclass(frozen=True)
class Comparison:
    """A commit against one before it."""

    before: Point
    now: Point
    profiles: tuple[Profile, Profile]
    """Of the earlier one and of the later one."""
    step: str
    """What the history says of it; empty for what is no step."""

    @property
    def rebuilt(self) -> bool:
        """Whether the build is another one."""
        return self.before.artifact != self.now.artifact

    @property
    def told(self) -> list[str]:
        """In words: how much longer its kernels take, and which make a step. What is none is mostly noise."""
        before, now = self.profiles
        lines = list(in_words(_called(now, self.now), _called(before, self.before)))
        return lines if self.step else lines[:1]

    @property
    def leading(self) -> str:
        """The operator that makes most of a step, in words; empty if there is none."""
        return next(iter(self.told[1:]), "")

    @property
    def rows(self) -> list[Row]:
        """Its operators."""
        return rows_between(*self.profiles, rebuilt=self.rebuilt)


@dataclass(frozen=True)
class KernelPage:
    """One series and what became of its kernels."""

    kernels: CaseKernels

    @property
    def series(self) -> Series:
        """Which series it is."""
        return self.kernels.series

    @property
    def file(self) -> str:
        """The page's name: the names of cases and devices are anybody's, and no name of a file."""
        return file_of(key_of(self.series))

    @property
    def rows(self) -> list[Row]:
        """The newest profile by itself, the longest first."""
        return rows_of(self.kernels.newest[1])


def pages_of(kernels: Kernels) -> list[KernelPage]:
    """The pages, by case and device."""
    return [KernelPage(kernels[key]) for key in sorted(kernels, key=lambda key: (key[1], key[2], key[0]))]


def file_of(key: Key) -> str:
    """The name of a series' page."""
    return f"kernels-{hashlib.sha256(repr(key).encode()).hexdigest()[:12]}.html"


def comparisons(page: KernelPage, moved: Sequence[Event]) -> list[Comparison]:
    """The newest commit against the one before it, the last change of the build, and the newest steps."""
    kernels = page.kernels
    events = [event for event in moved if event.series is page.series]
    steps = [one for event in events if (one := comparison_of(event, kernels))][:STEPS]
    pairs = dict.fromkeys([*list(pairwise(kernels.times_ms))[-1:], *([kernels.rebuilt] if kernels.rebuilt else [])])
    return [_comparison(kernels, *pair) for pair in pairs if pair not in map(_ends, steps)] + steps


def comparison_of(event: Event, kernels: CaseKernels | None) -> Comparison | None:
    """The two sides of a step; None for what is no step, or where one side was not watched."""
    ends = (event.before.commit, event.after.commit)
    if not kernels or not event.step or not set(ends) <= set(kernels.profiles):
        return None
    return _comparison(kernels, *ends, f"{event.verdict.value}: {words.step_text(event)}")


def _ends(one: Comparison) -> tuple[str, str]:
    return one.before.commit, one.now.commit


def _comparison(kernels: CaseKernels, before: str, now: str, step: str = "") -> Comparison:
    profiles = (kernels.profiles[before], kernels.profiles[now])
    return Comparison(kernels.point(before), kernels.point(now), profiles, step)


def _called(profile: Profile, point: Point) -> Profile:
    """A profile that is named by its commit, as both sides are of one case."""
    return profile.model_copy(update={"case": words.commit_text(point)})
