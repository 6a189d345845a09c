"""The noise of each series, learned from records, baselines and noise profiles.

Verdicts on a fresh rig rest on the sessions at hand; a rig that has run before decides sooner. `adreno-bench calibrate`
writes a noise profile, and `adreno-bench gate` reads it:

    baselines/noise/<identity>/<case>.json

It says how far sessions of one artifact lie apart on one identity, and so which changes the series can show. The noise
belongs to the rig: the profile of one artifact also serves the next one of the same case, until a run is noisier.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from harness.base.outcome import Outcome
from harness.judge.baseline import Baseline
from harness.judge.checked_file import CheckedFile
from harness.judge.sides import SeriesKey
from harness.judge.stats.noise import (
    FEWEST_SESSIONS,
    Pool,
    Spread,
    StoredSession,
    is_far_steadier,
    pool_of,
    pooled_variance,
    spread_of,
)
from harness.judge.stats.session import LONGEST_MS, SHORTEST_MS, Location, Noise, Samples, summarise_each
from harness.measure.records.index import RecordIndex
from harness.measure.records.record import Record, RecordFile

PROFILES = "noise"
"""Folder of profiles, one level below the baselines, so that no profile is read as a baseline."""
LEAST_SD = 1e-9
"""Smallest noise of any rig."""
MOST_RECORDS = 64
"""Most of a series' last records to read: enough for its noise, and read fast."""
SessionsBySeries = dict[SeriesKey, list[tuple[str, str, Samples]]]
"""Sessions of each series: their build, their day and their samples in ms."""


class DetectableChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Smallest change that a number of sessions shows."""

    sessions: int
    """Number of sessions per side."""
    change: float | None
    """Seen with 95 % power; a fraction. None if no change would be large enough."""


class NoiseProfile(CheckedFile, frozen=True, kw_only=True):
    """What calibration found of one series. Relative numbers are fractions, times ms."""

    what = "noise profile"
    mended_by = "take it from version control again, or calibrate anew"

    emulated: tuple[str, ...]
    """What was not the real thing: then this is the noise of the emulation."""
    artifact: str
    tvm: str
    ffi: str
    began: str
    """Start of the first session; UTC, ISO 8601."""
    ended: str
    """Start of the last session."""
    sessions: Annotated[int, Meta(ge=FEWEST_SESSIONS)]
    """Number of usable sessions."""
    location_ms: Annotated[float, Meta(ge=SHORTEST_MS, le=LONGEST_MS)]
    sd: Annotated[float, Meta(ge=LEAST_SD, le=100)]
    """Standard deviation of the sessions' log locations: 0.01 is about 1 %."""
    df: Annotated[float, Meta(ge=1, le=1e6)]
    """Degrees of freedom of `sd`: sessions that follow each other count for less."""
    sd_upper: Annotated[float, Meta(ge=LEAST_SD, le=1000)]
    """The noise is below this with 90 % confidence."""
    false_alarm_rate: Annotated[float, Meta(ge=0, le=1)]
    """Share of alarms among random splits of the sessions into halves."""
    splits: Annotated[int, Meta(ge=1)]
    smallest_detectable: tuple[DetectableChange, ...]
    left_out: tuple[str, ...]
    """Sessions that could not be used, and why."""


def find_profile(baselines: Path, identity_key: str, case: str) -> NoiseProfile | None:
    """Return the noise profile of a series; None if there is none. Raises UsageError for a file that is not good."""
    return NoiseProfile.find(baselines / PROFILES, identity_key, case)


@dataclass(frozen=True)
class NoiseModel:
    """The noise of each series. A new series has the common noise of the others of its rig."""

    spreads: Mapping[SeriesKey, Spread]
    pools: Mapping[str, Pool]
    """Pools of handsets by identity."""
    low: Collection[SeriesKey] = ()
    """Series whose sessions are steadier by their lower quartiles than by their middles."""
    kernels: NoiseModel | None = None
    """The same of the kernels' clock."""

    def noise(self, key: SeriesKey) -> Noise | None:
        """Noise of one series; None if nothing is known of its rig."""
        pool = self.pools.get(key.identity)
        location = Location.LOW if key in self.low else Location.MIDDLE
        return replace(pool.noise(self.spreads.get(key, Spread())), location=location) if pool else None

    def noises(self, keys: Iterable[SeriesKey]) -> dict[SeriesKey, Noise]:
        """Noise of each series whose noise is known."""
        return {key: noise for key in keys if (noise := self.noise(key))}


