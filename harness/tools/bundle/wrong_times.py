"""Times that no run measures: what a bundle brought back is not believed for its form."""

from __future__ import annotations

from collections.abc import Sequence

from harness.measure.facts import Batches, Sampling
from harness.measure.records.record import Record

SHORTEST_MS, LONGEST_MS = 1e-9, 1e12
"""Limits of a time, those of `harness.judge.stats.session`."""
MOST_SAMPLES = 100_000
"""Five times as many inferences as are timed in a row."""


def wrong_times_in(record: Record) -> str:
    """Return which times of a record cannot be, in a few words; empty if all can.

    Times that are none are refused of what comes from elsewhere. In a file of our own they tell of a clock that stood
    still, and `harness.judge` names them.
    """
    reference, batches, sampling = record.reference, record.part(Batches), record.part(Sampling)
    of_host = {
        "wall_ms": record.wall_ms,
        "throttled_ms": record.throttled_ms,
        "warm_up_ms": sampling.warm_up_ms if sampling else (),
        "batched_ms": batches.batched_ms if batches else (),
        "synced_ms": batches.synced_ms if batches else (),
    }
    of_device = {"device_ms": record.device_ms, "reference_ms": reference.ms if reference else ()}
    wrong = [wrong_times(name, times, SHORTEST_MS) for name, times in of_host.items()]
    wrong += [wrong_times(name, times, 0.0) for name, times in of_device.items()]  # a driver's timer may stand still
    return next(filter(None, wrong), "")


def wrong_times(name: str, times: Sequence[float], shortest_ms: float) -> str:
    """Return why these cannot be samples; empty if they can."""
    if len(times) > MOST_SAMPLES:
        return f"{name} has {len(times)} samples, and no run takes more than {MOST_SAMPLES}"
    odd = next((time for time in times if not shortest_ms <= time <= LONGEST_MS), None)
    return "" if odd is None else f"{name} has {odd:g} ms, which is no time"
