"""The rules that benchmarks/detection.py compares: ours, and other tools' by their own functions.

A rule for pairs gives a trial a score, and raises an alarm ("slower") if the score passes its bar; a rule for histories
gives the size of the largest slowdown that it reports, as a fraction. Scores let all be compared at one rate of alarms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import mean, median, quantiles

from benchmarks.detection_rigs import Rig
from harness.judge.stats import Arm, Noise, Plan, Rules, compare, judge_turns, order, segment, turn_of
from harness.judge.stats.pair import Change
from harness.judge.verdict import Verdict

Sessions = list[list[float]]
SCREEN_P = 0.05
"""Two-sided p-value below which a slowdown is a suspect."""


@dataclass(frozen=True)
class Trial:
    """Base and head as measured, the rig to measure more on, and what calibration said of it."""

    base: Sessions
    head: Sessions
    rig: Rig
    step: float
    noise: Noise | None

    @cached_property
    def uncalibrated(self) -> Change:
        """What `compare` says, knowing nothing of the rig beforehand."""
        return compare(self.base, self.head)

    @cached_property
    def calibrated(self) -> Change:
        """What `compare` says with the rig's calibration."""
        return compare(self.base, self.head, noise=self.noise)


@dataclass(frozen=True)
class Score:
    """What a rule made of a trial."""

    value: float
    """Larger means slower, for sure or by more; minus infinity is never an alarm."""
    alarm: bool
    """What it says as it is shipped."""
    sessions: int = 0
    """Sessions measured on top of the trial's."""


@dataclass(frozen=True)
class Look:
    """A history up to its last commit, and the rig to measure that commit and the one before the step again."""

    series: Sessions
    rig: Rig
    step: float
    """Of the last commit."""

    @property
    def medians(self) -> list[float]:
        """One number a commit, in ms."""
        return [median(samples) for samples in self.series]


PairRule = Callable[[Trial], Score]
HistoryRule = Callable[[Look], float]


def plain(trial: Trial) -> Score:
    """Median of all samples, alarm above 5 %."""
    return _ratio(median(_pool(trial.head)) / median(_pool(trial.base)), 1.05)


def pytest_benchmark(trial: Trial) -> Score:
    """`--benchmark-compare-fail=mean:5%`."""
    from pytest_benchmark.utils import parse_compare_fail

    check = parse_compare_fail("mean:5%")
    base, head = {"mean": mean(_pool(trial.base))}, {"mean": mean(_pool(trial.head))}
    return Score(check.compute(head, base) / 100, bool(check.fails(head, base)))


def asv_compare(trial: Trial) -> Score:
    """`asv compare` with its default factor of 1.1."""
    return _asv(trial, 1.1)


def asv_compare_5(trial: Trial) -> Score:
    """`asv compare --factor 1.05`."""
    return _asv(trial, 1.05)


def ours(trial: Trial) -> Score:
    """`compare`, knowing nothing of the rig beforehand."""
    return _ours(trial.uncalibrated)


def ours_calibrated(trial: Trial) -> Score:
    """`compare` with the rig's calibration."""
    return _ours(trial.calibrated)


def ours_confirmed(trial: Trial) -> Score:
    """Screened by `compare`, suspects confirmed by `decide` in fresh interleaved sessions, calibrated."""
    return _confirmed(trial, Rules())


def ours_confirmed_fine(trial: Trial) -> Score:
    """The same, with changes of 1.5 % relevant."""
    return _confirmed(trial, Rules(relevant=0.015))


PAIR_RULES: dict[str, PairRule] = {
    "ours, screened and confirmed": ours_confirmed,
    "ours, the same, 1.5 % relevant": ours_confirmed_fine,
    "ours, calibrated": ours_calibrated,
    "ours, uncalibrated": ours,
    "asv compare (1.1)": asv_compare,
    "asv compare (1.05)": asv_compare_5,
    "pytest-benchmark mean:5%": pytest_benchmark,
    "plain 5 %": plain,
}


