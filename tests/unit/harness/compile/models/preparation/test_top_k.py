"""TopK as ranks gives what onnxruntime gives, ties included."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_networks import answers, changed, kinds, network, values

from harness.compile.models.preparation.top_k import write_top_k


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("steps", [1.0, 1000.0], ids=["with ties", "without ties"])
def test_values_and_places_come_in_order(opset: int, axis: int, largest: int, steps: float) -> None:
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], axis=axis, largest=largest)
    model = network([node], {"x": [3, 4, 5]}, ("y", "i"), opset=opset, k=np.array([3]))
    plain, said = changed(model, write_top_k)
    assert said == "wrote 1 TopK as ranks"
    assert "TopK" not in kinds(plain)
    x = np.rint(values(3, 4, 5) * np.float32(steps))
    x[0, 0, 0] = -np.inf
    for mine, theirs in zip(answers(plain, {"x": x}), answers(model, {"x": x}), strict=True):
        np.testing.assert_array_equal(mine, theirs)
        assert mine.dtype == theirs.dtype


def test_places_may_be_left_out_and_integers_ranked() -> None:
    model = network([helper.make_node("TopK", ["x", "k"], ["y"])], {"x": [4]}, dtype=TensorProto.INT64, k=np.array([2]))
    plain, _ = changed(model, write_top_k)
    np.testing.assert_array_equal(answers(plain, {"x": np.array([3, 9, -1, 9])})[0], [9, 9])


@pytest.mark.parametrize(("shape", "sorted_"), [(["n"], 1), ([5000], 1), ([8], 0)])
def test_one_of_unknown_or_large_extent_or_any_order_stays(shape: list[str | int], sorted_: int) -> None:
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], sorted=sorted_)
    plain, said = changed(network([node], {"x": shape}, ("y", "i"), k=np.array([2])), write_top_k)
    assert (said, kinds(plain)) == ("", ["TopK"])
