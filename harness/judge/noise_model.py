"""What is known of the noise of each series: from every session that was kept, in records, baselines and profiles.

Nobody has to ask for it: of a fresh rig nothing is known, and its verdicts rest on the sessions at hand; a rig that has
run before decides sooner. A noise profile (`adreno-bench calibrate`) is one more source.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.judge.baseline import Baseline
from harness.judge.noise_profile import NoiseProfile
from harness.judge.sides import SeriesKey
from harness.judge.stats.pooling import Kept, Pool, Spread, far_steadier, pool_of, spread_of, together
from harness.judge.stats.session import Location, Noise, Samples, summarise_each
from harness.run.outcome import Outcome
from harness.run.record import Record, RecordFile
from harness.run.record_index import RecordIndex

MOST_RECORDS = 64
"""Of a series, the last ones: enough to know its noise, and soon read."""


@dataclass(frozen=True)
class NoiseModel:
    """The noise of each series. One that was never seen has what the others of its rig have in common."""

    spreads: Mapping[SeriesKey, Spread]
    pools: Mapping[str, Pool]
    """By identity."""
    low: Collection[SeriesKey] = ()
    """Series whose sessions are steadier by their lower quartiles than by their middles."""
    kernels: NoiseModel | None = None
    """The same of the kernels' clock."""

    def noise(self, key: SeriesKey) -> Noise | None:
        """Of one series; None if nothing is known of its rig."""
        pool = self.pools.get(key.identity)
        location = Location.LOW if key in self.low else Location.MIDDLE
        return replace(pool.noise(self.spreads.get(key, Spread())), location=location) if pool else None

    def noises(self, keys: Iterable[SeriesKey]) -> dict[SeriesKey, Noise]:
        """Of those series of which something is known."""
        found = {key: self.noise(key) for key in keys}
        return {key: noise for key, noise in found.items() if noise}


def learn(
    records: Iterable[Record] = (),
    baselines: Iterable[Baseline] = (),
    profiles: Mapping[SeriesKey, NoiseProfile] | None = None,
) -> NoiseModel:
    """Learn the noise of every series from what was kept. Sessions that cannot be used are left out.

    A session that was blessed is a record, too, and counts once.
    """
    taken: Taken = defaultdict(list)
    kernels: Taken = defaultdict(list)
    for record in records:
        if record.outcome is Outcome.OK and record.comparable_ms:
            key = SeriesKey(record.identity_key, record.case, record.as_shipped)
            build, day = f"{record.artifact} {record.identity.runtime}", record.started_at[:10]
            taken[key].append((build, day, record.comparable_ms))
            if record.device_ms:
                kernels[key].append((build, day, record.device_ms))
    for one in baselines:
        taken[one.side.key] += [(f"{one.artifact} {s.runtime}", s.started_at[:10], s.wall_ms) for s in one.sessions]
    return replace(_learned(taken, profiles or {}), kernels=_learned(kernels, {}))


def history_records(results: Path, cases: Collection[str]) -> list[Record]:
    """What the newest commits of a history measured of these cases; none if there is no such folder.

    A history keeps a file of records for each commit and device, beside asv's results. A torn line says nothing.
    """
    files = sorted(results.glob("*/*.jsonl"), key=lambda file: file.stat().st_mtime)[-MOST_RECORDS:]
    return [record for file in files for record in RecordFile(file).load().records if record.case in cases]


Taken = dict[SeriesKey, list[tuple[str, str, Samples]]]
"""Sessions of each series: their build, their day and their samples in ms."""


def _learned(taken: Taken, profiles: Mapping[SeriesKey, NoiseProfile]) -> NoiseModel:
    """The noise of each series by the number of a session that is the steadiest of it. Profiles are of the middle."""
    unique = {key: list({(*one[:2], *one[2]): one for one in sessions}.values()) for key, sessions in taken.items()}
    middle, lower = (_summarised(unique, location) for location in Location)
    found = {key: (spread_of(middle[key]), spread_of(lower[key])) for key in unique}
    low = {key for key, (one, other) in found.items() if key not in profiles and far_steadier(other, one)}
    series = {key: lower[key] if key in low else middle[key] for key in unique}
    spreads = {key: found[key][key in low] for key in unique}
    for key, profile in profiles.items():
        spreads[key] = together([spreads.get(key, Spread()), Spread(profile.sd**2, profile.df)])
    identities = {key.identity for key in spreads}
    return NoiseModel(spreads, {identity: _pool(identity, series, spreads) for identity in identities}, low)


def kept_records(file: Path, cases: Collection[str]) -> list[Record]:
    """The last records of each series of these cases; none if there is no such file. Raises RigFailure."""
    if not file.exists():
        return []
    with RecordIndex(file) as index:
        return list(index.recent(cases.__contains__, MOST_RECORDS))


def _summarised(taken: Taken, location: Location) -> dict[SeriesKey, list[Kept]]:
    """Each session by itself, and all of them at once."""
    flat = [one for sessions in taken.values() for one in sessions]
    summaries = iter(summarise_each([[samples] for _, _, samples in flat], location=location))
    return {
        key: [
            Kept(build, day, good[0].log_ms, good[0].error)
            for build, day, _ in sessions
            if (good := next(summaries).good)
        ]
        for key, sessions in taken.items()
    }


def _pool(identity: str, series: Mapping[SeriesKey, Sequence[Kept]], spreads: Mapping[SeriesKey, Spread]) -> Pool:
    here = {key: one for key, one in spreads.items() if key.identity == identity}
    return pool_of({key: series[key] for key in here if key in series}, here)
