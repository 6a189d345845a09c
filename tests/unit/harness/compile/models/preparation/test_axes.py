"""Axes are counted from the first, and mean the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from small_networks import answers, changed, network, values

from harness.compile.models.outline import attribute_of
from harness.compile.models.preparation.axes import REDUCTIONS, count_axes_from_zero, resize_all_axes


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


def test_axes_of_an_unknown_rank_or_that_are_computed_stay() -> None:
    node = helper.make_node("Squeeze", ["r", "axes"], ["y"])
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["r"]), node]
    model = network(nodes, {"x": [2, 3, 1]}, axes=np.array([-1]))
    model.graph.input.append(helper.make_tensor_value_info("shape", 7, ["n"]))
    assert changed(model, count_axes_from_zero)[1] == ""


NONE = np.array([], np.float32)
RESIZES: dict[str, tuple[dict[str, Any], tuple[Any, Any, Any], list[int]]] = {
    "sizes": ({"axes": [3, 2]}, (NONE, NONE, [9, 14]), [1, 2, 14, 9]),
    "scales": ({"axes": [2]}, (NONE, np.array([1.5], np.float32), []), [1, 2, 9, 4]),
    "region": (
        {"axes": [3, 2], "coordinate_transformation_mode": "tf_crop_and_resize"},
        (np.array([0, 0.1, 0.5, 0.9], np.float32), NONE, [5, 3]),
        [1, 2, 3, 5],
    ),
    "not larger": ({"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}, (NONE, NONE, [9, 8]), [1, 2, 9, 6]),
    "not smaller": ({"axes": [2, 3], "keep_aspect_ratio_policy": "not_smaller"}, (NONE, NONE, [9, 8]), [1, 2, 12, 8]),
}


def _resize(attributes: dict[str, Any], roi: Any, scales: Any, sizes: Any) -> Any:
    operands = {"roi": roi, "scales": scales, "sizes": np.array(sizes, np.int64)}
    given = {name: array for name, array in operands.items() if len(array)}
    node = helper.make_node("Resize", ["x", *(name if name in given else "" for name in operands)], ["y"], **attributes)
    return network([node], {"x": [1, 2, 6, 4]}, opset=19, **given)


@pytest.mark.parametrize("case", RESIZES)
def test_a_resize_of_some_axes_names_all(case: str) -> None:
    attributes, operands, shape = RESIZES[case]
    model = _resize(attributes, *operands)
    plain, said = changed(model, resize_all_axes)
    assert said == "wrote 1 Resize as TVM reads it"
    assert not {"axes", "keep_aspect_ratio_policy"} & {attribute.name for attribute in plain.graph.node[0].attribute}
    x = values(1, 2, 6, 4)
    y = answers(plain, {"x": x})[0]
    assert list(y.shape) == shape
    np.testing.assert_array_equal(y, answers(model, {"x": x})[0])


def test_sizes_of_a_policy_that_are_no_whole_pixels_stay() -> None:
    model = _resize({"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}, NONE, NONE, [9, 5])
    assert changed(model, resize_all_axes)[1] == ""


def test_symmetric_half_pixels_are_half_pixels_of_whole_pixels() -> None:
    model = _resize(
        {"coordinate_transformation_mode": "half_pixel_symmetric", "mode": "linear"}, NONE, NONE, [1, 2, 9, 7]
    )
    plain, said = changed(model, resize_all_axes)
    assert said == "wrote 1 Resize as TVM reads it"
    assert attribute_of(plain.graph.node[0], "coordinate_transformation_mode", "") == "half_pixel"
    x = values(1, 2, 6, 4)
    expected = ReferenceEvaluator(model).run(None, {"x": x})[0]
    np.testing.assert_allclose(answers(plain, {"x": x})[0], expected, atol=1e-6)
