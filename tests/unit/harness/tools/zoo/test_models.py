"""The zoo's networks: the same bytes every time, and the shapes, parameters and products of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from harness.compile.models.spec import InputSpec, seeded_inputs
from harness.tools.ops.summary import NetworkSummary, summarize
from harness.tools.zoo.graph import Network
from harness.tools.zoo.models import ZOO

MODELS = {model.name: model for model in ZOO}
SMALL = ("tiny", "squeezenet1_1")
"""Those whose weights are drawn in milliseconds."""
FIRST_WEIGHTS = (-0.1879862, -0.3505884, 0.03085618)

PUBLISHED = {
    # torchvision's weights, whose documentation has both figures, for the same networks: "Parameters" and "GFLOPS".
    "mobilenet_v2": (3_504_872, 0.301),
    "mobilenet_v3_small": (2_542_856, 0.057),
    "resnet18": (11_689_512, 1.814),
    "resnet50": (25_557_032, 4.089),
    "squeezenet1_1": (1_235_496, 0.349),
    "densenet121": (7_978_856, 2.834),
    # torchvision counts 27,161,264 with the auxiliary classifier, which has 3,326,696 of them.
    "inception_v3": (27_161_264 - 3_326_696, 5.713),
    # The paper's table 8 says 4.2 million and 569 million.
    "mobilenet_v1": (4_231_976, 0.569),
    # The 4.7 million of `efficientnet/lite`, which says 407 million products: 5 % more than these, for no known reason.
    "efficientnet_lite0": (4_652_008, 0.385),
    # Table 7 of MobileNet V2's paper: 2.11 million and 2.75 thousand million.
    "deeplab_v3": (2_113_557, 2.741),
    # 12 such layers and 23.8 million of embeddings are the 110 million of BERT base.
    "encoder_block": (4 * (768 * 768 + 768) + 2 * 768 * 3072 + 3072 + 768 + 4 * 768, 0.931),
    # 24 such layers are the 0.36 thousand million of Qwen2.5-0.5B without embeddings; and the table of rotations.
    "decoder_layer": (14_912_384 + 2 * 512 * 64, 0.015),
}


def counted(name: str) -> NetworkSummary:
    return summarize(MODELS[name].outline())


@pytest.mark.parametrize("name", PUBLISHED)
def test_has_the_parameters_and_products_that_were_published(name: str) -> None:
    summary = counted(name)
    parameters, giga_macs = PUBLISHED[name]
    assert (summary.parameters, round((summary.macs or 0) / 1e9, 3)) == (parameters, giga_macs)


def test_layers_add_up_to_the_networks_that_they_are_of() -> None:
    assert 12 * counted("encoder_block").parameters / 85.1e6 == pytest.approx(1, abs=0.01)
    assert 24 * counted("decoder_layer").parameters / 0.36e9 == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("name", MODELS)
def test_every_shape_is_known_and_outputs_are_those_declared(name: str) -> None:
    model = MODELS[name].outline()
    summary = summarize(model)
    assert [node.kind for node in summary.nodes if None in node.outputs] == []
    declared = [tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim) for value in model.graph.output]
    last = {name: shape for node in summary.nodes for name, shape in zip(node.proto.output, node.outputs, strict=True)}
    assert [last[value.name] for value in model.graph.output] == declared


@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"digits"}))  # whose weights are in a file
def test_what_is_counted_is_what_is_built(name: str) -> None:
    """An outline has the weights' names, shapes and order; only `build` knows which weights a network has."""
    network = MODELS[name].build()
    assert isinstance(network, Network)
    outline = network.outline().graph.initializer
    assert [(tensor.name, tuple(tensor.dims)) for tensor in outline][: len(network.weights)] == [
        (weight.name, weight.shape) for weight in network.weights
    ]


@pytest.mark.parametrize("name", SMALL)
def test_builds_the_same_valid_bytes_every_time(name: str) -> None:
    first = MODELS[name].build().to_bytes()
    assert first == MODELS[name].build().to_bytes()
    onnx.checker.check_model(onnx.load_model_from_string(first), full_check=True)


def weights_of(model: Any) -> dict[str, Any]:
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def test_weights_are_those_of_this_release() -> None:
    """A changed weight is a new series: whoever changes the generator has to know."""
    model = onnx.load_model_from_string(MODELS["tiny"].build().to_bytes())
    np.testing.assert_allclose(weights_of(model)["weight_0"].ravel()[:3], FIRST_WEIGHTS, rtol=1e-6)


def test_tiny_has_every_operator_of_the_first_three_networks() -> None:
    def kinds(*names: str) -> set[str]:
        return {node.kind for name in names for node in counted(name).nodes}

    assert kinds("mobilenet_v1", "resnet18", "squeezenet1_1", "tiny") == kinds("tiny")


def test_batch_norm_is_not_identity_and_answers_are_of_size_one() -> None:
    from onnx.reference import ReferenceEvaluator

    model = onnx.load_model_from_string(MODELS["tiny"].build().to_bytes())
    weights = weights_of(model)
    for role, identity in {"gamma": 1.0, "beta": 0.0, "mean": 0.0, "variance": 1.0}.items():
        values = np.concatenate([array for name, array in weights.items() if name.startswith(role)])
        assert np.abs(values - identity).max() > 0.1
    inputs = seeded_inputs([InputSpec("input", (1, 3, 32, 32))], seed=0)
    (answer,) = ReferenceEvaluator(model).run(None, inputs)
    assert 0.1 < answer.std() < 10


def test_file_is_written_once_and_named_by_its_recipe(tmp_path: Path) -> None:
    first = MODELS["tiny"].onnx_file(tmp_path)
    stamp = first.stat().st_mtime_ns
    assert MODELS["tiny"].onnx_file(tmp_path) == first
    assert first.stat().st_mtime_ns == stamp
    assert first.read_bytes() == MODELS["tiny"].build().to_bytes()


def test_inputs_are_seeded_by_name_and_seed() -> None:
    image, mask = InputSpec("image", (2, 3)), InputSpec("mask", (4,), "int64")
    alone, both = seeded_inputs([image], 1), seeded_inputs([mask, image], 1)
    np.testing.assert_array_equal(alone["image"], both["image"])
    assert both["mask"].dtype == np.int64
    assert set(both["mask"].tolist()) <= {0, 1}
    assert not np.array_equal(alone["image"], seeded_inputs([image], 2)["image"])
    assert seeded_inputs([InputSpec("half", (3,), "float16")], 1)["half"].dtype == np.float16
