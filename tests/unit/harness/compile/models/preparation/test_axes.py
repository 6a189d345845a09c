"""Axes are counted from the first, and mean the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper
from small_networks import answers, changed, network, values

from harness.compile.models.outline import attribute_of
from harness.compile.models.preparation.axes import (
    REDUCTIONS,
    count_axes_from_zero,
    count_parts_from_zero,
    write_slopes,
)


@pytest.mark.parametrize(
    ("node", "opset", "axes"),
    [
        (helper.make_node("Squeeze", ["x", "axes"], ["y"]), 17, [-1]),
        (helper.make_node("Squeeze", ["x"], ["y"], axes=[-1]), 11, None),
        (helper.make_node("Unsqueeze", ["x", "axes"], ["y"]), 17, [-1, 0]),
        (helper.make_node("ReduceMean", ["x"], ["y"], axes=[-2, 2], keepdims=0), 17, None),
        (helper.make_node("ReduceMean", ["x", "axes"], ["y"]), 18, [-2, 2]),
        (helper.make_node("Concat", ["x", "x"], ["y"], axis=-3), 17, None),
        (helper.make_node("Softmax", ["x"], ["y"], axis=-2), 17, None),
        (helper.make_node("ArgMax", ["x"], ["y"], axis=-3), 17, None),
        *((helper.make_node(kind, ["x"], ["y"], axes=[-2]), 11, None) for kind in REDUCTIONS),
    ],
)
def test_negative_axes_are_written_from_zero(node: Any, opset: int, axes: list[int] | None) -> None:
    weights: dict[str, Any] = {} if axes is None else {"axes": np.array(axes)}
    model = network([node], {"x": [2, 3, 1]}, opset=opset, **weights)
    plain, said = changed(model, count_axes_from_zero)
    assert said == "counted the axes of 1 operator from 0"
    assert min([attribute_of(plain.graph.node[0], "axis", 0), *attribute_of(plain.graph.node[0], "axes", [0])]) >= 0
    x = values(2, 3, 1)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])
    assert changed(plain, count_axes_from_zero)[1] == ""


@pytest.mark.parametrize("axes", [[2, 2], [1, -2]])
def test_repeated_axes_are_written_once_as_onnxruntime_takes_them(axes: list[int]) -> None:
    model = network([helper.make_node("ReduceMean", ["x", "axes"], ["y"])], {"x": [2, 3, 4]}, opset=18, axes=axes)
    plain, _ = changed(model, count_axes_from_zero)
    (written,) = (numpy_helper.to_array(each) for each in plain.graph.initializer if each.name != "axes")
    assert written.tolist() == [axes[0]]
    x = values(2, 3, 4)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


def test_axes_of_an_unknown_rank_or_that_are_computed_stay() -> None:
    node = helper.make_node("Squeeze", ["r", "axes"], ["y"])
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["r"]), node]
    model = network(nodes, {"x": [2, 3, 1]}, axes=np.array([-1]))
    model.graph.input.append(helper.make_tensor_value_info("shape", 7, ["n"]))
    assert changed(model, count_axes_from_zero)[1] == ""


@pytest.mark.parametrize(("parts", "axis"), [(np.array(3), -1), (np.array([3, 5]), 1), (None, 1)])
def test_a_place_in_what_is_split_is_counted_from_the_first_part(parts: Any, axis: int) -> None:
    operands, weights = (["x"], {}) if parts is None else (["x", "parts"], {"parts": parts})
    split = helper.make_node("SplitToSequence", operands, ["s"], axis=axis)
    model = network(
        [split, helper.make_node("SequenceAt", ["s", "last"], ["y"])], {"x": [2, 8]}, last=np.array(-1), **weights
    )
    plain, said = changed(model, count_parts_from_zero)
    assert said == "counted 1 place of a SequenceAt from 0"
    (place,) = (
        numpy_helper.to_array(each) for each in plain.graph.initializer if each.name == plain.graph.node[1].input[1]
    )
    assert place == {-1: 2, 1: 1 if operands[1:] else 7}[axis]
    x = values(2, 8)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])
    assert changed(plain, count_parts_from_zero)[1] == ""


def test_a_place_in_what_is_split_by_an_input_stays() -> None:
    split = helper.make_node("SplitToSequence", ["x", "parts"], ["s"])
    model = network([split, helper.make_node("SequenceAt", ["s", "last"], ["y"])], {"x": [2, 8]}, last=np.array(-1))
    model.graph.input.append(helper.make_tensor_value_info("parts", 7, []))
    assert changed(model, count_parts_from_zero)[1] == ""


@pytest.mark.parametrize("slope", [(3, 1, 1), (1, 1, 1), (4, 1)])
def test_a_slope_has_as_many_axes_as_the_tensor(slope: tuple[int, ...]) -> None:
    model = network([helper.make_node("PRelu", ["x", "slope"], ["y"])], {"x": (2, 3, 4, 5)}, slope=values(*slope))
    plain, said = changed(model, write_slopes)
    counted = numpy_helper.to_array(plain.graph.initializer[-1])
    assert (counted.ndim, said) == (4, "wrote the slope of 1 PRelu for all axes")
    x = values(2, 3, 4, 5)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


def test_a_slope_along_the_last_axis_stays() -> None:
    model = network([helper.make_node("PRelu", ["x", "slope"], ["y"])], {"x": (2, 3, 4, 5)}, slope=values(5))
    assert changed(model, write_slopes)[1] == ""
