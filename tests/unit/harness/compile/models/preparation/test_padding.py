"""Padding in numbers is that which onnxruntime makes of `auto_pad` and `output_shape`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper
from small_networks import answers, changed, network, values

from harness.compile.models.outline import attribute_of
from harness.compile.models.preparation.padding import write_pad_axes, write_pads, write_repeats

MODES = ("SAME_UPPER", "SAME_LOWER", "VALID")


@st.composite
def windows(draw: st.DrawFn) -> Any:
    operator = draw(st.sampled_from(["Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool"]))
    kernel = draw(st.tuples(*[st.integers(1, 4)] * 2))
    attributes: dict[str, Any] = {
        "auto_pad": draw(st.sampled_from(MODES)),
        "strides": draw(st.tuples(*[st.integers(1, 3)] * 2)),
        "kernel_shape": kernel,
    }
    if operator in ("MaxPool", "AveragePool"):
        attributes["ceil_mode"] = draw(st.integers(0, 1))
    if operator == "AveragePool":
        attributes["count_include_pad"] = draw(st.integers(0, 1))
    shape = (1, 2, draw(st.integers(4, 9)), draw(st.integers(4, 9)))
    weights = {"w": values(2, 2, *kernel)} if "Conv" in operator else {}
    return network(
        [helper.make_node(operator, ["x", *weights], ["y"], **attributes)], {"x": shape}, opset=11, **weights
    )


@given(windows())
def test_every_window_is_padded_as_onnxruntime_does(model: Any) -> None:
    x = values(*(dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim))
    plain, said = changed(model, write_pads)
    if not said:
        return  # a transposed convolution that would be cut, or a pool that would begin later
    assert attribute_of(plain.graph.node[0], "auto_pad", "") == ""
    (wanted,), (got,) = answers(model, {"x": x}), answers(plain, {"x": x})
    np.testing.assert_allclose(got, wanted, atol=1e-6)


@given(
    size=st.integers(5, 12),
    stride=st.integers(1, 4),
    padding=st.tuples(*[st.integers(0, 2)] * 2),
    auto_pad=st.sampled_from(["NOTSET", "VALID"]),
)
def test_no_window_of_a_norm_ends_outside(size: int, stride: int, padding: tuple[int, int], auto_pad: str) -> None:
    attributes: dict[str, Any] = {"kernel_shape": [3], "strides": [stride], "ceil_mode": 1, "p": 1}
    attributes |= {"auto_pad": auto_pad} if auto_pad == "VALID" else {"pads": padding}
    model = network([helper.make_node("LpPool", ["x"], ["y"], **attributes)], {"x": (1, 2, size)}, opset=18)
    plain, said = changed(model, write_pads)
    assert said == "wrote the padding of 1 LpPool in numbers"
    assert not attribute_of(plain.graph.node[0], "ceil_mode", 0)
    x = values(1, 2, size)
    (wanted,), (got,) = answers(model, {"x": x}), answers(plain, {"x": x})
    np.testing.assert_allclose(got, wanted, atol=1e-6)


@pytest.mark.parametrize(("operator", "is_written"), [("Conv", True), ("MaxPool", False), ("AveragePool", False)])
def test_a_pool_that_skips_pixels_before_its_first_window_stays(operator: str, is_written: bool) -> None:
    weights = {"w": values(1, 1, 1, 1)} if operator == "Conv" else {}
    attributes = {"auto_pad": "SAME_UPPER", "strides": [1, 3], "kernel_shape": [1, 1]}
    node = helper.make_node(operator, ["x", *weights], ["y"], **attributes)
    model = network([node], {"x": [1, 1, 4, 9]}, opset=11, **weights)
    plain, said = changed(model, write_pads)
    assert bool(said) is is_written
    x = values(1, 1, 4, 9)
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], atol=1e-6)


@pytest.mark.parametrize("mode", [{}, {"auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_LOWER"}])
def test_an_output_shape_becomes_padding(mode: dict[str, str]) -> None:
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[3, 2], output_shape=[10, 8], **mode)
    model = network([node], {"x": [1, 1, 4, 4]}, w=values(1, 2, 4, 4))
    plain, said = changed(model, write_pads)
    assert said == "wrote the padding of 1 ConvTranspose in numbers"
    x = values(1, 1, 4, 4)
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], atol=1e-6)


def test_a_window_over_a_shape_that_is_open_stays() -> None:
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], auto_pad="SAME_UPPER")
    assert changed(network([node], {"x": [1, 1, "h", 4]}), write_pads)[1] == ""


@given(
    mode=st.sampled_from(["wrap", "reflect"]),
    pads=st.tuples(*[st.integers(-2, 12)] * 2, st.integers(-1, 3), st.integers(-1, 3)),
    with_axes=st.booleans(),
)
def test_a_pad_that_cuts_or_repeats_more_than_there_is_goes_by_index(
    mode: str, pads: tuple[int, ...], with_axes: bool
) -> None:
    begins, ends = (pads[0], pads[2]), (pads[1], pads[3])
    lists: dict[str, Any]
    if with_axes:
        names, lists = ["x", "pads", "", "axes"], {"pads": np.array([*begins, *ends]), "axes": np.array([-2, 2])}
    else:
        names, lists = ["x", "pads"], {"pads": np.array([0, *begins, 0, *ends])}
    node = helper.make_node("Pad", names, ["y"], mode=mode)
    model = network([node], {"x": (1, 5, 4)}, opset=19, **lists)
    plain, said = changed(model, write_repeats)
    assert said == ("" if min(pads) >= 0 and max(pads[:2]) < 5 and max(pads[2:]) < 4 else "wrote 1 Pad by index")
    x = values(1, 5, 4)
    shown = zip(begins, ends, (5, 4), strict=True)
    rows, columns = [slice(max(-begin, 0), extent - max(-end, 0)) for begin, end, extent in shown]
    repeated = [(max(begin, 0), max(end, 0)) for begin, end in zip(begins, ends, strict=True)]
    (got,) = answers(plain, {"x": x})
    np.testing.assert_array_equal(got, np.pad(x[:, rows, columns], [(0, 0), *repeated], mode))  # type: ignore[call-overload]


def test_a_pad_that_wraps_before_its_operator_set_has_the_mode_goes_by_index() -> None:
    """As torch exports a circular padding. TVM's importer refuses it."""
    node = helper.make_node("Pad", ["x", "pads"], ["y"], mode="wrap")
    plain, said = changed(network([node], {"x": [1, 5]}, opset=18, pads=np.array([0, 2, 0, 1])), write_repeats)
    assert said == "wrote 1 Pad by index"
    x = values(1, 5)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], np.pad(x, ((0, 0), (2, 1)), "wrap"))


@pytest.mark.parametrize("value", [(), (2.0,)])
@pytest.mark.parametrize("axes", [[1, -1], [2], [2, 0, 1]])
def test_a_pad_of_some_axes_is_one_of_all(axes: list[int], value: tuple[float, ...]) -> None:
    number: dict[str, Any] = {"value": np.array(value[0], np.float32)} if value else {}
    node = helper.make_node("Pad", ["x", "pads", "value" if value else "", "axes"], ["y"])
    pads = np.arange(2 * len(axes))
    model = network([node], {"x": (2, 3, 4)}, opset=18, pads=pads, axes=np.array(axes), **number)
    plain, said = changed(model, write_pad_axes)
    assert (len(plain.graph.node[0].input), said) == (2 + len(value), "wrote 1 Pad for all axes")
    x = values(2, 3, 4)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])
