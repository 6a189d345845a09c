"""The one engine of verdicts: no change against a relevant one, both errors bounded over all looks.

How to use it, for sessions that are taken one after the other:

    plan = Plan(Rules(relevant=0.03), most_sessions=32)
    turns = []
    for arm in order("a seed"):                       # which side the next session has to run
        turns += turns_of([(arm, samples_ms)])        # or Turn(arm, summary)
        change = judge_turns(turns, plan, noise)      # `noise` is what is known of the series, or None
        if change.decided or len(turns) >= plan.most_sessions:
            break

`change.verdict` is `slower` or `faster` (no change is excluded), `same` (a relevant change is excluded) or
`inconclusive`. Looks fall after every block of four sessions. For sessions that are all there already, and not in
turns, `compare` is the same test with a single look.

Both errors are spent over the looks (`harness.judge.stats.spending`); the boundaries of the normal statistic become
those of Student's t by its quantiles (Jennison and Turnbull, Group Sequential Methods, 2000, section 3.8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from sys import intern
from typing import NamedTuple

from msgspec.structs import replace

from harness.judge.stats.pair import RULES, Change, Estimate, Rules, relative
from harness.judge.stats.session import (
    LIMITS,
    Location,
    Noise,
    SampleLimits,
    Samples,
    SessionSummary,
    Summary,
    summarise,
    summarise_each,
)
from harness.judge.stats.shares import share_interval
from harness.judge.stats.spending import boundaries
from harness.judge.stats.turns import BLOCK, Arm, Turn, estimate_turns, moderated_variance
from harness.judge.verdict import Verdict

FEWEST_TURNS = 2 * BLOCK
"""Before anything is called slower or faster. Of a rig whose sessions fall into two groups, four may by chance lie in
just the wrong ones, and learned noise does not know of it."""
T_ALLOWANCE = 0.85
"""Share of an error that is spent where there are several looks: boundaries of the normal statistic, made those of
Student's t by its quantiles, let through up to a tenth more than they say (`python -m benchmarks.engine_settings`
counts it)."""
POWER = 0.95
"""Chance of finding a change that counts as visible."""


@dataclass(frozen=True)
class TurnPlan:
    """Error bounds of a verdict in turns, and its maximum number of sessions."""

    rules: Rules = RULES
    most_sessions: int = 32
    """Over both sides, unusable ones included; whole blocks of four count."""

    @property
    def looks(self) -> int:
        """How often the sessions are looked at, if nothing is decided before the end."""
        return max(1, self.most_sessions // BLOCK)


PLAN = TurnPlan()


class Bars(NamedTuple):
    """Number of standard errors that a verdict needs."""

    change: float
    """Distance from no change, for `slower` or `faster`."""
    same: float
    """Distance from a relevant change, for `same`."""


def turns_of(sessions: Sequence[tuple[Arm, Samples]], noise: Noise | None = None) -> list[Turn]:
    """Return turns from samples in ms, in the order taken, with the location that `noise` belongs to."""
    location = noise.location if noise else Location.MIDDLE
    summaries = summarise_each([[samples_ms] for _, samples_ms in sessions], location=location)
    return [
        Turn(arm, summary.good[0] if summary.good else None, "; ".join(summary.refused).removeprefix("session 1: "))
        for (arm, _), summary in zip(sessions, summaries, strict=True)
    ]


def judge_turns(turns: Sequence[Turn], plan: TurnPlan = PLAN, noise: Noise | None = None) -> Change:
    """Judge all sessions taken so far, in the order taken. `inconclusive` between two looks. Never raises for data."""
    base, head = ([turn.session for turn in turns if turn.session and turn.arm is arm] for arm in Arm)
    used = len(base), len(head)
    refused = tuple(f"{place}. {turn.arm.value}: {turn.refused}" for place, turn in enumerate(turns, 1) if turn.refused)
    estimate = estimate_turns(turns, noise, plan.rules.surprise)
    if estimate is None:
        return _change_without_noise(base, head, plan.rules, refused)
    bars = bars_at(min(max(len(turns) // BLOCK, 1), plan.looks), plan, estimate.df)
    change = _change_of(estimate, bars, plan.rules, used)
    change = replace(change, reasons=(*change.reasons, *refused))
    enough = FEWEST_TURNS if change.verdict.changed and plan.looks > 1 else BLOCK
    if change.decided and len(turns) >= enough and len(turns) % BLOCK == 0:
        return change
    more = sessions_to_see(change.relevant, estimate, sum(used), plan)
    return replace(change, verdict=Verdict.INCONCLUSIVE, confidence=0.0, more_sessions=more)


def compare(
    base: Sequence[Samples],
    head: Sequence[Samples],
    rules: Rules = RULES,
    noise: Noise | None = None,
    limits: SampleLimits = LIMITS,
) -> Change:
    """Compare sessions of base and head, each a list of samples in ms. Swapping the sides swaps the verdict.

    Sessions that `limits` refuse are left out and named; if more than half of a side go, or too few remain to know the
    noise (three in all, or one a side with known `noise`), the verdict is `inconclusive`. Never raises for data.
    """
    return compare_summaries(summarise(base, limits), summarise(head, limits), rules, noise)


def compare_summaries(
    base: Summary, head: Summary, rules: Rules = RULES, noise: Noise | None = None, days: tuple[int, int] | None = None
) -> Change:
    """Compare sessions that are already summarised.

    `days` says on how many days base and head were measured, where that was not in turns: then whatever the device was
    like on those days is part of the difference, and of the noise.
    """
    refused = tuple([f"{side} {reason}" for side, of in (("base", base), ("head", head)) for reason in of.refused])
    if missing := _missing(base, "base") or _missing(head, "head"):
        used = len(base.good), len(head.good)
        return Change(Verdict.INCONCLUSIVE, sessions=used, reasons=(missing, *refused))
    change = compare_sessions(base.good, head.good, rules, noise, days)
    return replace(change, reasons=(*change.reasons, *refused)) if refused else change


def compare_sessions(
    base: Sequence[SessionSummary],
    head: Sequence[SessionSummary],
    rules: Rules = RULES,
    noise: Noise | None = None,
    days: tuple[int, int] | None = None,
) -> Change:
    """Compare good sessions, at least one a side."""
    used = len(base), len(head)
    estimate = estimate_sides(base, head, noise, rules.surprise, days)
    if estimate is None:
        return _change_without_noise(base, head, rules)
    return _change_of(estimate, bars_at(1, TurnPlan(rules, BLOCK), estimate.df), rules, used)


def estimate_sides(
    base: Sequence[SessionSummary],
    head: Sequence[SessionSummary],
    noise: Noise | None = None,
    surprise: float = 0.25,
    days: tuple[int, int] | None = None,
) -> Estimate | None:
    """Return the change between two sides whose sessions have no common order; None if the noise is unknown."""
    if len(base) + len(head) <= 2 and not (noise and noise.is_known):
        return None
    sides = [[session.log_ms for session in side] for side in (base, head)]
    means = [sum(side) / len(side) for side in sides]
    df = len(base) + len(head) - 2
    within = sum(session.error**2 for session in (*base, *head)) / (len(base) + len(head))
    squares = sum((log - mean) ** 2 for side, mean in zip(sides, means, strict=True) for log in side)
    own = max(within, squares / df) if df else within
    variance, df_all, notes = moderated_variance(own, df, within, noise, surprise)
    if df_all <= 0 or variance <= 0:
        return None
    middle = math.exp(sum(means) / 2)
    sampling = variance * (1 / len(base) + 1 / len(head))
    shift, sd, tick = means[1] - means[0], math.sqrt(variance), min(session.tick for session in (*base, *head))
    if days is None:
        return Estimate(shift, math.sqrt(sampling), df_all, middle, sd, tick, notes)
    learned = noise or Noise(math.nan, 0.0)
    daily = learned.day_sd**2 * (1 / days[0] + 1 / days[1])
    both = (sampling + daily) ** 2 / (sampling**2 / df_all + daily**2 / learned.day_df)  # Welch and Satterthwaite
    days_note = (
        f"base and head were not measured in turns: days of this device lie {learned.day_sd:.1%} apart by themselves"
    )
    return Estimate(shift, math.sqrt(sampling + daily), both, middle, sd, tick, (days_note, *notes))


def bars_at(look: int, plan: TurnPlan, df: float) -> Bars:
    """Return the bars of a look, the first being 1, for a standard error of so many degrees of freedom."""
    from scipy.special import ndtr, stdtrit

    rules, looks = plan.rules, plan.looks
    spent = (error if looks == 1 else T_ALLOWANCE * error for error in (rules.alpha, rules.beta))
    return Bars(*(-float(stdtrit(df, ndtr(-boundaries(error, looks)[look - 1]))) for error in spent))


def visible_change(error: float, df: float, bar: float) -> float:
    """Return the change, a fraction, that passes a bar with 95 %."""
    return relative(error * _reach(df, bar))


def _reach(df: float, bar: float) -> float:
    """Return the standard errors that pass a bar with 95 %: two quantiles of Student's t for the noncentral one."""
    from scipy.special import stdtrit

    return bar + float(stdtrit(df, POWER))


