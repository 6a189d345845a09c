"""Networks are cut where numbers are in a format that numpy lacks."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from harness.compile.models.number_formats import plain_type
from harness.compile.models.onnx_inputs import input_specs
from harness.compile.oracle.truth import first_answer, judges_of, values_of
from harness.tools.explain.pieces import CuttableNetwork, with_shapes

ODD = ["BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E5M2", "INT4", "UINT4"]
X = np.array([[1.3, -2.7, 0.4, 5.0]], np.float32)


def network(kind: int) -> onnx.ModelProto:
    """Casts to a number format and back."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy")
    nodes = [helper.make_node("Cast", ["x"], ["odd"], to=kind), helper.make_node("Cast", ["odd"], ["y"], to=1)]
    opset = helper.make_opsetid("", 21)
    return helper.make_model(helper.make_graph(nodes, "odd", [x], [y]), opset_imports=[opset], ir_version=10)


@pytest.mark.parametrize("name", ODD)
def test_both_sides_of_a_cut_take_and_give_plain_numbers(name: str) -> None:
    model = network(TensorProto.DataType.Value(name))
    values = values_of(model, {"x": X})
    assert values["odd"].dtype in (np.float32, np.int8, np.uint8)
    whole = CuttableNetwork(model)
    before, after = whole.first(1), whole.around(2, 1)
    made = with_shapes(before, {"x": X}).proto()
    onnx.checker.check_model(made, full_check=True)
    np.testing.assert_array_equal(first_answer(judges_of(made), {"x": X}).outputs[0], values["odd"])
    rest = with_shapes(after, {"odd": values["odd"]}).proto()
    assert [spec.dtype for spec in input_specs(rest)] == [values["odd"].dtype.name]
    np.testing.assert_array_equal(first_answer(judges_of(rest), {"odd": values["odd"]}).outputs[0], values["y"])


def test_numbers_that_numpy_has_go_as_they_are() -> None:
    assert plain_type(TensorProto.FLOAT16) == plain_type(TensorProto.INT8) == plain_type(TensorProto.BOOL) == 0
