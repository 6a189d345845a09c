"""onnxruntime as a judge."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from small_networks import network, values

from harness.compile.oracle import onnx_runtime
from harness.compile.oracle.judge import NoAnswer
from harness.compile.oracle.onnx_runtime import OnnxRuntime


@pytest.mark.parametrize("opset", [10, 11, 18, 19, 22])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 1, 1], [1, 0, 1, 0], [0, 0, 2, 2], None])
@pytest.mark.parametrize("rounds_up", [0, 1])
def test_a_pool_counts_its_padding_and_no_place_beyond(opset: int, pads: list[int] | None, rounds_up: int) -> None:
    fields: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "count_include_pad": 1, "ceil_mode": rounds_up}

    def model(**padding: Any) -> onnx.ModelProto:
        node = helper.make_node("AveragePool", ["x"], ["y"], **fields, **padding)
        return network([node], {"x": [1, 2, 8, 8]}, opset=opset)

    x = values(1, 2, 8, 8)
    (right,) = ReferenceEvaluator(model(pads=pads or [0, 0, 0, 0])).run(None, {"x": x})
    (answer,) = OnnxRuntime(model(pads=pads) if pads else model(auto_pad="VALID")).ask({"x": x})
    assert np.asarray(answer).shape == np.asarray(right).shape
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


@pytest.mark.parametrize("kind", [TensorProto.DOUBLE, TensorProto.FLOAT16])
def test_a_sigmoid_of_another_precision_has_an_answer(kind: int) -> None:
    """onnxruntime has no Softplus of doubles."""
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=kind),
        helper.make_node("Sigmoid", ["wide"], ["small"]),
        helper.make_node("Cast", ["small"], ["y"], to=TensorProto.FLOAT),
    ]
    x = np.linspace(-8, 8, 101, dtype=np.float32)
    (answer,) = OnnxRuntime(network(nodes, {"x": [x.size]})).ask({"x": x})
    assert np.abs(np.asarray(answer, np.float64) - 1 / (1 + np.exp(-x.astype(np.float64)))).max() < 1e-3


@pytest.mark.parametrize("depth", [1, 2])
def test_a_sigmoid_in_a_branch_is_more_than_nothing_where_it_is_small(depth: int) -> None:
    nodes = [helper.make_node("Sigmoid", ["x"], ["y"])]
    for level in range(depth):
        branch = helper.make_graph(nodes, "branch", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])])
        nodes = [helper.make_node("If", ["yes"], ["y"], then_branch=branch, else_branch=branch, name=f"if_{level}")]
    model = network(nodes, {"x": [3]}, yes=np.array(True))
    before = model.SerializeToString()
    (answer,) = OnnxRuntime(model).ask({"x": np.array([-30, 0, 30], np.float32)})
    assert np.abs(np.asarray(answer, np.float64) / np.array([9.3576e-14, 0.5, 1]) - 1).max() < 1e-4
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


@pytest.mark.parametrize(("opset", "dilation"), [(17, 1), (19, 1), (19, 2), (22, 1), (22, 2)])
@pytest.mark.parametrize(("mode", "columns"), [("SAME_UPPER", (0, 1)), ("SAME_LOWER", (1, 0))])
def test_a_pool_that_pads_by_itself_counts_the_padding_of_each_axis(
    opset: int, dilation: int, mode: str, columns: tuple[int, int]
) -> None:
    dilations = {"dilations": [dilation, 1]} if opset >= 19 else {}  # older pools have none
    fields = {"kernel_shape": [3, 2], "strides": [2, 1], "auto_pad": mode, "count_include_pad": 1, **dilations}
    model = network([helper.make_node("AveragePool", ["x"], ["y"], **fields)], {"x": [1, 2, 5, 6]}, opset=opset)
    before, x = model.SerializeToString(), values(1, 2, 5, 6)
    (answer,) = OnnxRuntime(model).ask({"x": x})
    wide = np.pad(x, ((0, 0), (0, 0), (dilation, dilation), columns))
    rows = np.sum([wide[:, :, start : start + 5 : 2] for start in range(0, 3 * dilation, dilation)], axis=0)
    assert np.abs(np.asarray(answer) - (rows[..., :-1] + rows[..., 1:]) / 6).max() < 1e-6
    assert model.SerializeToString() == before


def test_half_a_spectrum_becomes_real_numbers() -> None:
    """onnxruntime itself refuses what torch exports of an irfft."""
    node = helper.make_node("DFT", ["x"], ["y"], axis=1, inverse=1, onesided=1)
    x = values(2, 5, 2)
    (answer,) = OnnxRuntime(network([node], {"x": x.shape}, opset=18)).ask({"x": x})
    right = np.fft.irfft(x[..., 0] + 1j * x[..., 1], axis=1)[..., None]
    assert np.abs(np.asarray(answer, np.float64) - right).max() < 1e-6


def test_a_max_pool_has_no_window_that_begins_in_the_padding_at_the_end() -> None:
    fields = {"kernel_shape": [2], "strides": [2], "pads": [1, 1], "ceil_mode": 1}
    model = network([helper.make_node("MaxPool", ["x"], ["y"], **fields)], {"x": [1, 1, 5]})
    (answer,) = OnnxRuntime(model).ask({"x": np.array([[[1, 2, 3, 5, 4]]], np.float32)})
    assert np.asarray(answer).tolist() == [[[1, 3, 5]]]


@pytest.mark.parametrize("kind", ["MaxPool", "LpPool"])
@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
def test_a_dilated_pool_that_pads_by_itself_has_a_window_for_each_pixel(kind: str, mode: str) -> None:
    fields = {"kernel_shape": [2], "dilations": [2], "auto_pad": mode, **({"p": 1} if kind == "LpPool" else {})}
    model = network([helper.make_node(kind, ["x"], ["y"], **fields)], {"x": [1, 2, 6]}, opset=22)
    before, x = model.SerializeToString(), np.abs(values(1, 2, 6))
    (answer,) = OnnxRuntime(model).ask({"x": x})
    wide = np.pad(x, ((0, 0), (0, 0), (1, 1)))
    both = np.stack([wide[..., :-2], wide[..., 2:]])
    np.testing.assert_allclose(
        np.asarray(answer, np.float32), both.max(0) if kind == "MaxPool" else both.sum(0), atol=1e-6
    )
    assert model.SerializeToString() == before


def test_an_error_of_our_rewriting_is_no_lack_of_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX's reference judged instead, which is wrong elsewhere."""
    monkeypatch.setattr(onnx_runtime, "_write_sigmoids", lambda _model: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        OnnxRuntime(network([helper.make_node("Relu", ["x"], ["y"])], {"x": [3]}))


def test_an_attention_whose_row_is_hidden_whole_answers_zero() -> None:
    """As ONNX defines it; onnxruntime 1.24 answers the mean of what is hidden."""
    rng = np.random.default_rng(0)
    shapes = {"q": (1, 2, 3, 4), "k": (1, 2, 3, 4), "v": (1, 2, 3, 4)}
    mask = numpy_helper.from_array(np.array([[False] * 3, [True] * 3, [True] * 3]), "mask")
    graph = helper.make_graph(
        [helper.make_node("Attention", ["q", "k", "v", "mask"], ["y"])],
        "masked",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 2, 3, 4))],
        [mask],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    (answer,) = OnnxRuntime(model).ask({name: rng.random(shape, np.float32) for name, shape in shapes.items()})
    assert not np.asarray(answer)[:, :, 0].any()
    assert np.asarray(answer)[:, :, 1:].all()


