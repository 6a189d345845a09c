"""The site: what `asv publish` writes, and our pages in front of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from device_runner.failures import RigFailure, SetupMissing
from harness.failures import UsageError
from harness.history.code_results import load_codes
from harness.history.results import BENCHMARKS_FILE, load
from harness.history.runs import Project, asv
from harness.judge.decisions import FILE as CONFIRMED

GRAPHS = "graphs.html"
"""What asv's own front page is called on the site, whose front page is ours."""


@dataclass(frozen=True)
class Published:
    """What was written."""

    front: Path
    pages: int
    skipped: list[str]
    """Results that could not be read."""


def publish(project: Project) -> Published:
    """Write the site. Raises UsageError before anything was measured, RigFailure if asv cannot publish."""
    try:
        from harness.report.site import write_site
    except ImportError:
        raise SetupMissing("jinja2 is not installed", hint="pip install 'adreno-bench[history]'") from None
    if not (project.results / BENCHMARKS_FILE).exists():
        raise UsageError(f"there are no results in {project.results}", hint="adreno-bench history run")
    said: list[str] = []
    if asv(project, ["publish", "--no-pull"], output=said.append):
        bad = load(project.results).skipped
        message = f"asv cannot publish these results: {bad[0] if bad else next(reversed(said), 'it said nothing')}"
        raise RigFailure(message, hint="mend or remove the file that it names", evidence="\n".join(said))
    history = load(project.results, _order(project.html), CONFIRMED)
    _make_room(project.html)
    codes = load_codes(project.results, history.commits)
    pages = write_site(history, project.html, GRAPHS, codes, project.results)
    return Published(project.html / "index.html", pages, history.skipped)


def _order(html: Path) -> dict[str, int]:
    """The number that asv gave each commit."""
    revisions = json.loads((html / "index.json").read_bytes())["revision_to_hash"]
    return {commit: int(revision) for revision, commit in revisions.items()}


def _make_room(html: Path) -> None:
    (html / "index.html").rename(html / GRAPHS)
    feed = html / "regressions.xml"
    feed.write_text(feed.read_text(encoding="utf-8").replace("index.html#", f"{GRAPHS}#"), encoding="utf-8")
