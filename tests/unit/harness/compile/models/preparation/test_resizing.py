"""A Resize is written as TVM reads it, or by index, and means the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from small_networks import answers, changed, network, values

from harness.compile.models.outline import attribute_of
from harness.compile.models.preparation.resizing import write_resizes

NONE = np.array([], np.float32)
RESIZES: dict[str, tuple[dict[str, Any], tuple[Any, Any, Any], list[int]]] = {
    "sizes": ({"axes": [3, 2], "mode": "linear"}, (NONE, NONE, [9, 14]), [1, 2, 14, 9]),
    "scales": ({"axes": [2], "mode": "linear"}, (NONE, np.array([1.5], np.float32), []), [1, 2, 9, 4]),
    "region": (
        {"axes": [3, 2], "coordinate_transformation_mode": "tf_crop_and_resize", "mode": "linear"},
        (np.array([0, 0.1, 0.5, 0.9], np.float32), NONE, [5, 3]),
        [1, 2, 3, 5],
    ),
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
    plain, said = changed(model, write_resizes)
    assert said == "wrote 1 Resize as TVM reads it"
    assert not {"axes", "keep_aspect_ratio_policy"} & {attribute.name for attribute in plain.graph.node[0].attribute}
    x = values(1, 2, 6, 4)
    y = answers(plain, {"x": x})[0]
    assert list(y.shape) == shape
    np.testing.assert_array_equal(y, answers(model, {"x": x})[0])


BY_INDEX: dict[str, tuple[dict[str, Any], tuple[Any, Any, Any], list[int]]] = {
    "part of a pixel": ({"mode": "linear"}, (NONE, np.array([1, 1, 0.4, 2.3], np.float32), []), [1, 2, 2, 9]),
    "policy": ({"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}, (NONE, NONE, [9, 5]), [1, 2, 8, 5]),
    "channels": ({}, (NONE, NONE, [1, 5, 6, 4]), [1, 5, 6, 4]),
    "smaller and smooth": ({"mode": "linear", "antialias": 1}, (NONE, NONE, [1, 2, 3, 2]), [1, 2, 3, 2]),
    "cubic and smooth": ({"mode": "cubic", "antialias": 1}, (NONE, NONE, [1, 2, 2, 6]), [1, 2, 2, 6]),
    "cubic within": (
        {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5},
        (NONE, np.array([1, 1, 0.4, 1], np.float32), []),
        [1, 2, 2, 4],
    ),
    "nearest of a crop": (
        {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0},
        (np.array([0, 0, 0.2, -0.5, 1, 1, 0.8, 1.5], np.float32), NONE, [1, 2, 4, 7]),
        [1, 2, 4, 7],
    ),
    "nearest at a tie": ({}, (NONE, NONE, [1, 2, 21, 4]), [1, 2, 21, 4]),
    "symmetric": (
        {"coordinate_transformation_mode": "half_pixel_symmetric", "mode": "linear"},
        (NONE, np.array([1, 1, 0.4, 0.6], np.float32), []),
        [1, 2, 2, 2],
    ),
    "pixel of one": (
        {"coordinate_transformation_mode": "pytorch_half_pixel", "mode": "linear"},
        (NONE, np.array([1, 1, 0.3, 0.6], np.float32), []),
        [1, 2, 1, 2],
    ),
    "asymmetric": (
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
        (NONE, np.array([1, 1, 0.4, 0.6], np.float32), []),
        [1, 2, 2, 2],
    ),
    "aligned": (
        {
            "coordinate_transformation_mode": "align_corners",
            "keep_aspect_ratio_policy": "not_smaller",
            "axes": [2, 3],
            "mode": "linear",
        },
        (NONE, NONE, [9, 5]),
        [1, 2, 9, 6],
    ),
    "aligned row": (
        {"coordinate_transformation_mode": "align_corners", "mode": "linear"},
        (NONE, NONE, [1, 2, 1, 7]),
        [1, 2, 1, 7],
    ),
    "aligned pixel": (
        {"coordinate_transformation_mode": "align_corners", "mode": "cubic"},
        (NONE, np.array([1, 1, 0.2, 0.3], np.float32), []),
        [1, 2, 1, 1],
    ),
}


@pytest.mark.parametrize("case", [*BY_INDEX])
def test_a_resize_that_tvm_misreads_is_written_by_index(case: str) -> None:
    attributes, operands, shape = BY_INDEX[case]
    model = _resize(attributes, *operands)
    plain, said = changed(model, write_resizes)
    assert said == "wrote 1 Resize by index"
    assert all(node.op_type != "Resize" for node in plain.graph.node)
    x = values(1, 2, 6, 4)
    y = answers(plain, {"x": x})[0]
    assert list(y.shape) == shape
    np.testing.assert_allclose(y, answers(model, {"x": x})[0], atol=1e-5)


def test_an_axis_that_keeps_its_pixels_is_left_alone() -> None:
    model = _resize({"mode": "linear"}, NONE, np.array([1, 1, 0.4, 1], np.float32), [])
    plain, _ = changed(model, write_resizes)
    gathered = [attribute_of(node, "axis", 0) for node in plain.graph.node if node.op_type == "Gather"]
    assert gathered == [2, 2]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_row_that_stays_one_row_with_aligned_corners_is_written_by_index(mode: str) -> None:
    """TVM divides by the number of rows less one, whether the network names that axis or not."""
    attributes = {"axes": [3], "mode": mode, "coordinate_transformation_mode": "align_corners"}
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], **attributes)
    model = network([node], {"x": [1, 2, 1, 4]}, opset=19, sizes=np.array([8]))
    plain, said = changed(model, write_resizes)
    assert said == "wrote 1 Resize by index"
    x = values(1, 2, 1, 4)
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], atol=1e-5)


@pytest.mark.parametrize("place", ["half_pixel", "align_corners"])
def test_other_aligned_corners_stay(place: str) -> None:
    model = _resize({"coordinate_transformation_mode": place, "mode": "linear"}, NONE, NONE, [1, 2, 9, 7])
    assert any(node.op_type == "Resize" for node in changed(model, write_resizes)[0].graph.node)


@pytest.mark.parametrize("place", ["half_pixel", "align_corners"])
def test_a_resize_to_a_computed_size_stays(place: str) -> None:
    how = {"mode": "linear", "coordinate_transformation_mode": place}
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], antialias=1, **how)
    model = network([node], {"x": [1, 2, 6, 4]}, opset=19)
    model.graph.input.append(helper.make_tensor_value_info("sizes", 7, [4]))
    assert changed(model, write_resizes)[1] == ""


def test_symmetric_half_pixels_are_half_pixels_of_whole_pixels() -> None:
    model = _resize(
        {"coordinate_transformation_mode": "half_pixel_symmetric", "mode": "linear"}, NONE, NONE, [1, 2, 9, 7]
    )
    plain, said = changed(model, write_resizes)
    assert said == "wrote 1 Resize as TVM reads it"
    assert attribute_of(plain.graph.node[0], "coordinate_transformation_mode", "") == "half_pixel"
    x = values(1, 2, 6, 4)
    expected = ReferenceEvaluator(model).run(None, {"x": x})[0]
    np.testing.assert_allclose(answers(plain, {"x": x})[0], expected, atol=1e-6)
