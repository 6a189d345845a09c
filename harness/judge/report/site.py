"""The published site: what `asv publish` writes, and in front of it our pages, plain files that need no server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from device_runner.failures import RigFailure
from harness.base.failures import UsageError
from harness.base.outcome import CaseState
from harness.base.request import WITH_WORKAROUNDS
from harness.base.tables import grouped
from harness.judge.decisions import FILE as CONFIRMED
from harness.judge.history.events import (
    WORST_FIRST,
    Event,
    change,
    change_bounds,
    events,
    is_news,
    short_series,
    too_short_text,
    vanished_series,
)
from harness.judge.history.results import BENCHMARKS_FILE, LATENCY, History, Point, Series, load
from harness.judge.history.runs import FRONT_PAGE, Project, asv
from harness.judge.history.section import HistorySection, HistoryView, Note, SectionPage, load_sections
from harness.judge.report import words
from harness.judge.report.figures import Figure, commit_names, latencies
from harness.judge.report.page import FIGURES, FILTER, environment, write_scripts
from harness.judge.report.points import POINTS, write_points
from harness.judge.report.strips import sparkline
from harness.judge.stats.pair import Rules
from harness.judge.verdict import Verdict
from harness.measure.probes.base import Step, no_step
from harness.measure.progress import Tally

GRAPHS = "graphs.html"
"""Name of asv's front page on the site, whose front page is ours."""
PAGES = {
    "index.html": ("front.html.j2", "Newest state", (FILTER,)),
    "moved.html": ("moved.html.j2", "What moved", ()),
    "charts.html": ("charts.html.j2", "Charts", FIGURES),
    "coverage.html": ("coverage.html.j2", "Coverage", ()),
    "installed.html": ("installed.html.j2", "Installed", ()),
}
"""Template, title and scripts of each page."""


@dataclass(frozen=True)
class Row:
    """One series on the front page."""

    series: Series
    moved: Verdict | None
    """Its last change."""
    spark: Markup

    @property
    def state(self) -> CaseState:
        """State of the newest point."""
        return self.series.newest.state


@dataclass(frozen=True)
class ModelHistoryRow:
    """All series of one model on one machine, side by side."""

    model: str
    cells: list[list[Row]]
    """One for each path of the table; none in it where the model was not measured on it."""

    @property
    def series(self) -> list[Row]:
        """All of them."""
        return [row for cell in self.cells for row in cell]

    @property
    def urgency(self) -> int:
        """Sort key: rows with the smallest number come first."""
        return min(_urgency(row) for row in self.series)


@dataclass(frozen=True)
class Table:
    """The newest state on one machine: a row a model, what is wrong, broken or slower first."""

    machine: Mapping[str, Any]
    newest: Point
    paths: list[str]
    rows: list[ModelHistoryRow]

    @property
    def series(self) -> list[Row]:
        """All series of the machine."""
        return [row for model in self.rows for row in model.series]

    @property
    def shared(self) -> str:
        """Properties that all cases share: precision, tuning, workarounds."""
        return ", ".join(kinds.pop() for kinds in map(set, self._labels) if len(kinds) == 1)

    @property
    def has_changes(self) -> bool:
        """Whether a cell shows a change since the last release."""
        return any(change(row.series) is not None for row in self.series)

    def own(self, row: Row) -> str:
        """Return what distinguishes a series from others of its model and path."""
        kinds, quirks = map(set, self._labels)
        labels = _labels(row.series)
        return ", ".join(label for label, all_ in zip(labels, (kinds, quirks), strict=True) if len(all_) > 1)

    @cached_property
    def _labels(self) -> tuple[list[str], list[str]]:
        labels = [_labels(row.series) for row in self.series]
        return [kind for kind, _ in labels], [quirks for _, quirks in labels]


@dataclass(frozen=True)
class Installation:
    """Releases installed when a commit was measured on a machine."""

    machine: str
    point: Point
    quirks: list[str]


@dataclass(frozen=True)
class PublishedSite:
    """The pages that were written."""

    front: Path
    pages: int
    skipped: list[str]
    """Results that could not be read."""
    displaced: list[str]
    """Commits that the repository no longer has."""


