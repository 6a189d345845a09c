"""onnxruntime as a judge."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from small_networks import network, values

from harness.compile.oracle.onnx_runtime import OnnxRuntime


@pytest.mark.parametrize("opset", [11, 18])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 1, 1]])
def test_a_pool_that_rounds_up_counts_no_place_beyond_its_padding(opset: int, pads: list[int]) -> None:
    node = helper.make_node(
        "AveragePool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=pads, ceil_mode=1, count_include_pad=1
    )
    model = network([node], {"x": [1, 2, 8, 8]}, opset=opset)
    x = values(1, 2, 8, 8)
    (right,) = ReferenceEvaluator(model).run(None, {"x": x})
    (answer,) = OnnxRuntime(model).ask({"x": x})
    assert np.abs(np.asarray(answer) - right).max() < 1e-6


def test_a_sigmoid_is_more_than_nothing_where_it_is_small() -> None:
    """onnxruntime's own is 0 below -18: what TVM makes of such an x was called wrong."""
    x = np.linspace(-86, 20, 10001, dtype=np.float32)
    model = network([helper.make_node("Sigmoid", ["x"], ["y"])], {"x": [x.size]})
    before = model.SerializeToString()
    (answer,) = OnnxRuntime(model).ask({"x": x})
    right = 1 / (1 + np.exp(-x.astype(np.float64)))
    assert np.abs(np.asarray(answer, np.float64) / right - 1).max() < 1e-5
    assert model.SerializeToString() == before


def test_a_pool_that_pads_by_itself_stays() -> None:
    node = helper.make_node(
        "AveragePool",
        ["x"],
        ["y"],
        kernel_shape=[3, 3],
        strides=[2, 2],
        auto_pad="SAME_UPPER",
        ceil_mode=1,
        count_include_pad=1,
    )
    model = network([node], {"x": [1, 2, 8, 8]})
    before = model.SerializeToString()
    OnnxRuntime(model).ask({"x": values(1, 2, 8, 8)})
    assert model.SerializeToString() == before
