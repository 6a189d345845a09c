"""Relative changes as text."""

from __future__ import annotations

LARGEST_SHARE = 10.0
"""Changes beyond this have no digits."""


def signed_share(share: float) -> str:
    """Return a change in percent; the bound of an interval of two sessions may lie a million times higher."""
    if share >= LARGEST_SHARE:
        return f"> +{LARGEST_SHARE:.0%}"
    return f"{share:+.1%}" if round(share, 3) else f"{0:.1%}"  # nothing is "-0.0%"


def share_interval(low: float, high: float) -> str:
    """Return the bounds of a change in percent."""
    return f"{signed_share(low)} to {signed_share(high)}"
