"""Relative changes as text."""

from __future__ import annotations

LARGEST_SHARE = 10.0
"""Changes beyond this have no digits."""


def signed_share(share: float) -> str:
    """Return a change in percent; the bound of an interval of two sessions may lie a million times higher."""
    return f"{share:+.1%}" if share < LARGEST_SHARE else f"> +{LARGEST_SHARE:.0%}"
