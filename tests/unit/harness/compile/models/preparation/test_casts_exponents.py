"""Exponents get the number format of their base."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_networks import answers, changed, kinds, network, values

from harness.compile.models.preparation.casts import write_exponents_as_floats

POW = helper.make_node("Pow", ["x", "e"], ["y"])


@pytest.mark.parametrize("exponent", [np.array(3), np.array([2, 0, 1], np.int32), np.array(2, np.float64)])
def test_the_answers_stay_the_same(exponent: np.typing.NDArray[np.generic]) -> None:
    model = network([POW], {"x": [2, 3]}, e=exponent)
    plain, said = changed(model, write_exponents_as_floats)
    assert said == "wrote the exponents of 1 Pow in the number format of their bases"
    x = values(2, 3)
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], rtol=1e-6)


@pytest.mark.parametrize("dtype", [TensorProto.INT64, TensorProto.DOUBLE])
def test_an_exponent_that_is_computed_is_cast(dtype: int) -> None:
    nodes = [helper.make_node("Ceil", ["x"], ["c"]), helper.make_node("Cast", ["c"], ["e"], to=dtype), POW]
    model = network(nodes, {"x": [2, 3]})
    plain, _ = changed(model, write_exponents_as_floats)
    assert kinds(plain) == ["Ceil", "Cast", "Cast", "Pow"]
    x = values(2, 3)
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], rtol=1e-6)


def test_what_fits_already_and_the_exponent_of_an_integer_stay() -> None:
    assert changed(network([POW], {"x": [2, 3]}, e=np.float32(2)), write_exponents_as_floats)[1] == ""
    whole = network([POW], {"x": [2, 3]}, dtype=TensorProto.INT32, e=np.float32(0.5))
    assert changed(whole, write_exponents_as_floats)[1] == ""