def sessions_to_see(relevant: float, estimate: Estimate, session_count: int, plan: TurnPlan) -> int | None:
    """Return how many more sessions in turns until a change of `relevant` is found with 95 %.

    None where that is not known, or where the clock is too coarse for it.
    """
    margin, sessions = math.log1p(relevant), float(BLOCK)
    if not margin > estimate.tick or not math.isfinite(estimate.sd):
        return None
    for _ in range(3):  # the bar depends on the number, and less and less so
        df = max(1.0, estimate.df + sessions - session_count)
        error = margin / _reach(df, bars_at(plan.looks, plan, df).change)
        sessions = max(BLOCK, 4 * (estimate.sd / error) ** 2)
    return max(0, math.ceil(sessions / BLOCK) * BLOCK - session_count)


def _change_of(estimate: Estimate, bars: Bars, rules: Rules, used: tuple[int, int]) -> Change:
    margin = rules.relevant_log(estimate.location_ms)
    verdict, confidence = _verdict(estimate, bars, margin, rules)
    half = estimate.error * (bars.same if verdict is Verdict.SAME else bars.change)
    low, high = relative(estimate.shift - half), relative(estimate.shift + half)
    sees = max(visible_change(estimate.error, estimate.df, bars.change), relative(estimate.tick))
    interval = share_interval(low, high)
    open_still = f"{interval} includes both no change and a relevant one ({relative(margin):.1%})"
    if estimate.tick > margin:
        open_still = (
            f"the clock ticks by {relative(estimate.tick):.1%} of it, more than the relevant change: use a finer clock"
        )
    return Change(
        verdict,
        relative=relative(estimate.shift),
        low=low,
        high=high,
        base_ms=estimate.base_ms,
        head_ms=estimate.head_ms,
        confidence=confidence,
        p=estimate.p,
        sessions=used,
        reasons=estimate.notes if confidence else (open_still, *estimate.notes),
        relevant=relative(margin),
        sees=sees,
    )