def learn(
    records: Iterable[Record] = (),
    baselines: Iterable[Baseline] = (),
    profiles: Mapping[SeriesKey, NoiseProfile] | None = None,
) -> NoiseModel:
    """Learn the noise of every series from what was kept. Sessions that cannot be used are left out.

    A session that was blessed is a record, too, and counts once.
    """
    sessions_by_series: SessionsBySeries = defaultdict(list)
    kernels: SessionsBySeries = defaultdict(list)
    for record in records:
        if record.outcome is Outcome.OK and record.comparable_ms:
            key = SeriesKey.of(record)
            build, day = f"{record.artifact} {record.identity.runtime}", record.started_at[:10]
            sessions_by_series[key].append((build, day, record.comparable_ms))
            if record.device_ms:
                kernels[key].append((build, day, record.device_ms))
    for baseline in baselines:
        sessions_by_series[baseline.side.key] += [
            (f"{baseline.artifact} {s.runtime}", s.started_at[:10], s.wall_ms) for s in baseline.sessions
        ]
    return replace(_model_of(sessions_by_series, profiles or {}), kernels=_model_of(kernels, {}))


def history_records(results: Path, cases: Collection[str]) -> list[Record]:
    """Return the records of these cases at the newest commits of a history; empty without such a folder.

    A history keeps a file of records for each commit and device, beside asv's results. Torn lines are skipped.
    """
    files = sorted(results.glob("*/*.jsonl"), key=lambda file: file.stat().st_mtime)[-MOST_RECORDS:]
    return [record for file in files for record in RecordFile(file).load().records if record.case in cases]


def _model_of(sessions_by_series: SessionsBySeries, profiles: Mapping[SeriesKey, NoiseProfile]) -> NoiseModel:
    """Return the noise of each series by the location of its sessions that is steadiest; profiles are of the middle."""
    unique = {
        key: list({(*session[:2], *session[2]): session for session in sessions}.values())
        for key, sessions in sessions_by_series.items()
    }
    middle, lower = (_summaries(unique, location) for location in Location)
    spreads_of_both = {key: (spread_of(middle[key]), spread_of(lower[key])) for key in unique}
    low = {
        key
        for key, (wall, kernels) in spreads_of_both.items()
        if key not in profiles and is_far_steadier(kernels, wall)
    }
    series = {key: lower[key] if key in low else middle[key] for key in unique}
    spreads = {key: spreads_of_both[key][key in low] for key in unique}
    for key, profile in profiles.items():
        spreads[key] = pooled_variance([spreads.get(key, Spread()), Spread(profile.sd**2, profile.df)])
    rigs: dict[str, dict[SeriesKey, Spread]] = defaultdict(dict)
    for key, spread in spreads.items():
        rigs[key.identity][key] = spread
    pools = {
        identity: pool_of({key: series[key] for key in rig if key in series}, rig) for identity, rig in rigs.items()
    }
    return NoiseModel(spreads, pools, low)


def stored_records(file: Path, cases: Collection[str]) -> list[Record]:
    """Return the last records of each series of these cases; none if there is no such file. Raises RigFailure."""
    if not file.exists():
        return []
    with RecordIndex(file) as index:
        return list(index.recent(cases.__contains__, MOST_RECORDS))


def _summaries(sessions_by_series: SessionsBySeries, location: Location) -> dict[SeriesKey, list[StoredSession]]:
    """Summarise each session, all in one call."""
    flat = [session for sessions in sessions_by_series.values() for session in sessions]
    summaries = iter(summarise_each([[samples] for _, _, samples in flat], location=location))
    return {
        key: [
            StoredSession(build, day, good[0].log_ms, good[0].error)
            for build, day, _ in sessions
            if (good := next(summaries).good)
        ]
        for key, sessions in sessions_by_series.items()
    }
