"""Which path wins, for each model and precision on one device: by how much, and is that more than the noise?

The noise is the spread within the two sessions, each as median absolute deviation over median, added up. It is wide on
purpose: samples of one session share that session's bias, so a standard error would promise too much.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.run.outcome import Outcome
from harness.run.record import Record


@dataclass(frozen=True)
class Standing:
    """One path of a comparison."""

    path: str
    outcome: str
    wall_ms: float | None
    """Median; None if it has no latency: not right, or emulated."""
    spread: float
    """Median absolute deviation over median."""
    emulated: bool
    mac_share: float | None
    """Share of multiply-accumulates offloaded, on the path that offloads."""


@dataclass(frozen=True)
class Crossover:
    """The paths of one model, precision and tuning on one device, fastest first."""

    identity_key: str
    model: str
    precision: str
    tuning: str
    standings: tuple[Standing, ...]

    @property
    def verdict(self) -> str:
        """One line: who wins and by how much, or why nobody does."""
        timed = [(standing.wall_ms, standing) for standing in self.standings if standing.wall_ms]
        if not timed:
            return "no path has a latency"
        (best_ms, best), *others = timed
        if not others:
            return f"only {best.path} has a latency"
        next_ms, following = others[0]
        ratio, noise = next_ms / best_ms, best.spread + following.spread
        if ratio - 1 <= noise:
            return f"{best.path} and {following.path} are within the noise ({ratio - 1:.1%} apart, noise {noise:.1%})"
        return f"{best.path} wins, {ratio:.2f} times as fast as {following.path} (noise {noise:.1%})"


def crossovers(records: Iterable[Record]) -> list[Crossover]:
    """Compare the latest record of each path. Records as shipped are left out: they are another build."""
    latest: dict[tuple[str, str, str, str], dict[str, Record]] = defaultdict(dict)
    for record in records:
        if not record.as_shipped:
            latest[record.identity_key, record.model, record.precision, record.tuning][record.path] = record
    return [Crossover(*key, _ranked(list(by_path.values()))) for key, by_path in latest.items()]


def _ranked(records: Sequence[Record]) -> tuple[Standing, ...]:
    standings = map(_standing, records)
    return tuple(sorted(standings, key=lambda s: (s.wall_ms is None, s.wall_ms or 0.0, s.path)))


def _standing(record: Record) -> Standing:
    timed = record.outcome is Outcome.OK and bool(record.wall_ms)
    median = statistics.median(record.wall_ms) if timed else None
    deviation = statistics.median(abs(sample - median) for sample in record.wall_ms) if median else 0.0
    return Standing(
        path=record.path,
        outcome=record.outcome.value,
        wall_ms=median,
        spread=deviation / median if median else 0.0,
        emulated=record.path in record.emulated,
        mac_share=(record.offload or {}).get("mac_share"),
    )
