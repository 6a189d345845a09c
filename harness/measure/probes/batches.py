"""What waiting costs: inferences enqueued one after the other with one synchronisation, beside as many with one each.

A wall clock that waits for every answer has the way to the device and back in each sample. What is left without it is
the pace at which the device can be fed; what that lies above the kernels' own times, the launches cost. Both kinds of
sample are kept for reports. No verdict rests on them.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from device_runner.failures import RigFailure
from harness.measure.facts import Batches

if TYPE_CHECKING:
    from device_runner.device import Program
    from harness.base.plan import Budget

SHARE = 0.1
"""Share of a case's budget. If that is too short for the smallest batches, none is timed."""
REPEAT = 5
SMALLEST, LARGEST = 3, 32
"""Inferences of a batch."""


def enqueue(program: Program, budget: Budget, each_ms: float) -> Batches | None:
    """Time batches of a program whose inferences take about `each_ms`; None if budget or device do not allow it.

    Raises what `program` raises, but for a rig that lacks the means.
    """
    batch = min(LARGEST, int(SHARE * budget.seconds * 1e3 / (2 * REPEAT * max(each_ms, 1e-3))))
    if batch < SMALLEST:
        return None
    try:
        batched, synced = program.batches(batch, REPEAT, timeout_s=budget.timeout_s)
    except RigFailure:
        return None
    return Batches(batch, batched, synced, _launches(program, budget))


def _launches(program: Program, budget: Budget) -> int | None:
    try:
        return len(program.launches(1, timeout_s=budget.timeout_s)[0])
    except (RigFailure, IndexError):
        return None


def launch_us(batches: Batches, device_ms: Sequence[float]) -> float | None:
    """Return the cost of a launch beyond the time of its kernel, in µs; None if that is not known."""
    if not batches.batched_ms or not device_ms or not batches.launches:
        return None
    return (statistics.median(batches.batched_ms) - statistics.median(device_ms)) * 1e3 / batches.launches


def format_batches(batches: Batches | None, device_ms: Sequence[float]) -> str:
    """Return what waiting and launching cost a case, in one line; empty if no batches were timed.

    `device_ms` is samples of the kernels' time.
    """
    if batches is None or not batches.batched_ms or not batches.synced_ms:
        return ""
    batched, synced = statistics.median(batches.batched_ms), statistics.median(batches.synced_ms)
    text = f"{batched:.4g} ms in batches of {batches.batch}, {synced:.4g} ms when each is waited for"
    each_us = launch_us(batches, device_ms)
    if each_us is None or each_us < 0:  # while kernels are timed they are slower than that
        return f"{text}; {batches.launches} launches" if batches.launches else text
    return f"{text}; {batches.launches} launches, of which each costs {each_us:.3g} µs beyond its kernel"
