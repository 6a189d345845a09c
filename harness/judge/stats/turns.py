"""Base and head measured in turns: the order of the sessions, and what they make of the change between the two."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from harness.judge.stats.pair import Estimate
from harness.judge.stats.session import Location, Noise, SessionSummary

BLOCK = 4
"""Sessions from one look to the next: two of each side."""
TREND_P = 0.05
"""A trend over the sessions is taken out where it is this unlikely to be chance."""
FEWEST_FOR_TREND = 8


class Arm(str, Enum):
    """What a session runs."""

    BASE = "base"
    HEAD = "head"


class Turn(NamedTuple):
    """One session, in its place."""

    arm: Arm
    session: SessionSummary | None
    """The session; None if it cannot be used, because its place counts."""
    refused: str = ""
    """Why it cannot be used."""


def order(seed: str, begun: Sequence[Arm] = ()) -> Iterator[Arm]:
    """Yield base and head for ever, two of each in every block of four, shuffled; the same for the same seed.

    `begun` is what the first block has already, at most two of a side. A fixed A B B A takes a steady drift out of the
    difference, but whatever repeats every four sessions would pass for a change of head.
    """
    chance = random.Random(seed)
    missing = Counter(dict.fromkeys(Arm, BLOCK // 2)) - Counter(begun)
    while True:
        block = sorted(missing.elements())
        chance.shuffle(block)
        yield from block
        missing = Counter(dict.fromkeys(Arm, BLOCK // 2))


def estimate_turns(turns: Sequence[Turn], noise: Noise | None = None, surprise: float = 0.25) -> Estimate | None:
    """Return the change by least squares, with a trend over the sessions where one is evident.

    None while a side has no usable session, or if the noise between sessions is unknown.
    """
    good = [(place, turn.arm, turn.session) for place, turn in enumerate(turns) if turn.session]
    points = {arm: [(place, session.log_ms) for place, of, session in good if of is arm] for arm in Arm}
    if not all(points.values()):
        return None
    base, head = (_centre(points[arm]) for arm in Arm)
    weight = 1 / base.count + 1 / head.count
    shift, squares, df = head.log_ms - base.log_ms, base.squares + head.squares, base.count + head.count - 2
    notes: tuple[str, ...] = ()
    if slope := _trend(base, head):
        shift -= slope * (head.place - base.place)
        squares -= slope * (base.product + head.product)
        weight += (head.place - base.place) ** 2 / (base.spread + head.spread)
        df -= 1
        notes = (f"the device drifted by {math.expm1(slope):+.2%} a session, which is taken out",)
    within = sum(session.error**2 for _, _, session in good) / len(good)
    variance, df_all, origin = moderated_variance(
        max(within, squares / df) if df else within, df, within, noise, surprise
    )
    if df_all <= 0 or variance <= 0:
        return None
    middle = math.exp((base.log_ms + head.log_ms) / 2)
    error, tick = math.sqrt(variance * weight), min(session.tick for _, _, session in good)
    return Estimate(shift, error, df_all, middle, math.sqrt(variance), tick, (*notes, *origin))


def moderated_variance(
    own: float, df: float, within: float, noise: Noise | None, surprise: float
) -> tuple[float, float, tuple[str, ...]]:
    """Variance of a session's log location, its degrees of freedom, and notes on where it comes from.

    What was learned of the noise joins in by its degrees of freedom (Smyth's moderated t, Stat. Appl. Genet. Mol. Biol.
    3, 2004), unless this run is noisier than that: then the learned noise is set aside. `within` is the part that the
    noise within sessions makes, below which no variance can be.
    """
    low = noise is not None and noise.location is Location.LOW
    notes = ("sessions are judged by their lower quartiles, the steadiest of this series",) if low else ()
    if noise is None or not noise.is_known:
        return own, df, notes
    if is_surprising(own, df, noise, surprise):
        noisier = f"this run is noisier than the learned noise ({math.sqrt(own):.1%} against {noise.sd:.1%})"
        return own, df, (*notes, noisier)
    return max(within, (df * own + noise.df * noise.sd**2) / (df + noise.df)), df + noise.df, notes


def is_surprising(variance: float, df: float, noise: Noise, surprise: float) -> bool:
    """Return whether learned noise makes a variance as large as this one so unlikely (an F-test)."""
    from scipy.special import fdtrc

    return df > 0 and float(fdtrc(df, noise.df, variance / noise.sd**2)) < surprise


@dataclass(frozen=True)
class _CentredSide:
    """The points of one side about their own mean."""

    count: int
    place: float
    log_ms: float
    spread: float
    """Sum of squares of the places."""
    product: float
    squares: float
    """Sum of squares of the log locations."""


def _centre(points: Sequence[tuple[int, float]]) -> _CentredSide:
    count = len(points)
    place, log_ms = (sum(values) / count for values in zip(*points, strict=True))
    return _CentredSide(
        count,
        place,
        log_ms,
        sum((x - place) ** 2 for x, _ in points),
        sum((x - place) * (y - log_ms) for x, y in points),
        sum((y - log_ms) ** 2 for _, y in points),
    )


def _trend(base: _CentredSide, head: _CentredSide) -> float:
    """Return the slope from session to session that both sides share, if one is evident; else 0."""
    from scipy.special import stdtr

    df = base.count + head.count - 3
    if df + 3 < FEWEST_FOR_TREND:
        return 0.0
    spread, product = base.spread + head.spread, base.product + head.product
    slope = product / spread
    left = (base.squares + head.squares - slope * product) / df
    if left <= 0 or 2 * float(stdtr(df, -abs(slope) / math.sqrt(left / spread))) > TREND_P:
        return 0.0
    return slope
