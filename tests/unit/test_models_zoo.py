"""The zoo's networks: the same bytes every time, and the shapes of the papers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

from harness.models.spec import InputSpec, seeded_inputs
from harness.models.zoo import ZOO

MODELS = {model.name: model for model in ZOO}


FIRST_WEIGHTS = (-0.1879862, -0.3505884, 0.03085618)


@pytest.mark.parametrize("name", MODELS)
def test_builds_the_same_bytes_every_time(name: str) -> None:
    assert MODELS[name].build() == MODELS[name].build()


def test_weights_are_those_of_this_release() -> None:
    """A changed weight is a new series: whoever changes the generator has to know."""
    model = onnx.load_model_from_string(MODELS["tiny"].build())
    weights = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    np.testing.assert_allclose(weights["weight_0"].ravel()[:3], FIRST_WEIGHTS, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "operators", "parameters"),
    [
        ("mobilenet_v1", {"Conv": 27, "BatchNormalization": 27, "Gemm": 1}, 4_231_976),
        ("resnet18", {"Conv": 20, "BatchNormalization": 20, "Add": 8, "MaxPool": 1, "Gemm": 1}, 11_689_512),
        ("squeezenet1_1", {"Conv": 26, "Concat": 8, "MaxPool": 3}, 1_235_496),
    ],
)
def test_has_the_operators_and_parameters_of_the_paper(name: str, operators: dict[str, int], parameters: int) -> None:
    model = onnx.load_model_from_string(MODELS[name].build())
    counts = Counter(node.op_type for node in model.graph.node)
    assert {kind: counts[kind] for kind in operators} == operators
    sizes = {tensor.name: int(np.prod(tensor.dims)) for tensor in model.graph.initializer}
    # Running statistics are not trained, so no paper counts them.
    assert sum(size for name, size in sizes.items() if not name.startswith(("mean", "variance"))) == parameters


@pytest.mark.parametrize("name", MODELS)
def test_shapes_are_consistent(name: str) -> None:
    onnx.checker.check_model(onnx.load_model_from_string(MODELS[name].build()), full_check=True)


def test_tiny_has_every_operator_of_the_zoo() -> None:
    def kinds(name: str) -> set[str]:
        return {node.op_type for node in onnx.load_model_from_string(MODELS[name].build()).graph.node}

    assert set.union(*(kinds(name) for name in MODELS)) == kinds("tiny")


def test_batch_norm_is_not_identity_and_answers_are_of_size_one() -> None:
    model = onnx.load_model_from_string(MODELS["tiny"].build())
    weights = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for role, identity in {"gamma": 1.0, "beta": 0.0, "mean": 0.0, "variance": 1.0}.items():
        values = np.concatenate([array for name, array in weights.items() if name.startswith(role)])
        assert np.abs(values - identity).max() > 0.1
    from onnx.reference import ReferenceEvaluator

    inputs = seeded_inputs([InputSpec("input", (1, 3, 32, 32))], seed=0)
    (answer,) = ReferenceEvaluator(model).run(None, inputs)
    assert 0.1 < answer.std() < 10


def test_file_is_written_once_and_named_by_its_recipe(tmp_path: Path) -> None:
    first = MODELS["tiny"].onnx_file(tmp_path)
    stamp = first.stat().st_mtime_ns
    assert MODELS["tiny"].onnx_file(tmp_path) == first
    assert first.stat().st_mtime_ns == stamp
    assert first.read_bytes() == MODELS["tiny"].build()


def test_inputs_are_seeded_by_name_and_seed() -> None:
    image, mask = InputSpec("image", (2, 3)), InputSpec("mask", (4,), "int64")
    alone, both = seeded_inputs([image], 1), seeded_inputs([mask, image], 1)
    np.testing.assert_array_equal(alone["image"], both["image"])
    assert both["mask"].dtype == np.int64
    assert set(both["mask"].tolist()) <= {0, 1}
    assert not np.array_equal(alone["image"], seeded_inputs([image], 2)["image"])
    assert seeded_inputs([InputSpec("half", (3,), "float16")], 1)["half"].dtype == np.float16
