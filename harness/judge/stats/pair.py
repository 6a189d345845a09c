"""Did head get slower than base? A change with its interval over sessions, and a verdict that may say "I cannot tell".

The sessions' log locations are compared by the Hodges-Lehmann shift, with Student's interval around it. With a handful
of sessions neither of the usual alternatives can serve: a rank test of 4 against 4 sessions never gives p < 0.028, and
bootstrap intervals over 4 sessions are far too narrow. The spread between sessions is pooled over both sides; it is
never taken to be less than the noise within the sessions shows; and what calibration knows of it is added in proportion
to its degrees of freedom (Smyth's moderated t, Statistical Applications in Genetics and Molecular Biology 3, 2004).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.judge.stats import robust
from harness.judge.stats.samples import Limits
from harness.judge.stats.session import Noise, Samples, SessionSummary, Summary, summarise
from harness.judge.verdict import Verdict


@dataclass(frozen=True)
class Rules:
    """What counts as a change, and how sure a verdict has to be."""

    relevant: float = 0.03
    """Smallest relative change worth a verdict, as a fraction."""
    floor_ms: float = 0.05
    """Smallest absolute change worth a verdict."""
    alpha: float = 0.005
    """Chance of `faster` or `slower` for a series that did not change."""
    beta: float = 0.05
    """Chance of `same` for a series that changed by what is relevant."""
    surprise: float = 0.01
    """Calibrated noise is set aside if the run's own would be this unlikely under it."""

    def relevant_log(self, location_ms: float) -> float:
        """The smallest relevant change of a log location: the larger of the relative and the absolute one."""
        return math.log1p(max(self.relevant, self.floor_ms / location_ms))


@dataclass(frozen=True)
class Estimate:
    """A change of log locations: what the verdicts are made of."""

    shift: float
    """Head less base."""
    error: float
    """Standard error of `shift`."""
    df: float
    location_ms: float
    """Geometric mean of both sides."""
    notes: tuple[str, ...] = ()

    @property
    def base_ms(self) -> float:
        """Base as this estimate has it: `head_ms / base_ms` is the change, whatever single sessions say."""
        return self.location_ms * math.exp(-self.shift / 2)

    @property
    def head_ms(self) -> float:
        """Head as this estimate has it."""
        return self.location_ms * math.exp(self.shift / 2)

    def p(self, against: float = 0.0) -> float:
        """Two-sided p-value of a true change of `against`."""
        return 2 * self._tail(abs(self.shift - against))

    def p_within(self, margin: float) -> float:
        """p-value of a true change of at least `margin` in either direction (two one-sided tests)."""
        return self._tail(margin - abs(self.shift))

    def half_width(self, alpha: float) -> float:
        """Half the width of the interval that misses the true change with probability `alpha`."""
        from scipy.special import stdtrit

        return -self.error * float(stdtrit(self.df, alpha / 2))

    def _tail(self, distance: float) -> float:
        from scipy.special import stdtr

        return float(stdtr(self.df, -distance / self.error))


@dataclass(frozen=True)
class Change:
    """Base against head. Relative numbers are fractions of base: 0.05 is 5 % slower. Unknown numbers are NaN."""

    verdict: Verdict
    relative: float = math.nan
    low: float = math.nan
    high: float = math.nan
    """Interval of `relative` at confidence 1 - alpha."""
    base_ms: float = math.nan
    head_ms: float = math.nan
    """Both sides as the estimate of `relative` has them: of one session, its location."""
    confidence: float = 0.0
    """One less the chance of this verdict if it were untrue; 0 for `inconclusive`."""
    p: float = math.nan
    """Two-sided p-value of no change; NaN if nothing could be tested."""
    sessions: tuple[int, int] = (0, 0)
    """How many sessions of base and head could be used."""
    reasons: tuple[str, ...] = ()
    """Why it is inconclusive, and what was left out."""

    @property
    def delta_ms(self) -> float:
        """Head less base."""
        return self.head_ms - self.base_ms

    def unproved(self, reason: str) -> Change:
        """The same change, no longer believed."""
        return replace(self, verdict=Verdict.INCONCLUSIVE, confidence=0.0, reasons=(reason, *self.reasons))


def compare(
    base: Sequence[Samples],
    head: Sequence[Samples],
    rules: Rules | None = None,
    noise: Noise | None = None,
    limits: Limits | None = None,
) -> Change:
    """Compare sessions of base and head, each a list of samples in ms. Swapping the sides swaps the verdict.

    Sessions that `limits` refuse are left out and named; if more than half of a side go, or too few remain to know the
    noise (three in all, or one a side with calibrated `noise`), the verdict is `inconclusive`. Never raises for data.
    """
    return compare_summaries(summarise(base, limits), summarise(head, limits), rules, noise)


def compare_summaries(base: Summary, head: Summary, rules: Rules | None = None, noise: Noise | None = None) -> Change:
    """The same of sessions that are already summarised."""
    refused = (*(f"base {reason}" for reason in base.refused), *(f"head {reason}" for reason in head.refused))
    if missing := _missing(base, "base") or _missing(head, "head"):
        used = len(base.good), len(head.good)
        return Change(Verdict.INCONCLUSIVE, sessions=used, reasons=(missing, *refused))
    change = compare_sessions(base.good, head.good, rules, noise)
    return replace(change, reasons=(*change.reasons, *refused))


