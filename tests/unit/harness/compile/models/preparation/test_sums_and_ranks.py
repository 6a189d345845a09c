"""CumSum as sums over a triangle, and TopK as ranks with its ties, give what onnxruntime gives."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from small_networks import answers, changed, kinds, network, values

from harness.compile.models.preparation import sums_and_ranks
from harness.compile.models.preparation.sums_and_ranks import write_cumulative_sums, write_top_k


@pytest.mark.parametrize("opset", [11, 14])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_sums_go_along_an_axis_from_either_end(opset: int, axis: int, exclusive: int, reverse: int) -> None:
    node = helper.make_node("CumSum", ["x", "axis"], ["y"], exclusive=exclusive, reverse=reverse)
    model = network([node], {"x": [2, 3, 4]}, opset=opset, axis=np.array(axis))
    plain, said = changed(model, write_cumulative_sums)
    assert said == "wrote 1 CumSum over a triangle"
    assert "CumSum" not in kinds(plain)
    x = values(2, 3, 4)
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_products_go_along_an_axis_as_sums_do(exclusive: int, reverse: int) -> None:
    node = helper.make_node("CumProd", ["x", "axis"], ["y"], exclusive=exclusive, reverse=reverse)
    model = network([node], {"x": [2, 3]}, opset=26, axis=np.array(-1))
    plain, _ = changed(model, write_cumulative_sums)
    assert "CumProd" not in kinds(plain)
    x = values(2, 3)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(ReferenceEvaluator(plain).run(None, {"x": x})[0], expected, rtol=1e-6)


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


@pytest.mark.parametrize(("shape", "sorted_"), [(["n"], 1), ([8], 0), ([2, 0], 1)])
def test_a_top_k_of_unknown_extent_or_any_order_or_no_numbers_stays(shape: list[str | int], sorted_: int) -> None:
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], sorted=sorted_)
    plain, said = changed(network([node], {"x": shape}, ("y", "i"), k=np.array([2])), write_top_k)
    assert (said, kinds(plain)) == ("", ["TopK"])


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.INT64])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(("shape", "axis"), [([230, 2], 0), ([2, 2310], 1), ([2, 1100, 3], -2)])
def test_the_first_of_very_many_are_those_of_each_piece(
    shape: list[int], axis: int, largest: int, dtype: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sums_and_ranks, "MOST_PLACES", 100)
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], axis=axis, largest=largest)
    model = network([node], {"x": shape}, ("y", "i"), dtype=dtype, k=np.array([20]))
    plain, said = changed(model, write_top_k)
    assert (said, "TopK" in kinds(plain)) == ("wrote 1 TopK as ranks", False)
    x = np.rint(values(*shape) * np.float32(9)).astype(helper.tensor_dtype_to_np_dtype(dtype))
    for mine, theirs in zip(answers(plain, {"x": x}), answers(model, {"x": x}), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("largest", [0, 1])
def test_what_a_piece_lacks_comes_after_what_is_as_small(largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums_and_ranks, "MOST_PLACES", 100)
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], largest=largest)
    model = network([node], {"x": [430]}, ("y", "i"), k=np.array([30]))
    plain, _ = changed(model, write_top_k)
    x = np.full(430, -np.inf if largest else np.inf, np.float32)
    x[425:] = values(5)
    for mine, theirs in zip(answers(plain, {"x": x}), answers(model, {"x": x}), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_so_many_firsts_that_their_pieces_do_not_help_stay() -> None:
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"])
    plain, said = changed(network([node], {"x": [5000]}, ("y", "i"), k=np.array([3000])), write_top_k)
    assert (said, kinds(plain)) == ("", ["TopK"])
