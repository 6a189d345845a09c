"""`adreno-bench quirks`: known upstream defects, and whether the installed TVM still has them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from device_runner.files import write_whole
from device_runner.store import cache_root
from harness.base.failures import UsageError
from harness.base.process import cores
from harness.base.tables import counted
from harness.cli.options import (
    AsJson,
    output_option,
    refuse_options,
)
from harness.compile.compiler.releases import find_release, versions
from harness.compile.quirks import Quirk
from harness.judge.report.screen import Screen, out, out_json
from harness.tools.shared.outputs import require_output_folder
from harness.tools.shared.revision_options import DEFAULT_COMPILER_CONFIG, CompilerConfig, CompilerRepo
from harness.tools.upstream.probe_answer import ProbeAnswer

if TYPE_CHECKING:
    from harness.tools.upstream.report import QuirkReport

ALL = "all"
DEFAULT_FOLDER = Path("quirk-reports")


def quirks(
    context: typer.Context,
    report: Annotated[
        list[str] | None,
        output_option(metavar="QUIRK", help="Write the report for TVM's issue tracker: a quirk, or all. Repeatable."),
    ] = None,
    folder: Annotated[Path, output_option("--out", metavar="FOLDER", help="Folder for reports.")] = DEFAULT_FOLDER,
    release: Annotated[
        list[str] | None,
        output_option(metavar="RELEASE", help="Also reproduce with this release or commit of TVM. Repeatable."),
    ] = None,
    config: CompilerConfig = DEFAULT_COMPILER_CONFIG,
    repo: CompilerRepo = None,
    as_json: AsJson = False,
) -> None:
    """List the known defects of TVM, and probe the installed TVM for each.

    Essential ones have a workaround even with --as-shipped. The answers for a release of TVM stay in the cache.
    docs/explanation/quirks.md explains each.
    """
    from harness.tools.upstream.report import reported_quirks

    if report:
        require_output_folder(folder)
        chosen = reported_quirks(() if ALL in report else report)
        _write_reports(chosen, folder, _interpreters(release or (), config, repo), as_json)
        return
    refuse_options(context, ("folder", "release", "config", "repo"), "without --report")
    _list_quirks(reported_quirks(), as_json)


def _list_quirks(listed: Sequence[Quirk], as_json: bool) -> None:
    from harness.tools.upstream.quirk_probes import probe_answers

    installed, plain = versions(), []
    if not as_json:
        out(f"apache-tvm {installed['tvm']}, apache-tvm-ffi {installed['ffi']}")
    with Screen() as screen, probe_answers(listed, cache_root(), screen.build) as answers:
        for quirk, answer in zip(listed, answers, strict=True):
            plain.append(_plain(quirk, answer))
            if not as_json:
                out(f"\n{_paragraph(quirk, answer)}")
    if as_json:
        out_json(plain)


def _interpreters(releases: Sequence[str], config: Path, repo: Path | None) -> dict[str, Path]:
    """Python by release of TVM: the other releases in environments of their own, then the installed one."""
    from harness.tools.shared.environment import environment
    from harness.tools.shared.revisions import revision

    installed, cache = versions()["tvm"], cache_root()
    with Screen() as screen:
        others = {
            name: environment(revision(name, config, cache, repo), cache, screen.say)
            for name in (find_release(word) or word for word in releases)
            if name != installed
        }
    return others | {installed: Path(sys.executable)}


def _write_reports(chosen: Sequence[Quirk], folder: Path, pythons: Mapping[str, Path], as_json: bool) -> None:
    from harness.tools.upstream.report import NO_REPORT, TABLE, report_of, report_table, reproduce, write_report

    reports = [(quirk, report_of(quirk)) for quirk in chosen]
    if not any(report for _, report in reports):
        raise UsageError(f"{', '.join(quirk.id for quirk in chosen)}: {NO_REPORT}")
    states: dict[str, dict[str, ProbeAnswer]] = {name: {} for name in pythons}

    def try_out(job: tuple[str, Quirk, QuirkReport]) -> tuple[str, Quirk, ProbeAnswer]:
        name, quirk, report = job
        return name, quirk, reproduce(report.script, pythons[name])

    jobs = [(name, quirk, report) for quirk, report in reports if report for name in pythons]
    with Screen() as screen, ThreadPoolExecutor(cores()) as pool:
        screen.say(f"running the programs of {counted(len(jobs), 'report')}")
        for number, (name, quirk, answer) in enumerate(pool.map(try_out, jobs), 1):
            states[name][quirk.id] = answer
            screen.say(f"{number} of {len(jobs)}: {quirk.id}, {name}: {answer.state.value}")
    for quirk, report in reports:
        if report:
            write_report(report, {name: answers[quirk.id] for name, answers in states.items()}, folder / quirk.id)
    write_whole(folder / TABLE, report_table(reports, states))
    if as_json:
        out_json([_plain_report(quirk, report, states) for quirk, report in reports])
        return
    missing = [quirk.id for quirk, report in reports if report is None]
    out(f"{counted(len(reports) - len(missing), 'report')} in {folder}, the table in {folder / TABLE}")
    if missing:
        out(f"{NO_REPORT}: {', '.join(missing)}")


def _plain_report(
    quirk: Quirk, report: QuirkReport | None, states: Mapping[str, Mapping[str, ProbeAnswer]]
) -> dict[str, object]:
    if report is None:
        return {"id": quirk.id, "report": False}
    facts = {"severity": report.severity.value, "first_bad": report.first_bad, "upstream": report.upstream}
    releases = {name: asdict(answers[quirk.id]) for name, answers in states.items()}
    return {"id": quirk.id, "report": True, **facts, "main": report.main, "releases": releases}


def _paragraph(quirk: Quirk, answer: ProbeAnswer) -> str:
    essential = ", essential" if quirk.essential else ""
    return "\n".join(
        [
            f"{quirk.id}: {answer.state.value}",
            f"  what      {quirk.title}",
            f"  seen      {answer.seen}",
            f"  releases  {quirk.releases} ({quirk.upstream})",
            f"  done      {quirk.workaround} (paths: {', '.join(quirk.paths)}{essential})",
        ]
    )


def _plain(quirk: Quirk, answer: ProbeAnswer) -> dict[str, object]:
    facts = {"id": quirk.id, "title": quirk.title, "upstream": quirk.upstream, "releases": quirk.releases}
    more = {"paths": quirk.paths, "essential": quirk.essential, "workaround": quirk.workaround}
    return {**facts, **more, "probe": answer.state.value, "seen": answer.seen}
