"""Casts of floats give the same integers by way of 64 bits, and halves the same numbers by way of float32."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_networks import answers, changed, kinds, network, values

from harness.compile.models.preparation.casts import IN_SINGLE, compute_in_single, write_casts

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


@pytest.mark.parametrize("kind", IN_SINGLE)
def test_what_the_importer_writes_in_float32_is_computed_in_that(kind: str) -> None:
    shape = (1, 4, 3, 3)
    attributes = {"size": 3} if kind == "LRN" else {}
    node = helper.make_node(kind, ["x"], ["y"], **attributes)
    model = network([node], {"x": shape}, opset=18, dtype=TensorProto.FLOAT16)
    plain, said = changed(model, compute_in_single)
    assert (kinds(plain), said) == (["Cast", kind, "Cast"], "computed 1 operator of half precision in float32")
    x = values(*shape).astype(np.float16)
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], rtol=2e-3, atol=1e-3)
    single = network([node], {"x": shape}, opset=18)
    assert changed(single, compute_in_single)[1] == ""
