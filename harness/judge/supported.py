"""What a gate can hold a device to: a threshold below what its profiles support is refused."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from harness.failures import UsageError
from harness.judge import noise_profile
from harness.judge.baseline import Baseline
from harness.judge.noise_profile import NoiseProfile
from harness.judge.sides import SeriesKey
from harness.judge.stats.pair import Rules
from harness.judge.stats.sequential import BLOCK, ConfirmationPlan, smallest_confirmable

LARGEST_BUDGET = 128
"""Sessions of one suspect; more than anybody would spend."""


def profiles_of(baselines: Iterable[Baseline], folder: Path) -> dict[SeriesKey, NoiseProfile]:
    """Those of the baselines that have a latency. Raises UsageError for a file that is not good."""
    timed = (one.side.key for one in baselines if one.sessions)
    found = {key: noise_profile.find(folder, key.identity, key.case) for key in timed}
    return {key: one for key, one in found.items() if one}


def require_supported(profiles: Mapping[SeriesKey, NoiseProfile], plan: ConfirmationPlan) -> None:
    """Raise UsageError if the relevant change is smaller than a series can show within the plan's sessions."""
    shown = {key: smallest_confirmable(one.estimate, plan) for key, one in profiles.items()}
    unsupported = {key: shown[key] for key, one in profiles.items() if not shown[key] <= _relevant(one, plan.rules)}
    if not unsupported:
        return
    worst = max(unsupported, key=lambda key: unsupported[key])
    needed = max(_sessions_needed(profiles[key], plan) for key in unsupported)
    more = f" ({len(unsupported) - 1} more cases likewise)" if len(unsupported) > 1 else ""
    ways = [f"--relevant {_percent(unsupported[worst])}"] if math.isfinite(unsupported[worst]) else []
    ways += [f"--most-sessions {needed}"] if needed <= LARGEST_BUDGET else []
    raise UsageError(
        f"{_relevant(profiles[worst], plan.rules):.1%} is less than {worst} can show with --most-sessions "
        f"{plan.most_sessions} by its noise profile{more}",
        hint=f"use {' or '.join(ways)}, or calibrate on a quieter rig" if ways else "calibrate on a quieter rig",
    )


def _relevant(one: NoiseProfile, rules: Rules) -> float:
    """The smallest change that is worth a verdict of this series, as a fraction."""
    return math.expm1(rules.relevant_log(one.location_ms))


def _sessions_needed(one: NoiseProfile, plan: ConfirmationPlan) -> int:
    """How many sessions support the threshold; more than `LARGEST_BUDGET` if so many do not."""
    counts = range(len(BLOCK), LARGEST_BUDGET + 1, len(BLOCK))
    wanted = _relevant(one, plan.rules)
    enough = (n for n in counts if smallest_confirmable(one.estimate, replace(plan, most_sessions=n)) <= wanted)
    return next(enough, LARGEST_BUDGET + 1)


def _percent(change: float) -> str:
    """The next tenth of a percent that is not below."""
    return f"{math.ceil(change * 1000) / 10:g}"
