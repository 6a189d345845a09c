"""Kernel times of a case at each commit: a page for each series that was watched, and what is behind a step."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.judge.history.events import Event
from harness.judge.history.results import Point, Series
from harness.judge.history.section import HistorySection, HistoryView, SectionPage
from harness.judge.report import words
from harness.judge.report.page import FIGURES
from harness.tools.profile.figures import kernel_times, roofline
from harness.tools.profile.groups import in_words
from harness.tools.profile.kernel_rows import KernelRow, rows_between, rows_of
from harness.tools.profile.kernel_times import CaseKernels, Kernels, Key, key_of, load_kernels
from harness.tools.shared.kernels.profile import Profile

STEPS = 5
"""Newest steps of a case that are taken apart."""


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
    def rows(self) -> list[KernelRow]:
        """Rows of its operators."""
        return rows_between(*self.profiles, rebuilt=self.rebuilt)


@dataclass(frozen=True)
class KernelPage:
    """One series, with its kernels at each commit."""

    kernels: CaseKernels
    series: Series
    file: str
    rows: list[KernelRow]
    """Rows of the newest profile alone, the longest first."""


def pages_of(kernels: Kernels) -> list[KernelPage]:
    """Return the pages, by case and device."""
    ordered = sorted(kernels.items(), key=lambda item: (item[0][1], item[0][2], item[0][0]))
    return [
        KernelPage(case_kernels, case_kernels.series, file_of(key), rows_of(case_kernels.newest[1]))
        for key, case_kernels in ordered
    ]


def file_of(key: Key) -> str:
    """Return the name of a series' page: the names of cases and devices are anybody's, and no name of a file."""
    return f"kernels-{hashlib.sha256(repr(key).encode()).hexdigest()[:12]}.html"


def comparisons(page: KernelPage, moved: Sequence[Event]) -> list[KernelComparison]:
    """Return the newest commit against the one before it, the last change of the build, and the newest steps."""
    kernels = page.kernels
    events = [event for event in moved if event.series is page.series]
    steps = [comparison for event in events if (comparison := comparison_of(event, kernels))][:STEPS]
    pairs = dict.fromkeys([*list(pairwise(kernels.times_ms))[-1:], *([kernels.rebuilt] if kernels.rebuilt else [])])
    pairs_of_steps = [(comparison.before.commit, comparison.now.commit) for comparison in steps]
    return [_comparison(kernels, *pair) for pair in pairs if pair not in pairs_of_steps] + steps


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


def section(view: HistoryView) -> HistorySection:
    """Return the pages of the series whose kernels were watched, and what makes the steps of these."""

    @functools.cache
    def kernels() -> Kernels:
        """Load the kernels on first use: a summary needs them only if something moved."""
        return load_kernels(view.results, view.history, view.moved, only_moved=view.summary)

    def remark(event: Event) -> str:
        between = comparison_of(event, kernels().get(key_of(event.series))) if event.step else None
        return between.leading if between else ""

    def link(series: Series) -> str:
        return file_of(key_of(series)) if key_of(series) in kernels() else ""

    pages = [] if view.summary else pages_of(kernels())
    index = SectionPage("kernels.html", "Kernels", "kernels.html.j2", {"kernel_pages": pages}, in_menu=True)
    of_series = [_page(page, view) for page in pages]
    return HistorySection(remark=remark, link=link, link_text="kernels", package=__package__, pages=(index, *of_series))


def _page(page: KernelPage, view: HistoryView) -> SectionPage:
    facts = {
        "one": page,
        "comparisons": comparisons(page, view.moved),
        "times": kernel_times(page.kernels) if page.kernels.times_ms else None,
        "roofline": roofline([page.kernels.newest[1]]),
    }
    return SectionPage(page.file, page.series.case.id, "case_kernels.html.j2", facts, scripts=FIGURES)