def compare_sessions(
    base: Sequence[SessionSummary],
    head: Sequence[SessionSummary],
    rules: Rules | None = None,
    noise: Noise | None = None,
) -> Change:
    """The same of sessions that are found good, at least one a side."""
    rules = rules or Rules()
    used = len(base), len(head)
    estimate = estimate_shift(base, head, noise, rules.surprise)
    if estimate is None:
        reason = f"{used[0]} against {used[1]} sessions tell nothing of the noise between them: run more or calibrate"
        return Change(Verdict.INCONCLUSIVE, sessions=used, reasons=(reason,))
    return _judge(estimate, rules, used)


def estimate_shift(
    base: Sequence[SessionSummary], head: Sequence[SessionSummary], noise: Noise | None = None, surprise: float = 0.01
) -> Estimate | None:
    """Estimate the change between sessions; None if nothing tells how far sessions lie apart by chance."""
    logs_base, logs_head = [one.log_ms for one in base], [one.log_ms for one in head]
    variance, df, notes = _variance(base, head, noise, surprise)
    if df <= 0 or variance <= 0:
        return None
    error = robust.HODGES_LEHMANN_LOSS * math.sqrt(variance * (1 / len(base) + 1 / len(head)))
    middle = (robust.location(logs_base) + robust.location(logs_head)) / 2
    return Estimate(robust.shift(logs_base, logs_head), error, df, math.exp(middle), notes)


def contradicted(noise: Noise, base: Summary, head: Summary, surprise: float = 0.05) -> bool:
    """Whether sessions of each side lie further apart among themselves than calibrated noise lets them.

    A change between the sides makes no difference, so sessions that raised a suspicion may be asked.
    """
    if not base.good or not head.good or not noise.known:
        return False
    variance, df = _own_variance(base.good, head.good)
    return _surprising(variance, df, noise, surprise)


def _variance(
    base: Sequence[SessionSummary], head: Sequence[SessionSummary], noise: Noise | None, surprise: float
) -> tuple[float, float, tuple[str, ...]]:
    """Variance of a session's log location, its degrees of freedom, and notes on where it comes from."""
    own, df = _own_variance(base, head)
    if noise is None or not noise.known:
        return own, df, ()
    if _surprising(own, df, noise, surprise):
        return own, df, (f"this run is noisier than its calibration ({math.sqrt(own):.1%} against {noise.sd:.1%})",)
    within = _within(base, head)
    return max(within, (df * own + noise.df * noise.sd**2) / (df + noise.df)), df + noise.df, ()


def _own_variance(base: Sequence[SessionSummary], head: Sequence[SessionSummary]) -> tuple[float, float]:
    """What these sessions alone say of the variance, and its degrees of freedom."""
    df, within = float(len(base) + len(head) - 2), _within(base, head)
    if not df:
        return within, df
    return max(within, _squares([one.log_ms for one in base], [one.log_ms for one in head]) / df), df


def _within(base: Sequence[SessionSummary], head: Sequence[SessionSummary]) -> float:
    """The part of a session's variance that the noise within sessions makes."""
    return sum(one.error**2 for one in (*base, *head)) / (len(base) + len(head))


def _squares(*sides: list[float]) -> float:
    """Sum of squares about each side's own mean."""
    return sum((value - sum(side) / len(side)) ** 2 for side in sides for value in side)


def _surprising(variance: float, df: float, noise: Noise, surprise: float) -> bool:
    from scipy.special import fdtrc

    return df > 0 and float(fdtrc(df, noise.df, variance / noise.sd**2)) < surprise


def _missing(summary: Summary, side: str) -> str:
    good, refused = len(summary.good), len(summary.refused)
    if not good + refused:
        return f"{side} has no session"
    return f"only {good} of {good + refused} sessions of {side} can be used" if good < max(1, refused) else ""


def _judge(estimate: Estimate, rules: Rules, used: tuple[int, int]) -> Change:
    margin, half = rules.relevant_log(estimate.location_ms), estimate.half_width(rules.alpha)
    verdict, confidence = _verdict(estimate, rules, margin)
    change = change_of(estimate, half, verdict=verdict, confidence=confidence, p=estimate.p(), sessions=used)
    span = f"{change.low:+.1%} to {change.high:+.1%}"
    why = f"{span} admits no change and a relevant one ({relative(margin):.1%}): run more sessions"
    return replace(change, reasons=estimate.notes if confidence else (why, *estimate.notes))


def change_of(
    estimate: Estimate, half_width: float, *, verdict: Verdict, confidence: float, p: float, sessions: tuple[int, int]
) -> Change:
    """A change all of whose numbers are of one estimate. `half_width` is of its logarithm's interval."""
    known = math.isfinite(half_width)
    return Change(
        verdict,
        relative=relative(estimate.shift),
        low=relative(estimate.shift - half_width) if known else math.nan,
        high=relative(estimate.shift + half_width) if known else math.nan,
        base_ms=estimate.base_ms,
        head_ms=estimate.head_ms,
        confidence=confidence,
        p=p,
        sessions=sessions,
    )


def _verdict(estimate: Estimate, rules: Rules, margin: float) -> tuple[Verdict, float]:
    """The verdict and its confidence, which is 0 if there is none."""
    p, p_relevant = estimate.p(), estimate.p_within(margin)
    if p <= rules.alpha and abs(estimate.shift) >= margin:
        return (Verdict.SLOWER if estimate.shift > 0 else Verdict.FASTER), 1 - p
    if p_relevant <= rules.beta:
        return Verdict.SAME, 1 - p_relevant
    return Verdict.INCONCLUSIVE, 0.0


def relative(log_change: float) -> float:
    """A change of logarithms as a fraction of base. An interval that no number can hold is infinite."""
    return math.expm1(log_change) if log_change < 700 else math.inf
