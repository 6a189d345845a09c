"""What the kernels of each case add to a history: their pages, and the operator behind a step."""

from __future__ import annotations

import functools

from harness.judge.history.events import Event
from harness.judge.history.results import Series
from harness.judge.history.section import HistorySection, HistoryView, SectionPage
from harness.judge.report.page import FIGURES
from harness.tools.profile.figures import kernel_times, roofline
from harness.tools.profile.kernel_pages import KernelPage, comparison_of, comparisons, file_of, pages_of
from harness.tools.profile.kernel_times import Kernels, key_of, load_kernels


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