@pytest.mark.parametrize(("opset", "mask"), [(23, []), (24, []), (24, [""])])
def test_an_attention_caps_before_it_hides_what_comes_later(opset: int, mask: list[str]) -> None:
    rng = np.random.default_rng(0)
    kept = {name: numpy_helper.from_array(rng.random((1, 2, 5, 4), np.float32), name) for name in ("k", "v")}
    graph = helper.make_graph(
        [helper.make_node("Attention", ["x", "k", "v", *mask], ["y"], is_causal=1, softcap=2.0)],
        "capped",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 5, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 5, 4])],
        [*kept.values()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    before = model.SerializeToString()
    (answer,) = OnnxRuntime(model).ask({"x": rng.random((1, 2, 5, 4), np.float32)})
    first, own = (np.asarray(array, np.float32)[:, :, 0] for array in (answer, numpy_helper.to_array(kept["v"])))
    assert np.abs(first - own).max() < 1e-6
    assert model.SerializeToString() == before


@pytest.mark.parametrize("opset", [9, 13, 18])
def test_a_norm_of_halves_has_an_answer(opset: int) -> None:
    halves = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [2, 3, 4, 5]) for name in "xy"]
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], axes=[0, 2, 3])
    graph = helper.make_graph([node], "halves", halves[:1], halves[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float16)
    (answer,) = OnnxRuntime(model).ask({"x": x})
    wide, axes = x.astype(np.float64), (0, 2, 3)
    right = (wide - wide.mean(axes, keepdims=True)) / wide.std(axes, keepdims=True)
    assert answer.dtype == np.float16
    np.testing.assert_allclose(np.asarray(answer, np.float64), right, atol=2e-3)


@pytest.mark.parametrize("mask", [[], [""], ["m"]])
@pytest.mark.parametrize("queries", [1, 3])
def test_the_first_query_of_a_causal_attention_sees_the_first_key_alone(queries: int, mask: list[str]) -> None:
    rng = np.random.default_rng(0)
    weights: dict[str, Any] = {name: rng.random((1, 2, 5, 4), np.float32) for name in ("k", "v")}
    weights |= {"m": np.zeros((queries, 5), np.float32)} if mask == ["m"] else {}
    node = helper.make_node("Attention", ["x", "k", "v", *mask], ["y"], is_causal=1)
    model = network([node], {"x": [1, 2, queries, 4]}, opset=23, **weights)
    (answer,) = OnnxRuntime(model).ask({"x": rng.random((1, 2, queries, 4), np.float32)})
    first = np.asarray(answer, np.float32)[:, :, 0]
    np.testing.assert_allclose(first, weights["v"][:, :, 0], atol=1e-6)


@pytest.mark.parametrize("mode", ["wrap", "reflect"])
def test_a_pad_of_more_than_the_tensor_repeats_it_as_numpy_does(mode: Any) -> None:
    node = helper.make_node("Pad", ["x", "pads"], ["y"], mode=mode)
    x = values(5)
    (answer,) = OnnxRuntime(network([node], {"x": (5,)}, opset=19, pads=np.array([12, 1]))).ask({"x": x})
    np.testing.assert_array_equal(answer, np.pad(x, (12, 1), mode))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_an_axis_is_cropped_to_as_many_pixels(mode: str) -> None:
    """onnxruntime 1.24 alone leaves such an axis as it is. ONNX's reference takes the last pixel for one outside."""

    def model(columns: int, end: float, rows: int = 10) -> onnx.ModelProto:
        how = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize"}
        node = helper.make_node("Resize", ["x", "region", "", "sizes"], ["y"], **how)
        region, sizes = np.array([0, 0, 0.1, 0, 1, 1, 0.9, end], np.float32), np.array([1, 2, rows, columns])
        return network([node], {"x": [1, 2, 5, 6]}, region=region, sizes=sizes)

    x = values(1, 2, 5, 6)
    with pytest.raises(NoAnswer, match="keeps its shape"):
        OnnxRuntime(model(6, 0.7, 5))
    for plain in (model(6, 1), model(9, 0.7), model(6, 0.7)):
        (right,) = ReferenceEvaluator(plain).run(None, {"x": x})
        (answer,) = OnnxRuntime(plain).ask({"x": x})
        assert np.abs(np.asarray(answer) - right).max() < 1e-5


def test_the_last_pixel_of_an_image_is_not_outside_of_it() -> None:
    """ONNX's reference says so of eleven columns cropped from 0.7 on, by a rounding, and TVM's was called wrong."""
    how = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.0}
    region, sizes = np.array([0, 0, 0, 0.7, 1, 1, 1, 1], np.float32), np.array([1, 1, 3, 11])
    node, x = helper.make_node("Resize", ["x", "region", "", "sizes"], ["y"], **how), values(1, 1, 2, 11)
    (answer,) = OnnxRuntime(network([node], {"x": [1, 1, 2, 11]}, region=region, sizes=sizes)).ask({"x": x})
    assert np.abs(np.asarray(answer)[0, 0, [0, 2], -1] - x[0, 0, :, -1]).max() < 1e-6


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_halves_are_rounded_to_the_nearest_integer(kind: type) -> None:
    """onnxruntime 1.24 makes 5 of 0.42 / 0.07, and 6 of 0.4775 / 0.07, and TVM's answer was called wrong."""
    node = helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["y"])
    weights: dict[str, Any] = {"scale": np.float16(0.07), "zero": np.array(3, kind)}
    model = network([node], {"x": [5]}, opset=22, dtype=TensorProto.FLOAT16, **weights)
    before, x = model.SerializeToString(), np.array([0.0749, 0.42, 0.4775, 0.6, 5], np.float16)
    (answer,) = OnnxRuntime(model).ask({"x": x})
    np.testing.assert_array_equal(answer, np.array([4, 9, 10, 12, 74], kind), strict=True)
    assert model.SerializeToString() == before


