"""Every kind of wrong operator that is put into a small network is caught."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks.injected_faults import FAULTS, Trial, report, trials
from benchmarks.known_networks import KnownNetwork

CHANCE = np.random.default_rng(7)


def _small() -> onnx.ModelProto:
    """Convolutions, batch norms, pools, and a classifier, as deep as a test has time for."""
    weights = {
        "k1": CHANCE.standard_normal((8, 3, 3, 3)) / 5, "b1": CHANCE.standard_normal(8) / 5,
        "k2": CHANCE.standard_normal((8, 8, 3, 3)) / 8, "b2": CHANCE.standard_normal(8) / 5,
        "gamma": CHANCE.uniform(0.7, 1.3, 8), "beta": CHANCE.standard_normal(8) / 5,
        "mean": CHANCE.standard_normal(8) / 5, "variance": CHANCE.uniform(1e-4, 1e-3, 8),
        "dense": CHANCE.standard_normal((10, 8)) / 3, "offset": CHANCE.standard_normal(10) / 5,
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "k1", "b1"], ["c1"], pads=[1] * 4),
        helper.make_node("Neg", ["c1"], ["n1"]),
        helper.make_node("MaxPool", ["n1"], ["p1"], kernel_shape=[3, 3], pads=[1] * 4),
        helper.make_node("Relu", ["p1"], ["r1"]),
        helper.make_node("Conv", ["c1", "k2", "b2"], ["c2"], pads=[1] * 4),
        helper.make_node("BatchNormalization", ["c2", "gamma", "beta", "mean", "variance"], ["n2"]),
        helper.make_node("AveragePool", ["n2"], ["p2"], kernel_shape=[3, 3], pads=[1] * 4),
        helper.make_node("Add", ["p1", "p2"], ["s"]),
        helper.make_node("LeakyRelu", ["s"], ["a"], alpha=0.1),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "dense", "offset"], ["y"], transB=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10])
    tensors = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "small", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def tried() -> list[Trial]:
    return list(trials(KnownNetwork("test", "small", _small, {}), depths=4))


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_that_is_beyond_rounding_is_caught(tried: list[Trial], fault: str) -> None:
    mine = [trial for trial in tried if trial.fault == fault]
    assert any(trial.visible for trial in mine)
    assert [trial.node for trial in mine if trial.visible and not trial.caught] == []


def test_the_tolerance_of_the_peak_alone_lets_some_through(tried: list[Trial]) -> None:
    assert any(trial.caught and not trial.caught_before for trial in tried)


def test_the_report_counts_and_names(tried: list[Trial]) -> None:
    lines = "\n".join(report(tried))
    assert f"| all | {len(tried)} |" in lines
    assert "Beyond rounding and not caught: 0" in lines
