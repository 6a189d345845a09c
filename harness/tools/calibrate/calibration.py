"""Calibration: run each case's artifact against itself over several sessions, and say what its series can show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from harness.base.outcome import ExitCode, Outcome, exit_code
from harness.base.plan import Plan
from harness.compile.artifacts.pool import Builder
from harness.judge.checked_file import round_digits
from harness.judge.noise import LEAST_SD, DetectableChange, NoiseProfile
from harness.judge.sides import SeriesKey, finding
from harness.judge.stats import robust
from harness.judge.stats.engine import TurnPlan, bars_at, compare_sessions, visible_change
from harness.judge.stats.noise import FEWEST_SESSIONS
from harness.judge.stats.pair import RULES, Rules, finite
from harness.judge.stats.session import Noise, Samples, SessionSummary, summarise
from harness.judge.stats.turns import BLOCK
from harness.measure.context import Run
from harness.measure.progress import Progress
from harness.measure.records.index import RecordIndex, skipped_lines
from harness.measure.records.record import Record, RecordFile, ResumeKey
from harness.measure.runner import run_suite

MOST_SESSIONS = 64
SPLITS = 200
SURE = 0.9
"""Confidence of the upper limit of the noise; a few sessions may lie close together by luck."""
NO_NOISE = Noise(math.nan, 0.0)


@dataclass(frozen=True)
class NoiseEstimate:
    """The noise of one series. Relative numbers are fractions; unknown ones are NaN."""

    ok: bool
    sessions: int = 0
    noise: Noise = NO_NOISE
    sd_upper: float = math.nan
    """The noise is below this with 90 % confidence."""
    false_alarm_rate: float = math.nan
    """Share of alarms among splits of the sessions into halves. The splits overlap: a check, not a bound."""
    splits: int = 0
    reasons: tuple[str, ...] = ()

    def smallest_detectable(self, sessions: int, rules: Rules = RULES) -> float:
        """Return the change that `sessions` a side, looked at once, show with 95 %.

        The noise is taken at its upper limit.
        """
        if not self.ok or sessions < 1:
            return math.nan
        df = self.noise.df + 2 * sessions - 2
        bars = bars_at(1, TurnPlan(rules, BLOCK), df)
        return visible_change(self.sd_upper * math.sqrt(2 / sessions), df, bars.change)

    def sessions_needed(self, relevant: float, rules: Rules = RULES) -> int | None:
        """Fewest sessions a side that support a threshold of `relevant`, a fraction; None if `MOST_SESSIONS` do not."""
        enough = (count for count in range(1, MOST_SESSIONS + 1) if self.smallest_detectable(count, rules) <= relevant)
        return next(enough, None)


def estimate_noise(sessions: Sequence[Samples], rules: Rules = RULES) -> NoiseEstimate:
    """Learn the noise of a series from sessions of one artifact, in the order taken. Never raises for data."""
    good, refused = summarise(sessions)
    if len(good) < FEWEST_SESSIONS:
        reason = f"{len(good)} usable sessions; at least {FEWEST_SESSIONS} are needed"
        return NoiseEstimate(False, sessions=len(good), reasons=(reason, *refused))
    from scipy.special import chdtri

    noise = noise_between(good)
    if not noise.is_known:
        return NoiseEstimate(False, sessions=len(good), reasons=("all sessions agree to the last digit", *refused))
    alarms, splits = _false_alarms(good, rules)
    return NoiseEstimate(
        True,
        sessions=len(good),
        noise=noise,
        sd_upper=noise.sd * math.sqrt(noise.df / float(chdtri(noise.df, SURE))),
        false_alarm_rate=alarms / splits,
        splits=splits,
        reasons=refused,
    )


def noise_between(sessions: Sequence[SessionSummary]) -> Noise:
    """Noise between at least two sessions of one artifact; sessions that follow each other count for less."""
    logs = [session.log_ms for session in sessions]
    within = math.sqrt(sum(session.error**2 for session in sessions) / len(sessions))
    return Noise(
        max(float(np.std(logs, ddof=1)), within), max(1.0, float(robust.effective_sizes(np.array([logs]))[0]) - 1)
    )


def _false_alarms(good: Sequence[SessionSummary], rules: Rules) -> tuple[int, int]:
    """Alarms among random splits into halves, the same ones each time."""
    generator, half = np.random.default_rng(SPLITS), len(good) // 2
    orders = [generator.permutation(len(good)) for _ in range(SPLITS)]
    pairs = [([good[i] for i in order[:half]], [good[i] for i in order[half : 2 * half]]) for order in orders]
    return sum(compare_sessions(base, head, rules).verdict.changed for base, head in pairs), SPLITS


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
            paths = dict.fromkeys(record.path for record in records if record.path in record.emulated)
            emulated = [f"the path {path} is emulated, so its time means nothing" for path in paths]
            why = (*_format_outcomes(worst, len(lost)), *emulated, *reasons)
            yield CalibrationResult(key, None, why, outcome)


def _format_outcomes(worst: Sequence[Record], count: int) -> tuple[str, ...]:
    others = f" ({count} sessions did not end well)" if count > 1 else ""
    return tuple(f"{record.outcome.value}: {record.message}{others}" for record in worst)


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
