"""`adreno-bench calibrate`: what can be seen at all, learnt by running artifacts against themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.options import (
    DEFAULT_BASELINES,
    AsJson,
    BaselinesFolder,
    DeviceOfRecords,
    RuleOptions,
    SuiteOptions,
    grouped,
)
from harness.cli.record_filter import device_of_records
from harness.cli.screen import Screen, out_json, out_parts
from harness.judge.stats.pair import Rules
from harness.tables import table

if TYPE_CHECKING:
    from harness.judge.calibrate import CalibrationResult
    from harness.run.record import Record

DEFAULT_CALIBRATION = Path("calibration.jsonl")
MUCH = 10.0
"""A larger change, as a fraction, needs no digits."""
SHOWN_A_SIDE = 8
"""The number of sessions a side for which the summary in words says what can be seen."""


@grouped
def calibrate(
    what: SuiteOptions,
    relevance: RuleOptions,
    device: DeviceOfRecords = None,
    sessions: Annotated[int, typer.Option(min=4, max=1000, help="Number of fresh sessions per case.")] = 16,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", min=0.1, help="Sampling time per session, in seconds, instead of that of the suite."
        ),
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(
            help="File of the sessions. Resumes an interrupted calibration.", show_default=str(DEFAULT_CALIBRATION)
        ),
    ] = None,
    baselines: BaselinesFolder = DEFAULT_BASELINES,
    as_json: AsJson = False,
) -> None:
    """Measure the noise of each case: the smallest change that a gate can detect.

    Runs each artifact against itself in fresh sessions. The cases take turns. Writes a noise profile for each series
    below the baselines, to be reviewed as a diff.
    """
    from harness.judge.calibrate import exit_code_of, profile_all

    rules = relevance.rules
    done = list(profile_all(_sessions(what, device, sessions, budget, records), rules))
    written = {one.case: _save(one, baselines) for one in done}
    if as_json:
        out_json([_plain(one, rules, written[one.case]) for one in done])
    else:
        out_parts(_table(done, written), _in_words(done, rules))
    raise typer.Exit(exit_code_of(done))


def _sessions(
    what: SuiteOptions, device: str | None, sessions: int, budget: float | None, records: Path | None
) -> dict[str, list[Record]]:
    from harness.judge.calibrate import take_sessions
    from harness.run.record import RecordFile
    from harness.workbench import open_workbench

    file, request = RecordFile(records or DEFAULT_CALIBRATION), what.request()
    file.require_writable()
    with Screen() as screen:
        name = device_of_records(request, device, file.path, screen, given=records is not None)
        with open_workbench(request, name, screen) as bench:
            plans = bench.plans
            if budget:
                plans = [replace(plan, budget=replace(plan.budget, seconds=budget)) for plan in plans]
            return take_sessions(plans, bench.run, bench.builder, file, screen, sessions, screen.say)


def _save(one: CalibrationResult, baselines: Path) -> bool:
    """Write its noise profile, if it has one; whether the file changed."""
    from harness.judge.noise import PROFILES

    return bool(one.profile and one.profile.save(baselines / PROFILES))


def _table(done: Sequence[CalibrationResult], written: Mapping[str, bool]) -> str:
    from harness.judge.noise import SESSIONS_A_SIDE

    shown = [f"{count} a side" for count in SESSIONS_A_SIDE]
    headers = ("case", "noise profile", "sessions", "wall ms", "± % between", "false alarms", *shown)
    spare = ("noise profile", "false alarms", *shown[:-1], "sessions")
    return table([_row(one, written[one.case]) for one in done], headers, spare=spare)


def _row(done: CalibrationResult, written: bool) -> tuple[str, ...]:
    found = done.profile
    if found is None:
        return done.case, "inconclusive"
    shown = (_percent(math.inf if one.change is None else one.change) for one in found.smallest_detectable)
    state = "written" if written else "unchanged"
    noise = f"{100 * found.sd:.2g}"
    alarms = f"{found.false_alarm_rate:.1%}"
    return done.case, state, str(found.sessions), f"{found.location_ms:.4g}", noise, alarms, *shown


def _in_words(done: Sequence[CalibrationResult], rules: Rules) -> str:
    lines = [f"{one.case}: {_sentence(one, rules)}" for one in done]
    lines += [f"{one.case}: {reason}" for one in done if one.profile for reason in one.reasons]
    emulated = dict.fromkeys(part for one in done if one.profile for part in one.profile.emulated)
    if emulated:
        lines.append(f"not the real thing: {', '.join(emulated)}; this noise says nothing about a phone's")
    return "\n".join(lines)


def _sentence(one: CalibrationResult, rules: Rules) -> str:
    """Return what a person wants to know of a case."""
    if one.profile is None:
        return f"inconclusive: {'; '.join(one.reasons)}"
    known = one.profile.estimate
    change = _percent(known.smallest_detectable(SHOWN_A_SIDE, rules))
    seen = f"a change of {change} can be seen with {SHOWN_A_SIDE} sessions"
    needed = known.sessions_needed(rules.relevant, rules)
    wanted = f"{rules.relevant:.1%} takes {needed}" if needed else f"{rules.relevant:.1%} takes more than 64"
    return f"{seen} a side, {wanted}"


def _percent(change: float) -> str:
    return f"{change:.1%}" if change < MUCH else f"> {MUCH:.0%}"


def _plain(one: CalibrationResult, rules: Rules, written: bool) -> dict[str, Any]:
    found = one.profile
    return {
        "case": one.case,
        "known": found is not None,
        "written": written,
        "reasons": one.reasons,
        "noise_profile": found.model_dump(mode="json", by_alias=True) if found else None,
        "sessions_needed": found.estimate.sessions_needed(rules.relevant, rules) if found else None,
        "relevant": rules.relevant,
    }
