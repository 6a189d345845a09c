"""`adreno-bench history`: the suite over commits and over TVM's releases, measured and published by asv."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from device_runner.registry import identify, open_device
from device_runner.store import cache_root
from harness.base.failures import UsageError
from harness.base.outcome import ExitCode, Outcome, exit_code, without_findings
from harness.base.tables import counted
from harness.base.terminal import tell
from harness.cli.hints import last_words
from harness.cli.options import DEFAULT_SUITE, AsJson, DeviceName, FindingsAreFine, output_option, seldom_option
from harness.judge.report.screen import Screen, out, out_json, out_whole

if TYPE_CHECKING:
    from harness.judge.history.runs import RunResult

DEFAULT_CONFIG = Path("asv.conf.json")
DEFAULT_FOLDER = Path(".asv/releases")

ConfigFile = Annotated[Path, typer.Option("--config", metavar="FILE", help="asv configuration.", show_default=True)]

history = typer.Typer(
    help="Measure commits and releases with asv, and publish what moved.",
    epilog="asv's own commands (compare, continuous, show, preview) work on the same files: docs/how-to/history.md.",
    no_args_is_help=True,
)


@history.command()
@last_words("finished cases are kept; {command} continues")
def run(
    commits: Annotated[
        str,
        typer.Argument(help="Commits in asv's notation: NEW, ALL, TAGS, v1..v2. Default: the heads of the branches."),
    ] = "",
    config: ConfigFile = DEFAULT_CONFIG,
    device: DeviceName = "virtual",
    suite: Annotated[Path | None, typer.Option(metavar="FILE", help="Suite file, if not that of the checkout.")] = None,
    bench: Annotated[
        list[str] | None, seldom_option(metavar="REGEX", help="Only asv benchmarks that match. Repeatable.")
    ] = None,
    record_samples: Annotated[bool, seldom_option(help="Keep every sample in the results of asv.")] = True,
    skip_existing: Annotated[bool, seldom_option(help="Skip commits that have results.")] = True,
    complete: Annotated[
        bool, seldom_option("--complete", help="Also measure new cases of the suite at commits measured before.")
    ] = False,
    findings_are_fine: FindingsAreFine = False,
) -> None:
    """Measure commits on a device, and file them under its identity.

    A new driver or ROM is another identity and starts a new series. The next run measures the cases that found no
    device.
    """
    from harness.base.suite import load_suite
    from harness.compile.schedules.database import read
    from harness.judge.history import runs
    from harness.judge.history.asv_process import case_watchers
    from harness.judge.history.releases import checkout
    from harness.measure.workbench import opening

    project = runs.load_project(config)
    chosen = load_suite(suite or checkout() / DEFAULT_SUITE) if suite or complete else None
    cases = chosen.cases if chosen else []
    if chosen and chosen.schedules:
        read(chosen.schedules)  # before an hour of installing releases, of which each would say it
    with Screen() as screen:
        screen.say(opening([device], cache_root()))
        step = partial(screen.step, f"opening {device}")
        with open_device(device, cache_root(), say=screen.say, step=step) as opened:
            identity = identify(opened, step)
            for watcher in case_watchers():
                watcher.begin(opened, cache_root(), screen.say)
    options = [part for regex in bench or () for part in ("--bench", regex)]
    everywhere = [case.id for case in cases] if complete else []
    request = runs.HistoryRequest(device, suite, commits, record_samples, skip_existing, everywhere, options)
    results = runs.run(project, request, identity)
    out(_summary(results, identity.key, config))
    broken = [Outcome.COMPILE_ERROR for _ in results.not_installed]
    outcomes = [*(record.outcome for record in results.records), *broken]
    raise typer.Exit(exit_code((without_findings(outcomes) if findings_are_fine else outcomes) or [Outcome.OK]))


@history.command()
def releases(
    names: Annotated[list[str], typer.Argument(metavar="RELEASE...", help="Releases of apache-tvm.")],
    folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for the repository and its results.")
    ] = DEFAULT_FOLDER,
) -> None:
    """Make a git repository of TVM releases for asv, or add releases to it.

    It has one commit and one tag for each release.
    """
    from harness.judge.history.releases import maintain

    with Screen() as screen:
        added = maintain(folder, names, screen.say)
    out(f"added {', '.join(added)}" if added else "nothing to add")
    out(f"now run: adreno-bench history run --config {folder / 'asv.conf.json'} ALL")


@history.command()
def publish(
    config: ConfigFile = DEFAULT_CONFIG,
    docs: Annotated[str, typer.Option(metavar="URL", help="Address of the docs, to which every page links.")] = "",
) -> None:
    """Write asv's site and our pages: newest state, what moved, charts, kernels, coverage."""
    from harness.judge.history.runs import load_project
    from harness.judge.report.site import publish as write

    project = load_project(config)
    with Screen() as screen:
        screen.say("asv reads the results and writes its pages; ours follow")
        published = write(project, docs, partial(screen.step, "publishing"))
    out(f"{published.pages} pages of ours and asv's graphs are in {project.html}; open {published.front}")
    for commit in published.displaced:
        tell(f"adreno-bench: {commit}")
    _name_skipped(published.skipped)


@history.command()
def summary(
    config: ConfigFile = DEFAULT_CONFIG,
    markdown: Annotated[
        bool, output_option("--markdown", help="Print Markdown for a job summary or a pull request.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Summarise the newest commit on each device, and what moved there."""
    from harness.judge.decisions import FILE as CONFIRMED
    from harness.judge.history.events import events
    from harness.judge.history.results import load
    from harness.judge.history.runs import load_project
    from harness.judge.history.section import HistoryView, load_sections
    from harness.judge.report.summary import facts, lines

    if as_json and markdown:
        raise UsageError("--json and --markdown exclude each other", hint="choose one")
    folder = load_project(config).results
    results = load(folder, confirmed=CONFIRMED)
    sections = load_sections(HistoryView(folder, results, events(results), summary=True))
    if as_json:
        out_json(facts(results, sections))
    else:
        (out_whole if markdown else out)("\n".join(lines(results, markdown=markdown, sections=sections)))
    if not results.series:
        raise typer.Exit(ExitCode.NOTHING_MEASURED)
    _name_skipped(results.skipped)


def _name_skipped(skipped: Sequence[str]) -> None:
    """Name the results that could not be read, which must not pass for good ones."""
    for problem in skipped:
        tell(f"adreno-bench: skipped {problem}")
    if skipped:
        raise typer.Exit(ExitCode.RIG_FAILURE)


def _summary(results: RunResult, machine: str, config: Path) -> str:
    lines = [
        f"could not be built or installed: {commit}; its output above says why" for commit in results.not_installed
    ]
    if not results.records and not lines:
        return f"nothing was new: built, pushed and measured nothing on {machine}"
    measured = f"measured {counted(len(results.records), 'case')} on {machine}"
    return "\n".join([*lines, f"{measured}; now run: adreno-bench history publish --config {config}"])
