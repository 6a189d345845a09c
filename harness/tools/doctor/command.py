"""`adreno-bench doctor`: explain this machine, or a device."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from device_runner.store import cache_root
from harness.base.failures import UsageError
from harness.base.outcome import ExitCode
from harness.cli import completion
from harness.cli.options import AsJson, require_output_file
from harness.judge.report.screen import out, out_json, out_whole
from harness.tools.doctor.bundle import write_bundle
from harness.tools.doctor.device import examine_device
from harness.tools.doctor.machine import examine, fix_command, missing_packages
from harness.tools.shared.finding import Condition


def doctor(
    device: Annotated[
        str | None,
        typer.Option(help="Check this device: virtual, local, or an adb serial.", autocompletion=completion.devices),
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=require_output_file,
            help="With --device: also write a report without serial numbers, for a bug report.",
        ),
    ] = None,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Only print one apt command for the missing system packages."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check what a run needs, and show how to fix what is missing."""
    if fix:
        if device or as_json:
            raise UsageError("--fix prints a command for this host alone", hint="leave --device and --json out")
        out_whole(fix_command(missing_packages()))
        return
    if bundle and not device:
        raise UsageError("--bundle is a report on a device", hint="add --device")
    findings = []
    for finding in examine_device(device, cache_root()) if device else examine(cache_root()):
        findings.append(finding)
        if not as_json:
            out(f"{finding.state.value:8}{finding.what:18}{finding.seen}")
            if finding.fix:
                out(f"{'':26}fix: {finding.fix}")
    if as_json:
        out_json([dataclasses.asdict(finding) for finding in findings])
    if device and bundle:
        write_bundle(bundle, device, findings, cache_root())
        if not as_json:
            out(f"\n{bundle} holds all of this and what the device prints; read it before you send it to anybody")
    if any(finding.state is Condition.MISSING for finding in findings):
        raise typer.Exit(ExitCode.RIG_FAILURE)
