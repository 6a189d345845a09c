"""Recurrent layers are unrolled into what onnxruntime computes of the layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from small_networks import answers, changed, kinds, network, values

from harness.base.failures import ModelError
from harness.compile.models.preparation.cells import PARAMETERS
from harness.compile.models.preparation.recurrent import KINDS, unroll

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
FEATURES, HIDDEN = 5, 4
DIRECTIONS = ("forward", "reverse", "bidirectional")


def layer(kind: str, length: int = 3, batch: int = 2, direction: str = "forward", **more: Any) -> Any:
    """One layer with all of its results; `more` are its other inputs by name, and its attributes."""
    both, width = (2 if direction == "bidirectional" else 1), GATES[kind] * HIDDEN
    weights = {"w": values(both, width, FEATURES), "r": values(both, width, HIDDEN)}
    shapes = {
        "b": (both, 2 * width),
        "h0": (both, batch, HIDDEN),
        "c0": (both, batch, HIDDEN),
        "p": (both, 3 * HIDDEN),
    }
    names = ["x", "w", "r"]
    for name in ("b", "lengths", "h0", "c0", "p"):
        given = more.pop(name, None)
        names.append("" if given is None else name)
        if given is not None:
            weights[name] = given if name == "lengths" else values(*shapes[name])
    while not names[-1]:
        names.pop()
    outputs = ["y", "last", "cell"][: 3 if kind == "LSTM" else 2]
    node = helper.make_node(kind, names, outputs, hidden_size=HIDDEN, direction=direction, **more)
    return network([node], {"x": [length, batch, FEATURES]}, outputs, **weights)


def require_same(model: Any, x: Any) -> None:
    plain, _ = changed(model, unroll)
    assert not {*kinds(plain)} & {*KINDS}
    for wanted, got in zip(answers(model, {"x": x}), answers(plain, {"x": x}), strict=True):
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_clip_of_an_old_operator_set_has_attributes(kind: str) -> None:
    model = layer(kind, clip=0.3)
    model.opset_import[0].version = 10
    require_same(model, values(3, 2, FEATURES))


@st.composite
def layers(draw: st.DrawFn) -> tuple[Any, Any]:
    kind, direction = draw(st.sampled_from(sorted(GATES))), draw(st.sampled_from(DIRECTIONS))
    length, batch = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    inputs = {name: True for name in ("b", "h0") if draw(st.booleans())}
    more: dict[str, Any] = {}
    if draw(st.booleans()):
        more["lengths"] = np.array(draw(st.lists(st.integers(1, length), min_size=batch, max_size=batch)), np.int32)
    if draw(st.booleans()):
        more["clip"] = 0.4
    if kind == "LSTM":
        inputs |= {name: True for name in ("c0", "p") if draw(st.booleans())}
        more |= {"input_forget": 1} if draw(st.booleans()) else {}
    if kind == "GRU":
        more["linear_before_reset"] = draw(st.integers(0, 1))
    if draw(st.booleans()):
        names = draw(st.tuples(*[st.sampled_from(sorted(PARAMETERS))] * len(KINDS[kind])))
        more["activations"] = list(names) * (2 if direction == "bidirectional" else 1)
        for key, number in (("alpha", 0.3), ("beta", 0.4)):  # without them, onnxruntime takes 0 for some
            count = sum(key in PARAMETERS[name] for name in more["activations"])
            more |= {f"activation_{key}": [number] * count} if count else {}
    return layer(kind, length, batch, direction, **inputs, **more), values(length, batch, FEATURES)


@given(layers())
def test_every_layer_is_computed_as_onnxruntime_does(drawn: tuple[Any, Any]) -> None:
    require_same(*drawn)


def test_numbers_of_activations_are_read_in_order() -> None:
    numbers: dict[str, Any] = {"activation_alpha": [0.3, 0.7], "activation_beta": [0.4, 0.1]}
    require_same(layer("LSTM", activations=["HardSigmoid", "Tanh", "Affine"], **numbers), values(3, 2, FEATURES))


@pytest.mark.parametrize("kind", sorted(GATES))
def test_the_other_layout_has_the_batch_first(kind: str) -> None:
    usual, x = layer(kind, b=True), values(3, 2, FEATURES)
    other = layer(kind, 2, 3, b=True, layout=1)  # which onnxruntime does not compute
    plain, _ = changed(other, unroll)
    wanted = answers(usual, {"x": x})
    got = answers(plain, {"x": x.transpose(1, 0, 2)})
    np.testing.assert_allclose(got[0], wanted[0].transpose(2, 0, 1, 3), rtol=1e-5, atol=1e-5)
    for last, right in zip(got[1:], wanted[1:], strict=True):
        np.testing.assert_allclose(last, right.transpose(1, 0, 2), rtol=1e-5, atol=1e-5)


def test_one_after_another_and_what_is_said() -> None:
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r"], ["a"], hidden_size=HIDDEN),
        helper.make_node("Squeeze", ["a", "axis"], ["b"]),
        helper.make_node("GRU", ["b", "v", "q"], ["", "y"], hidden_size=HIDDEN),
    ]
    weights: dict[str, Any] = {
        "w": values(1, 4 * HIDDEN, FEATURES),
        "r": values(1, 4 * HIDDEN, HIDDEN),
        "v": values(1, 3 * HIDDEN, HIDDEN),
        "q": values(1, 3 * HIDDEN, HIDDEN),
    }
    model = network(nodes, {"x": [3, 2, FEATURES]}, axis=np.array([1]), **weights)
    require_same(model, values(3, 2, FEATURES))
    assert changed(model, unroll)[1] == "unrolled 1 GRU into 3 steps; unrolled 1 LSTM into 3 steps"


def test_a_layer_whose_length_is_open_stays() -> None:
    model = layer("RNN")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "length"
    plain, said = changed(model, unroll)
    assert (kinds(plain), said) == (["RNN"], "")


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("kind", sorted(GATES))
def test_lengths_of_sequences_may_be_an_input(kind: str, direction: str) -> None:
    model = layer(kind, direction=direction, b=True, h0=True, lengths=np.array([3, 2], np.int32))
    tensor = next(each for each in model.graph.initializer if each.name == "lengths")
    model.graph.initializer.remove(tensor)
    model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    plain, _ = changed(model, unroll)
    assert kind not in kinds(plain)
    for lengths in ([3, 2], [1, 3]):
        inputs = {"x": values(3, 2, FEATURES), "lengths": np.array(lengths, np.int32)}
        for wanted, got in zip(answers(model, inputs), answers(plain, inputs), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_weights_for_other_inputs_are_refused_in_one_line(kind: str) -> None:
    model = layer(kind)
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_value += 1
    with pytest.raises(ModelError, match=rf"{kind} 'y' is given W of the shape .* and needs .* 6 numbers in each step"):
        unroll(model)


@pytest.mark.parametrize(
    ("name", "operand"), [("r", "R"), ("b", "B"), ("lengths", "sequence_lens"), ("h0", "initial_h"), ("p", "P")]
)
@pytest.mark.parametrize("axis", [0, -1])
def test_operands_of_another_shape_are_refused_in_one_line(name: str, operand: str, axis: int) -> None:
    """onnxruntime reads beyond the end of an LSTM's R, and took weights of two directions for one."""
    model = layer("LSTM", b=True, lengths=np.array([3, 2], np.int32), h0=True, c0=True, p=True)
    (tensor,) = (tensor for tensor in model.graph.initializer if tensor.name == name)
    array = numpy_helper.to_array(tensor)
    tensor.CopyFrom(numpy_helper.from_array(np.concatenate([array, array], axis), name))
    with pytest.raises(ModelError, match=rf"LSTM 'y' is given {operand} of the shape .* and needs"):
        unroll(model)