def publish(project: Project, docs: str = "", step: Step = no_step) -> PublishedSite:
    """Write the site, whose pages link to `docs`. `step` gets the progress, first from asv.

    Raises UsageError if nothing was measured yet, RigFailure if asv cannot publish.
    """
    environment()  # before asv takes its time
    if not (project.results / BENCHMARKS_FILE).exists():
        run = f"`adreno-bench history run ALL --config {project.config}`"
        raise UsageError(f"there are no results in {project.results}", hint=f"{run} measures")
    output: list[str] = []

    def hear(line: str) -> None:
        if line.strip() == FRONT_PAGE:
            return  # for those who type asv's command
        output.append(line)
        step(f"asv has done {line.strip()}")  # it ends a line, with the share of its steps, when the next one begins

    if asv(project, ["publish", "--no-pull"], output=hear):
        bad = load(project.results).skipped
        message = f"asv cannot publish these results: {bad[0] if bad else next(reversed(output), 'it output nothing')}"
        raise RigFailure(message, hint="mend or remove the file that it names", evidence="\n".join(output))
    step("reading the results")
    history = load(project.results, _order(project.html), CONFIRMED)
    _make_room(project.html)
    pages = write_site(history, project.html, GRAPHS, project.results, docs, step)
    return PublishedSite(project.html / "index.html", pages, history.skipped, history.displaced)


def _order(html: Path) -> dict[str, int]:
    """Return the number that asv gave each commit."""
    revisions = json.loads((html / "index.json").read_bytes())["revision_to_hash"]
    return {commit: int(revision) for revision, commit in revisions.items()}


def _make_room(html: Path) -> None:
    (html / "index.html").rename(html / GRAPHS)
    feed = html / "regressions.xml"
    feed.write_text(feed.read_text(encoding="utf-8").replace("index.html#", f"{GRAPHS}#"), encoding="utf-8")


def write_site(
    history: History, folder: Path, graphs: str, results: Path | None = None, docs: str = "", step: Step = no_step
) -> int:
    """Write all pages and return how many. `graphs` is the name of asv's own page, `docs` the address of the docs.

    Tools add what they find in `results`.
    """
    moved = events(history)
    sections = load_sections(HistoryView(results, history, moved)) if results else []
    added = [page for section in sections for page in section.pages]
    templates = environment(*(section.package for section in sections if section.package))
    templates.globals.update(
        change=change,
        change_bounds=change_bounds,
        machine_facts=_machine_facts,
        anchor=lambda machine, model: f"{machine}-{model}",
        graph=lambda series: _graph(graphs, series),
        notes=lambda series: list(_notes(sections, series)),
        links=lambda series: [(section.link_text, file) for section in sections if (file := section.link(series))],
        remarks=lambda event: list(filter(None, (section.remark(event) for section in sections))),
    )
    facts = {
        "pages": {
            **{name: title for name, (_, title, _) in PAGES.items()},
            **{page.file: page.title for page in added if page.in_menu},
        },
        "graphs": graphs,
        "docs": docs,
        "history": history,
        "skipped": history.skipped,
        "displaced": history.displaced,
        "tables": (tables := _tables(history, moved)),
        "states": words.count_states(row.state for table in tables for row in table.series),
        "largest": _largest_change(tables),
        "choices": _choices(tables),
        "news": sorted((e for e in moved if is_news(e, history)), key=lambda e: WORST_FIRST.index(e.verdict)),
        "events": {verdict: [event for event in moved if event.verdict is verdict] for verdict in WORST_FIRST},
        "vanished": vanished_series(history),
        "too_short": too_short_text(short_series(history)),
        "installed": list(_installed(history)),
        "charts": _charts(history, moved),
        "commits": commit_names(history),
        "points": POINTS,
    }
    write_scripts(folder)
    write_points(history, folder)
    tally = Tally()
    tally.expect(len(PAGES) + len(added))
    ours = [SectionPage(name, title, template, scripts=scripts) for name, (template, title, scripts) in PAGES.items()]
    for page in [*ours, *added]:
        step(f"our pages: {tally}")
        own = {"page": page.file, "title": page.title, "scripts": page.scripts}
        text = templates.get_template(page.template).render(**facts, **page.facts, **own)
        (folder / page.file).write_text(text, encoding="utf-8")
        tally.did()
    return len(PAGES) + len(added)


def _charts(history: History, moved: Iterable[Event]) -> list[tuple[str, str, str, Figure]]:
    """Return a figure for each path of each model of each machine. It draws both commits of what `moved`."""
    named: dict[int, set[str]] = {}
    for event in moved:
        named.setdefault(id(event.series), set()).update((event.before.commit, event.after.commit))

    def key(series: Series) -> tuple[str, str, str]:
        return series.machine, series.case.model, series.case.path

    paths = words.ordered_paths({series.case.path for series in history.series})
    ordered = sorted(
        history.series, key=lambda series: (series.machine, series.case.model, paths.index(series.case.path))
    )
    groups = groupby(ordered, key=key)
    return [(*of, latencies(list(series), history.commits[of[0]], named)) for of, series in groups]


