"""What no record says that a run of ours wrote: a record is not believed because it has the right form."""

from __future__ import annotations

from harness.base.outcome import Outcome


def wrong_claim(outcome: Outcome, max_abs_err: float | None, tolerance: float | None) -> str:
    """Return why an answer cannot be right that is said to be; empty if it can."""
    if outcome is not Outcome.OK or max_abs_err is None or tolerance is None:
        return ""
    if max_abs_err <= tolerance:  # false of NaN
        return ""
    return f"`ok` with an error of {max_abs_err:g}, and {tolerance:g} is tolerated"
