"""Chains of random operators are valid, have an answer, and are the same for the same seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from benchmarks.operator_attributes import main
from benchmarks.operator_chains import ChainDraw, OtherOpset, chains
from harness.compile.models.onnx_inputs import input_specs
from harness.compile.models.spec import seeded_inputs
from harness.compile.oracle.truth import first_answer, judges_of


def test_a_chain_is_valid_and_has_an_answer() -> None:
    networks = dict(chains(3, 12, 3))
    assert len(networks) == 12
    for name, model in networks.items():
        operators = name.rpartition("_")[0].rpartition("_")[0].split("-")
        assert 2 <= len(operators) <= 3
        onnx.checker.check_model(model, full_check=True)
        answers = first_answer(judges_of(model), seeded_inputs(input_specs(model), 0)).outputs
        assert all(np.isfinite(np.asarray(answer, np.float64)).all() for answer in answers)


def test_a_seed_draws_the_same_chains(tmp_path: Path) -> None:
    for folder in ("one", "same"):
        main(str(tmp_path / folder), "--chain", "2", "--seed", "7", "--count", "6", "resize", "matmul", "gather")
    one, same = ([path.read_bytes() for path in sorted((tmp_path / name).glob("*.onnx"))] for name in ("one", "same"))
    assert len(one) == 6
    assert one == same


@pytest.mark.parametrize("shape", [(2, 3), (6,), (1, 2), (4, 5), (3, 3, 3), (2, 2, 1)])
def test_a_tensor_is_cut_padded_or_repeated_to_another_shape(shape: tuple[int, ...]) -> None:
    net = ChainDraw([0])
    net.tensor(2, 3)
    assert net.shape_of(net.fit(net.x, shape)) == shape


def test_signals_images_and_volumes_are_drawn_and_read_on() -> None:
    draws = [ChainDraw([0, seed]) for seed in range(40)]
    assert {len(net.shape) for net in draws if net.grid()} == {3, 4, 5}
    net = next(net for net in draws if len(net.shape) == 5)
    net.readable.append(made := net.add("Relu"))
    assert made in {net._last(0, 5) for _ in range(20)}
    assert {net._last(0, 3, 4) for _ in range(20)} == {""}


def test_operators_of_two_operator_sets_are_not_mixed() -> None:
    net = ChainDraw([0])
    net.opset = 13
    with pytest.raises(OtherOpset):
        net.opset = 18
    assert net.opset == 13