BYTES = {TensorProto.UINT8: np.uint8, TensorProto.INT8: np.int8}
LARGE = {np.uint8: 255, np.int8: 127}


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("kinds", [(np.uint8, np.int8), (np.int8, np.uint8), (np.uint8, np.uint8), (np.int8, np.int8)])
@pytest.mark.parametrize("operator", ["MatMulInteger", "ConvInteger"])
def test_products_of_large_bytes_do_not_overflow(operator: str, kinds: tuple[Any, Any], zero: bool) -> None:
    """On a processor without VNNI, onnxruntime adds two of them in 16 bits."""
    kind, other = kinds
    is_conv = operator == "ConvInteger"
    x = np.full((1, 64, 3, 3) if is_conv else (3, 64), LARGE[kind], kind)
    w = np.full((4, 64, 3, 3) if is_conv else (64, 4), LARGE[other], other)
    zeros: dict[str, Any] = {"zx": np.array(1, kind), "zw": np.array(2, other)} if zero else {}
    (code,) = (code for code, each in BYTES.items() if each is kind)
    model = network([helper.make_node(operator, ["x", "w", *zeros], ["y"])], {"x": x.shape}, dtype=code, w=w, **zeros)
    before = model.SerializeToString()
    (answer,) = OnnxRuntime(model).ask({"x": x})
    terms = 64 * 9 if is_conv else 64
    assert (np.asarray(answer) == terms * (LARGE[kind] - zero) * (LARGE[other] - 2 * zero)).all()
    assert model.SerializeToString() == before


