"""A change of latency between two sides: the rules, the estimate, and the result.

Latencies are logarithms here, so that a relative change is a difference. `harness.judge.stats.engine` makes the
verdict.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import replace

from harness.judge.verdict import Verdict


@dataclass(frozen=True)
class Rules:
    """Relevant changes, and the error bounds of a verdict."""

    relevant: float = 0.03
    """Smallest relative change worth a verdict, as a fraction."""
    relevant_kernels: float = 0.01
    """Same, for `device_ms`, the kernel time."""
    floor_ms: float = 0.05
    """Smallest absolute change worth a verdict, of `wall_ms`."""
    alpha: float = 0.005
    """Chance of `slower` for an unchanged series, over all looks; the same for `faster`."""
    beta: float = 0.05
    """Chance of `same` for a series with a relevant change, over all looks."""
    surprise: float = 0.25
    """Learned noise is set aside if the run's own would be this unlikely under it. That is early: what is lost if the
    learned noise was right is a session or two; what is kept is the false-alarm rate where the rig became noisier."""

    def relevant_log(self, location_ms: float) -> float:
        """Return the smallest relevant change of a log location: the larger of the relative and the absolute one."""
        return math.log1p(max(self.relevant, self.floor_ms / location_ms))


RULES = Rules()
"""The default rules."""


@dataclass(frozen=True)
class Estimate:
    """A change of log locations, from which verdicts are made."""

    shift: float
    """Head less base."""
    error: float
    """Standard error of `shift`."""
    df: float
    location_ms: float
    """Geometric mean of both sides."""
    sd: float = math.nan
    """Standard deviation between sessions, behind `error`."""
    tick: float = 0.0
    """Resolution of the clock. No number of sessions shows a smaller difference."""
    notes: tuple[str, ...] = ()

    @property
    def base_ms(self) -> float:
        """Latency of base by this estimate: `head_ms / base_ms` is the change."""
        return self.location_ms * math.exp(-self.shift / 2)

    @property
    def head_ms(self) -> float:
        """Latency of head by this estimate."""
        return self.location_ms * math.exp(self.shift / 2)

    @property
    def p(self) -> float:
        """Two-sided p-value of no change, for a single look."""
        return 2 * self._tail(abs(self.shift))

    def p_within(self, margin: float) -> float:
        """p-value of a true change of at least `margin` in either direction (two one-sided tests)."""
        return self._tail(margin - abs(self.shift))

    def _tail(self, distance: float) -> float:
        from scipy.special import stdtr

        return float(stdtr(self.df, -distance / self.error))


class Change(Struct, frozen=True):
    """Base against head. Relative numbers are fractions of base: 0.05 is 5 % slower. Unknown numbers are NaN."""

    verdict: Verdict
    relative: float = math.nan
    low: float = math.nan
    high: float = math.nan
    """The interval by which it was decided: of a `same` it holds the true change with confidence 1 - 2 beta, of
    everything else with 1 - 2 alpha, however often one looked."""
    base_ms: float = math.nan
    head_ms: float = math.nan
    """Both sides as the estimate of `relative` has them: of one session, its location."""
    confidence: float = 0.0
    """1 minus the chance of this verdict if it were untrue; 0 for `inconclusive`."""
    p: float = math.nan
    """Two-sided p-value of no change, at the last look; NaN without a test."""
    sessions: tuple[int, int] = (0, 0)
    """Number of usable sessions of base and head."""
    reasons: tuple[str, ...] = ()
    """Why it is inconclusive, and what was left out."""
    relevant: float = math.nan
    """The smallest relevant change, of this latency."""
    sees: float = math.nan
    """The change that these sessions find with 95 %."""
    more_sessions: int | None = None
    """Number of further sessions that find a relevant change; None if no number does."""

    clock: str = "wall_ms"
    """The clock that decided."""

    @property
    def decided(self) -> bool:
        """Whether it is `slower`, `faster` or `same`."""
        return self.verdict in (Verdict.SLOWER, Verdict.FASTER, Verdict.SAME)

    @property
    def delta_ms(self) -> float:
        """Head less base."""
        return self.head_ms - self.base_ms

    def without_proof(self, reason: str) -> Change:
        """Return this change as an unproved one."""
        reasons = (reason, *self.reasons)
        return replace(self, verdict=Verdict.INCONCLUSIVE, confidence=0.0, sees=math.nan, reasons=reasons)


def finite(number: float | None) -> float | None:
    """Return the number; None for NaN and infinity, which JSON does not have."""
    return number if number is not None and math.isfinite(number) else None


def relative(log_change: float) -> float:
    """Return a change of logarithms as a fraction of base. An interval that no number can hold is infinite."""
    return math.expm1(log_change) if log_change < 700 else math.inf
