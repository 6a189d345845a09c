"""What a comparison says of paths as a whole: by how much each changed, and which changed places."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from harness.cases.case import Case
from harness.judge.compare import Comparison
from harness.judge.stats import geomean
from harness.judge.stats.geomean import Flip, Overall
from harness.judge.stats.pair import Change, Rules
from harness.judge.stats.session import Samples


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