def _tables(history: History, moved: Sequence[Event]) -> list[Table]:
    verdicts = {id(event.series): event.verdict for event in reversed(moved) if is_news(event, history)}
    tables = []
    for machine in sorted(history.commits):
        if here := history.at_newest(machine):
            rows = [
                Row(series, verdicts.get(id(series)), sparkline(series.points, words.spark_text(series.points)))
                for series in here
            ]
            paths = words.ordered_paths({series.case.path for series in here})
            tables.append(Table(history.machines[machine], here[0].newest, paths, _by_model(rows, paths)))
    return tables


def _by_model(rows: Iterable[Row], paths: Sequence[str]) -> list[ModelHistoryRow]:
    by_model = grouped(rows, lambda row: row.series.case.model)
    models = [
        ModelHistoryRow(model, [[row for row in mine if row.series.case.path == path] for path in paths])
        for model, mine in by_model.items()
    ]
    return sorted(models, key=lambda row: (row.urgency, row.model))


def _largest_change(tables: Sequence[Table]) -> float | None:
    """Return the change since the last release that is farthest from none; None where all are below what matters."""
    changes = (change(row.series) for table in tables for row in table.series)
    largest = max((share for share in changes if share is not None), key=abs, default=0.0)
    return largest if abs(largest) >= Rules().relevant else None


def _labels(series: Series) -> tuple[str, str]:
    case = series.case
    return f"{case.precision.value} {case.tuning.value}", words.quirks_text(series)


MACHINE_FACTS = {
    "soc": "SoC",
    "gpu": "GPU",
    "clml": "CLML",
    "cpu": "SoC",
    "ram": "RAM",
    "rom": "ROM",
    "driver": "driver",
}


def _machine_facts(table: Table) -> list[tuple[str, str]]:
    """Return what asv's machine file tells of a device, and what was installed at the newest commit."""
    newest = table.newest
    facts = [("TVM", newest.tvm), ("tvm-ffi", newest.ffi), ("adreno-bench", newest.harness)]
    facts += [(name, str(table.machine.get(key) or "")) for key, name in MACHINE_FACTS.items()]
    return [(name, value) for name, value in facts if value]


def _choices(tables: Sequence[Table]) -> dict[str, list[str]]:
    """Return what can be hidden: paths, states and devices."""
    rows = [row for table in tables for row in table.series]
    return {
        "path": words.ordered_paths({row.series.case.path for row in rows}),
        "state": [state.value for state in CaseState if any(row.state is state for row in rows)],
        "device": sorted({row.series.machine for row in rows}),
    }


def _urgency(row: Row) -> int:
    """Sort key of a series: wrong, broken, slower, then all others."""
    worst = (row.state is CaseState.WRONG, row.state is CaseState.BROKEN, row.moved is Verdict.SLOWER)
    return worst.index(True) if any(worst) else len(worst)


def _installed(history: History) -> Iterable[Installation]:
    """Yield the newest commit first. Points of one commit agree on releases and differ in quirks."""
    for machine, commits in sorted(history.commits.items()):
        by_commit: dict[str, list[Point]] = {commit: [] for commit in commits}
        for series in history.series:
            if series.machine == machine:
                for point in series.points:
                    by_commit[point.commit].append(point)
        for points in reversed(by_commit.values()):
            point = next((point for point in points if point.tvm), points[0])
            yield Installation(machine, point, sorted({quirk for point in points for quirk in point.quirks}))


def _notes(sections: Sequence[HistorySection], series: Series) -> Iterator[Note]:
    """Yield the tools' notes on a case, beside the series with workarounds: tools look at no other build."""
    if series.quirks == WITH_WORKAROUNDS:
        for section in sections:
            yield from section.of_case(series.machine, series.case.id)


def _graph(graphs: str, series: Series) -> str:
    """Return the link to asv's graph of a series, in which asv writes parameters as Python literals."""
    chosen = {"machine": series.machine, "p-case": repr(series.case.id), "p-quirks": repr(series.quirks)}
    return f"{graphs}#{LATENCY}?{urlencode(chosen)}"
