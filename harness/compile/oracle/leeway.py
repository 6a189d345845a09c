"""How far another right answer may be from the judge's, number by number, for each output; and the file of it.

`harness.compile.oracle.leeway_measurement` finds it out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from device_runner.device import Array

Numbers = npt.NDArray[np.float64]

SINGLE, HALVES = "float32", "float16"
PRECISIONS = (SINGLE, HALVES)
"""Precisions in which numbers that are compared differ as far as the tolerance of such cases says."""
SMALLEST = {SINGLE: 2.0**-126, HALVES: 2.0**-14}
"""Smallest normal number (IEEE 754). A device may take a smaller one for 0."""
_CROWD = 16
"""Numbers at one place of an axis from which on their median says something."""
_TAIL = 2.0
"""How far beyond what is typical of its place one of 200,000 numbers may go. In 72 answers of a CRNN in 8 bits whose
ties fall otherwise, no number goes beyond 0.9 of this. Without it one goes 5 times too far."""


@dataclass(frozen=True)
class Leeway:
    """How far a right answer to one output may be from the judge's, in the output's own unit."""

    rounding: float = 0.0
    """How far rounding may move it, relative to its scale; NaN if that is not known."""
    floor: float = 0.0
    """Least of it, relative to the scale of what is judged."""
    moved: Array | None = None
    """How far rounding moves each number; None if that is not known."""
    own: Array | None = None
    """How far off the judge is itself, in its sums; None if that is not known."""
    decided: Array | None = None
    """Of real numbers, how far each may be off because something was decided otherwise; of integers, other answers that
    would be right, one after the other."""
    spread: float = math.inf
    """Largest root mean square of one answer that decided otherwise; of real numbers."""
    choices: bool = False
    """Whether integers are names (a class, a place): what lies between two right ones is not right."""
    smallest: float = 0.0
    """Numbers below it may be 0."""

    def most(self, want: Array) -> float:
        """Return how far any number of an output may be off besides its tolerance."""
        own = 0.0 if self.own is None else float(self.own.max(initial=0.0))
        return own + float(self.flips(want).max(initial=0.0))

    def flips(self, want: Array) -> Numbers:
        """Return how far each number may be off because something was decided otherwise."""
        moved = self._moved_by_decisions(want)
        twice = 2 if want.dtype.kind == "f" else 1
        return twice * np.maximum(moved, self.neighbours(want))

    def neighbours(self, want: Array) -> Numbers:
        """Return how far each number may be off because its neighbours are: a few draws say too little of one."""
        return np.zeros(want.shape) if self.choices else _TAIL * _typical(self._moved_by_decisions(want))

    def unseen(self, want: Array, tolerance: float) -> tuple[Numbers, int]:
        """Return how far each number may be off that no draw moves, and how many of them, where draws move the fewer.

        An eighth of those that one of 8 draws alone moves is new in the next one (Good, Biometrika 40, 1953). Four
        times as many are allowed, and none is farther off than the farthest at its places.
        """
        moved = self._moved_by_decisions(want)
        count = int((moved > tolerance).sum())
        few = _CROWD <= count <= want.size // 2
        return np.full(want.shape, np.inf) if self.choices else _farthest(moved), count // 2 if few else 0

    def _moved_by_decisions(self, want: Array) -> Numbers:
        """Return how far the draws are from the judge's answer at most."""
        if self.decided is None:
            return np.zeros(want.shape)
        wide = self.decided.astype(np.float64)
        return wide if want.dtype.kind == "f" else np.asarray(np.abs(wide - want.astype(np.float64)).max(axis=0))


def _farthest(moved: Numbers) -> Numbers:
    """Return how far numbers of the same row, column and so on move at most, where some do at each."""
    farthest = np.full(moved.shape, moved.max(initial=0.0))
    for axis in _crowded(moved):
        there = moved.max(axis=_others(moved, axis), keepdims=True)
        farthest = np.minimum(farthest, there) if there.all() else farthest
    return farthest