def test_a_sequence_that_is_too_long_is_refused_in_one_line() -> None:
    with pytest.raises(ModelError, match=r"LSTM 'y' over 100000 steps would become too long.*with --shape"):
        unroll(layer("LSTM", length=100_000))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("each", [False, True])
def test_a_quantised_lstm_is_computed_as_onnxruntime_does(direction: str, each: bool) -> None:
    both, width, rng = (2 if direction == "bidirectional" else 1), 4 * HIDDEN, np.random.default_rng(0)
    scale = np.full((both, width) if each else (both,), 0.01, np.float32)
    zero = np.zeros(scale.shape, np.int8)
    weights: dict[str, Any] = {
        "w": rng.integers(-127, 127, (both, FEATURES, width)).astype(np.int8),
        "r": rng.integers(-127, 127, (both, HIDDEN, width)).astype(np.int8),
        "b": values(both, 2 * width),
        "ws": scale,
        "wz": zero,
        "rs": scale,
        "rz": zero,
    }
    names = ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"]
    attributes = {"hidden_size": HIDDEN, "direction": direction}
    outputs = ["y", "last", "cell"]
    node = helper.make_node("DynamicQuantizeLSTM", names, outputs, domain="com.microsoft", **attributes)
    model = network([node], {"x": [3, 1, FEATURES]}, outputs, **weights)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    x = values(3, 1, FEATURES)
    plain, said = changed(model, unroll)
    assert said == f"unrolled 1 DynamicQuantizeLSTM into {3 * both} steps"
    assert "DynamicQuantizeLSTM" not in kinds(plain)
    for wanted, got in zip(answers(model, {"x": x}), answers(plain, {"x": x}), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_the_first_step_of_a_quantised_lstm_divides_no_zero_by_its_scale() -> None:
    rng, shape = np.random.default_rng(0), (1, FEATURES, 4 * HIDDEN)
    weights: dict[str, Any] = {
        "w": rng.integers(-127, 127, shape).astype(np.int8),
        "r": rng.integers(-127, 127, (1, HIDDEN, 4 * HIDDEN)).astype(np.int8),
        "h": np.zeros((1, 1, HIDDEN), np.float32),
        "s": np.full((1,), 0.01, np.float32),
        "z": np.zeros((1,), np.int8),
    }
    names = ["x", "w", "r", "", "", "h", "", "", "s", "z", "s", "z"]
    node = helper.make_node("DynamicQuantizeLSTM", names, ["y"], domain="com.microsoft", hidden_size=HIDDEN)
    model = network([node], {"x": [3, 1, FEATURES]}, ["y"], **weights)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    plain, _ = changed(model, unroll)
    assert kinds(plain).count("DynamicQuantizeLinear") == 1 + 2  # of the inputs, and of the states after two steps
