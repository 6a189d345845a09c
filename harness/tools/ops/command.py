"""`adreno-bench ops`: which operators are right on which path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from device_runner.foreign_json import read_json
from device_runner.selection import select_one
from device_runner.store import cache_root
from harness.base.case import Precision
from harness.base.failures import UsageError, reason_alone
from harness.base.outcome import Outcome, exit_code, without_findings
from harness.cli import options
from harness.cli.hints import last_words
from harness.compile.compiler.releases import find_release, require_working_pair, versions
from harness.judge.report.screen import Screen, out, out_json, out_whole
from harness.tools.shared.outputs import folder_option
from harness.tools.shared.revision_options import DEFAULT_COMPILER_CONFIG, CompilerConfig

PATHS = ("opencl", "texture", "clml")


SetName = Literal["sweep", "sweep-float16", "onnx", "all"]
Mode = Literal["workarounds", "as-shipped", "both"]
"""Which of the known defects of TVM are worked around."""
MODES: dict[Mode, tuple[bool, ...]] = {"workarounds": (False,), "as-shipped": (True,), "both": (False, True)}


@last_words("finished cells are kept; {command} continues")
def ops(
    context: typer.Context,
    op: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Only operators or cases whose name matches, such as 'conv*'. Repeatable."),
    ] = None,
    path: Annotated[
        list[str] | None, typer.Option(help="Path: opencl, texture or clml. Default: all. Repeatable.")
    ] = None,
    of: Annotated[
        SetName,
        typer.Option("--set", help="Operators: sweep (our own), sweep-float16, onnx (node tests of ONNX), or all."),
    ] = "sweep",
    mode: Annotated[Mode, typer.Option(help="With workarounds, as shipped, or both.")] = "both",
    precision: Annotated[Precision, options.seldom_option(help="Precision to compile in.")] = Precision.FLOAT32,
    release: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RELEASE",
            help="TVM release or commit to build and run with. Default: the installed one. Repeatable.",
        ),
    ] = None,
    config: CompilerConfig = DEFAULT_COMPILER_CONFIG,
    device: options.DeviceName = options.DEFAULT_DEVICE,
    from_files: Annotated[
        list[Path] | None,
        options.output_option(
            "--from", metavar="FILE", help="Show cells that --json printed, and run nothing. Repeatable."
        ),
    ] = None,
    html: Annotated[Path | None, options.file_option(metavar="FILE", help="Also write a page to this file.")] = None,
    table: Annotated[
        Path | None,
        folder_option(metavar="FOLDER", help="Also write RELEASE.json to this folder, which `inspect` reads."),
    ] = None,
    markdown: Annotated[bool, options.output_option("--markdown", help="Print Markdown.")] = False,
    findings_are_fine: options.FindingsAreFine = False,
    as_json: options.AsJson = False,
) -> None:
    """Test single operators on each path: right, wrong, or not built.

    Results are kept, so an interrupted run continues where it stopped.
    """
    from harness.judge.report.page import write_page
    from harness.tools.ops.operator_table import OperatorTable
    from harness.tools.ops.page import LEGEND, Coverage

    if from_files:
        unused = ("op", "path", "of", "mode", "precision", "release", "config", "device")
        options.refuse_options(context, unused, "with --from, which runs nothing")
        read = (cell for file in from_files for cell in _read(file))
        cells = list({tuple(map(cell.get, _WHICH)): cell for cell in read}.values())  # the last of several
    else:
        asked = _CellChoice(of, op or (), _paths(path), mode, precision, device)
        cells = _of_releases(asked, release, config) if release else _run(asked)
    coverage = Coverage(cells)
    if html:
        facts: dict[str, Any] = {"facts": _facts(cells), "legend": LEGEND, "tables": coverage.tables()}
        write_page(html, "operators.html.j2", package=__package__, scripts=(), title="Operators", **facts)
    if table:
        for name in dict.fromkeys(cell["tvm"] for cell in cells):
            OperatorTable.of(name, cells).write(table)
    if as_json:
        out_json(cells)
    elif markdown:
        out_whole(coverage.markdown(_facts(cells)))
    else:
        out(coverage.text())
    outcomes = [Outcome(cell["outcome"]) for cell in cells]
    raise typer.Exit(exit_code(without_findings(outcomes) or [Outcome.OK] if findings_are_fine else outcomes))


_WHICH = ("name", "set", "dtype", "path", "as_shipped", "tvm", "device")
"""What tells cells apart."""


def _paths(names: Sequence[str] | None) -> Sequence[str]:
    for name in names or ():
        options.require_path(name)
    return names or PATHS


@dataclass(frozen=True)
class _CellChoice:
    """Which cells."""

    of: SetName
    globs: Sequence[str]
    paths: Sequence[str]
    mode: Mode
    precision: Precision
    device: str

    @property
    def words(self) -> list[str]:
        """The command line's words for it."""
        repeated = [*(("--op", glob) for glob in self.globs), *(("--path", path) for path in self.paths)]
        once = [("--set", self.of), ("--mode", self.mode), ("--precision", self.precision.value)]
        return [word for pair in (*repeated, *once, ("--device", self.device)) for word in pair]


def _of_releases(asked: _CellChoice, releases: Sequence[str], config: Path) -> list[dict[str, Any]]:
    """Return the cells of each release, each in its own environment, but for what is installed here."""
    from harness.tools.ops.cells import cells_of

    cells = []
    for release in (find_release(word) or word for word in releases):
        if release == versions()["tvm"]:
            cells += _run(asked)
        else:
            with Screen() as screen:
                cells += cells_of(release, asked.words, config, cache_root(), screen.say)
    return cells


def _run(asked: _CellChoice) -> list[dict[str, Any]]:
    """Return every cell, as plain values."""
    from harness.tools.ops.run import operators

    require_working_pair(versions())
    cache = cache_root()
    sets = ["sweep", "sweep-float16", "onnx"] if asked.of == "all" else [asked.of]
    with Screen() as screen:
        name = select_one(asked.device, cache, screen.say)
        chosen = (asked.paths, MODES[asked.mode], asked.precision, name)
        results = operators(sets, asked.globs, *chosen, cache, screen.say)
        return [{**result.plain, **versions(), "device": name} for result in results]


def _read(file: Path) -> list[dict[str, Any]]:
    """Return what `--json` printed. Raises UsageError for anything else."""
    from harness.tools.ops.page import Coverage

    try:
        cells: list[dict[str, Any]] = read_json(file.read_text(encoding="utf-8"))
        if not isinstance(cells, list):
            raise TypeError("it is no list")
        Coverage(cells).markdown(_facts(cells))
        for cell in cells:
            Outcome(cell["outcome"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{file} is not what `adreno-bench ops --json` prints ({reason_alone(error)})",
            hint="write one with `adreno-bench ops --json > FILE`",
        ) from error
    return cells


def _facts(cells: Sequence[dict[str, Any]]) -> dict[str, str]:
    def all_of(key: str) -> str:
        return ", ".join(dict.fromkeys(str(cell[key]) for cell in cells))

    return {"TVM": all_of("tvm"), "device": all_of("device"), "cases": str(len({cell["name"] for cell in cells}))}