def _verdict(estimate: Estimate, bars: Bars, margin: float, rules: Rules) -> tuple[Verdict, float]:
    """Return the verdict and its confidence; 0 without one.

    A change that is certain and irrelevant is none.

    A clock that ticks by more than what is relevant rounds all sessions of a side alike, so nothing is excluded by it.
    """
    off, error = abs(estimate.shift), estimate.error
    if off + bars.same * error < margin and estimate.tick <= margin:
        return Verdict.SAME, 1 - rules.beta
    if off > bars.change * error:
        return (Verdict.SLOWER if estimate.shift > 0 else Verdict.FASTER), 1 - rules.alpha
    return Verdict.INCONCLUSIVE, 0.0


def _change_without_noise(
    base: Sequence[SessionSummary], head: Sequence[SessionSummary], rules: Rules, refused: tuple[str, ...] = ()
) -> Change:
    """Return what is left to say where the noise between sessions is unknown: no interval, and no verdict."""
    used = len(base), len(head)
    plural = "" if used[0] == 1 else "s"
    why = intern(f"{used[0]} session{plural} against {used[1]}: too few to measure the noise between them: run more")
    if not all(used):
        return Change(Verdict.INCONCLUSIVE, sessions=used, reasons=(why, *refused))
    was, now = (sum(session.log_ms for session in side) / len(side) for side in (base, head))
    return Change(
        Verdict.INCONCLUSIVE,
        relative=relative(now - was),
        base_ms=math.exp(was),
        head_ms=math.exp(now),
        sessions=used,
        reasons=(why, *refused),
        relevant=relative(rules.relevant_log(math.exp((was + now) / 2))),
    )


def _missing(summary: Summary, side: str) -> str:
    good, refused = len(summary.good), len(summary.refused)
    if not good + refused:
        return f"{side} has no session"
    return f"only {good} of {good + refused} sessions of {side} can be used" if good < max(1, refused) else ""
