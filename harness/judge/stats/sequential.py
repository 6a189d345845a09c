"""Confirm or refute a suspected change with fresh sessions, taken A B B A, until a sequential test decides.

The evidence is the Bayes factor of Student's t with a normal prior on the effect size and the right Haar prior on mean
and scale. While nothing changed it is a martingale that starts at 1, so the chance that it ever passes 1 / alpha is at
most alpha, however often one looks (Ville's inequality; Perez-Ortiz, Lardy, de Heide and Grunwald, Annals of
Statistics 52, 2024; Wang and Ramdas, arXiv:2310.03722). The closed form is in Rouder et al., Psychonomic Bulletin &
Review 16 (2009). The same evidence against a change of what is relevant bounds false refutations by beta.

A B B A takes a steady drift out of the difference; decisions fall only when such a block is complete.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from harness.judge.stats import robust
from harness.judge.stats.noise import POWER, NoiseEstimate
from harness.judge.stats.pair import Estimate, Rules, estimate_shift, relative
from harness.judge.stats.samples import Limits
from harness.judge.stats.session import Noise, Samples, summarise
from harness.judge.verdict import Verdict


class Arm(str, Enum):
    """What the next session has to run."""

    BASE = "base"
    HEAD = "head"


class Stage(str, Enum):
    """How a confirmation stands."""

    OPEN = "open"
    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"


BLOCK = (Arm.BASE, Arm.HEAD, Arm.HEAD, Arm.BASE)


@dataclass(frozen=True)
class ConfirmationPlan:
    """How sure a confirmation has to be, and what it may cost."""

    rules: Rules = field(default_factory=Rules)
    """For the smallest relevant change; their alpha and beta are not used here."""
    alpha: float = 0.01
    """Chance, over the whole stream, of `confirmed` when nothing changed."""
    beta: float = 0.05
    """Chance, over the whole stream, of `refuted` when it changed by what is relevant or more."""
    most_sessions: int = 32
    """Budget over both sides, unusable sessions included."""
    effect: float = 3.0
    """Size of change, in standard deviations between sessions, for which the test is sharpest."""


@dataclass(frozen=True)
class Decision:
    """What the sessions so far say. `relative` is a fraction of base; unknown numbers are NaN."""

    stage: Stage
    next: Arm | None
    """What to measure next; None once it is decided."""
    estimate: Estimate | None = None
    """Of all usable sessions so far; None while they tell nothing."""
    half_width: float = math.nan
    """Of the interval around `estimate.shift` that misses the true change with probability `alpha`, however often one
    looked: the changes against which the evidence stays below 1 / alpha."""
    p: float = 1.0
    """Anytime-valid p-value of no change: one over the evidence."""
    sessions: tuple[int, int] = (0, 0)
    """How many sessions of base and head could be used."""
    reasons: tuple[str, ...] = ()

    @property
    def relative(self) -> float:
        """The estimated change."""
        return relative(self.estimate.shift) if self.estimate else math.nan


def decide(
    base: Sequence[Samples],
    head: Sequence[Samples],
    suspected: Verdict,
    plan: ConfirmationPlan | None = None,
    noise: Noise | None = None,
    limits: Limits | None = None,
) -> Decision:
    """Judge all sessions taken so far, in the order that earlier decisions asked for; start with two empty lists.

    Screening sessions must not be among them: they were picked because they looked bad. `suspected` is `slower` or
    `faster`; a change the other way refutes it. Never raises for data; raises ValueError for another `suspected`.
    """
    if not suspected.changed:
        raise ValueError(f"a suspected change is slower or faster, not {suspected.value}")
    plan = plan or ConfirmationPlan()
    good_base, refused_base = summarise(base, limits)
    good_head, refused_head = summarise(head, limits)
    refused = (*(f"base {reason}" for reason in refused_base), *(f"head {reason}" for reason in refused_head))
    used, taken = (len(good_base), len(good_head)), len(base) + len(head)
    estimate = estimate_shift(good_base, good_head, noise, plan.rules.surprise) if all(used) else None
    spent = taken >= plan.most_sessions
    if estimate is None or taken % len(BLOCK):
        stage, p = _undecided(spent), 1.0
    else:
        stage, p = _weigh(estimate, used, 1 if suspected is Verdict.SLOWER else -1, plan, spent)
    return Decision(
        stage,
        next=BLOCK[taken % len(BLOCK)] if stage is Stage.OPEN else None,
        estimate=estimate,
        half_width=_half_width(estimate, used, plan) if estimate else math.nan,
        p=p,
        sessions=used,
        reasons=(*_why(stage, taken), *(estimate.notes if estimate else ()), *refused),
    )


def smallest_confirmable(estimate: NoiseEstimate, plan: ConfirmationPlan | None = None) -> float:
    """The change that the plan's sessions confirm with 95 % power: infinite if no change is large enough.

    A threshold below it is not supported. With the noise at its upper limit, and as if the test looked once, at the
    end of the budget; that it also stops before can only help. NaN for an estimate that is none.
    """
    from scipy.stats import t

    plan = plan or ConfirmationPlan()
    a_side = plan.most_sessions // len(BLOCK) * len(BLOCK) // 2
    if not estimate.ok or not a_side:
        return math.nan
    df = estimate.noise.df + 2 * a_side - 2
    error = robust.HODGES_LEHMANN_LOSS * estimate.sd_upper * math.sqrt(2 / a_side)
    return relative(error * (_convincing_t(df, a_side / 2, plan) + float(t.ppf(POWER, df))))


def _convincing_t(df: float, sessions: float, plan: ConfirmationPlan) -> float:
    """The t-statistic whose `evidence` is 1 / alpha; infinite if none is."""
    scale = 1 + sessions * plan.effect**2
    grown = math.exp(2 * (math.log(1 / plan.alpha) + math.log(scale) / 2) / (df + 1))
    return math.sqrt(df * (grown - 1) / (1 - grown / scale)) if grown < scale else math.inf


def evidence(t: float, df: float, sessions: float, effect: float) -> float:
    """Odds by which a t-statistic speaks for a change against none.

    `sessions` is base x head / (base + head); `effect` the prior's standard deviation of change over noise.
    """
    scale = 1 + sessions * effect**2
    log_odds = (df + 1) / 2 * (math.log1p(t * t / df) - math.log1p(t * t / (scale * df))) - math.log(scale) / 2
    return math.exp(min(log_odds, 700.0))


def _half_width(estimate: Estimate, used: tuple[int, int], plan: ConfirmationPlan) -> float:
    return estimate.error * _convincing_t(estimate.df, _pooled(used), plan)


def _pooled(used: tuple[int, int]) -> float:
    """Sessions of both sides as `evidence` counts them."""
    return used[0] * used[1] / (used[0] + used[1])


def _weigh(
    estimate: Estimate, used: tuple[int, int], sign: int, plan: ConfirmationPlan, spent: bool
) -> tuple[Stage, float]:
    margin = plan.rules.relevant_log(estimate.location_ms)
    shift = sign * estimate.shift
    sessions = _pooled(used)

    def odds_against(change: float) -> float:
        return evidence((shift - change) / estimate.error, estimate.df, sessions, plan.effect)

    p = min(1.0, 1 / odds_against(0.0))
    if shift < margin and odds_against(margin) >= 1 / plan.beta:
        return Stage.REFUTED, p
    if shift >= margin and p <= plan.alpha:
        return Stage.CONFIRMED, p
    return _undecided(spent), p


def _undecided(spent: bool) -> Stage:
    return Stage.INCONCLUSIVE if spent else Stage.OPEN


def _why(stage: Stage, taken: int) -> tuple[str, ...]:
    return (f"not decided after {taken} sessions",) if stage is Stage.INCONCLUSIVE else ()
