"""Arithmetic of places, rewritten: its values stay."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.compile.compiler.compat import analyzer, tirx
from harness.compile.quirks.kernel_source import count_upwards


def _number(value: int) -> Any:
    return tirx.IntImm("int64", value)


@given(
    divide=st.sampled_from(["floormod", "floordiv"]),
    highest=st.integers(1, 40),
    step=st.integers(1, 5),
    by=st.integers(2, 12),
    place=st.integers(0, 30),
)
def test_a_place_that_is_counted_upwards_is_the_same(divide: str, highest: int, step: int, by: int, place: int) -> None:
    variable = tirx.Var("i", "int64")
    falling = getattr(tirx, divide)(_number(highest) - variable * _number(step), _number(by))
    rewritten = count_upwards(tirx.Evaluate(falling)).value
    assert not rewritten.same_as(falling)
    at = analyzer()
    at.bind(variable, _number(place))
    dividend = highest - step * place
    assert int(at.simplify(rewritten)) == (dividend % by if divide == "floormod" else dividend // by)
