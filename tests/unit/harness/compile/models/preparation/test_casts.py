"""Casts of floats to integers of 32 bits give the same integers by way of 64."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_networks import answers, changed, kinds, network, values

from harness.compile.models.preparation.casts import write_casts

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
