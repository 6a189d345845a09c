"""Whether half precision can hold a network's numbers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from small_networks import network

from harness.compile.artifacts.artifact import RANGE
from harness.compile.artifacts.values import first_not_finite, inputs_of, largest, measure_range
from harness.compile.models.onnx_inputs import input_specs
from harness.compile.models.preparation import prepare
from harness.compile.oracle.truth import values_of
from harness.measure.work import LARGEST_HALF, beyond_half


def told(file: Path, number: float) -> Path:
    file.write_text(json.dumps({"largest": number, "at": "Mul 'big'"}))
    return file


def job_of(model: Path) -> dict[str, Any]:
    return {"request": {"model_file": str(model)}, "seed": 1, "inputs": {}}


def test_the_largest_magnitude_is_found_and_named() -> None:
    values = {"a": np.array([1.0, -7.0]), "b": np.array([5.0, -np.inf, np.nan]), "c": np.array([99]), "d": np.zeros(0)}
    assert largest(values) == {"largest": 7.0, "at": "a"}


def test_the_first_output_that_is_not_finite_is_told_by_its_place() -> None:
    good, bad = np.array([1.0, -2.0]), np.array([0.0, np.inf])
    assert first_not_finite([good, np.array([7]), bad, bad]) == 2
    assert first_not_finite([good, np.array([True])]) is None


@pytest.mark.parametrize(("number", "beyond"), [(0.0, False), (65_504.0, False), (65_505.0, True)])
def test_what_float16_cannot_hold_is_beyond_it(tmp_path: Path, number: float, beyond: bool) -> None:
    assert bool(beyond_half(told(tmp_path / RANGE, number))) is beyond


def test_a_number_in_the_middle_of_a_network_is_seen(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Mul", ["x", "large"], ["big"]),
        helper.make_node("Div", ["big", "large"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 64]) for name in ("x", "y")]
    weights = [numpy_helper.from_array(np.array([6e4], np.float32), "large")]
    model = helper.make_model(
        helper.make_graph(nodes, "g", values[:1], values[1:], weights),
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=8,
    )
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    measure_range(job_of(tmp_path / "model.onnx"), tmp_path)
    assert "Mul 'big' reaches 1" in beyond_half(tmp_path / RANGE)


def quantised_lstm() -> Any:
    """A layer whose products come to 2e5."""
    weights: dict[str, Any] = {
        "w": np.full((1, 8, 64), 100, np.int8),
        "r": np.full((1, 16, 64), 100, np.int8),
        "s": np.full(1, 1e-3, np.float32),
        "z": np.zeros(1, np.int8),
    }
    names = ["x", "w", "r", "", "", "", "", "", "s", "z", "s", "z"]
    node = helper.make_node("DynamicQuantizeLSTM", names, ["y"], domain="com.microsoft", hidden_size=16)
    model = network([node], {"x": [3, 1, 8]}, **weights)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


def quantised_product() -> Any:
    """A product that comes to 1e6."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["y"]),
    ]
    return network(nodes, {"x": [1, 64]}, w=np.full((64, 4), 127, np.int8))


@pytest.mark.parametrize("made", [quantised_lstm, quantised_product])
def test_products_of_integers_which_stay_float32_are_not_beyond_it(made: Any, tmp_path: Path) -> None:
    model = made()
    prepare(model)
    onnx.save(model, tmp_path / "model.onnx")
    values = values_of(model, inputs_of({}, list(input_specs(model)), 1, finite=False))
    assert largest(values)["largest"] > LARGEST_HALF
    measure_range(job_of(tmp_path / "model.onnx"), tmp_path)
    assert beyond_half(tmp_path / RANGE) == ""
