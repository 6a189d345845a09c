"""What a comparison says of paths as a whole: by how much each changed, and which changed places."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from harness.case import Case
from harness.compare import Comparison, Key, Side, latency_change
from harness.stats.pair import Rules


@dataclass(frozen=True)
class Mean:
    """Geometric mean of head over base: 1.05 is 5 % slower."""

    identity: str
    path: str
    cases: int
    ratio: float


@dataclass(frozen=True)
class Flip:
    """Two paths of a model that changed places."""

    identity: str
    what: str
    """Model, precision and tuning."""
    was_faster: str
    is_faster: str
    certain: bool
    """Whether the order is more than noise on both sides."""


def geometric_means(comparisons: Sequence[Comparison]) -> list[Mean]:
    """Of the cases with a latency on both sides, for each path of each identity."""
    logs: dict[tuple[str, str], list[float]] = defaultdict(list)
    for key, base, head in _timed(comparisons):
        logs[key.identity, Case.parse(key.case).path].append(math.log(head.location_ms / base.location_ms))
    return [Mean(*of, len(group), math.exp(math.fsum(group) / len(group))) for of, group in sorted(logs.items())]


def ranking_flips(comparisons: Sequence[Comparison], rules: Rules | None = None) -> list[Flip]:
    """Pairs of paths of the same model whose order is not what it was."""
    contests: dict[tuple[str, str], dict[str, tuple[Side, Side]]] = defaultdict(dict)
    for key, base, head in _timed(comparisons):
        case = Case.parse(key.case)
        shipped = " as shipped" if key.as_shipped else ""
        what = f"{case.model} {case.precision.value} {case.tuning.value}{shipped}"
        contests[key.identity, what][case.path] = base, head
    return [
        Flip(*contest, *order, certain=_certain(paths[order[0]], paths[order[1]], rules))
        for contest, paths in contests.items()
        for pair in combinations(paths, 2)
        if (order := _changed_places(pair, paths))
    ]


def _timed(comparisons: Sequence[Comparison]) -> Iterator[tuple[Key, Side, Side]]:
    for comparison in comparisons:
        base, head = comparison.base, comparison.head
        if base and head and math.isfinite(base.location_ms) and math.isfinite(head.location_ms):
            yield comparison.key, base, head


def _changed_places(pair: tuple[str, str], paths: dict[str, tuple[Side, Side]]) -> tuple[str, str] | None:
    """Who was faster and who is; None if the order is what it was."""
    was, now = (min(pair, key=lambda path: paths[path][side].location_ms) for side in (0, 1))
    return None if was == now else (was, now)


def _certain(first: tuple[Side, Side], then: tuple[Side, Side], rules: Rules | None) -> bool:
    return all(latency_change(one, other, rules).verdict.changed for one, other in zip(first, then, strict=True))
