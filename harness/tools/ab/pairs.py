"""Which case of one request is compared with which of another, and what tells the two sides apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.base.case import Case
from harness.base.failures import UsageError
from harness.judge.stats.turns import Arm
from harness.measure.workbench import Request

AXES = ("model", "path", "precision", "tuning")
BOTH = ("a", "b")
"""What the sides are called where they differ in nothing that a case names."""


CasePair = Mapping[Arm, Case]
"""One case of each side."""


@dataclass(frozen=True)
class Pairing:
    """Cases of two requests, side by side."""

    pairs: tuple[CasePair, ...]
    differences: tuple[str, ...]
    """Axes in which the sides differ; in the others a pair has one value."""
    names: tuple[str, str]
    """What people call base and head."""

    def of_head(self, case_id: str) -> CasePair:
        """Return the pair of a case of head, by its id."""
        return next(pair for pair in self.pairs if pair[Arm.HEAD].id == case_id)

    def common(self, pair: CasePair) -> str:
        """Return what both cases of a pair are: the path, and whatever else tells this pair from others."""
        axes = [axis for axis in AXES if axis not in self.differences]
        telling = [axis for axis in axes if axis == "path" or len({_value(p[Arm.HEAD], axis) for p in self.pairs}) > 1]
        return " ".join(_value(pair[Arm.HEAD], axis) for axis in telling) or pair[Arm.HEAD].id


def pair_cases(base: Request, head: Request) -> Pairing:
    """Pair the cases of two requests. Raises UsageError where more than one case could be meant."""
    cases = list(base.cases), list(head.cases)
    differences = tuple(axis for axis in AXES if len({frozenset(_values(side, axis)) for side in cases}) > 1)
    for axis in differences:
        for side in cases:
            if len(values := _values(side, axis)) > 1:
                message = f"the sides differ in the {axis}, and one of them has {', '.join(sorted(values))}"
                raise UsageError(message, hint=f"name one {axis} for each side")

    def key(case: Case) -> tuple[str, ...]:
        return tuple(_value(case, axis) for axis in AXES if axis not in differences)

    heads = {key(case): case for case in cases[1]}
    pairs = tuple({Arm.BASE: case, Arm.HEAD: heads[key(case)]} for case in cases[0] if key(case) in heads)
    if not pairs:
        raise UsageError("the two sides have no case in common", hint="name the same paths for both")
    names = tuple(" ".join(_value(side[0], axis) for axis in differences) for side in cases)
    return Pairing(pairs, differences, _without_options(base, head) if names[0] == names[1] else (names[0], names[1]))


def _without_options(base: Request, head: Request) -> tuple[str, str]:
    shipped = [request.quirks.as_shipped for request in (base, head)]
    if shipped[0] is shipped[1]:
        return BOTH
    names = ["as shipped" if alone else "with workarounds" for alone in shipped]
    return names[0], names[1]


def _values(cases: Sequence[Case], axis: str) -> set[str]:
    return {_value(case, axis) for case in cases}


def _value(case: Case, axis: str) -> str:
    return dict(zip(AXES, case.id.split("-"), strict=True))[axis]
