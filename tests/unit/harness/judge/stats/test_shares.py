"""Relative changes as text."""

from __future__ import annotations

import pytest

from harness.judge.stats.shares import signed_share


@pytest.mark.parametrize(
    ("share", "text"), [(-0.5, "-50.0%"), (9.99, "+999.0%"), (8e7, "> +1000%"), (1e300, "> +1000%")]
)
def test_a_bound_that_says_nothing_has_no_digits(share: float, text: str) -> None:
    assert signed_share(share) == text
