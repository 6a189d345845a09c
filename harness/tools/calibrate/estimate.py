"""The noise of a series by running one artifact against itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.judge.stats import robust
from harness.judge.stats.engine import TurnPlan, bars_at, compare_sessions, visible_change
from harness.judge.stats.noise import FEWEST_SESSIONS
from harness.judge.stats.pair import RULES, Rules
from harness.judge.stats.session import Noise, Samples, SessionSummary, summarise
from harness.judge.stats.turns import BLOCK

MOST_SESSIONS = 64
SPLITS = 200
SURE = 0.9
"""Confidence of the upper limit of the noise; a few sessions may lie close together by luck."""
NO_NOISE = Noise(math.nan, 0.0)
"""Nothing is known."""


@dataclass(frozen=True)
class NoiseEstimate:
    """The noise of one series. Relative numbers are fractions; unknown ones are NaN."""

    ok: bool
    sessions: int = 0
    noise: Noise = NO_NOISE
    """To be handed to the engine."""
    sd_upper: float = math.nan
    """The noise is below this with 90 % confidence."""
    false_alarm_rate: float = math.nan
    """Share of alarms among splits of the sessions into halves. The splits overlap: a check, not a bound."""
    splits: int = 0
    reasons: tuple[str, ...] = ()

    def smallest_detectable(self, sessions: int, rules: Rules = RULES) -> float:
        """Return the change that `sessions` a side, looked at once, show with 95 %.

        The noise is taken at its upper limit.
        """
        if not self.ok or sessions < 1:
            return math.nan
        df = self.noise.df + 2 * sessions - 2
        bars = bars_at(1, TurnPlan(rules, BLOCK), df)
        return visible_change(self.sd_upper * math.sqrt(2 / sessions), df, bars.change)

    def sessions_needed(self, relevant: float, rules: Rules = RULES) -> int | None:
        """Fewest sessions a side that support a threshold of `relevant`, a fraction; None if `MOST_SESSIONS` do not."""
        enough = (count for count in range(1, MOST_SESSIONS + 1) if self.smallest_detectable(count, rules) <= relevant)
        return next(enough, None)


def estimate_noise(sessions: Sequence[Samples], rules: Rules = RULES) -> NoiseEstimate:
    """Learn the noise of a series from sessions of one artifact, in the order taken. Never raises for data."""
    good, refused = summarise(sessions)
    if len(good) < FEWEST_SESSIONS:
        reason = f"{len(good)} usable sessions; at least {FEWEST_SESSIONS} are needed"
        return NoiseEstimate(False, sessions=len(good), reasons=(reason, *refused))
    from scipy.special import chdtri

    noise = noise_between(good)
    if not noise.is_known:
        return NoiseEstimate(False, sessions=len(good), reasons=("all sessions agree to the last digit", *refused))
    alarms, splits = _false_alarms(good, rules)
    return NoiseEstimate(
        True,
        sessions=len(good),
        noise=noise,
        sd_upper=noise.sd * math.sqrt(noise.df / float(chdtri(noise.df, SURE))),
        false_alarm_rate=alarms / splits,
        splits=splits,
        reasons=refused,
    )


def noise_between(sessions: Sequence[SessionSummary]) -> Noise:
    """Noise between at least two sessions of one artifact; sessions that follow each other count for less."""
    logs = [session.log_ms for session in sessions]
    within = math.sqrt(sum(session.error**2 for session in sessions) / len(sessions))
    return Noise(
        max(float(np.std(logs, ddof=1)), within), max(1.0, float(robust.effective_sizes(np.array([logs]))[0]) - 1)
    )


def _false_alarms(good: Sequence[SessionSummary], rules: Rules) -> tuple[int, int]:
    """Alarms among random splits into halves, the same ones each time."""
    generator, half = np.random.default_rng(SPLITS), len(good) // 2
    orders = [generator.permutation(len(good)) for _ in range(SPLITS)]
    pairs = [([good[i] for i in order[:half]], [good[i] for i in order[half : 2 * half]]) for order in orders]
    return sum(compare_sessions(base, head, rules).verdict.changed for base, head in pairs), SPLITS