def history_gate(look: Look) -> float:
    """The last commit screened against the ten before, a suspect confirmed in fresh sessions: what `gate` does."""
    seen = compare(look.series[-11:-1], look.series[-1:])
    found, _ = confirm(look.rig, look.step, Plan(), None)
    return found.relative if _suspect(seen) and found.verdict is Verdict.SLOWER else 0.0


def history_ours(look: Look) -> float:
    """`segment`, steps of 3 % and more."""
    steps = segment(look.medians, relevant=0.03).steps
    return max((step.relative for step in steps), default=0.0)


def history_asv(look: Look) -> float:
    """Step detection and regressions as `asv publish` finds them, threshold 5 %."""
    from asv import _stats, step_detect
    from asv_runner.statistics import compute_stats

    results = [compute_stats(samples, 1) for samples in look.series]
    steps = step_detect.detect_steps([value for value, _ in results], [_stats.get_weight(one) for _, one in results])
    _, _, jumps = step_detect.detect_regressions(steps, threshold=0.05)
    return max((after / before - 1 for _, _, before, after in jumps or ()), default=0.0)


def history_otava(look: Look) -> float:
    """`otava analyze` with its defaults."""
    from otava.series import Metric, Series

    found = Series("case", None, list(range(len(look.series))), {"ms": Metric(-1)}, {"ms": look.medians}, {}).analyze()
    return max((point.forward_change_percent() / 100 for point in found.change_points["ms"]), default=0.0)


def history_rustc(look: Look) -> float:
    """rustc-perf: the last commit against the one before, beyond Q3 + 3 IQR of the 30 before."""
    moves = [abs(after / before - 1) for before, after in pairwise(look.medians[-32:-1])]
    first, _, third = quantiles(moves, method="inclusive")
    change = look.medians[-1] / look.medians[-2] - 1
    return change if change > third + 3 * (third - first) else 0.0


def history_plain(look: Look) -> float:
    """The last commit against the one before, above 5 %."""
    change = look.medians[-1] / look.medians[-2] - 1
    return change if change > 0.05 else 0.0


HISTORY_RULES: dict[str, HistoryRule] = {
    "ours, gate": history_gate,
    "ours, history": history_ours,
    "asv steps": history_asv,
    "Otava": history_otava,
    "rustc-perf": history_rustc,
    "plain 5 %": history_plain,
}


def confirm(rig: Rig, step: float, plan: Plan, noise: Noise | None) -> tuple[Change, int]:
    """Measure in turns, and say how many sessions it took."""
    turns = []
    for arm in order(""):
        turns.append(turn_of(arm, rig.session(step if arm is Arm.HEAD else 0.0)))
        change = judge_turns(turns, plan, noise)
        if change.decided or len(turns) >= plan.most_sessions:
            return change, len(turns)
    raise AssertionError


def _confirmed(trial: Trial, rules: Rules) -> Score:
    change, sessions = confirm(trial.rig, trial.step, Plan(rules), trial.noise)
    slower = change.verdict is Verdict.SLOWER
    return Score(-math.log(change.p) if slower else -math.inf, slower, sessions)


def _suspect(change: Change) -> bool:
    return change.p < SCREEN_P and change.relative > 0


def _pool(sessions: Sessions) -> list[float]:
    return [sample for samples in sessions for sample in samples]


def _ratio(ratio: float, factor: float) -> Score:
    return Score(ratio - 1, ratio > factor)


def _asv(trial: Trial, factor: float) -> Score:
    from asv._stats import is_different
    from asv.commands.compare import _is_result_better
    from asv_runner.statistics import compute_stats

    base, head = _pool(trial.base), _pool(trial.head)
    (was, was_stats), (now, now_stats) = compute_stats(base, 1), compute_stats(head, 1)
    differs = is_different(base, head, was_stats, now_stats)
    alarm = _is_result_better(was, now, (was_stats, base), (now_stats, head), factor)
    return Score(now / was - 1 if differs else -math.inf, bool(alarm))


def _ours(change: Change) -> Score:
    if not math.isfinite(change.p):
        return Score(-math.inf, False)
    certainty = -math.log(max(change.p, 1e-300))
    return Score(math.copysign(certainty, change.relative), change.verdict is Verdict.SLOWER)
