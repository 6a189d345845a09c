"""What is refused before TVM sees a network."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from onnx import helper
from small_networks import network

from harness.base.failures import ModelError, UnsupportedOperator
from harness.compile.models.outline import NetworkView, check, remedies, require_known, require_on_device


def test_a_shape_that_is_an_input_is_refused_by_name() -> None:
    model = network([helper.make_node("Reshape", ["x", "shape"], ["y"])], {"x": (2, 3)})
    model.graph.input.append(helper.make_tensor_value_info("shape", 7, [1]))
    said = r"TVM compiles fixed shapes, and an input of the network is that of Reshape \(y\): export the model with"
    with pytest.raises(UnsupportedOperator, match=said):
        require_on_device(model, ())


def test_an_operator_without_a_kernel_is_refused_by_name_with_what_to_do() -> None:
    """TVM stops in another pass on each path, of which none names the operator."""
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores"], ["y"])
    model = network([node], {"boxes": (1, 6, 4), "scores": (1, 1, 6)})
    with pytest.raises(UnsupportedOperator, match=r"no OpenCL kernel for NonMaxSuppression \(y\)") as caught:
        require_on_device(model, ())
    assert "up to its boxes and scores" in caught.value.hint


def test_samples_by_the_size_of_a_region_are_refused() -> None:
    """Each path says that it has no schedule."""
    for ratio, refused in ((0, True), (2, False)):
        node = helper.make_node("RoiAlign", ["x", "regions", "batches"], ["y"], sampling_ratio=ratio)
        model = network([node], {"x": (1, 2, 8, 8), "regions": (3, 4), "batches": (3,)})
        with (
            pytest.raises(UnsupportedOperator, match=r"sampling_ratio of 0: RoiAlign \(y\)")
            if refused
            else nullcontext()
        ):
            require_on_device(model, ())


def test_other_operators_pass() -> None:
    require_on_device(network([helper.make_node("Relu", ["x"], ["y"])], {"x": (2, 3)}), ())


def test_a_network_that_contradicts_itself_is_told_so_and_not_to_fix_a_length() -> None:
    """torch's older exporter wrote an axis too far behind; without that shape the GRU has no length."""
    far = helper.make_node("Unsqueeze", ["x"], ["far"], "far", axes=[3])
    gru = helper.make_node("GRU", ["far", "w", "r"], ["y"], hidden_size=2)
    model = network([far, gru], {"x": (1, 96), "w": (1, 6, 4), "r": (1, 6, 2)}, opset=11)
    with pytest.raises(UnsupportedOperator) as caught:
        require_known(model, ("Unsqueeze",))
    assert caught.value.hint.startswith(
        "the network contradicts itself, so export it another way: (op_type:Unsqueeze, node name: far): "
    )
    assert "--shape" not in caught.value.hint


def test_a_branch_that_fits_nothing_is_not_blamed_on_the_network() -> None:
    """Both branches of an If are computed; only the network of one rate of a wake word was meant to be."""
    inner = helper.make_graph(
        [helper.make_node("Abs", ["x"], ["b"])], "b", [], [helper.make_empty_tensor_value_info("b")]
    )
    choice = helper.make_node("If", ["c"], ["z"], then_branch=inner, else_branch=inner)
    far = helper.make_node("Unsqueeze", ["x"], ["far"], "far", axes=[3])
    gru = helper.make_node("GRU", ["far", "w", "r"], ["y"], hidden_size=2)
    model = network([choice, far, gru], {"x": (1, 96), "w": (1, 6, 4), "r": (1, 6, 2), "c": ()}, opset=11)
    with pytest.raises(UnsupportedOperator) as caught:
        require_known(model, ("Unsqueeze", "If", "Abs"))
    assert caught.value.hint.startswith(
        "both branches of an If cannot be computed here, so choose one with --fix INPUT"
    )


@pytest.mark.parametrize("kind", ["RandomNormalLike", "Bernoulli"])
def test_random_numbers_are_refused_because_no_answer_is_right(kind: str) -> None:
    model = network([helper.make_node(kind, ["x"], ["y"])], {"x": (2, 3)})
    with pytest.raises(UnsupportedOperator, match="no answer to random numbers is right or wrong"):
        require_known(model, ())


def test_an_operator_that_a_newer_operator_set_has_is_no_custom_one() -> None:
    """torch writes DeformConv into files of operator set 18."""
    node = helper.make_node("DeformConv", ["x", "w", "o"], ["y"], kernel_shape=[3, 3])
    inputs = [helper.make_tensor_value_info(name, 1, [1, 1, 3, 3]) for name in node.input]
    graph = helper.make_graph([node], "net", inputs, [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    with pytest.raises(ModelError, match="DeformConv") as caught:
        check(Path("net.onnx"), model)
    assert caught.value.hint == "export it with operator set 19"


def test_a_layer_of_onnxruntimes_optimiser_wants_a_length_and_no_other_export() -> None:
    assert remedies(["com.microsoft.DynamicQuantizeLSTM"]) == [
        "DynamicQuantizeLSTM is unrolled if --shape gives its length"
    ]


def test_shapes_are_known_behind_a_gelu_of_another_domain() -> None:
    gelu = helper.make_node("BiasGelu", ["x", "b"], ["h"], domain="com.microsoft")
    model = network([gelu, helper.make_node("Transpose", ["h"], ["y"])], {"x": (2, 3), "b": (3,)})
    assert NetworkView(model).shape("y") == (3, 2)
    assert model.graph.node[0].op_type == "BiasGelu"
