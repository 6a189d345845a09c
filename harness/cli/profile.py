"""`adreno-bench profile`: where the time of an inference goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cases.case import Case
from harness.cli.options import DEFAULT_DEVICE, AsJson, CaseOptions, DeviceName, grouped, output_option
from harness.cli.screen import Screen, out, out_json
from harness.failures import UsageError

if TYPE_CHECKING:
    from harness.profile.measure import Watched
    from harness.workbench import Request


@grouped
def profile(
    what: CaseOptions,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="CASE|FILE",
            help="Compare with another case, or with a profile that --json wrote.",
        ),
    ] = None,
    device: DeviceName = DEFAULT_DEVICE,
    repeat: Annotated[int, typer.Option(min=1, max=1000, help="Number of inferences to watch.")] = 10,
    trace: Annotated[
        Path | None, output_option(metavar="FILE", help="Write the launches as a trace for Perfetto or Chrome.")
    ] = None,
    plot: Annotated[Path | None, output_option(metavar="FILE.html", help="Draw the operators as a roofline.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show which kernels take the time, and why two cases differ.

    The time of a kernel is that of its OpenCL event. Operations and bytes are those that the operator needs, from TIR.
    """
    from harness.profile.profile import Profile, trace_of
    from harness.profile.report import pages

    kept = Profile.read(Path(against)) if against and Path(against).is_file() else None
    request = what.request()
    mine = _the_one(request.cases, "--case")
    other = None
    if against and not kept:
        other = _the_one(replace(what, case=[against]).request().cases, "--against")
    found = _watched(replace(request, cases=[one for one in (mine, other) if one]), device, repeat)
    if trace:
        trace.write_text(trace_of(found[0].inferences), encoding="utf-8")
    measured, beside = found[0].profile, found[1].profile if other else kept
    if plot:
        from harness.report.plots import plot_roofline

        plot_roofline([measured, beside] if beside else [measured], plot)
    if as_json:
        out_json(measured.model_dump(mode="json", by_alias=True))
    else:
        out("\n\n".join(pages(measured, beside)))


def _the_one(cases: Sequence[Case], option: str) -> Case:
    """Return the case that is meant. Raises UsageError if several are."""
    if len(cases) > 1:
        raise UsageError(f"{len(cases)} cases match, and a profile is of one", hint=f"try {option} '{cases[0].id}'")
    return cases[0]


def _watched(request: Request, device: str, repeat: int) -> list[Watched]:
    from harness.profile.measure import watch
    from harness.profile.peaks import peaks_of
    from harness.workbench import open_workbench

    with Screen() as screen, open_workbench(request, request.one_device(device, screen), screen) as bench:
        return watch(bench, repeat, peaks_of(bench.device, request.cache, screen.say), screen)
