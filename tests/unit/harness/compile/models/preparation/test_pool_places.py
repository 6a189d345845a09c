"""Places of maxima, and what MaxUnpool and Col2Im put back in place, are those of onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from small_networks import answers, changed, kinds, network, values

from harness.base.failures import ModelError
from harness.compile.models.preparation.indices import write_folds, write_pool_places, write_unpools
from harness.compile.models.preparation.padding import write_pads

HALVING: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}


@st.composite
def pools(draw: st.DrawFn) -> Any:
    axes = draw(st.integers(1, 3))
    several = st.lists(st.integers(1, 3), min_size=axes, max_size=axes)
    kernel, strides = draw(several), draw(several)
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": strides}
    attributes["storage_order"] = draw(st.integers(0, 1))
    attributes["ceil_mode"] = draw(st.integers(0, 1))
    if draw(st.booleans()):
        attributes["pads"] = [draw(st.integers(0, size - 1)) for size in kernel * 2]
        attributes["dilations"] = [1 + (size == 2) * draw(st.integers(0, 1)) for size in kernel]
    else:
        attributes["auto_pad"] = draw(st.sampled_from(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    node = helper.make_node("MaxPool", ["x"], ["y", "i"], **attributes)
    return network([node], {"x": [2, 2, *draw(st.lists(st.integers(4, 7), min_size=axes, max_size=axes))]}, ("y", "i"))


@given(model=pools(), steps=st.sampled_from([1, 1000]))
def test_places_are_those_of_the_first_maximum_of_each_window(model: Any, steps: int) -> None:
    x = np.rint(values(*(dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim)) * steps)
    x = np.maximum(x, 0)  # zeros tie, as they do behind a rectifier
    padded, _ = changed(model, write_pads)
    plain, said = changed(padded, write_pool_places)
    if "auto_pad" in str(padded):
        return  # a pool that skips pixels before its first window
    assert said == "wrote the places of 1 MaxPool by index, if they are read"
    for mine, theirs in zip(answers(plain, {"x": x}), answers(model, {"x": x}), strict=True):
        np.testing.assert_array_equal(mine, theirs)
        assert mine.dtype == theirs.dtype


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.uint8])
def test_places_of_any_numbers_are_found(dtype: Any) -> None:
    node = helper.make_node("MaxPool", ["x"], ["y", "i"], **HALVING)
    numbers = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = network([node], {"x": [1, 2, 4, 6]}, ("y", "i"), dtype=numbers)
    x = (np.arange(48).reshape(1, 2, 4, 6) * 37 % 50).astype(dtype)
    plain, _ = changed(model, write_pool_places)
    np.testing.assert_array_equal(answers(plain, {"x": x})[1], answers(model, {"x": x})[1])


def test_places_that_nobody_reads_are_left_out() -> None:
    node = helper.make_node("MaxPool", ["x"], ["y", "i"], **HALVING)
    plain, _ = changed(network([node], {"x": [1, 1, 4, 4]}), write_pool_places)
    assert (kinds(plain), list(plain.graph.node[0].output)) == (["MaxPool"], ["y"])


def test_places_in_a_shape_that_is_open_stay() -> None:
    node = helper.make_node("MaxPool", ["x"], ["y", "i"], **HALVING)
    model = network([node], {"x": [1, 1, "h", 4]}, ("y", "i"))
    assert changed(model, write_pool_places)[1] == ""


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("size", [(), (1, 2, 5, 7)])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 1, 0]])
def test_a_maximum_goes_back_to_its_place(opset: int, size: tuple[int, ...], pads: list[int]) -> None:
    pool = helper.make_node("MaxPool", ["x"], ["p", "i"], pads=pads, **HALVING)
    named, weights = ["s"] * bool(size), dict[str, Any](s=np.array(size)) if size else {}
    unpool = helper.make_node("MaxUnpool", ["p", "i", *named], ["y"], pads=pads, **HALVING)
    x = values(1, 2, *(size[2:] or (6, 8)))
    model = network([pool, unpool], {"x": x.shape}, opset=opset, **weights)
    plain, said = changed(model, write_unpools)
    assert said == "wrote 1 MaxUnpool as ScatterElements"
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


def test_an_unpool_whose_size_is_computed_stays() -> None:
    node = helper.make_node("MaxUnpool", ["x", "i", "s"], ["y"], **HALVING)
    model = network([node], {"x": [1, 1, 2, 2]}, i=np.zeros((1, 1, 2, 2), np.int64))
    model.graph.input.append(helper.make_tensor_value_info("s", TensorProto.INT64, [4]))
    assert changed(model, write_unpools)[1] == ""


@pytest.mark.parametrize(("operator", "weights"), [("MaxPool", {}), ("Conv", {"w": values(2, 2, 3, 3)})])
def test_a_window_wider_than_its_input_is_the_models_error(operator: str, weights: dict[str, Any]) -> None:
    node = helper.make_node(operator, ["x", *weights], ["y"], kernel_shape=[3, 3], strides=[2, 2])
    said = rf"{operator} 'y' has windows of \[3, 3\], and with padding its input has \[2, 6\]: give the network larger"
    with pytest.raises(ModelError, match=said):
        changed(network([node], {"x": [1, 2, 2, 6]}, **weights), write_pads)


def test_a_last_window_that_is_not_whole_is_none_wider_than_its_input() -> None:
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    assert changed(network([node], {"x": [1, 2, 2, 6]}), write_pads)[1] == ""


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 0, 2]])
@pytest.mark.parametrize("strides", [[1, 1], [2, 3]])
@pytest.mark.parametrize("dilations", [[1, 1], [2, 1]])
def test_columns_add_up_to_the_image_that_onnxruntime_makes(
    pads: list[int], strides: list[int], dilations: list[int]
) -> None:
    node = helper.make_node("Col2Im", ["x", "s", "b"], ["y"], pads=pads, strides=strides, dilations=dilations)
    size, block = np.array([7, 8]), np.array([3, 2])
    counts = (size + np.reshape(pads, (2, 2)).sum(0) - (block - 1) * dilations - 1) // strides + 1
    x = values(2, 3 * 6, int(counts.prod()))
    model = network([node], {"x": x.shape}, opset=18, s=size, b=block)
    plain, said = changed(model, write_folds)
    assert (said, "Col2Im" in kinds(plain)) == ("wrote 1 Col2Im as transposed convolutions", False)
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], atol=1e-5)
