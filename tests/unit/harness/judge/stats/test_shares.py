"""Relative changes as text."""

from __future__ import annotations

import pytest

from harness.judge.stats.shares import share_interval, signed_share


@pytest.mark.parametrize(
    ("share", "text"), [(-0.5, "-50.0%"), (9.99, "+999.0%"), (8e7, "> +1000%"), (1e300, "> +1000%")]
)
def test_a_bound_that_says_nothing_has_no_digits(share: float, text: str) -> None:
    assert signed_share(share) == text


@pytest.mark.parametrize("share", [0.0, -0.0, -1e-9, 0.0004, -0.0004])
def test_nothing_has_no_sign(share: float) -> None:
    assert signed_share(share) == "0.0%"
    assert share_interval(share, 0.01) == "0.0% to +1.0%"