def large_bytes(kind: Any, *shape: int) -> np.ndarray:
    return np.full(shape, LARGE[kind], kind)


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize("operator", ["QLinearMatMul", "QLinearConv", "MatMulIntegerToFloat", "QGemm"])
def test_scaled_products_of_large_bytes_do_not_overflow(operator: str, kind: Any) -> None:
    is_conv, domain = operator == "QLinearConv", "" if operator.startswith("QLinear") else "com.microsoft"
    x = large_bytes(np.uint8, *(1, 64, 1, 1) if is_conv else (3, 64))
    weights = {
        "w": large_bytes(kind, *(4, 64, 1, 1) if is_conv else (64, 4)),
        "s": np.float32(1),
        "zw": np.array(1, kind),
    }
    scaled = {"z": np.uint8(0), "out": np.float32(2**14)}
    inputs = {
        "MatMulIntegerToFloat": ["x", "w", "s", "s", "z", "zw"],
        "QGemm": ["x", "s", "z", "w", "s", "zw"],
    }.get(operator, ["x", "s", "z", "w", "s", "zw", "out", "z"])
    node = helper.make_node(operator, inputs, ["y"], domain=domain)
    model = network([node], {"x": x.shape}, dtype=TensorProto.UINT8, **weights, **scaled)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    (answer,) = OnnxRuntime(model).ask({"x": x})
    whole = 64 * 255 * (LARGE[kind] - 1)
    assert (np.asarray(answer) == (whole if domain else min(round(whole / 2**14), 255))).all()


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_a_product_that_quantises_its_input_does_not_overflow(kind: Any) -> None:
    x = np.full((3, 64), 255, np.float32)  # its scale is 1
    node = helper.make_node("DynamicQuantizeMatMul", ["x", "w", "s"], ["y"], domain="com.microsoft")
    model = network([node], {"x": [3, 64]}, w=large_bytes(kind, 64, 4), s=np.float32(1))
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    (answer,) = OnnxRuntime(model).ask({"x": x})
    assert (np.asarray(answer) == 64 * 255 * LARGE[kind]).all()


@pytest.mark.parametrize("operator", ["DynamicQuantizeLSTM", "QAttention"])
def test_signed_weights_answer_as_the_same_unsigned_ones_do(operator: str) -> None:
    def answer(kind: Any) -> np.ndarray:
        def weights(*shape: int) -> np.ndarray:
            moved = np.random.default_rng(0).integers(0, 256, shape) - (128 if kind is np.int8 else 0)
            return moved.astype(kind)

        zero, scale = np.array([0 if kind is np.int8 else 128], kind), np.array([0.01], np.float32)
        if operator == "QAttention":
            names, fields = ["x", "w", "b", "s", "s", "", "z", "zero"], {"num_heads": 2}
            shape, dtype = [1, 4, 32], TensorProto.UINT8
            given = {
                "w": weights(32, 96),
                "b": np.zeros(96, np.float32),
                "s": scale[0],
                "z": np.uint8(100),
                "zero": zero[0],
            }
        else:
            names, fields = ["x", "w", "r", *[""] * 5, "s", "zero", "s", "zero"], {"hidden_size": 16}
            shape, dtype = [4, 1, 32], TensorProto.FLOAT
            given = {"w": weights(1, 32, 64), "r": weights(1, 16, 64), "s": scale, "zero": zero}
        node = helper.make_node(operator, names, ["y"], domain="com.microsoft", **fields)
        model = network([node], {"x": shape}, dtype=dtype, **given)
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        x = np.random.default_rng(1).integers(0, 256, shape)
        (first,) = OnnxRuntime(model).ask({"x": x.astype(helper.tensor_dtype_to_np_dtype(dtype))})
        return np.asarray(first)

    assert np.array_equal(answer(np.int8), answer(np.uint8))
