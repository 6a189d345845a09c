"""`adreno-bench calibrate`: find the smallest detectable change by running artifacts against themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import to_builtins

from harness.base.failures import UsageError
from harness.base.tables import table
from harness.cli import options
from harness.cli.hints import last_words
from harness.cli.record_filter import device_of_records, read_builds
from harness.cli.rule_options import RuleOptions
from harness.judge.report.screen import Screen, out_json, out_parts
from harness.judge.stats.pair import Rules

if TYPE_CHECKING:
    from harness.measure.records.record import Record
    from harness.tools.calibrate.calibration import CalibrationResult

DEFAULT_CALIBRATION = Path("calibration.jsonl")
MUCH = 10.0
"""A larger change, as a fraction, needs no digits."""
SHOWN_A_SIDE = 8
"""The number of sessions a side for which the summary in words says what can be seen."""


@options.grouped
@last_words("finished sessions are kept; {command} continues")
def calibrate(
    context: typer.Context,
    what: options.SuiteOptions,
    relevance: RuleOptions,
    device: options.DeviceOfRecords = None,
    sessions: Annotated[
        int, typer.Option(metavar="NUMBER", min=4, max=1000, help="Number of fresh sessions per case.")
    ] = 16,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", min=0.1, help="Sampling time per session, in seconds, instead of that of the suite."
        ),
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of the sessions. Resumes an interrupted calibration.",
            show_default=str(DEFAULT_CALIBRATION),
        ),
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="PLACE", help="Take the sessions of these records and run nothing.")
    ] = None,
    baselines: options.BaselinesFolder = options.DEFAULT_BASELINES,
    as_json: options.AsJson = False,
) -> None:
    """Measure the noise of each case: the smallest change that a gate can detect.

    Runs each artifact against itself in fresh sessions; the cases take turns. With --from it takes the sessions of the
    latest build of each series from records instead. Writes a noise profile for each series below the baselines: review
    it as a diff.
    """
    from harness.judge.noise import PROFILES
    from harness.judge.sides import latest_build
    from harness.tools.calibrate.calibration import exit_code_of, profile_all

    rules = relevance.rules
    if source:
        unused = ("suite", *options.MODEL_OPTIONS, "sessions", "budget", "records")
        options.refuse_options(context, unused, "with --from, which runs nothing")
        builds = [build for build in read_builds(source, what.covers, device) if not build[0].as_shipped]
        done = list(profile_all(map(latest_build, builds), rules))
        if not done:
            raise UsageError(
                f"{source} has no records of these cases", hint="`adreno-bench show` lists a file's records"
            )
    else:
        done = list(profile_all(_sessions(what, device, sessions, budget, records).values(), rules))
    written = [bool(result.profile and result.profile.save(baselines / PROFILES)) for result in done]
    if as_json:
        out_json([_plain(result, rules, saved) for result, saved in zip(done, written, strict=True)])
    else:
        out_parts(_table(done, written), _in_words(done, rules))
    raise typer.Exit(exit_code_of(done))


def _sessions(
    what: options.SuiteOptions, device: str | None, sessions: int, budget: float | None, records: Path | None
) -> dict[str, list[Record]]:
    from harness.measure.records.record import RecordFile
    from harness.measure.workbench import open_workbench
    from harness.tools.calibrate.calibration import take_sessions

    file, request = RecordFile(records or DEFAULT_CALIBRATION), what.request()
    file.require_writable()
    with Screen() as screen:
        name = device_of_records(request, device, file.path, screen, is_named=records is not None)
        with open_workbench(request, name, screen) as bench:
            plans = bench.plans
            if budget:
                plans = [replace(plan, budget=replace(plan.budget, seconds=budget)) for plan in plans]
            return take_sessions(plans, bench.run, bench.builder, file, screen, sessions, screen.say)


def _table(done: Sequence[CalibrationResult], written: Sequence[bool]) -> str:
    from harness.tools.calibrate.calibration import SESSIONS_A_SIDE

    counts = [f"{count} a side" for count in SESSIONS_A_SIDE]
    headers = ("case", "noise profile", "sessions", "wall ms", "± % between", "false alarms", *counts)
    spare = ("noise profile", "false alarms", *counts[:-1], "sessions")
    rows = [(name, *_row(result, saved)) for name, result, saved in zip(_names(done), done, written, strict=True)]
    return table(rows, headers, spare=spare)


def _names(done: Sequence[CalibrationResult]) -> list[str]:
    """Return what each series is called: its case, of several devices with the identity."""
    ambiguous = len({result.key.identity for result in done}) > 1
    return [f"{result.key} on {result.key.identity}" if ambiguous else str(result.key) for result in done]


def _row(done: CalibrationResult, written: bool) -> tuple[str, ...]:
    profile = done.profile
    if profile is None:
        return ("inconclusive",)
    changes = (
        _percent(math.inf if detectable.change is None else detectable.change)
        for detectable in profile.smallest_detectable
    )
    state = "written" if written else "unchanged"
    noise = f"{100 * profile.sd:.2g}"
    alarms = f"{profile.false_alarm_rate:.1%}"
    return state, str(profile.sessions), f"{profile.location_ms:.4g}", noise, alarms, *changes


def _in_words(done: Sequence[CalibrationResult], rules: Rules) -> str:
    named = list(zip(_names(done), done, strict=True))
    lines = [f"{name}: {_sentence(result, rules)}" for name, result in named]
    lines += [f"{name}: {reason}" for name, result in named if result.profile for reason in result.reasons]
    emulated = dict.fromkeys(part for result in done if result.profile for part in result.profile.emulated)
    if emulated:
        lines.append(f"not the real thing: {', '.join(emulated)}; this noise says nothing about a phone's")
    return "\n".join(lines)


def _sentence(result: CalibrationResult, rules: Rules) -> str:
    """Describe the smallest detectable change of a case, or why it is inconclusive."""
    from harness.tools.calibrate.calibration import estimate_of

    if result.profile is None:
        return f"inconclusive: {'; '.join(result.reasons)}"
    estimate = estimate_of(result.profile)
    change = _percent(estimate.smallest_detectable(SHOWN_A_SIDE, rules))
    smallest = f"a change of {change} can be seen with {SHOWN_A_SIDE} sessions"
    needed = estimate.sessions_needed(rules.relevant, rules)
    sessions = f"{rules.relevant:.1%} takes {needed}" if needed else f"{rules.relevant:.1%} takes more than 64"
    return f"{smallest} a side, {sessions}"


def _percent(change: float) -> str:
    return f"{change:.1%}" if change < MUCH else f"> {MUCH:.0%}"


def _plain(result: CalibrationResult, rules: Rules, written: bool) -> dict[str, Any]:
    from harness.tools.calibrate.calibration import estimate_of

    profile = result.profile
    return {
        "case": result.key.case,
        "identity": result.key.identity,
        "known": profile is not None,
        "written": written,
        "reasons": result.reasons,
        "noise_profile": to_builtins(profile) if profile else None,
        "sessions_needed": estimate_of(profile).sessions_needed(rules.relevant, rules) if profile else None,
        "relevant": rules.relevant,
    }
