"""Casts of floats give the same integers by way of 64 bits, and halves the same numbers by way of float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_networks import answers, changed, kinds, network, values

from harness.compile.models.outline import double_operators
from harness.compile.models.preparation import prepare
from harness.compile.models.preparation.casts import (
    IN_SINGLE,
    compute_in_single,
    look_before_casts,
    write_casts,
    write_casts_like,
)
from harness.compile.models.preparation.order import remove_unread

SHAPE = (2, 3)


@pytest.mark.parametrize("kind", [TensorProto.INT32, TensorProto.UINT32])
def test_a_cast_of_floats_goes_by_way_of_64_bits(kind: int) -> None:
    model = network([helper.make_node("Cast", ["x"], ["y"], to=kind)], {"x": SHAPE})
    plain, said = changed(model, write_casts)
    assert (kinds(plain), said) == (["Cast", "Cast"], "wrote 1 Cast of floats by way of int64")
    x = np.abs(1000 * values(*SHAPE))
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


@pytest.mark.parametrize(("given", "kind"), [("INT64", "INT32"), ("FLOAT", "INT64"), ("FLOAT", "UINT8")])
def test_any_other_cast_stays(given: str, kind: str) -> None:
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.DataType.Value(kind))
    model = network([node], {"x": SHAPE}, dtype=TensorProto.DataType.Value(given))
    assert changed(model, write_casts)[1] == ""


def test_a_cast_names_the_number_format_that_it_would_take_of_another_tensor() -> None:
    node = helper.make_node("CastLike", ["x", "like"], ["y"])
    model = network([node], {"x": SHAPE}, opset=18, like=np.zeros((), np.int64))
    plain, said = changed(model, write_casts_like)
    assert (kinds(plain), said) == (["Cast"], "wrote 1 CastLike as Cast")
    x = 1000 * values(*SHAPE)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


def test_a_cast_of_a_definition_names_its_number_format() -> None:
    model = network([helper.make_node("Swish", ["x"], ["y"], alpha=0.5)], {"x": SHAPE}, opset=24)
    prepare(model)
    assert "CastLike" not in kinds(model)


def test_integers_that_are_computed_as_floats_are_cast_by_way_of_64_bits() -> None:
    weight = np.ones((3, 2), np.int8)
    model = network(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])], {"x": SHAPE}, dtype=TensorProto.UINT8, w=weight
    )
    prepare(model)
    assert [node.attribute[0].i for node in model.graph.node if node.op_type == "Cast"] == [7, 6]


OPERANDS = {
    "BatchNormalization": dict(zip(("scale", "bias", "mean", "variance"), 1 + values(4, 4) / 8, strict=True)),
    "GridSample": {"grid": values(1, 2, 2, 2) / 2},
    "RoiAlign": {"places": np.array([[0.0, 0.0, 2.0, 2.0]]), "images": np.array([0])},
    "Clip": {"low": np.array(-0.5)},
    "DFT": {},
    "STFT": {"step": np.array(2), "window": np.ones(4)},
}
ATTRIBUTES = {"LRN": {"size": 3}, "DFT": {"axis": 1}}


@pytest.mark.parametrize("kind", IN_SINGLE)
def test_what_would_be_written_in_float32_is_computed_in_that(kind: str) -> None:
    shape = {"DFT": (1, 8, 1), "STFT": (1, 8, 1)}.get(kind, (1, 4, 3, 3))
    weights = OPERANDS.get(kind, {})

    def of(real: type) -> tuple[Any, Any]:
        dtype = helper.np_dtype_to_tensor_dtype(np.dtype(real))
        given = {name: array.astype(real) if array.dtype.kind == "f" else array for name, array in weights.items()}
        if kind == "Clip":
            given["low"] = given["low"].astype(np.float32)  # as ONNX's converter of operator sets leaves it
        node = helper.make_node(kind, ["x", *given], ["y"], **ATTRIBUTES.get(kind, {}))
        return network([node], {"x": shape}, opset=18, dtype=dtype, **given), values(*shape).astype(np.float16)

    (half, x), (single, _) = of(np.float16), of(np.float32)
    plain, said = changed(half, compute_in_single)
    assert said == f"computed 1 {kind} of half precision in float32"
    assert [each for each in kinds(plain) if each != "Cast"] == [kind]
    (answer,), (want,) = answers(plain, {"x": x}), answers(single, {"x": x.astype(np.float32)})
    assert answer.dtype == np.float16
    np.testing.assert_allclose(answer, want, rtol=2e-3, atol=1e-3)
    assert changed(single, compute_in_single)[1] == ""


def test_a_clip_of_halves_that_has_bounds_of_halves_stays() -> None:
    clip = helper.make_node("Clip", ["x", "", "high"], ["y"])
    assert (
        changed(network([clip], {"x": SHAPE}, dtype=TensorProto.FLOAT16, high=np.float16(1)), compute_in_single)[1]
        == ""
    )
    old = helper.make_node("Clip", ["x"], ["y"], min=0.0, max=6.0)
    assert changed(network([old], {"x": SHAPE}, opset=10, dtype=TensorProto.FLOAT16), compute_in_single)[1]


def test_a_batch_norm_of_halves_in_training_stays() -> None:
    own: dict[str, Any] = {name: np.ones(4, np.float16) for name in ("scale", "bias", "mean", "variance")}
    node = helper.make_node("BatchNormalization", ["x", *own], ["y", "m", "v"], training_mode=1)
    assert changed(network([node], {"x": (1, 4, 3, 3)}, dtype=TensorProto.FLOAT16, **own), compute_in_single)[1] == ""


@pytest.mark.parametrize("given", [TensorProto.FLOAT, TensorProto.FLOAT16])
@pytest.mark.parametrize("operator", ["IsInf", "IsNaN"])
def test_what_is_not_finite_is_found_without_float64(operator: str, given: int) -> None:
    """torch's exporter writes `torch.isinf` so, and no Adreno has float64."""
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.DOUBLE),
        helper.make_node(operator, ["wide"], ["y"]),
    ]
    model = network(nodes, {"x": [4]}, dtype=given)
    plain, said = changed(model, look_before_casts)
    assert said == f"took 1 {operator} before a cast to float64"
    remove_unread(plain)
    assert not double_operators(plain)
    x = np.array([1, np.inf, -np.inf, np.nan]).astype(helper.tensor_dtype_to_np_dtype(given))
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


def test_doubles_that_a_network_has_are_looked_at_as_they_are() -> None:
    model = network([helper.make_node("IsInf", ["x"], ["y"])], {"x": [4]}, dtype=TensorProto.DOUBLE)
    assert changed(model, look_before_casts)[1] == ""
