"""The same network with its sums in another order: the same answer, and what a long sum may be off by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.base.case import RELATIVE_TOLERANCE, ROUNDING_FACTOR
from harness.compile.models.outline import tensor_types
from harness.compile.oracle import sum_forms, sums
from harness.compile.oracle.leeway_measurement import measure_leeway
from harness.compile.oracle.onnx_runtime import OnnxRuntime
from harness.measure.correctness import compare_answers

FLOAT = TensorProto.FLOAT
CHANCE = np.random.default_rng(0)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def normal(*shape: int) -> np.ndarray:
    return CHANCE.standard_normal(shape).astype(np.float32)


def network(node: Any, x: np.ndarray, weights: Mapping[str, np.ndarray], opset: int) -> onnx.ModelProto:
    """A network of one operator."""
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    inputs = [helper.make_tensor_value_info("x", FLOAT, x.shape)]
    graph = helper.make_graph([node], "sum", inputs, [helper.make_tensor_value_info("y", FLOAT, None)], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def operator(kind: str, *weights: str, **attributes: Any) -> Any:
    return helper.make_node(kind, ["x", *weights], ["y"], **attributes)


IMAGE, ROW = (2, 4, 6, 8), (3, 40)
NORM = {"s": normal(4), "b": normal(4)}
SMALL: Mapping[str, tuple[Any, tuple[int, ...], Mapping[str, np.ndarray], int]] = {
    "pool": (operator("GlobalAveragePool"), IMAGE, {}, 17),
    "pool, axes as an input": (operator("GlobalAveragePool"), IMAGE, {}, 21),
    "pool of squares": (operator("GlobalLpPool"), IMAGE, {}, 17),
    "pool of magnitudes": (operator("GlobalLpPool", p=1), IMAGE, {}, 21),
    "norm of instances": (operator("InstanceNormalization", "s", "b"), IMAGE, NORM, 17),
    "norm of instances in a row": (operator("InstanceNormalization", "s", "b"), (2, 4, 9), NORM, 21),
    "norm of groups": (operator("GroupNormalization", "s", "b", num_groups=2), IMAGE, NORM, 21),
    "norm of groups, a scale for each": (
        operator("GroupNormalization", "s", "b", num_groups=2), IMAGE, {"s": normal(2), "b": normal(2)}, 18,
    ),
    "norm of a layer": (operator("LayerNormalization", "s"), ROW, {"s": normal(40)}, 17),
    "norm of squares": (operator("RMSNormalization", "s"), ROW, {"s": normal(40)}, 23),
    "norm of mean and variance": (operator("MeanVarianceNormalization"), IMAGE, {}, 17),
    "softmax": (operator("Softmax"), ROW, {}, 17),
    "length": (operator("ReduceL2", axes=[1]), ROW, {}, 17),
    "mean without dimensions": (operator("ReduceMean", axes=[1], keepdims=0), IMAGE, {}, 17),
    "convolution": (operator("Conv", "w", "b", pads=[1] * 4, strides=[2, 1]), IMAGE,
                    {"w": normal(5, 4, 3, 3), "b": normal(5)}, 17),
    "convolution of groups": (operator("Conv", "w", group=2, auto_pad="SAME_UPPER"), IMAGE,
                              {"w": normal(6, 2, 3, 3)}, 17),
    "convolution of a row": (operator("Conv", "w", "b"), (1, 2, 30), {"w": normal(3, 2, 7), "b": normal(3)}, 17),
    "transposed convolution": (operator("ConvTranspose", "w", "b", strides=[2, 2], output_padding=[1, 1]), IMAGE,
                               {"w": normal(4, 3, 3, 3), "b": normal(3)}, 17),
    "transposed convolution of groups": (operator("ConvTranspose", "w", group=2), IMAGE, {"w": normal(4, 3, 3, 3)}, 17),
    "convolution of each channel": (operator("Conv", "w", "b", group=4, dilations=[1, 2]), IMAGE,
                                    {"w": normal(4, 1, 4, 3), "b": normal(4)}, 17),
    "average over a window": (operator("AveragePool", kernel_shape=[3, 4], strides=[2, 1]), IMAGE, {}, 17),
    "sum of all": (operator("ReduceSum", keepdims=0), IMAGE, {}, 17),
    "transform": (operator("DFT", onesided=1), (2, 8, 1), {}, 17),
    "transform of frames": (operator("STFT", "step", "window"), ROW,
                            {"step": np.array(4), "window": np.hanning(16).astype(np.float32)}, 17),
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_a_sum_in_another_order_is_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "LONG", 8)
    monkeypatch.setattr(sum_forms, "SHORT", 8)
    node, shape, weights, opset = SMALL[name]
    x = normal(*shape)
    model = network(node, x, weights, opset)
    (right,) = OnnxRuntime(model).ask({"x": x})
    types = tensor_types(model)
    others = [sums.with_wide_sums(model, types), sums.with_serial_sums(model, types)]
    assert others[0].graph.node != model.graph.node
    for other in filter(None, others):
        (answer,) = OnnxRuntime(other).ask({"x": x})
        assert answer.shape == right.shape
        assert np.allclose(answer, right, rtol=1e-4, atol=1e-6)


PIXELS = CHANCE.integers(0, 255, (1, 2, 512, 512)).astype(np.float32)
NUMBERS = CHANCE.integers(0, 255, (2, 262_144)).astype(np.float32)
TENTHS = np.full((1, 2, 512, 512), 0.1, np.float32)
CHANNELS = np.full((1, 65_536, 2, 2), 0.1, np.float32)
TWO = {"s": ones(2), "b": 0 * ones(2)}
SIGNAL = normal(1, 4000)
WINDOW = np.hanning(400).astype(np.float32)


def added(numbers: np.ndarray) -> np.ndarray:
    """Return sums along the last axis, added term by term."""
    return np.asarray(np.add.accumulate(numbers, axis=-1)[..., -1])


def transformed(signal: np.ndarray, step: int, window: np.ndarray) -> np.ndarray:
    """Return the frequencies of frames of a signal, computed in double precision."""
    frames = np.lib.stride_tricks.sliding_window_view(signal, len(window), axis=1)[:, ::step]
    numbers = np.fft.rfft(frames * window.astype(np.float64))
    return np.stack([numbers.real, numbers.imag], -1).astype(np.float32)


def normalised(numbers: np.ndarray) -> np.ndarray:
    """Return numbers over their deviation along the last axis, with sums that are added term by term."""
    count = np.float32(numbers.shape[-1])
    centred = numbers - (added(numbers) / count)[..., None]
    return np.asarray(centred / np.sqrt(added(centred * centred) / count + np.float32(1e-5))[..., None])


LONG: Mapping[str, tuple[Any, np.ndarray, Mapping[str, np.ndarray], np.ndarray]] = {
    "mean": (operator("ReduceMean", axes=[1]), NUMBERS, {}, added(NUMBERS)[:, None] / np.float32(262_144)),
    "pool": (operator("GlobalAveragePool"), TENTHS, {},
             added(TENTHS.reshape(1, 2, -1))[..., None, None] / np.float32(262_144)),
    "norm of instances": (operator("InstanceNormalization", "s", "b"), PIXELS, TWO,
                          normalised(PIXELS.reshape(1, 2, -1)).reshape(PIXELS.shape)),
    "length": (operator("ReduceL2", axes=[2, 3]), TENTHS, {}, np.full((1, 2, 1, 1), 51.2, np.float32)),
    "convolution over a whole image": (
        operator("Conv", "w", group=2), TENTHS[..., :256, :256], {"w": np.full((2, 1, 256, 256), 256**-2, np.float32)},
        np.full((1, 2, 1, 1), 0.1, np.float32)),
    "convolution of many channels": (
        operator("Conv", "w"), CHANNELS, {"w": 0.1 * ones(1, 65_536, 1, 1)},
        np.full((1, 1, 2, 2), np.float64(np.float32(0.1)) ** 2 * 65_536, np.float32)),
    "average over a window": (operator("AveragePool", kernel_shape=[512, 512]), TENTHS, {},
                              np.full((1, 2, 1, 1), 0.1, np.float32)),
    "transform of frames": (operator("STFT", "step", "window"), SIGNAL, {"step": np.array(160), "window": WINDOW},
                            transformed(SIGNAL, 160, WINDOW)),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_an_answer_without_rounding_or_added_term_by_term_is_right(name: str) -> None:
    node, x, weights, answer = LONG[name]
    model = network(node, x, weights, 17)
    truth = OnnxRuntime(model).ask({"x": x})
    (measured,) = measure_leeway(model, {"x": x}, truth)
    factor = ROUNDING_FACTOR["float32"]

    def is_right(answer: np.ndarray, *, own: bool = True) -> bool:
        leeway = measured.leeway(factor, "float32")
        allowed = [leeway] if own else []
        rounding = [factor * measured.rounding["float32"]]
        return compare_answers([answer], truth, RELATIVE_TOLERANCE["float32"], rounding, allowed).right

    assert not is_right(answer, own=False)
    assert is_right(answer)
    assert not is_right(np.float32(1.01) * answer)


SUMS_OF_OTHERS = ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss", "DynamicQuantizeLinear")
"""Functions of ONNX for training, or with a maximum inside and no sum."""


def test_each_function_of_onnx_with_a_sum_is_written_as_its_sums() -> None:
    functions = [schema for schema in onnx.defs.get_all_schemas() if schema.domain == "" and schema.has_function]
    with_sums = {
        schema.name for schema in functions if any(n.op_type.startswith("Reduce") for n in schema.function_body.node)
    }
    handled = {*sum_forms.FUNCTIONS, *sum_forms.ONLY_FUNCTIONS, *SUMS_OF_OTHERS}
    assert with_sums <= handled


@pytest.mark.parametrize(
    ("kind", "shapes", "terms"),
    [
        ("Conv", ((1, 8, 5, 5), (6, 4, 3, 3), (1, 6, 5, 5)), 36),
        ("ConvTranspose", ((1, 8, 5, 5), (8, 3, 2, 2), (1, 6, 10, 10)), 16),
        ("Gemm", ((3, 40), (7, 40), (3, 7)), 40),
        ("MatMul", ((2, 3, 40), (40, 7), (2, 3, 7)), 40),
        ("Softmax", ((4, 9), (4, 9), (4, 9)), 9),
        ("ReduceMean", ((2, 4, 6, 8), (2,), (2, 4, 1, 1)), 48),
        ("InstanceNormalization", ((2, 4, 6, 8), (4,), (2, 4, 6, 8)), 48),
        ("GRU", ((5, 1, 10), (1, 60, 10), (5, 1, 1, 20)), 30),
    ],
)
def test_shapes_say_how_many_terms_a_sum_has(kind: str, shapes: Sequence[Sequence[int]], terms: int) -> None:
    assert sums.TERMS[kind](*shapes) == terms
