"""Are the samples of one session worth judging? What is wrong is said in words; nothing is repaired or dropped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from harness.judge.stats.rows import Rows, alike, drifts, effective_sizes, modes, warm_ups

SHORTEST_MS, LONGEST_MS = 1e-9, 1e12


@dataclass(frozen=True)
class Limits:
    """What the samples of a session may do. Shares and relative changes are fractions."""

    fewest: int = 5
    independent: float = 0.12
    """Smallest share of independent samples that they may be worth; bites from about 25 samples on."""
    warm_up: float = 0.2
    """Largest share of leading samples that may still differ from the settled second half."""
    drift: float = 0.05
    """Largest change from the first sample to the last along a trend that is not chance."""
    drift_p: float = 0.001
    """Kendall's test has to be this sure of a trend."""
    modes_apart: float = 0.08
    """Two modes closer than this leave the location good enough."""
    modes_explain: float = 0.92
    """Share of the variance that two modes must explain; normal noise, split where it splits best, reaches 0.64."""
    fewest_in_mode: float = 0.2
    steady: bool = False
    """Whether samples that are all the same will do: where the clock is known to run, the kernel is steady."""


@dataclass(frozen=True)
class Quality:
    """Whether samples can carry a verdict, and why not."""

    ok: bool
    reasons: tuple[str, ...] = ()
    effective: float = 0.0
    """How many independent samples they are worth."""


def check(samples_ms: Sequence[float], limits: Limits | None = None) -> Quality:
    """Judge samples in the order taken. Never raises for what numbers hold; text or None counts as not a number."""
    (quality,) = check_each([samples_ms], limits)
    return quality


def check_each(sessions: Sequence[Sequence[float]], limits: Limits | None = None) -> list[Quality]:
    """The same of many sessions, in a fraction of the time that each by itself takes."""
    limits = limits or Limits()
    numbers = [as_numbers(samples_ms) for samples_ms in sessions]
    found: dict[int, Quality] = {}
    for places, all_rows in alike(numbers):
        valid = _valid(all_rows, limits)
        if valid.any():
            found.update(zip(compress(places, valid), _qualities(all_rows[valid], limits), strict=True))
    return [found.get(place) or Quality(False, (invalid(values, limits),)) for place, values in enumerate(numbers)]


def as_numbers(values: Sequence[object]) -> list[float]:
    """The values as floats; what is not a number becomes NaN."""
    if {*map(type, values)} == {float}:  # as good as always
        return list(values)  # type: ignore[arg-type]
    return [float(value) if isinstance(value, (int, float, np.number)) else math.nan for value in values]


def is_time(value_ms: float) -> bool:
    """Whether a number can be a latency at all."""
    return SHORTEST_MS <= value_ms <= LONGEST_MS


def effective_size(values: Sequence[float]) -> float:
    """How many independent samples finite values are worth (`harness.judge.stats.rows`)."""
    return float(effective_sizes(np.array([values], float))[0])


def invalid(values: list[float], limits: Limits) -> str:
    """Why these cannot be times at all; empty if they can."""
    if len(values) < limits.fewest:
        return f"{len(values)} samples; at least {limits.fewest} are needed"
    odd = [value for value in values if not is_time(value)]
    if odd:
        return f"{len(odd)} of {len(values)} samples are no times (the first: {odd[0]:g})"
    if min(values) == max(values) and not limits.steady:
        return f"all {len(values)} samples are {values[0]:g} ms: the clock is too coarse or stands still"
    return ""


def _valid(rows: Rows, limits: Limits) -> NDArray[np.bool_]:
    """Of which rows `invalid` has nothing to say."""
    times = ((rows >= SHORTEST_MS) & (rows <= LONGEST_MS)).all(axis=1)
    differ = rows.min(axis=1) != rows.max(axis=1)
    valid: NDArray[np.bool_] = times & (differ | limits.steady) & (rows.shape[1] >= limits.fewest)
    return valid


def _qualities(rows: Rows, limits: Limits) -> Iterator[Quality]:
    """Of rows that are valid."""
    count = rows.shape[1]
    explained, apart = modes(np.log(rows), limits.fewest_in_mode)
    measured = (found.tolist() for found in (effective_sizes(rows), warm_ups(rows), drifts(rows), explained, apart))
    for row, (effective, slow, change, share, log_apart) in zip(rows, zip(*measured, strict=True), strict=True):
        found = (
            _too_alike(effective, count, limits),
            _warming_up(slow, count, limits),
            _drifting(change, row, limits),
            _torn(share, log_apart, limits),
        )
        reasons = tuple(filter(None, found))
        yield Quality(not reasons, reasons, effective)


def _too_alike(effective: float, count: int, limits: Limits) -> str:
    if effective >= limits.independent * count:
        return ""
    return f"the {count} samples follow each other: they are worth only {effective:.1f} independent ones"


def _warming_up(slow: int, count: int, limits: Limits) -> str:
    return "" if slow <= limits.warm_up * count else f"the first {slow} of {count} samples are a warm-up"


def _drifting(change: float, row: Rows, limits: Limits) -> str:
    if abs(change) < limits.drift:
        return ""
    from scipy.stats import kendalltau  # half a second that hardly any session needs

    if kendalltau(range(len(row)), row).pvalue > limits.drift_p:
        return ""
    return f"the samples drift by {change:+.1%} from first to last"


def _torn(explained: float, log_apart: float, limits: Limits) -> str:
    if explained < limits.modes_explain or log_apart < math.log1p(limits.modes_apart):
        return ""
    return f"the samples fall into two groups {math.expm1(log_apart):.1%} apart"
