"""Why the engine's two settings are what they are. Run: python -m benchmarks.engine_settings [TRIALS] [SEED].

Everything goes through the engine that ships (`judge_turns`), look by look.

`T_ALLOWANCE`: boundaries of the normal statistic, made those of Student's t by their quantiles, and a trend that is
taken out where one is evident, let through a little more than they say. The first table has the errors that came about,
over those that may (up to 1 is as it should be): of series without a change that are called changed, and of series that
are slower by just what is relevant and are called the same; for the whole error spent, and for the share that ships.

`Rules.surprise`: learned noise is set aside where this run's own is so unlikely under it. The second table has rigs
that became noisier than what was learned of them, and one that did not: how many series without a change are called
changed (1 % may), and how many sessions it takes to find a relevant step.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from harness.base.tables import table
from harness.judge.stats import engine
from harness.judge.stats.engine import TurnPlan, judge_turns
from harness.judge.stats.pair import Change, Rules
from harness.judge.stats.session import Noise, SessionSummary
from harness.judge.stats.turns import BLOCK, Arm, Turn, order
from harness.judge.verdict import Verdict

ALLOWANCES = (1.0, engine.T_ALLOWANCE)
NOISES = (0.012, 0.016, 0.022, 0.031)
SURPRISES = (0.01, 0.05, 0.25, 0.5)
LEARNED = Noise(0.01, 12)
TIMES = (1.0, 1.5, 2.0, 3.0)
"""How many times as noisy as what was learned."""


def main() -> None:
    """Print both tables."""
    trials, seed = (int(word) for word in (*sys.argv[1:], *("20000", "7")[len(sys.argv) - 1 :]))
    rows = [(f"{sd:.1%}", *(spent(sd, share, trials, seed) for share in ALLOWANCES)) for sd in NOISES]
    print(table(rows, ("noise", *(f"{share:.0%} spent: changed, same" for share in ALLOWANCES))))
    print()
    settings = [(surprise, times) for surprise in SURPRISES for times in TIMES]
    told = [
        (f"{surprise:g}", f"{times:g} times", *learn_and_judge(surprise, times, trials, seed))
        for surprise, times in settings
    ]
    print(table(told, ("set aside below", "noise", "unchanged: called changed", "3 % slower: found", "sessions")))


def spent(sd: float, share: float, trials: int, seed: int) -> str:
    """Both errors of the engine over those that may be, if this share of them is spent."""
    shipped, engine.T_ALLOWANCE = engine.T_ALLOWANCE, share
    try:
        still, slower = (follow(TurnPlan(), sd, step, trials, seed) for step in (0.0, TurnPlan().rules.relevant))
    finally:
        engine.T_ALLOWANCE = shipped
    return f"{still.changed / (2 * TurnPlan().rules.alpha):.2f}, {slower.same / TurnPlan().rules.beta:.2f}"


def learn_and_judge(surprise: float, times: float, trials: int, seed: int) -> tuple[str, str, str]:
    """Return the verdicts on series of a rig that is noisier than its learned noise, by this factor."""
    plan = TurnPlan(replace(Rules(), surprise=surprise))
    still = follow(plan, times * LEARNED.sd, 0.0, trials // 4, seed, LEARNED)
    slower = follow(plan, times * LEARNED.sd, plan.rules.relevant, trials // 20, seed, LEARNED)
    return f"{still.changed:.2%}", f"{slower.changed:.0%}", f"{slower.sessions:.0f}"


class Endings(NamedTuple):
    """What series came to: shares, and sessions on the average."""

    changed: float
    same: float
    sessions: float


def follow(plan: TurnPlan, sd: float, step: float, trials: int, seed: int, noise: Noise | None = None) -> Endings:
    """Follow so many series to their ends."""
    ends = [_follow(plan, sd, step, (seed, trial), noise) for trial in range(trials)]
    verdicts = [change.verdict for change, _ in ends]
    changed = sum(verdict.changed for verdict in verdicts) / trials
    return Endings(changed, verdicts.count(Verdict.SAME) / trials, sum(taken for _, taken in ends) / trials)


def _follow(plan: TurnPlan, sd: float, step: float, seed: tuple[int, int], noise: Noise | None) -> tuple[Change, int]:
    chance, turns = np.random.default_rng(seed), list[Turn]()
    drawn = sd * chance.normal(size=plan.most_sessions)
    for arm, log_ms in zip(order(str(seed)), drawn.tolist(), strict=False):
        turns.append(Turn(arm, SessionSummary(3.0 + math.log1p(step) * (arm is Arm.HEAD) + log_ms, 1e-4)))
        change = judge_turns(turns, plan, noise) if len(turns) % BLOCK == 0 else None
        if change and change.decided:
            break
    return change or judge_turns(turns, plan, noise), len(turns)


if __name__ == "__main__":
    main()
