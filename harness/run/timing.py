"""The timing protocol: warm up until the times agree, then sample both clocks within a budget.

A GPU that has rested is slow at first, so nothing is timed before two consecutive inferences agree; and at least ten
samples are taken whatever the budget, because asv's test is blind at six against six.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.cases.plan import Budget

if TYPE_CHECKING:
    from device_runner.device import Program

FEWEST_SAMPLES = 10
FEWEST_DEVICE_SAMPLES = 3
QUICK_SAMPLES = 3
AGREE_WITHIN = 0.05
WARM_UP_SHARE = 0.2
DEVICE_SHARE = 0.2


@dataclass(frozen=True)
class Timing:
    """Samples of one case, in the order taken."""

    wall_ms: list[float]
    device_ms: list[float]
    warm_up_ms: list[float]
    """What was thrown away before."""
    warmed_up: bool
    """Whether two consecutive inferences of the warm-up agreed within 5 %."""


def measure(program: Program, budget: Budget, clock: Callable[[], float] = time.monotonic) -> Timing:
    """Time a program that is known to be right. Raises what `program` raises."""
    if budget.quick:
        return _quick_look(program, budget)
    began = clock()
    warm_up_ms = warm_up(program, budget, clock)
    left_s = max(0.0, budget.seconds - (clock() - began))
    wall = _affordable(left_s * (1 - DEVICE_SHARE), warm_up_ms[-1], FEWEST_SAMPLES, max(budget.samples, FEWEST_SAMPLES))
    device = _affordable(left_s * DEVICE_SHARE, warm_up_ms[-1], FEWEST_DEVICE_SAMPLES, FEWEST_SAMPLES)
    return Timing(
        wall_ms=program.wall_ms(wall, timeout_s=budget.timeout_s),
        device_ms=program.device_ms(device, timeout_s=budget.timeout_s),
        warm_up_ms=warm_up_ms,
        warmed_up=_agree(warm_up_ms),
    )


def _quick_look(program: Program, budget: Budget) -> Timing:
    """Three samples of wall time, straight after the first run; the other clock would take as long again."""
    return Timing(
        wall_ms=program.wall_ms(QUICK_SAMPLES, timeout_s=budget.timeout_s),
        device_ms=[],
        warm_up_ms=[],
        warmed_up=False,
    )


def warm_up(program: Program, budget: Budget, clock: Callable[[], float]) -> list[float]:
    """Run until two consecutive times agree, or the warm-up's share of the budget is spent."""
    began = clock()
    times = program.wall_ms(2, timeout_s=budget.timeout_s)
    while not _agree(times) and clock() - began < WARM_UP_SHARE * budget.seconds:
        times = times + program.wall_ms(2, timeout_s=budget.timeout_s)
    return times


def _agree(times: list[float]) -> bool:
    return abs(times[-1] - times[-2]) <= AGREE_WITHIN * min(times[-2:])


def _affordable(seconds: float, each_ms: float, fewest: int, most: int) -> int:
    return max(fewest, min(most, int(seconds * 1e3 / max(each_ms, 1e-6))))
