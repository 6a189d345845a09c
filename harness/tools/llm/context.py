"""Tokens a second over the tokens in the cache: a picture of each library, on the page of a run and of a history."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from harness.judge.history.section import HistorySection, HistoryView, SectionPage
from harness.judge.report.page import environment
from harness.judge.report.sections import Details, PageFiles
from harness.judge.report.strips import WIDTH, svg
from harness.measure.records.index import RecordIndex
from harness.measure.records.record import Record
from harness.tools.llm.part import LlmPart

HEIGHT, ROOM = 120, 10
MOST_COMMITS = 3
"""Newest commits of a history that have a line."""
DECODE_CASE = re.compile(r"(?P<library>.+)_tg_d(?P<depth>\d+)")
"""Name of a case of single tokens on a cache (`LlmTest.part`)."""


@dataclass(frozen=True)
class Curve:
    """Tokens a second of a library over the tokens in the cache; the last of several lines is the newest."""

    name: str
    lines: Mapping[str, Mapping[int, float]]
    """Tokens a second by depth."""

    @property
    def depths(self) -> list[int]:
        """All depths, the smallest first."""
        return sorted({depth for rates in self.lines.values() for depth in rates})

    @property
    def strip(self) -> Markup:
        """The drawing, from 0 to the largest rate: a line for each, and dots on the newest."""
        deepest, fastest = self.depths[-1], max(rate for rates in self.lines.values() for rate in rates.values())

        def place(depth: int, rate: float) -> str:
            across = ROOM + (WIDTH - 2 * ROOM) * depth / deepest
            return f"{across:.0f} {HEIGHT - (HEIGHT - ROOM) * rate / fastest:.1f}"

        def line(kind: str, rates: Mapping[int, float]) -> Markup:
            places = "L".join(place(depth, rates[depth]) for depth in sorted(rates))
            return Markup('<path class="{}" d="M{}"/>').format(kind, places)

        *earlier, newest = self.lines.values()
        shapes = [line("bar", {0: 0.0, deepest: 0.0}), *(line("bar", rates) for rates in earlier)]
        shapes.append(line("middle", newest))
        dot = Markup(
            '<path class="dots" style="stroke-width:9px" d="M{}h.1"><title>{:.4g} tokens/s at {}</title></path>'
        )
        shapes += [dot.format(place(depth, rate), rate, depth) for depth, rate in sorted(newest.items())]
        label = f"tokens a second of {self.name} with up to {deepest} tokens in the cache"
        return svg(Markup("").join(shapes), HEIGHT, label)


def _library(record: Record, part: LlmPart) -> Hashable:
    """Return what tells libraries on a page apart."""
    return record.identity_key, record.tvm, part.model, part.format, part.pipeline, record.as_shipped


def read_details(files: PageFiles, artifacts: Collection[str]) -> Details:
    """Return the curves of the libraries of a page; each stands below the case with the smallest depth."""
    rates: dict[Hashable, dict[int, float]] = {}
    for file in files.records:
        with RecordIndex(file) as index:
            decodes = index.every(lambda case: DECODE_CASE.match(case) is not None)
        for record in decodes:
            if record.artifact in artifacts and (part := record.part(LlmPart)) and part.tokens_per_s:
                rates.setdefault(_library(record, part), {})[part.depth] = part.tokens_per_s
    template = environment(__package__).get_template("context.html.j2")

    def block(record: Record) -> str:
        part = record.part(LlmPart) if DECODE_CASE.match(record.case) else None
        own = rates.get(_library(record, part), {}) if part else {}
        if part is None or len(own) < 2 or part.depth != min(own):
            return ""
        return template.render(curve=Curve(f"{part.model} {part.format}", {record.tvm: own}))

    return Details(block)


def section(view: HistoryView) -> HistorySection:
    """Return a page of the curves of a history; none without language models."""
    curves = list(_curves(view)) if not view.summary else []
    facts = {"curves": curves}
    page = SectionPage("context.html", "Tokens over context", "contexts.html.j2", facts, in_menu=True)
    return HistorySection(package=__package__, pages=(page,)) if curves else HistorySection()


def _curves(view: HistoryView) -> Iterator[Curve]:
    rates: dict[str, dict[str, dict[int, float]]] = {}
    for series in view.history.series:
        if match := DECODE_CASE.fullmatch(series.case.model):
            names = (match["library"], series.case.path, series.quirks, series.machine)
            for point in series.points:
                if point.wall_ms:
                    commits = rates.setdefault(", ".join(names), {})
                    commits.setdefault(point.commit, {})[int(match["depth"])] = 1e3 / point.wall_ms
    order = {commit: place for commits in view.history.commits.values() for place, commit in enumerate(commits)}
    for name, commits in rates.items():
        newest = sorted(commits, key=lambda commit: order[commit])[-MOST_COMMITS:]
        lines = {commit[:8]: commits[commit] for commit in newest if len(commits[commit]) > 1}
        if lines:
            yield Curve(name, lines)
