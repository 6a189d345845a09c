"""One session as one number: inferences of a session share its bias, so the session is the unit of every test here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.judge.stats import robust
from harness.judge.stats.samples import LONGEST_MS, SHORTEST_MS, Limits, as_numbers, check, is_time

Samples = Sequence[float]
"""Times of one session in ms, in the order taken."""


@dataclass(frozen=True)
class SessionSummary:
    """What a session says of its case. Logarithms turn relative changes into differences."""

    log_ms: float
    """Natural logarithm of the location in ms."""
    error: float
    """Standard error of `log_ms` from the noise within the session alone; the session's bias comes on top."""

    @property
    def location_ms(self) -> float:
        """The location in ms."""
        return math.exp(self.log_ms)


@dataclass(frozen=True)
class Noise:
    """How far sessions of one unchanged artifact lie apart, learnt beforehand (see harness/judge/stats/noise.py)."""

    sd: float
    """Standard deviation of the sessions' log locations: 0.01 is about 1 %."""
    df: float
    """Degrees of freedom that stand behind `sd`: sessions less one, for one series."""

    @property
    def known(self) -> bool:
        """Whether it says anything."""
        return math.isfinite(self.sd) and self.sd > 0 and math.isfinite(self.df) and self.df > 0


def location_ms(samples_ms: Samples) -> float:
    """The one latency of a session, wherever it is shown or judged: Hodges and Lehmann's location of the logarithms.

    NaN for no samples, or for such as are no times.
    """
    values = as_numbers(samples_ms)
    if not values or not all(map(is_time, values)):
        return math.nan
    unit = values[0]  # so that equal samples give just themselves
    return unit * math.exp(robust.location([math.log(value / unit) for value in values]))


def locations_ms(sessions: Sequence[Samples]) -> list[float]:
    """`location_ms` of each of many sessions of numbers, several times as fast as one by one."""
    found = [math.nan] * len(sessions)
    places: dict[int, list[int]] = {}
    for place, samples_ms in enumerate(sessions):
        places.setdefault(len(samples_ms), []).append(place)
    for count, alike in places.items():
        few = 0 < count <= robust.FEW
        many = _locations_ms([sessions[place] for place in alike]) if few else (location_ms(sessions[p]) for p in alike)
        for place, ms in zip(alike, many, strict=True):
            found[place] = ms
    return found


def _locations_ms(sessions: Sequence[Samples]) -> list[float]:
    """Of sessions that have as many samples as each other."""
    values = np.array(sessions, float)
    times = ((values >= SHORTEST_MS) & (values <= LONGEST_MS)).all(axis=1)
    values[~times] = np.nan
    halves = np.log(values / values[:, :1]) / 2
    first, second = np.triu_indices(values.shape[1])
    sums = np.sort(halves[:, first] + halves[:, second], axis=1)
    middle = (sums[:, (len(first) - 1) // 2] + sums[:, len(first) // 2]) / 2
    located: list[float] = (values[:, 0] * np.exp(middle)).tolist()
    return located


def summarise(
    sessions: Sequence[Samples], limits: Limits | None = None
) -> tuple[list[SessionSummary], tuple[str, ...]]:
    """The sessions fit to be judged, and why the others are not ("session 2: ...")."""
    good, reasons = [], []
    for number, samples in enumerate(sessions, 1):
        quality = check(samples, limits)
        if quality.ok:
            good.append(_session(as_numbers(samples), quality.effective))
        else:
            reasons.append(f"session {number}: {'; '.join(quality.reasons)}")
    return good, tuple(reasons)


def _session(samples_ms: list[float], effective: float) -> SessionSummary:
    logs = [math.log(sample) for sample in samples_ms]
    return SessionSummary(
        robust.location(logs), robust.HODGES_LEHMANN_LOSS * robust.spread(logs) / math.sqrt(effective)
    )
