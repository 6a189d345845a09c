"""A batch norm after a convolution becomes part of it, within the rounding of float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from small_networks import answers, changed, kinds, network, values

from harness.compile.models.preparation.batch_norm import fold_batch_norms

CHANNELS = 6


def statistics() -> dict[str, Any]:
    return {
        "gamma": values(CHANNELS, seed=1),
        "beta": values(CHANNELS, seed=2),
        "mean": values(CHANNELS, seed=3),
        "variance": np.abs(values(CHANNELS, seed=4)) + 0.1,
    }


def norm(source: str, output: str, **attributes: Any) -> Any:
    return helper.make_node("BatchNormalization", [source, "gamma", "beta", "mean", "variance"], [output], **attributes)


def conv(output: str, *bias: str, group: int = 1) -> Any:
    return helper.make_node("Conv", ["x", "w", *bias], [output], group=group, pads=[1, 1, 1, 1])


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([1, 2, 6]), st.booleans(), st.sampled_from([1e-5, 1e-2]), st.integers(0, 9))
def test_the_answers_agree_within_rounding(group: int, bias: bool, epsilon: float, seed: int) -> None:
    nodes = [conv("c", *(["b"] if bias else []), group=group), norm("c", "n", epsilon=epsilon)]
    nodes.append(helper.make_node("Relu", ["n"], ["y"]))
    weights = {"w": values(CHANNELS, CHANNELS // group, 3, 3, seed=seed), **statistics()}
    weights |= {"b": values(CHANNELS, seed=seed + 1)} if bias else {}
    model = network(nodes, {"x": [1, CHANNELS, 5, 5]}, **weights)
    plain, said = changed(model, fold_batch_norms)
    assert (kinds(plain), said) == (["Conv", "Relu"], "folded 1 BatchNormalization into convolutions")
    x = values(1, CHANNELS, 5, 5, seed=seed)
    (wanted,), (got,) = answers(model, {"x": x}), answers(plain, {"x": x})
    np.testing.assert_allclose(got, wanted, atol=2e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("second", ["c", "w"])
def test_a_convolution_whose_result_is_read_twice_stays_and_a_shared_weight_does_not_matter(second: str) -> None:
    more = helper.make_node("Relu", ["c"], ["z"]) if second == "c" else conv("z")
    model = network(
        [conv("c"), norm("c", "y"), more],
        {"x": [1, CHANNELS, 5, 5]},
        ["y", "z"],
        w=values(CHANNELS, CHANNELS, 3, 3),
        **statistics(),
    )
    plain, _ = changed(model, fold_batch_norms)
    assert ("BatchNormalization" in kinds(plain)) == (second == "c")
    x = values(1, CHANNELS, 5, 5)
    for wanted, got in zip(answers(model, {"x": x}), answers(plain, {"x": x}), strict=True):
        np.testing.assert_allclose(got, wanted, atol=2e-6 * np.abs(wanted).max())


def test_what_is_not_finite_or_of_training_stays() -> None:
    weights = {"w": values(CHANNELS, CHANNELS, 3, 3), **statistics()}
    nodes = [conv("c"), norm("c", "y")]
    broken = network(nodes, {"x": [1, CHANNELS, 5, 5]}, **{**weights, "variance": np.full(CHANNELS, -1, np.float32)})
    training = network([conv("c"), norm("c", "y", training_mode=1)], {"x": [1, CHANNELS, 5, 5]}, **weights)
    for model in (broken, training):
        assert changed(model, fold_batch_norms)[1] == ""
