"""The noise of a series, learned from kept sessions.

Where a series has few sessions, what its neighbours share tells: the variances of the series of one rig are taken for
draws from a scaled inverse chi-square; what it is, their scatter tells, and each series is drawn towards it by its
degrees of freedom (Smyth, Stat. Appl. Genet. Mol. Biol. 3, 2004, section 6.2). A session is compared with those of its
own build and day alone; what days add is a number of its own.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from harness.judge.stats.session import DAY_DF, DAY_SD, Noise

FEWEST_SESSIONS = 4
"""Fewest sessions of a noise profile."""
FEWEST_SERIES = 3
"""Fewest series of a rig from which their common noise can be learned."""
FEWEST_TO_CHOOSE = 8
"""Degrees of freedom before the location of a session is chosen by its stability."""
MOST_DF = 40.0
"""No noise is known better than by so many sessions: the rig of today is not quite that of last month."""
LEAST_VARIANCE = 1e-12
Key = TypeVar("Key", bound=Hashable)


class StoredSession(NamedTuple):
    """A stored session of a series."""

    build: str
    day: str
    log_ms: float
    """Location of the session, as a logarithm of ms."""
    error: float
    """Standard error of `log_ms` from the noise within the session."""


class Spread(NamedTuple):
    """A variance of log locations, and its degrees of freedom: 0 if nothing is known."""

    variance: float = 0.0
    df: float = 0.0


@dataclass(frozen=True)
class Pool:
    """The noise of one rig."""

    common: Spread
    """Noise of a new series; 0 degrees of freedom if nothing is known."""
    day: Spread

    def noise(self, own: Spread) -> Noise:
        """Return the noise of a series from its own sessions and the common noise."""
        df = own.df + self.common.df
        day_sd = math.sqrt(self.day.variance)
        if not df:
            return Noise(math.nan, 0.0, day_sd, self.day.df)
        variance = (own.df * own.variance + self.common.df * self.common.variance) / df
        return Noise(math.sqrt(variance), min(df, MOST_DF), day_sd, self.day.df)


def spread_of(stored: Iterable[StoredSession]) -> Spread:
    """Return the variance between sessions of the same build and day, at least that from the noise within them."""
    groups: dict[tuple[str, str], list[StoredSession]] = defaultdict(list)
    for session in stored:
        groups[session.build, session.day].append(session)
    repeated = [group for group in groups.values() if len(group) > 1]
    df = sum(len(group) - 1 for group in repeated)
    if not df:
        return Spread()
    squares = sum(_squares([session.log_ms for session in group]) for group in repeated)
    count = sum(map(len, repeated))
    within = sum(session.error**2 for group in repeated for session in group) / count
    return Spread(max(squares / df, within, LEAST_VARIANCE), float(df))


def is_far_steadier(spread: Spread, other: Spread) -> bool:
    """Return whether one location of sessions has less than half of the variance of the other.

    Half the variance needs half the sessions, and is unlikely by chance, because both are of the same sessions. The
    chosen variance looks a little smaller than it is, which `surprising` noise of a run corrects.
    """
    return spread.df >= FEWEST_TO_CHOOSE and spread.variance < other.variance / 2


def pooled_variance(spreads: Sequence[Spread]) -> Spread:
    """Pool several variances of the same series."""
    df = sum(spread.df for spread in spreads)
    return Spread(sum(spread.df * spread.variance for spread in spreads) / df, df) if df else Spread()


def pool_of(series: Mapping[Key, Sequence[StoredSession]], spreads: Mapping[Key, Spread]) -> Pool:
    """Return the common noise of one rig, from `spreads` of its series; `series` give the noise between days."""
    return Pool(_common([spread for spread in spreads.values() if spread.df]), _days(series, spreads))


def _common(spreads: Sequence[Spread]) -> Spread:
    """Return the scaled inverse chi-square behind some variances, by the first two moments of their logarithms."""
    from scipy.special import digamma, polygamma

    if len(spreads) < FEWEST_SERIES:
        return Spread()
    logs = [math.log(spread.variance) - float(digamma(spread.df / 2)) + math.log(spread.df / 2) for spread in spreads]
    middle = sum(logs) / len(logs)
    scatter = sum((log - middle) ** 2 for log in logs) / (len(logs) - 1)
    excess = scatter - sum(float(polygamma(1, spread.df / 2)) for spread in spreads) / len(spreads)
    half = _inverse_trigamma(excess) if excess > 0 else MOST_DF / 2
    half = min(half, MOST_DF / 2)
    return Spread(math.exp(middle + float(digamma(half)) - math.log(half)), 2 * half)


def _inverse_trigamma(value: float) -> float:
    from scipy.optimize import brentq
    from scipy.special import polygamma

    return float(math.exp(brentq(lambda log: float(polygamma(1, math.exp(log))) - value, -15.0, 15.0)))


def _days(series: Mapping[Key, Sequence[StoredSession]], spreads: Mapping[Key, Spread]) -> Spread:
    """Return what a day adds to all of its sessions, beginning with the assumption that is worth a few days.

    All series of a rig share its days, so they are no more degrees of freedom than there are days.
    """
    variances: list[float] = []
    days: set[str] = set()
    for key, stored in series.items():
        for sessions in _by_build(stored).values():
            by_day: dict[str, list[float]] = defaultdict(list)
            for session in sessions:
                by_day[session.day].append(session.log_ms)
            if len(by_day) > 1:
                means = [sum(logs) / len(logs) for logs in by_day.values()]
                sampling = spreads[key].variance * sum(1 / len(logs) for logs in by_day.values()) / len(by_day)
                variances.append(max(0.0, _squares(means) / (len(means) - 1) - sampling))
                days |= by_day.keys()
    df = float(max(0, len(days) - 1))
    learned = sum(variances) / len(variances) if variances else 0.0
    return pooled_variance([Spread(DAY_SD**2, DAY_DF), Spread(learned, min(df, MOST_DF))])


def _by_build(stored: Iterable[StoredSession]) -> dict[str, list[StoredSession]]:
    builds: dict[str, list[StoredSession]] = defaultdict(list)
    for session in stored:
        builds[session.build].append(session)
    return builds


def _squares(values: Sequence[float]) -> float:
    """Sum of squares about the mean."""
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values)
