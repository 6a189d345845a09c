"""Which compilation path wins, and what a comparison of two sides says of the paths as a whole.

The noise of a ranking is the spread within the two sessions, each as median absolute deviation over median, added up.
It is wide on purpose: samples of one session share that session's bias, so a standard error would promise too much.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.cases.case import Case
from harness.judge.comparison import Comparison
from harness.judge.remarks import remarks, spread_within
from harness.judge.stats import geomean
from harness.judge.stats.geomean import Flip, Overall
from harness.judge.stats.pair import Change, Rules
from harness.judge.stats.session import Samples, location_ms
from harness.run.outcome import Outcome
from harness.run.record import Record


@dataclass(frozen=True)
class Standing:
    """One path of a ranking."""

    path: str
    outcome: str
    wall_ms: float | None
    """Location of its session; None if it has no latency: not right, or emulated."""
    spread: float
    """Within its session: median absolute deviation over median."""
    emulated: bool
    mac_share: float | None
    """Share of multiply-accumulates offloaded, on the path that offloads."""
    remarks: tuple[str, ...] = ()
    """What stands beside its outcome elsewhere, too: `vacuous`, `as opencl`, `unsteady`."""


@dataclass(frozen=True)
class PathRanking:
    """The paths of one model, precision and tuning on one device, fastest first."""

    identity_key: str
    model: str
    precision: str
    tuning: str
    standings: tuple[Standing, ...]

    @property
    def conclusion(self) -> str:
        """One line: who wins and by how much, or why nobody does; and what is to be known of which path."""
        remarked = [f"{one.path} is {', '.join(one.remarks)}" for one in self.standings if one.remarks]
        return "; ".join([self._winner, *remarked])

    @property
    def _winner(self) -> str:
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


def rank_paths(records: Iterable[Record]) -> list[PathRanking]:
    """Rank the paths of each model by their latest records. Records as shipped are left out: they are another build."""
    latest: dict[tuple[str, str, str, str], dict[str, Record]] = defaultdict(dict)
    for record in records:
        if not record.as_shipped:
            latest[record.identity_key, record.model, record.precision, record.tuning][record.path] = record
    return [PathRanking(*key, _ranked(list(by_path.values()))) for key, by_path in latest.items()]


def _ranked(records: Sequence[Record]) -> tuple[Standing, ...]:
    standings = map(_standing, records)
    return tuple(sorted(standings, key=lambda s: (s.wall_ms is None, s.wall_ms or 0.0, s.path)))


def _standing(record: Record) -> Standing:
    timed = record.outcome is Outcome.OK and bool(record.comparable_ms)
    return Standing(
        path=record.path,
        outcome=record.outcome.value,
        wall_ms=location_ms(record.wall_ms) if timed else None,
        spread=(timed and spread_within(record.wall_ms)) or 0.0,
        emulated=record.path in record.emulated,
        mac_share=(record.offload or {}).get("mac_share"),
        remarks=tuple(remark.word for remark in remarks(record)),
    )


@dataclass(frozen=True)
class PathMean:
    """Geometric mean of head over base of one path on one identity: a ratio of 1.05 is 5 % slower."""

    identity: str
    path: str
    overall: Overall


@dataclass(frozen=True)
class PathFlip:
    """Two paths of a model that changed places."""

    identity: str
    what: str
    """Model, precision and tuning."""
    flip: Flip


def path_means(comparisons: Sequence[Comparison]) -> list[PathMean]:
    """Of the cases with a latency on both sides, for each path of each identity."""
    groups: dict[tuple[str, str], list[Change]] = defaultdict(list)
    for comparison in comparisons:
        if comparison.change:
            groups[comparison.key.identity, Case.parse(comparison.key.case).path].append(comparison.change)
    means = [PathMean(*of, geomean.overall(changes)) for of, changes in sorted(groups.items())]
    return [mean for mean in means if mean.overall.series]


def path_flips(comparisons: Sequence[Comparison], rules: Rules | None = None) -> list[PathFlip]:
    """Pairs of paths of the same model whose order changed, for certain on both sides."""
    base: dict[tuple[str, str], dict[str, Sequence[Samples]]] = defaultdict(dict)
    head: dict[tuple[str, str], dict[str, Sequence[Samples]]] = defaultdict(dict)
    for comparison in comparisons:
        if comparison.change and comparison.base and comparison.head:
            contest, path = _contest(comparison)
            base[contest][path], head[contest][path] = comparison.base.sessions, comparison.head.sessions
    return [PathFlip(*contest, flip) for contest in base for flip in geomean.flips(base[contest], head[contest], rules)]


def _contest(comparison: Comparison) -> tuple[tuple[str, str], str]:
    case = Case.parse(comparison.key.case)
    shipped = " as shipped" if comparison.key.as_shipped else ""
    what = f"{case.model} {case.precision.value} {case.tuning.value}{shipped}"
    return (comparison.key.identity, what), case.path
