"""What no record says that a run of ours wrote: a record is not believed because it has the right form.

Every line of a file of records is asked for wrong claims; what a bundle brought back also for times that are none,
before a byte of it is kept (`harness.measure.records.record`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from harness.base.outcome import Outcome

SHORTEST_MS, LONGEST_MS = 1e-9, 1e12
"""The limits of `harness.judge.stats.session`."""
MOST_SAMPLES = 100_000
"""Five times as many inferences as are timed in a row."""


class AnswerClaim(Protocol):
    """What a record says of an answer."""

    @property
    def outcome(self) -> Outcome:
        """The word for it."""

    @property
    def max_abs_err(self) -> float | None:
        """How far it is off."""

    @property
    def tolerance(self) -> float | None:
        """How far it may be."""


def wrong_claim(claim: AnswerClaim) -> str:
    """Return why an answer cannot be right that is said to be; empty if it can."""
    if claim.outcome is not Outcome.OK or claim.max_abs_err is None or claim.tolerance is None:
        return ""
    if claim.max_abs_err <= claim.tolerance:  # false of NaN
        return ""
    return f"`ok` with an error of {claim.max_abs_err:g}, and {claim.tolerance:g} is tolerated"


def wrong_times(name: str, times: Sequence[float], shortest_ms: float) -> str:
    """Return why these cannot be samples; empty if they can."""
    if len(times) > MOST_SAMPLES:
        return f"{name} has {len(times)} samples, and no run takes more than {MOST_SAMPLES}"
    odd = next((time for time in times if not shortest_ms <= time <= LONGEST_MS), None)
    return "" if odd is None else f"{name} has {odd:g} ms, which is no time"
