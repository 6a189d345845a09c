"""A network in double precision."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from harness.compile.models.number_formats import in_double
from harness.compile.oracle.truth import first_answer, judges_of

X = np.random.default_rng(0).standard_normal((1, 1, 4, 4)).astype(np.float32)


def test_every_number_is_double_but_those_that_are_single_by_definition() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 8, 8])
    tensors = {"far": np.float32(1e7), "scales": np.array([1, 1, 2, 2], np.float32)}
    nodes = [
        helper.make_node("Constant", [], ["third"], value=numpy_helper.from_array(np.array(1 / 3, np.float32))),
        helper.make_node("Add", ["x", "far"], ["there"]),
        helper.make_node("Sub", ["there", "far"], ["back"]),
        helper.make_node("Mul", ["back", "third"], ["scaled"]),
        helper.make_node("Cast", ["scaled"], ["cast"], to=TensorProto.FLOAT),
        helper.make_node("Resize", ["cast", "", "scales"], ["y"], mode="nearest"),
    ]
    weights = [numpy_helper.from_array(np.asarray(array), name) for name, array in tensors.items()]
    graph = helper.make_graph(nodes, "far", [x], [y], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    wide = in_double(model)
    onnx.checker.check_model(wide, full_check=True)
    (answer,) = first_answer(judges_of(wide), {"x": X.astype(np.float64)}).outputs
    exact = (X.astype(np.float64) * np.float64(np.float32(1 / 3))).repeat(2, axis=2).repeat(2, axis=3)
    assert answer.dtype == np.float64
    np.testing.assert_allclose(np.asarray(answer, np.float64), exact, rtol=1e-6)
    assert model.graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT, "the network itself is left alone"
