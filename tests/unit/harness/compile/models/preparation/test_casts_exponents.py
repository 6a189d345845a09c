"""Exponents get the number format of their base."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from small_networks import answers, changed, network, values

from harness.compile.models.preparation.casts import write_exponents_as_floats

POW = helper.make_node("Pow", ["x", "e"], ["y"])


@pytest.mark.parametrize("exponent", [np.array(3), np.array([2, 0, 1], np.int32), np.array(2, np.float64)])
def test_the_answers_stay_the_same(exponent: np.typing.NDArray[np.generic]) -> None:
    model = network([POW], {"x": [2, 3]}, e=exponent)
    plain, said = changed(model, write_exponents_as_floats)
    assert said == "wrote the exponents of 1 Pow in the number format of their bases"
    x = values(2, 3)
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], rtol=1e-6)


@pytest.mark.parametrize("exponent", [np.float32(2), np.array(0.1, np.float64)])
def test_what_fits_already_or_would_change_stays(exponent: np.typing.NDArray[np.generic]) -> None:
    assert changed(network([POW], {"x": [2, 3]}, e=exponent), write_exponents_as_floats)[1] == ""


def test_an_exponent_that_is_computed_stays() -> None:
    nodes = [helper.make_node("Abs", ["x"], ["e"]), POW]
    assert changed(network(nodes, {"x": [2, 3]}), write_exponents_as_floats)[1] == ""
