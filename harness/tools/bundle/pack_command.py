"""`adreno-bench pack`: a suite for a machine that cannot be reached from here."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.base.outcome import ExitCode
from harness.base.plan import Plan
from harness.base.tables import counted, size
from harness.cli.options import AsJson, CaseOptions, grouped, require_output
from harness.compile.artifacts.artifact import Built
from harness.judge.report.screen import Screen, out_json
from harness.judge.report.screen import out as tell
from harness.tools.shared.networks import without_programs

if TYPE_CHECKING:
    from harness.tools.bundle.pack import PackedBundle


DeviceKind = Literal["linux-x86_64", "linux-aarch64", "android-arm64"]


@grouped
def pack(
    what: CaseOptions,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", callback=require_output, help="File to write (.tar.zst, .tar.gz or .tar), or a folder."
        ),
    ] = Path("bundle.tar.gz"),
    device_kind: Annotated[DeviceKind, typer.Option(help="Kind of machine that will run it.")] = "linux-x86_64",
    against: Annotated[
        Path | None,
        typer.Option(metavar="BUNDLE", help="Base to compare with: another bundle. Both builds run in turns."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--like",
            metavar="FILE|DEVICE",
            help="Build for the limits of this device: the last in a file of records, that of a file of schedules, or "
            "one that was opened before.",
            show_default="an Adreno's for android-arm64, else the least that OpenCL allows",
        ),
    ] = None,
    sessions: Annotated[
        int | None,
        typer.Option(
            min=1, max=64, help="Number of sessions per case and build.", show_default="1, or 8 with --against"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Pack the suite for a machine that you cannot reach.

    Unpack it there: `sh run.sh RESULTS` runs every case. It needs an OpenCL driver and a shell, and no Python.
    `adreno-bench ingest RESULTS` reads the results here.
    """
    from harness.measure.workbench import make_ready, preparing
    from harness.tools.bundle.pack import KINDS, pack
    from harness.tools.bundle.target_limits import with_limits_of

    request, kind = without_programs(what.request()), KINDS[device_kind]
    if target:
        kind = replace(kind, identity=with_limits_of(kind.identity, target, request.cache))
    with Screen() as screen, request.builder(screen) as builder:
        screen.say(preparing(request.paths, request.cache))
        make_ready(request.paths, request.cache)

        def built(plans: Sequence[Plan]) -> Built:
            # LLVM is asked at once: nobody can ask it when results come back.
            return builder.build(job for plan in plans for job in (*plan.jobs, plan.witness) if job)

        packed = pack(request, kind, built, out, against, sessions or (8 if against else 1))
    if as_json:
        out_json(_plain(packed))
    else:
        tell(_summary(packed))
    raise typer.Exit(ExitCode.WRONG_OR_BROKEN if packed.failures else ExitCode.GOOD)


def _summary(packed: PackedBundle) -> str:
    """Return what was packed, and what to do with it."""
    from harness.tools.bundle.archive import name_inside

    turns = counted(len(packed.manifest.turns), "turn")
    cases = counted(len({turn.case for turn in packed.manifest.turns}), "case")
    lines = [f"{packed.file}: {size(packed.size_bytes)}, {cases}, {turns}, bundle {packed.id[:12]}"]
    lines += [f"{case.case} was not built: {case.artifact.failure['message']}" for case in packed.failures]
    script = shlex.quote(f"{name_inside(packed.file)}/run.sh")
    lines.append(f"unpack it there, run `sh {script} RESULTS`, and give RESULTS to `adreno-bench ingest`")
    return "\n".join(lines)


def _plain(packed: PackedBundle) -> dict[str, object]:
    return {
        "file": str(packed.file),
        "bundle": packed.id,
        "size_bytes": packed.size_bytes,
        "turns": [list(turn) for turn in packed.manifest.turns],
        "not_built": [case.case for case in packed.failures],
    }
