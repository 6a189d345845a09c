"""CumSum as sums over a triangle gives what onnxruntime gives."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_networks import answers, changed, kinds, network, values

from harness.compile.models.preparation.cumulative_sums import write_cumulative_sums


@pytest.mark.parametrize("opset", [11, 14])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_sums_go_along_an_axis_from_either_end(opset: int, axis: int, exclusive: int, reverse: int) -> None:
    node = helper.make_node("CumSum", ["x", "axis"], ["y"], exclusive=exclusive, reverse=reverse)
    model = network([node], {"x": [2, 3, 4]}, opset=opset, axis=np.array(axis))
    plain, said = changed(model, write_cumulative_sums)
    assert said == "wrote 1 CumSum as sums over a triangle"
    assert "CumSum" not in kinds(plain)
    x = values(2, 3, 4)
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], rtol=1e-6, atol=1e-6)


def test_integers_stay_exact_and_infinity_stays_where_it_is() -> None:
    node = helper.make_node("CumSum", ["x", "axis"], ["y"])
    whole = network([node], {"x": [5]}, dtype=TensorProto.INT64, axis=np.array(0))
    x = np.array([2**40, 1, -3, 7, 0])
    np.testing.assert_array_equal(answers(changed(whole, write_cumulative_sums)[0], {"x": x})[0], np.cumsum(x))
    model = network([node], {"x": [3]}, axis=np.array([0]))
    endless = np.array([1, np.inf, 1], np.float32)
    y = answers(changed(model, write_cumulative_sums)[0], {"x": endless})[0]
    np.testing.assert_array_equal(y, [1, np.inf, np.inf])


@pytest.mark.parametrize("shape", [["n"], [5000]])
def test_an_axis_of_unknown_or_large_extent_stays(shape: list[str | int]) -> None:
    model = network([helper.make_node("CumSum", ["x", "axis"], ["y"])], {"x": shape}, axis=np.array(0))
    plain, said = changed(model, write_cumulative_sums)
    assert (said, kinds(plain)) == ("", ["CumSum"])
