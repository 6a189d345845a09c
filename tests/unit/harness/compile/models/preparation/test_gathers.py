"""A Gather of constant places that follow each other is a slice with the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from small_networks import answers, changed, kinds, network, values

from harness.compile.models.preparation.indices import count_places_from_zero, write_gathers

SHAPE = (4, 5, 3)


def gather(places: Any, axis: int, opset: int = 17) -> Any:
    node = helper.make_node("Gather", ["x", "places"], ["y"], axis=axis)
    return network([node], {"x": SHAPE}, opset=opset, places=np.array(places, np.int64))


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("places", [0, 2, -1, [1], [1, 2], [-2, -1]])
def test_places_in_a_row_are_a_slice(places: Any, axis: int, opset: int) -> None:
    model = gather(places, axis, opset)
    plain, said = changed(model, write_gathers)
    assert (kinds(plain)[0], said) == ("Slice", "wrote 1 Gather as slices")
    x = values(*SHAPE)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


@pytest.mark.parametrize("places", [[0, 2], [1, 0], [-1, 0], [[0, 1]]])
def test_places_in_another_order_stay(places: Any) -> None:
    assert changed(gather(places, 0), write_gathers)[1] == ""


@pytest.mark.parametrize("shape", [(), (0, 3)])
def test_nothing_is_cut_from_a_tensor_without_places(shape: tuple[int, ...]) -> None:
    node = helper.make_node("Gather", ["x", "places"], ["y"])
    graph = helper.make_graph(
        [node],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(0), "places")],
    )
    assert changed(helper.make_model(graph), write_gathers)[1] == ""


UPDATES = np.ones((2, 5, 3), np.float32)
COUNTED: dict[str, tuple[dict[str, Any], Any, dict[str, Any]]] = {
    "GatherElements": ({"axis": -2}, np.array([[[-1, 1, -5]], [[0, -2, 4]]]), {}),
    "GatherND": ({}, np.array([[-1, -2], [0, 4]]), {}),
    "GatherND of a batch": ({"batch_dims": 1}, np.array([[-1], [0], [-5], [4]]), {}),
    "ScatterElements": ({"axis": 1}, np.array([[[-1, 1, -5]], [[0, -2, 4]]]), {"u": UPDATES[:, :1]}),
    "ScatterND": ({}, np.array([[-1], [0]]), {"u": UPDATES}),
}


@pytest.mark.parametrize("name", COUNTED)
def test_places_from_the_end_are_counted_from_the_first(name: str) -> None:
    attributes, places, updates = COUNTED[name]
    kind = name.split(maxsplit=1)[0]
    node = helper.make_node(kind, ["x", "places", *updates], ["y"], **attributes)
    model = network([node], {"x": SHAPE}, opset=18, places=places, **updates)
    plain, said = changed(model, count_places_from_zero)
    counted = numpy_helper.to_array(plain.graph.initializer[-1])
    assert (kinds(plain), said, counted.min() >= 0) == ([kind], f"counted the places of 1 {kind} from 0", True)
    x = values(*SHAPE)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])
    assert changed(plain, count_places_from_zero)[1] == ""
