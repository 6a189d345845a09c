"""Inputs without elements are left out, and no answer changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper
from small_networks import answers, changed, kinds, network, values

from harness.compile.models.preparation.empties import leave_out_empties

SHAPE = (1, 2, 3, 4)
NONE = np.zeros(0, np.float32)


@pytest.mark.parametrize("opset", [11, 13, 19])
@given(extents=st.tuples(*[st.integers(1, 40)] * 2), sizes=st.tuples(*[st.integers(1, 90)] * 2))
def test_empty_scales_next_to_sizes_are_left_out(opset: int, extents: Any, sizes: Any) -> None:
    """As PyTorch exports `interpolate(size=...)` in operator sets 11 and 12, which need scales."""
    node = helper.make_node("Resize", ["x", "region", "scales", "sizes"], ["y"], mode="linear")
    shape, wanted = (1, 1, *extents), np.array([1, 1, *sizes])
    model = network([node], {"x": shape}, opset=opset, region=NONE, scales=NONE, sizes=wanted)
    plain, said = changed(model, leave_out_empties)
    kept = list(plain.graph.node[0].input)
    assert (len(kept), said) == (3 if opset == 11 else 4, "left out 1 empty input")
    x = values(*shape)
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], atol=1e-3)


def test_empty_sizes_next_to_scales_are_left_out() -> None:
    node = helper.make_node("Resize", ["x", "", "scales", "sizes"], ["y"])
    model = network([node], {"x": SHAPE}, scales=np.array([1, 1, 2, 2], np.float32), sizes=np.zeros(0, np.int64))
    plain, _ = changed(model, leave_out_empties)
    assert list(plain.graph.node[0].input) == ["x", "", "scales"]


@pytest.mark.parametrize("first", [True, False])
def test_an_empty_part_of_a_concatenation_is_left_out(first: bool) -> None:
    parts = ["none", "x"] if first else ["x", "none"]
    node = helper.make_node("Concat", parts, ["y"], axis=3)
    model = network([node], {"x": SHAPE}, none=np.zeros((1, 2, 3, 0), np.float32))
    plain, said = changed(model, leave_out_empties)
    assert (list(plain.graph.node[0].input), kinds(plain), said) == (["x"], ["Concat"], "left out 1 empty input")
    x = values(*SHAPE)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], x)


def test_a_concatenation_of_nothing_but_empty_parts_stays() -> None:
    node = helper.make_node("Concat", ["x", "x"], ["y"], axis=2)
    assert changed(network([node], {"x": (1, 0, 3, 4)}), leave_out_empties)[1] == ""
