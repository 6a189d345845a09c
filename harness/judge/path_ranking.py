"""The fastest compilation path, and the change of whole paths in a comparison.

The engine judges the sessions of two paths like any other sides. Samples of one session share its bias, so one session
a path proves nothing, unless the noise of the rig's series is known (`harness.judge.noise`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from harness.base.case import Case
from harness.base.outcome import Outcome
from harness.base.tables import grouped
from harness.compile.paths.clml.offload_report import OffloadReport
from harness.judge.compare import Comparison
from harness.judge.noise import NoiseModel, learn
from harness.judge.remarks import remarks
from harness.judge.sides import SeriesKey, Side, latest_build, side_of
from harness.judge.stats import suite
from harness.judge.stats.engine import compare_summaries
from harness.judge.stats.pair import RULES, Change, Rules
from harness.judge.stats.session import Samples, location_ms
from harness.judge.stats.suite import Flip, Overall
from harness.measure.records.record import Record

MORE = "take more sessions of each path: `adreno-bench calibrate`"


@dataclass(frozen=True)
class Standing:
    """One path of a ranking."""

    path: str
    outcome: str
    wall_ms: float | None
    """Location over its sessions; None if it has no latency: not right, or emulated."""
    sessions: int
    """Number of usable sessions."""
    emulated: bool
    mac_share: float | None
    """Share of multiply-accumulates offloaded, on the path that offloads."""
    remarks: tuple[str, ...] = ()
    """Remarks beside its outcome: `vacuous`, `as opencl`, `unsteady`."""
    untimed: str = ""
    """Why it has no latency though it is right; often empty."""


@dataclass(frozen=True)
class PathRanking:
    """The paths of one model, precision and tuning on one device, fastest first."""

    identity_key: str
    model: str
    precision: str
    tuning: str
    standings: tuple[Standing, ...]
    lead: Change | None = None
    """The second path against the first; None if fewer than two have a latency."""

    @property
    def conclusion(self) -> str:
        """One line: the fastest path and by how much, or why none is; and remarks on paths."""
        remarked = [
            f"{standing.path} is {', '.join(standing.remarks)}" for standing in self.standings if standing.remarks
        ]
        return "; ".join([self._winner, *remarked])

    @property
    def _winner(self) -> str:
        timed = [standing.path for standing in self.standings if standing.wall_ms]
        if not timed:
            reasons = dict.fromkeys(standing.untimed for standing in self.standings if standing.untimed)
            return ": ".join(("no path has a latency", *reasons))
        if not self.lead:
            return f"only {timed[0]} has a latency"
        best, following = timed[:2]
        lead = self.lead
        if lead.verdict.changed:
            span = f"{1 + lead.low:.2f} to {1 + lead.high:.2f}"
            return f"{best} wins, {1 + lead.relative:.2f} times as fast as {following} ({span})"
        distance = f"{best} and {following} are {lead.relative:.1%} apart"
        if not math.isfinite(lead.sees):
            why = lead.reasons[0] if lead.reasons else "the noise between sessions is unknown"
            return f"cannot tell: {distance}, but {why.removesuffix(': run more')}; {MORE}"
        return f"no difference seen: {distance}, and {lead.sees:.1%} could have been seen; {MORE}"


def rank_paths(records: Iterable[Record]) -> list[PathRanking]:
    """Rank the paths of each model by the sessions of their latest builds.

    Leaves out records as shipped, which are another build. The noise comes from all records.
    """
    worked_around = [record for record in records if not record.as_shipped]
    groups = grouped(worked_around, attrgetter("identity_key", "model", "precision", "tuning"))
    noises = learn(worked_around)
    by_path = attrgetter("path")
    return [_ranking(key, list(grouped(group, by_path).values()), noises) for key, group in groups.items()]


def _ranking(key: tuple[str, str, str, str], groups: Sequence[Sequence[Record]], noises: NoiseModel) -> PathRanking:
    contestants = sorted(
        ((side_of(group), latest_build(group)[-1]) for group in groups),
        key=lambda pair: (_wall_ms(pair[0]) is None, _wall_ms(pair[0]) or 0.0, pair[1].path),
    )
    timed = [side for side, _ in contestants if _wall_ms(side)]
    lead = None
    if len(timed) > 1:
        shared = noises.noise(SeriesKey(timed[0].key.identity, "any other"))  # what the rig's series share
        lead = compare_summaries(timed[0].summary, timed[1].summary, noise=shared)
    return PathRanking(*key, tuple(_standing(*fields) for fields in contestants), lead)


def _standing(side: Side, latest: Record) -> Standing:
    return Standing(
        path=latest.path,
        outcome=side.outcome.value,
        wall_ms=_wall_ms(side),
        sessions=len(side.summary.good),
        emulated=latest.path in latest.emulated,
        mac_share=offload.mac_share if (offload := latest.part(OffloadReport)) else None,
        remarks=tuple(remark.word for remark in remarks(latest)),
        untimed=side.untimed,
    )


def _wall_ms(side: Side) -> float | None:
    """Wall time of a path in ms; None if it is not right or has no samples. Includes sessions unfit for a verdict."""
    if side.outcome is not Outcome.OK or not side.sessions:
        return None
    ms = side.location_ms if side.summary.good else location_ms(side.sessions[-1])
    return ms if math.isfinite(ms) else None


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
    """Means over the cases with a latency on both sides, for each path of each identity."""
    timed = ((comparison.key, comparison.change) for comparison in comparisons if comparison.change)
    groups = grouped(timed, lambda pair: (pair[0].identity, Case.parse(pair[0].case).path))
    means = [PathMean(*of, suite.geometric_mean([change for _, change in groups[of]])) for of in sorted(groups)]
    return [mean for mean in means if mean.overall.series]


def path_flips(comparisons: Sequence[Comparison], rules: Rules = RULES) -> list[PathFlip]:
    """Pairs of paths of the same model whose order changed, for certain on both sides."""
    base: dict[tuple[str, str], dict[str, Sequence[Samples]]] = defaultdict(dict)
    head: dict[tuple[str, str], dict[str, Sequence[Samples]]] = defaultdict(dict)
    for comparison in comparisons:
        if comparison.change and comparison.base and comparison.head:
            contest, path = _contest(comparison)
            base[contest][path], head[contest][path] = comparison.base.sessions, comparison.head.sessions
    return [PathFlip(*contest, flip) for contest in base for flip in suite.flips(base[contest], head[contest], rules)]


def _contest(comparison: Comparison) -> tuple[tuple[str, str], str]:
    case = Case.parse(comparison.key.case)
    shipped = " as shipped" if comparison.key.as_shipped else ""
    what = f"{case.model} {case.precision.value} {case.tuning.value}{shipped}"
    return (comparison.key.identity, what), case.path
