"""`adreno-bench isa`: what a real compiler for Adreno makes of the kernels, without a phone."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import (
    DEFAULT_COMPILER_CONFIG,
    DEFAULT_DEVICE,
    AsJson,
    CaseOptions,
    CompilerConfig,
    DeviceName,
    grouped,
)
from harness.run.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.cli.isa_text import Side
    from harness.isa.toolchain import Toolchain

DEFAULT_GPU = "a740"


class Action(str, Enum):
    """What may be done instead of compiling."""

    SETUP = "setup"


@grouped
def isa(
    what: CaseOptions,
    action: Annotated[
        Action | None,
        typer.Argument(metavar="[setup]", help="Download the compiler into the cache, instead of running it."),
    ] = None,
    gpu: Annotated[
        str, typer.Option("--gpu", metavar="NAMES", help="Adreno GPUs, such as a630,a740,a750.")
    ] = DEFAULT_GPU,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="WHAT",
            help="What to compare with: another case, a release of TVM, or a file of records.",
        ),
    ] = None,
    asm: Annotated[
        str | None,
        typer.Option("--asm", metavar="KERNEL", help="Print the machine code of one kernel; with --against of both."),
    ] = None,
    mirror: Annotated[
        str, typer.Option("--mirror", metavar="URL", help="With setup: Debian's archive, if apt here has another.")
    ] = "",
    device: DeviceName = DEFAULT_DEVICE,
    config: CompilerConfig = DEFAULT_COMPILER_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Compile the kernels of the cases for Adreno GPUs with Mesa's open compiler, and count what it makes of them.

    Nothing is executed, and the numbers are no times: docs/isa.md says what they mean. The device is asked for its
    image limits, as by `build`. Exit code 3 if a case is not built, or the compiler refuses a kernel.
    """
    from harness.cli import isa_sides, isa_text
    from harness.cli.screen import out_json, out_whole
    from harness.isa.compiled import check_gpus
    from harness.isa.toolchain import need
    from harness.store import cache_root

    if action is Action.SETUP:
        _set_up(mirror, as_json)
        return
    gpus = list(dict.fromkeys(name.strip() for name in gpu.split(",")))
    check_gpus(gpus)
    if against:
        isa_sides.check(against)
    toolchain = need(cache_root())
    sides, remarks = _sides(toolchain, what, gpus, against, device, config)
    if asm:
        out_whole(isa_text.assembly(sides, asm))
    elif as_json:
        out_json(isa_text.plain(toolchain, sides, remarks))
    else:
        isa_text.show(toolchain, sides, remarks)
    if remarks or any(side.head.refused for side in sides):
        raise typer.Exit(ExitCode.WRONG_OR_BROKEN)
    if not sides:
        raise typer.Exit(ExitCode.NOTHING_MEASURED)


def _set_up(mirror: str, as_json: bool) -> None:
    from harness.cli.screen import Screen, out, out_json
    from harness.isa.toolchain import set_up
    from harness.store import cache_root

    with Screen() as screen:
        toolchain = set_up(cache_root(), mirror, screen.say)
    if as_json:
        out_json({"mesa": toolchain.mesa, "llvm": toolchain.llvm, "root": str(toolchain.root)})
    else:
        out(f"{toolchain.identity}, in {toolchain.root}, runs in a sandbox by {toolchain.sandbox}")


def _sides(
    toolchain: Toolchain, what: CaseOptions, gpus: Sequence[str], against: str | None, device: str, config: Path
) -> tuple[list[Side], list[str]]:
    """The cases on each GPU, each with what it is compared with; and why the others were not built."""
    from harness.cli.isa_sides import artifacts, opposite
    from harness.cli.isa_text import Side
    from harness.cli.screen import Screen
    from harness.isa.built import networks

    with Screen() as screen:
        built, remarks = artifacts(what, device, screen)
        other = opposite(against, built, what, device, config, screen) if against and built else {}
        heads = networks(toolchain, {case: key for case, key in built.items() if not against or case in other}, gpus)
        bases = networks(toolchain, {case: one.artifact for case, one in other.items()}, gpus)
    by_name = {(base.case, base.gpu): base for base in bases}
    titles = {case: one.title for case, one in other.items()}
    return [Side(head, by_name.get((head.case, head.gpu)), titles.get(head.case, "")) for head in heads], remarks
