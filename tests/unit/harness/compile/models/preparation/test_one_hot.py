"""OneHot as a comparison gives what onnxruntime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_networks import answers, changed, kinds, network

from harness.compile.models.preparation.indices import write_one_hots


@pytest.mark.parametrize("dtype", [TensorProto.INT64, TensorProto.INT32, TensorProto.FLOAT])
@pytest.mark.parametrize("axis", [-1, 0, 1, -2])
@pytest.mark.parametrize("depth", [np.array(4), np.array([4])])
@pytest.mark.parametrize("pair", [(-1, 7), (0, 1), (0, 3)])
def test_indices_count_from_either_end_and_others_choose_nothing(
    pair: tuple[int, int], depth: Any, axis: int, dtype: int
) -> None:
    node = helper.make_node("OneHot", ["x", "depth", "values"], ["y"], axis=axis)
    numbers = depth.astype(helper.tensor_dtype_to_np_dtype(dtype))
    model = network([node], {"x": [2, 3]}, dtype=dtype, depth=numbers, values=np.array(pair, np.float32))
    x = np.array([[0, 3, -1], [-4, 4, -5]]).astype(helper.tensor_dtype_to_np_dtype(dtype))
    plain, said = changed(model, write_one_hots)
    assert "OneHot" not in kinds(plain)
    assert said == "wrote 1 OneHot as comparisons"
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


def test_places_along_the_last_axis_have_no_other_axes() -> None:
    """TVM puts a constant of shape (1, 1, 1, 1, 4) into an image, also one of int64."""
    node = helper.make_node("OneHot", ["x", "depth", "values"], ["y"])
    weights: dict[str, Any] = {"depth": np.array(4), "values": np.array([0, 1], np.float32)}
    plain, _ = changed(network([node], {"x": [1, 3, 7, 6]}, dtype=TensorProto.INT64, **weights), write_one_hots)
    assert [1, 1, 1, 1, 4] not in [list(tensor.dims) for tensor in plain.graph.initializer]
    assert [4] in [list(tensor.dims) for tensor in plain.graph.initializer]


def test_an_index_is_read_once_and_compared_as_a_float() -> None:
    """TVM's simplifier takes ten minutes for a network that compares an integer which casts and a Softsign lead to."""
    node = helper.make_node("OneHot", ["x", "depth", "values"], ["y"])
    model = network([node], {"x": [3]}, dtype=TensorProto.INT64, depth=np.array(4), values=np.array([0, 1], np.float32))
    plain, _ = changed(model, write_one_hots)
    assert kinds(plain) == ["Cast", "Cast", "Reshape", "Sub", "Abs", "Equal", "Where"]
    compared = next(tensor for tensor in plain.graph.initializer if tensor.name == plain.graph.node[5].input[1])
    assert compared.data_type == TensorProto.FLOAT
