"""Parts of an output that are on a scale of their own: the scores of a detector beside its boxes.

Along each axis (a batch, channels, rows, columns) an output falls into parts of about one scale. Each is held to its
own peak and to what rounding does to it, so that large numbers do not hide small ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.compile.oracle.leeway import Leeway, peak_and_rms

Numbers = npt.NDArray[np.float64]
SPREAD = 32.0
"""How many times as large the peaks of one scale may be."""
FEWEST = 64
"""Fewest elements of a part: of fewer, the largest movement means too little."""


@dataclass(frozen=True)
class Part:
    """Elements of one scale."""

    axis: int
    places: Numbers
    """1 at each place along the axis that belongs to it."""
    tolerance: Numbers
    """Tolerance of each element, infinite outside the part; broadcasts to the output."""
    rms: float
    rms_tolerance: float

    def complain(self, index: int, error: Numbers, own: Numbers, flips: Numbers) -> str:
        """Return what is wrong with the part as a whole; empty if nothing is."""
        here = self.places.astype(bool)
        rms_error, extra, more = (peak_and_rms(np.compress(here, each, self.axis))[1] for each in (error, own, flips))
        if rms_error <= self.rms_tolerance + extra + more:
            return ""
        return (
            f"output {index} is off by {rms_error:.3g} in the root mean square of {int(here.sum())} of {here.size} "
            f"places along axis {self.axis}, which are {self.rms:.3g} (tolerance {self.rms_tolerance:.3g})"
        )


def parts_of(want: Numbers, leeway: Leeway, least: float) -> Iterator[Part]:
    """Yield the parts of an output on scales of their own, along each axis that has several."""
    if leeway.moved is None or want.size == 0 or np.isnan(leeway.moved).any():
        return
    for axis in range(want.ndim):
        groups = _groups(want, axis)
        for group in range(1, int(groups.max()) + 1):
            yield _part(want, leeway, least, axis, groups == group)


def _groups(want: Numbers, axis: int) -> npt.NDArray[np.int64]:
    """Return the number of the scale of each place along an axis; 0 is the largest, which the whole output has."""
    peaks = np.abs(want).max(axis=tuple(other for other in range(want.ndim) if other != axis))
    groups = np.zeros(peaks.size, np.int64)
    each, group, members, top = want.size // peaks.size, 0, 0, float(peaks.max())
    for place in np.argsort(-peaks, kind="stable"):
        if 0 < peaks[place] < top / SPREAD and members * each >= FEWEST:
            group, members, top = group + 1, 0, float(peaks[place])
        groups[place] = group
        members += 1
    if group and members * each < FEWEST:
        groups[groups == group] = group - 1
    return groups


def _part(want: Numbers, leeway: Leeway, least: float, axis: int, here: npt.NDArray[np.bool_]) -> Part:
    assert leeway.moved is not None
    numbers, moved = np.compress(here, want, axis), np.compress(here, leeway.moved, axis).astype(np.float64)
    (peak, rms), (farthest, farthest_rms) = peak_and_rms(numbers), peak_and_rms(moved)
    own = 0.0 if leeway.own is None else float(np.compress(here, leeway.own, axis).max(initial=0.0))
    relative = max(least, leeway.floor)
    tolerance = max(relative * peak, farthest, leeway.smallest) + own
    shape = [-1 if other == axis else 1 for other in range(want.ndim)]
    places = here.astype(np.float64)
    return Part(
        axis,
        places,
        np.where(here, tolerance, np.inf).reshape(shape),
        rms,
        max(relative * rms, farthest_rms, leeway.smallest),
    )
