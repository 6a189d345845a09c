"""At which clocks the GPU ran: where two sides ran at different ones, their latencies say nothing of their builds.

Without root a phone chooses its clocks by load, heat and charge, and another choice looks just like another build.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Histogram = Mapping[str, float]
"""Share of a session's busy time at each clock, by MHz as text (`device_runner.stability.judge`)."""

MOST_ELSEWHERE = 0.1
"""Share of the time that one side may have spent at clocks at which the other did not. A tenth of it at a clock that is
a quarter lower takes 3 % longer, which is the smallest change that counts by default."""
WHOLE = (0.95, 1.05)
"""What the shares of a histogram add up to, rounded as they are."""


def histogram_of(steadiness: Mapping[str, Any]) -> Histogram:
    """The histogram in what a record says of its phone; empty if there is none that makes sense."""
    told = steadiness.get("clock_histogram")
    if not isinstance(told, dict) or not all(isinstance(share, (int, float)) for share in told.values()):
        return {}
    sensible = all(0 <= share <= 1 for share in told.values()) and WHOLE[0] <= sum(told.values()) <= WHOLE[1]
    return {str(clock): float(share) for clock, share in told.items()} if sensible else {}


def ran_apart(base: Sequence[Histogram], head: Sequence[Histogram]) -> str:
    """How the clocks of two sides differ; empty if they do not, or if a side does not know them."""
    was, now = _mean(base), _mean(head)
    if not was or not now:
        return ""
    elsewhere = sum(abs(was.get(clock, 0) - now.get(clock, 0)) for clock in was.keys() | now.keys()) / 2
    if elsewhere <= MOST_ELSEWHERE:
        return ""
    return f"the GPU ran at other clocks: base {_told(was)}, head {_told(now)}"


def _mean(histograms: Sequence[Histogram]) -> Histogram:
    known = [one for one in histograms if one]
    clocks = {clock for one in known for clock in one}
    return {clock: sum(one.get(clock, 0.0) for one in known) / len(known) for clock in clocks}


def _told(mean: Histogram) -> str:
    """The clock that was used most, as a person reads it."""
    clock = max(mean, key=lambda clock: mean[clock])
    return f"{mean[clock]:.0%} of its time at {clock} MHz"
