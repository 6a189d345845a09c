"""`adreno-bench isa`: what a real compiler for Adreno makes of the kernels, without a phone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from device_runner.store import cache_root
from harness.base.outcome import ExitCode
from harness.cli import options
from harness.cli.hints import last_words
from harness.judge.report.screen import Screen, out, out_json, out_whole
from harness.tools.isa.gate import exit_code, judge_code
from harness.tools.isa.kernels import check_gpus
from harness.tools.isa.toolchain import MesaToolchain, need, set_up
from harness.tools.shared.revision_options import DEFAULT_COMPILER_CONFIG, CompilerConfig

if TYPE_CHECKING:
    from harness.tools.isa.view import CodeSide

DEFAULT_GPU = "a740"
NO_DEVICE = "none"
BASELINE = "baselines/isa.jsonl"
"""What `isa gate` compares with unless it is told."""


@options.grouped
@last_words("what was built is kept; {command} continues")
def isa(
    what: options.CaseOptions,
    action: Annotated[
        Literal["setup", "gate"] | None,
        typer.Argument(
            metavar="setup|gate",
            help="setup: download the compiler. gate: exit with 1 if a case is heavier, with 3 if a kernel is refused.",
        ),
    ] = None,
    gpu: Annotated[str, typer.Option(metavar="NAMES", help="Adreno GPUs, such as a630,a740,a750.")] = DEFAULT_GPU,
    release: Annotated[
        str | None,
        typer.Option("--of", metavar="RELEASE", help="Build with this TVM release instead of the installed one."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="Compare with another case, a TVM release, or a records file.",
            show_default=f"with gate, {BASELINE}",
        ),
    ] = None,
    tolerance: Annotated[
        float,
        options.threshold_option(
            metavar="PERCENT", min=0, max=1000, help="With gate: allowed increase of the instructions, in percent."
        ),
    ] = 0.0,
    records: Annotated[
        Path | None, options.file_option(metavar="FILE", help="Append a record of each case to this file (JSON lines).")
    ] = None,
    profiles: Annotated[
        list[Path] | None,
        options.seldom_option(
            "--profile",
            metavar="FILE",
            help="With --against: profile of a real GPU, written by `profile --json`. Repeatable.",
        ),
    ] = None,
    asm: Annotated[
        str | None,
        options.output_option(metavar="KERNEL", help="Print the code of one kernel; with --against, the difference."),
    ] = None,
    mirror: Annotated[str, options.seldom_option(metavar="URL", help="With setup: address of a Debian archive.")] = "",
    device: options.DeviceName = NO_DEVICE,
    config: CompilerConfig = DEFAULT_COMPILER_CONFIG,
    as_json: options.AsJson = False,
) -> None:
    """Count the Adreno machine code of the kernels, without a phone.

    Mesa's open compiler generates the code and nothing runs, so the counts are no times (docs/explanation/isa.md). Exit
    code 3 if a case does not build or the compiler refuses a kernel.
    """
    from harness.measure.records.record import RecordFile
    from harness.tools.isa import view as isa_view
    from harness.tools.shared.kernels.profile import Profile

    if action == "setup":
        _set_up(mirror, as_json)
        return
    gpus = list(dict.fromkeys(name.strip() for name in gpu.split(",")))
    check_gpus(gpus)
    base = against or (BASELINE if action == "gate" else None)
    if base:
        isa_view.check(base)
    if records:
        RecordFile(records).require_writable()
    timed = [Profile.read(file) for file in profiles or ()]
    toolchain = need(cache_root())
    asked = isa_view.CodeQuestion(what, gpus, release, base, records, device, config)
    sides, remarks = isa_view.sides_of(toolchain, asked)
    if action == "gate":
        _gate(toolchain, sides, remarks, tolerance / 100, as_json)
    elif asm:
        out_whole(isa_view.assembly(sides, asm))
    elif as_json:
        out_json(isa_view.plain(toolchain, sides, remarks, timed))
    else:
        isa_view.show(toolchain, sides, remarks, timed)
    if remarks or any(side.head.code.refused for side in sides):
        raise typer.Exit(ExitCode.WRONG_OR_BROKEN)
    if not sides:
        raise typer.Exit(ExitCode.NOTHING_MEASURED)


def _set_up(mirror: str, as_json: bool) -> None:
    with Screen() as screen:
        toolchain = set_up(cache_root(), mirror, screen.say)
    if as_json:
        out_json({"mesa": toolchain.mesa, "llvm": toolchain.llvm, "root": str(toolchain.root)})
    else:
        out(f"{toolchain.identity}, in {toolchain.root}, runs in a sandbox by {toolchain.sandbox}")


def _gate(
    toolchain: MesaToolchain, sides: Sequence[CodeSide], remarks: Sequence[str], tolerance: float, as_json: bool
) -> None:
    from harness.tools.isa import view as isa_view

    verdicts = [judge_code(side.head.case, side.bases, side.head.code, tolerance) for side in sides]
    if as_json:
        out_json(isa_view.plain_verdicts(toolchain, verdicts, remarks))
    else:
        isa_view.show_verdicts(toolchain, verdicts, remarks)
    raise typer.Exit(ExitCode.WRONG_OR_BROKEN if remarks else exit_code(verdicts))
