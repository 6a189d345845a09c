"""One verdict of two clocks: the whole inference by the host's (`wall_ms`), its kernels by the device's (`device_ms`).

The kernels' clock is the steadier one by far on most GPUs, so it finds a smaller change; only the wall clock knows the
whole. Each gets half of the chance of a false alarm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.judge.stats.engine import FEWEST_TURNS, Plan, judge_turns
from harness.judge.stats.pair import Change
from harness.judge.stats.session import Noise
from harness.judge.stats.turns import Turn
from harness.judge.verdict import Verdict

KERNELS = "device_ms"


def judge_both(
    wall: Sequence[Turn],
    kernels: Sequence[Turn],
    plan: Plan,
    noise: Noise | None = None,
    kernels_noise: Noise | None = None,
) -> Change:
    """Judge the same sessions by both clocks; by the wall clock alone, unless every session has both.

    A change by the wall clock comes first. Where that clock excludes one, the kernels' is followed for as long as the
    plan's sessions can decide it, which a single block of them does not tell. Of what was learned of the kernels' clock
    the location alone counts: its noise may differ much from run to run (a session in ten far off, say), and would take
    from what a steady run can show.
    """
    if len(kernels) < len(wall) or not wall:
        return judge_turns(wall, plan, noise)
    half = replace(plan.rules, alpha=plan.rules.alpha / 2)
    finer = replace(half, relevant=min(half.relevant, half.relevant_kernels), floor_ms=0.0)
    whole = judge_turns(wall, replace(plan, rules=half), noise)
    located = replace(kernels_noise, df=0.0) if kernels_noise else None
    inner = judge_turns(kernels, replace(plan, rules=finer), located)
    if whole.verdict.changed or (not whole.decided and not inner.verdict.changed):
        return whole
    if inner.verdict.changed:
        return replace(inner, clock=KERNELS, reasons=(f"by the kernels' clock ({KERNELS})", *inner.reasons))
    left = plan.most_sessions - len(wall)
    hopeless = inner.more_sessions is None or (len(wall) >= FEWEST_TURNS and inner.more_sessions > left)
    if inner.decided or hopeless:
        return whole
    return replace(whole, verdict=Verdict.INCONCLUSIVE, confidence=0.0, more_sessions=inner.more_sessions)
