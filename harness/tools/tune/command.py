"""`adreno-bench tune`: look for better schedules than TVM's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from device_runner.selection import ALL, select
from harness.base.case import Tuning
from harness.base.failures import UsageError
from harness.base.outcome import ExitCode
from harness.base.tables import table
from harness.cli import options
from harness.cli.hints import last_words
from harness.judge.report.screen import Screen, out_json
from harness.judge.report.screen import out as print_out
from harness.tools.shared.networks import without_programs

if TYPE_CHECKING:
    from harness.measure.workbench import Request
    from harness.tools.tune.tune import CaseTuning

DEFAULT_OUT = Path("schedules.jsonl")


@options.grouped
@last_words("finished candidates are kept; {command} continues")
def tune(
    what: options.CaseOptions,
    device: options.DeviceNames = None,
    tracker: options.TrackerAddress = None,
    trials: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=1, max=100_000, help="Number of candidates per case.")
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0.1, max=10_000, help="Search time per case, in minutes, unless --trials is given.")
    ] = 10.0,
    out: Annotated[
        Path, typer.Option(metavar="FILE", callback=options.require_output_file, help="Schedules file to append to.")
    ] = DEFAULT_OUT,
    as_json: options.AsJson = False,
) -> None:
    """Search for schedules that are faster than TVM's own.

    Writes the best of each task to a file. Judges each candidate before it times it, and measures the best again in
    fresh sessions. The same command resumes an interrupted search. Devices of one identity share the candidates.
    """
    from harness.measure.workbench import devices_behind
    from harness.tools.tune.devices import open_devices
    from harness.tools.tune.dispatcher import SearchBudget
    from harness.tools.tune.tune import Bench
    from harness.tools.tune.tune import tune as look

    request = _tunable(without_programs(what.request()))
    with Screen() as screen:
        source = devices_behind(tracker) if tracker else None
        words = device or [ALL if tracker else options.DEFAULT_DEVICE]
        names = (source.names if source else select)(words, request.cache, screen.say)
        with open_devices(request, names, screen, source) as (builder, devices):
            tunings = look(Bench(request, builder, devices, screen), SearchBudget(trials, minutes), out)
            lost = dict(devices.lost)
    if as_json:
        out_json([tuning.plain for tuning in tunings])
    else:
        print_out("\n\n".join([_text(tunings, out), *(f"{name} was lost: {why}" for name, why in lost.items())]))
    right = any(winner.standing.best for tuning in tunings for winner in tuning.winners)
    if lost:
        raise typer.Exit(ExitCode.RIG_FAILURE)
    raise typer.Exit(ExitCode.GOOD if right else ExitCode.NOTHING_MEASURED)


def _tunable(request: Request) -> Request:
    """Return the request for the cases with kernels of TVM's, each once and untuned. Raises UsageError without one."""
    from harness.base.suite import SCHEDULED_PATHS

    paths = SCHEDULED_PATHS
    cases = dict.fromkeys(replace(case, tuning=Tuning.UNTUNED) for case in request.cases if case.path in paths)
    if not cases:
        raise UsageError("CLML's own kernels have no schedule", hint=f"choose a case on {' or '.join(paths)}")
    return replace(request, cases=list(cases))


def _text(tunings: Sequence[CaseTuning], out: Path) -> str:
    parts = []
    for tuning in tunings:
        rows = [
            (
                winner.standing.task.name,
                f"{winner.standing.task.cost_ms / tuning.kernels_ms:.1%}",
                str(len(winner.standing.trials)),
                f"{schedule.untuned_ms:.3g}" if (schedule := winner.schedule) else "-",
                f"{schedule.ms:.3g}" if schedule else "-",
                f"{schedule.untuned_ms / schedule.ms:.3g}" if schedule else "-",
                winner.why_not,
            )
            for winner in tuning.winners
        ]
        headers = ("task", "of the time", "tried", "untuned ms", "tuned ms", "times as fast", "why not")
        parts.append(f"{tuning.case}\n\n{table(rows, headers, right=headers[1:6], spare=('tried', 'of the time'))}")
        if tuning.complaint:
            parts.append(f"no candidate was right: {tuning.complaint}")
        gain = tuning.kernels_ms / tuning.after_ms if tuning.after_ms > 0 else float("inf")
        parts.append(
            f"the network's kernels: {tuning.kernels_ms:.4g} ms untuned, about {tuning.after_ms:.4g} ms with these "
            f"schedules ({gain:.3g} times as fast, by each task alone)"
        )
    if any(winner.schedule for tuning in tunings for winner in tuning.winners):
        parts.append(f"schedules are in {out}; `adreno-bench run --schedules {out}` runs both side by side")
    return "\n\n".join(parts)
