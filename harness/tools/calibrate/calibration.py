"""Calibration: run each case's artifact against itself over several sessions, and say what its series can show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.base.outcome import ExitCode, Outcome, exit_code
from harness.base.plan import Plan
from harness.compile.artifacts.pool import Builder
from harness.judge.checked_file import round_digits
from harness.judge.noise import LEAST_SD, DetectableChange, NoiseProfile
from harness.judge.sides import SeriesKey, finding
from harness.judge.stats import robust
from harness.judge.stats.pair import Rules, finite
from harness.judge.stats.session import Noise, summarise
from harness.measure.context import Run
from harness.measure.progress import Progress
from harness.measure.records.index import RecordIndex, skipped_lines
from harness.measure.records.record import Record, RecordFile, ResumeKey
from harness.measure.runner import run_suite
from harness.tools.calibrate.estimate import NoiseEstimate, estimate_noise


@dataclass(frozen=True)
class CalibrationResult:
    """Result of one series."""

    key: SeriesKey
    profile: NoiseProfile | None
    reasons: tuple[str, ...] = ()
    """Why there is none, or which sessions were left out."""
    outcome: Outcome | None = None
    """The outcome that prevented one, if it was not the noise."""


def take_sessions(
    plans: Sequence[Plan],
    run: Run,
    builder: Builder,
    file: RecordFile,
    progress: Progress,
    sessions: int,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, list[Record]]:
    """Take so many sessions of each case: the records by its id, in the order taken.

    The cases take turns, so that the sessions of one are spread in time. Sessions in the file that do not make up a
    whole calibration are what a killed one left: they count.
    """
    with RecordIndex(file.path, say) as index:
        for line in skipped_lines(index.skipped):
            say(line)
        records = interrupted_sessions(plans, run, index, sessions)
    if there := sum(map(len, records.values())):
        say(f"{there} sessions of an interrupted calibration are in {file.path} and count")
    while due := [plan for plan in plans if _is_due(records[plan.case.id], sessions)]:
        say(f"session {1 + max(len(records[plan.case.id]) for plan in due)} of {sessions}")
        for record in run_suite(due, run, builder, file, progress):
            records[record.case].append(record)
    return records


def interrupted_sessions(plans: Sequence[Plan], run: Run, index: RecordIndex, sessions: int) -> dict[str, list[Record]]:
    """Return what an interrupted calibration left of each case, for this build and device."""
    identity, by_case = run.device.identity, {}
    for plan in plans:
        of_build = index.of_key(ResumeKey(plan.case.id, identity.key, plan.compile.key, run.as_shipped))
        of_case = [record for record in of_build if record.identity.runtime == identity.runtime]
        by_case[plan.case.id] = of_case[len(of_case) // sessions * sessions :]
    return by_case


def _is_due(records: Sequence[Record], sessions: int) -> bool:
    """Return whether another session can tell more; a case that ran without a latency will have none again."""
    timeless = bool(records) and records[-1].outcome.conclusive and not records[-1].wall_ms
    return len(records) < sessions and not timeless


def profile_all(series: Iterable[Sequence[Record]], rules: Rules) -> Iterator[CalibrationResult]:
    """Yield the result of each series. One that was once wrong or broken has no noise profile."""
    for records in series:
        key = SeriesKey.of(records[0])
        fault = next((record for record in records if finding(record.outcome)), None)
        lost = [record for record in records if record.outcome is not Outcome.OK]
        profile = profile_of(records, rules)
        if isinstance(profile, NoiseProfile) and not fault:
            yield CalibrationResult(key, profile, (*_format_outcomes(lost[-1:], len(lost)), *profile.left_out))
        else:
            worst = [fault] if fault else lost[-1:]
            reasons = profile if isinstance(profile, tuple) else ()
            outcome = worst[0].outcome if worst else None
            why = (*_format_outcomes(worst, len(lost)), *_emulated_paths(records), *reasons)
            yield CalibrationResult(key, None, why, outcome)


def _format_outcomes(worst: Sequence[Record], count: int) -> tuple[str, ...]:
    others = f" ({count} sessions did not end well)" if count > 1 else ""
    return tuple(f"{record.outcome.value}: {record.message}{others}" for record in worst)


def _emulated_paths(records: Sequence[Record]) -> tuple[str, ...]:
    paths = dict.fromkeys(record.path for record in records if record.path in record.emulated)
    return tuple(f"the path {path} is emulated, so its time means nothing" for path in paths)


def exit_code_of(done: Sequence[CalibrationResult]) -> ExitCode:
    """Return the exit code of a calibration. A series that is too noisy is nobody's fault."""
    good = [Outcome.OK for result in done if result.profile]
    return exit_code([*good, *(result.outcome for result in done if result.outcome)])


def profile_of(records: Sequence[Record], rules: Rules) -> NoiseProfile | tuple[str, ...]:
    """Return the noise profile that records of one series give, in the order taken; or why they give none."""
    timed = [record for record in records if record.outcome is Outcome.OK and record.comparable_ms]
    noise = estimate_noise([record.wall_ms for record in timed], rules)
    if not noise.ok:
        return noise.reasons
    good, _ = summarise([record.wall_ms for record in timed])
    last = timed[-1]
    return NoiseProfile(
        case=last.case,
        identity_key=last.identity_key,
        emulated=last.emulated,
        artifact=last.artifact,
        tvm=last.tvm,
        ffi=last.ffi,
        began=timed[0].started_at,
        ended=last.started_at,
        sessions=noise.sessions,
        location_ms=round_digits(math.exp(robust.location([session.log_ms for session in good]))),
        sd=max(LEAST_SD, round_digits(noise.noise.sd)),
        df=round_digits(noise.noise.df),
        sd_upper=max(LEAST_SD, round_digits(noise.sd_upper)),
        false_alarm_rate=noise.false_alarm_rate,
        splits=noise.splits,
        smallest_detectable=tuple(
            DetectableChange(sessions=count, change=finite(round_digits(noise.smallest_detectable(count, rules))))
            for count in SESSIONS_A_SIDE
        ),
        left_out=noise.reasons,
    )


def estimate_of(profile: NoiseProfile) -> NoiseEstimate:
    """Return the noise of a profile for the statistics."""
    noise = Noise(profile.sd, profile.df)
    return NoiseEstimate(
        True, profile.sessions, noise, profile.sd_upper, profile.false_alarm_rate, profile.splits, profile.left_out
    )


SESSIONS_A_SIDE = (1, 4, 8, 16)
"""Numbers of sessions for which a file says what they show."""
