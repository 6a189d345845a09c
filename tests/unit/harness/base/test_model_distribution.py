"""How an input is drawn: read, refused with what to do, and drawn the same every time."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.failures import ModelError, UsageError
from harness.base.model import Distribution
from harness.compile.models.spec import InputSpec, require_drawable, seeded_inputs

TOKENS = InputSpec("tokens", (4, 500), "int32")


@pytest.mark.parametrize("text", ["normal(0, 1)", "uniform(-1, 0.5)", "integers(0, 50256)", "constant(1)"])
def test_what_it_says_is_read_back(text: str) -> None:
    assert str(Distribution.parse(text)) == text
    assert Distribution.parse(f" {text.replace(' ', '')} ") == Distribution.parse(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("normal", "is not a distribution: "),
        ("gauss(0, 1)", "is not a distribution: known are normal"),
        ("normal(0)", "has 1 numbers: it takes mean, deviation"),
        ("normal(0, one)", "must be numbers"),
        ("normal(0, -1)", "a deviation cannot be negative"),
        ("uniform(1, 0)", "1 is more than 0"),
        ("integers(0, 1.5)", "has numbers that are not whole"),
        ("integers(0, 1e300)", "has a number that is too large"),
        ("uniform(nan, nan)", "has a number that is too large"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        Distribution.parse(text)
    assert said in str(caught.value)


@given(st.text("normalintegs(), .01-e", max_size=30))
def test_no_text_breaks_it(text: str) -> None:
    with suppress(UsageError):
        assert Distribution.parse(text).arguments


def test_integers_reach_both_ends_and_are_the_same_every_time() -> None:
    drawn = {"tokens": Distribution.parse("integers(3, 7)")}
    first, again = (seeded_inputs([TOKENS], 1, drawn)["tokens"] for _ in range(2))
    assert (first.dtype.name, first.min(), first.max()) == ("int32", 3, 7)
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("token", "integers(0, 9)", "no input 'token' to draw.*did you mean 'tokens'"),
        ("tokens", "normal(0, 1)", "holds int32, and normal"),
        ("tokens", "integers(0, 4294967296)", "has values that it cannot hold"),
        ("tokens", "constant(0.5)", "has values that it cannot hold"),
    ],
)
def test_what_an_input_cannot_hold_is_refused(name: str, text: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        require_drawable({name: Distribution.parse(text)}, [TOKENS])
