"""One session as one number: inferences of a session share its bias, so the session is the unit of every test here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import NamedTuple

import numpy as np

from harness.judge.stats import robust
from harness.judge.stats.rows import alike, locations, lower_quartiles, spreads, ticks
from harness.judge.stats.samples import LONGEST_MS, SHORTEST_MS, Limits, Quality, as_numbers, check_each, is_time

DAY_SD, DAY_DF = 0.02, 4.0
"""How far the days of a device lie apart as long as nobody knows better: by 2 %, and that is not certain."""

Samples = Sequence[float]
"""Times of one session in ms, in the order taken."""


class Location(str, Enum):
    """Which number a session comes to. Where a few inferences of each are late, its fast ones are the steadier."""

    MIDDLE = "middle"
    """Hodges and Lehmann's location, as long as nothing else is known to be steadier."""
    LOW = "lower quartile"


@dataclass(frozen=True)
class SessionSummary:
    """What a session says of its case. Logarithms turn relative changes into differences."""

    log_ms: float
    """Natural logarithm of the location in ms."""
    error: float
    """Standard error of `log_ms` from the noise within the session alone; the session's bias comes on top."""
    tick: float = 0.0
    """The smallest difference between two samples that differ: of a coarse clock its tick, else next to nothing."""

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
    day_sd: float = DAY_SD
    """Standard deviation of what a day adds to all of its sessions; the default is an assumption, worth a few days."""
    day_df: float = DAY_DF
    location: Location = Location.MIDDLE
    """What all this is the noise of: the one by which base and head are both to be judged."""

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
    for places, rows in alike(sessions):
        times = ((rows >= SHORTEST_MS) & (rows <= LONGEST_MS)).all(axis=1)
        rows[~times] = np.nan
        located = rows[:, 0] * np.exp(locations(np.log(rows / rows[:, :1])))
        for place, ms in zip(places, located.tolist(), strict=True):
            found[place] = ms
    return found


class Summary(NamedTuple):
    """The sessions of one side."""

    good: list[SessionSummary]
    """Those fit to be judged."""
    refused: tuple[str, ...]
    """Why the others are not ("session 2: ...")."""


def summarise(
    sessions: Sequence[Samples], limits: Limits | None = None, location: Location = Location.MIDDLE
) -> Summary:
    """Summarise the sessions of one side."""
    (summary,) = summarise_each([sessions], limits, location)
    return summary


def summarise_each(
    sides: Sequence[Sequence[Samples]], limits: Limits | None = None, location: Location = Location.MIDDLE
) -> list[Summary]:
    """The same of many sides, in a fraction of the time that each by itself takes."""
    sessions = [samples for side in sides for samples in side]
    checked = check_each(sessions, limits)
    good = [place for place, quality in enumerate(checked) if quality.ok]
    found = _summaries([sessions[place] for place in good], [checked[place] for place in good], location)
    summaries = dict(zip(good, found, strict=True))
    places = iter(range(len(sessions)))
    return [_summary(list(islice(places, len(side))), checked, summaries) for side in sides]


def _summary(places: list[int], checked: Sequence[Quality], summaries: Mapping[int, SessionSummary]) -> Summary:
    numbered = list(enumerate(places, 1))
    refused = (f"session {n}: {'; '.join(checked[place].reasons)}" for n, place in numbered if place not in summaries)
    return Summary([summaries[place] for place in places if place in summaries], tuple(refused))


def _summaries(sessions: Sequence[Samples], qualities: Sequence[Quality], location: Location) -> list[SessionSummary]:
    """Of sessions that are fit to be judged."""
    located, loss = _LOCATIONS[location]
    found = [SessionSummary(math.nan, math.nan)] * len(sessions)
    for places, rows in alike(sessions):
        logs = np.log(rows)
        effective = np.array([qualities[place].effective for place in places])
        steps = ticks(logs)
        errors = np.hypot(loss * spreads(logs) / np.sqrt(effective), steps / math.sqrt(12))
        columns = (located(logs).tolist(), errors.tolist(), steps.tolist())
        for place, *summary in zip(places, *columns, strict=True):
            found[place] = SessionSummary(*summary)
    return found


_LOCATIONS = {
    Location.MIDDLE: (locations, robust.HODGES_LEHMANN_LOSS),
    Location.LOW: (lower_quartiles, robust.QUARTILE_LOSS),
}
"""Of the logarithms in rows, and its standard error over that of a mean."""
