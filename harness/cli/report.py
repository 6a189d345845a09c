"""`adreno-bench report`: a page that shows a run, a gate or a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from device_runner.files import write_whole
from harness.base.failures import UsageError
from harness.base.tables import size
from harness.cli import options
from harness.cli.record_filter import load_sides, read_builds, sustained_records
from harness.cli.rule_options import RuleOptions
from harness.judge.report.screen import out

if TYPE_CHECKING:
    from harness.judge.report.comparison import ComparisonExport
    from harness.measure.records.record import Record


def require_report_file(file: Path) -> Path:
    """Return the file to write. Raises UsageError unless it can be written and ends in .html or .md."""
    if file.suffix not in (".html", ".md"):
        raise UsageError(f"a report is a page or Markdown, and {file} is neither", hint=f"name it {file.stem}.html")
    options.require_output_file(file)
    return file


@options.grouped
def report(
    rule: RuleOptions,
    records: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PLACE",
            help="Records: a file, a folder, a glob or a URL. Repeatable.",
            show_default=str(options.DEFAULT_RECORDS),
        ),
    ] = None,
    verdicts: Annotated[
        Path | None,
        typer.Option("--gate", metavar="FILE", help="Show these verdicts, which `gate --export-json` wrote."),
    ] = None,
    base: Annotated[
        str | None, typer.Option("--compare", metavar="BASE", help="Compare with records or a folder of baselines.")
    ] = None,
    profiles: Annotated[
        list[Path] | None,
        typer.Option("--profile", metavar="FILE", help="Profile of a case, by `profile --json`. Repeatable."),
    ] = None,
    model: options.ModelsOfRecords = None,
    case: options.CaseGlob = None,
    to: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FILE",
            callback=require_report_file,
            help="Page to write; FILE.md gets the matrix alone, as Markdown.",
        ),
    ] = Path("report.html"),
) -> None:
    """Write one HTML page of a run, a gate or a comparison.

    The page needs no network and no server. It shows a matrix of models and paths, the device, and for each case its
    samples, its kernels if they were profiled, and the command that repeats it.
    """
    from harness.judge.report.comparison import read_comparison
    from harness.judge.report.matrix import entries_of, markdown, matrices_of

    if verdicts and base:
        raise UsageError("--gate and --compare exclude each other", hint="choose one")
    files = records or [str(options.DEFAULT_RECORDS)]

    builds = _of_one_series([build for file in files for build in read_builds(file, options.matching(case))], model)
    if not builds:
        where = ", ".join(map(str, files))
        raise UsageError(f"there are no records of these cases in {where}", hint="`adreno-bench show` lists them")
    comparison = read_comparison(verdicts) if verdicts else _compare(base, builds, case, rule) if base else None
    if verdicts and comparison and not case:
        series = {(each.identity, each.case, each.as_shipped) for each in comparison.cases}
        builds = [b for b in builds if (b[0].identity_key, b[0].case, b[0].as_shipped) in series] or builds
    if to.suffix == ".md":
        write_whole(to, markdown(matrices_of(entries_of(builds))) + "\n")
    else:
        here = [Path(place) for place in files if Path(place).exists()]
        record_places = [*here, *([Path(base)] if base and Path(base).exists() else [])]
        sustained = [record for file in files for record in sustained_records(file, options.matching(case))]
        artifacts = {record.artifact for build in builds for record in build}
        artifacts |= {each.base.artifact for each in (comparison.cases if comparison else ()) if each.base}
        from harness.judge.report.page import environment

        environment()  # which says what to install
        from harness.judge.report.sections import PageFiles, load_details, load_sections
        from harness.judge.report.suite_page import write_report

        details = load_details(PageFiles(record_places, profiles or ()), artifacts)
        write_report(to, builds, comparison, sustained, load_sections(here), details)
    out(f"{to}: {len(builds)} case{'s' * (len(builds) > 1)}, {size(to.stat().st_size)}")


def _of_one_series(builds: Sequence[Sequence[Record]], models: Sequence[str] | None) -> list[list[Record]]:
    """Return the records of each series of these models, the oldest first, whichever files they are in."""
    from harness.judge.sides import by_series

    chosen = (record for build in builds if options.matches_models(build[0].case, models) for record in build)
    return [sorted(group, key=lambda record: record.started_at) for group in by_series(chosen).values()]


def _compare(
    base: str, builds: Sequence[Sequence[Record]], globs: Sequence[str] | None, rule: RuleOptions
) -> ComparisonExport:
    """Return the records against what is known of their cases at base."""
    from harness.judge.confirm import judge_sides
    from harness.judge.path_ranking import path_flips, path_means
    from harness.judge.report.comparison import export_comparison
    from harness.judge.sides import side_of

    head = {side.key: side for side in map(side_of, builds)}
    cases = {key.case for key in head}
    at_base = {key: side for key, side in load_sides(base, options.matching(globs)).items() if key.case in cases}
    result = judge_sides(at_base, head, rule.rules)
    return export_comparison(result, path_means(result.cases), path_flips(result.cases, rule.rules))