def _crowded(moved: Numbers) -> list[int]:
    """Return the axes each place of which has a crowd of numbers."""
    return [axis for axis, extent in enumerate(moved.shape) if extent > 1 and moved.size // extent >= _CROWD]


def _others(moved: Numbers, axis: int) -> tuple[int, ...]:
    return tuple(other for other in range(moved.ndim) if other != axis)


def _typical(moved: Numbers) -> Numbers:
    """Return how far numbers at each place move, typically: 0 where most of them do not move.

    The medians of its row, column and so on, relative to that of all, multiply: scores keep another scale than boxes.
    """
    whole = float(np.median(moved)) if moved.size >= _CROWD else 0.0
    typical = np.full(moved.shape, whole)
    for axis in _crowded(moved) if whole else ():
        typical = typical * (np.median(moved, axis=_others(moved, axis), keepdims=True) / whole)
    return typical


@dataclass(frozen=True)
class Measured:
    """What was measured of one output. What differs from precision to precision is by precision."""

    rounding: Mapping[str, float] = field(default_factory=dict)
    """How far rounding moves it, relative to its scale; NaN if the network with moved numbers has no answer."""
    floor: Mapping[str, float] = field(default_factory=dict)
    """Part of that which is the rounding of places in an image."""
    moved: Mapping[str, Array] = field(default_factory=dict)
    own: Array | None = None
    decided: Mapping[str, Array] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    choices: bool = False

    def leeway(self, factor: float, precision: str) -> Leeway:
        """Return what is allowed in a precision, if rounding counts by a factor. By 0 only decisions count."""
        kind = HALVES if precision.startswith(HALVES) else SINGLE
        return Leeway(
            rounding=factor * self.rounding.get(kind, 0.0) if factor else 0.0,
            floor=factor * self.floor.get(kind, 0.0),
            moved=np.multiply(factor, self.moved[kind]) if kind in self.moved and factor else None,
            own=_without_unmeasured(self.own) if factor else None,
            decided=_without_unmeasured(self.decided.get(kind)),
            spread=self.spread.get(kind, math.inf),
            choices=self.choices,
            smallest=SMALLEST[kind],
        )


def _without_unmeasured(distances: Array | None) -> Array | None:
    """Return distances with 0 where they could not be measured, which excuses nothing."""
    if distances is None or distances.dtype.kind != "f":
        return distances
    return np.where(np.isfinite(distances), distances, np.float32(0))


def save_leeway(file: Path, measured: Sequence[Measured]) -> None:
    """Keep what was measured of a network's outputs."""
    arrays: dict[str, Any] = {}
    for index, output in enumerate(measured):
        for name, value in vars(output).items():
            values = value if isinstance(value, Mapping) else {"": value}
            arrays.update({f"{index} {name} {kind}": each for kind, each in values.items() if each is not None})
    np.savez_compressed(file, **arrays)


def load_leeway(file: Path) -> list[Measured]:
    """Return what was measured of each output; empty if nothing was."""
    if not file.exists():
        return []
    outputs: dict[int, dict[str, Any]] = {}
    with np.load(file, allow_pickle=False) as arrays:
        for key in arrays.files:
            index, name, kind = key.split(" ")
            fields, value = outputs.setdefault(int(index), {}), arrays[key]
            value = value if name in ("moved", "own", "decided") else value.item()
            fields[name] = {**fields.get(name, {}), kind: value} if kind else value
    return [Measured(**fields) for _, fields in sorted(outputs.items())]


def peak_and_rms(numbers: Numbers) -> tuple[float, float]:
    """Return the largest magnitude and the root mean square, which squares of large and small numbers must not spoil.

    Both are 0 of no numbers, and both are NaN or infinite if a number is.
    """
    peak = float(np.abs(numbers).max(initial=0.0))
    if peak == 0.0 or not np.isfinite(peak):
        return peak, peak
    return peak, peak * float(np.sqrt(np.mean(np.square(numbers / peak))))
