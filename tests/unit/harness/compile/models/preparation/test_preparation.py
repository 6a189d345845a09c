"""What an exporter leaves is taken out, said, and changes no answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from small_networks import answers, values

from harness.base.failures import ModelError
from harness.compile.models.preparation import prepare

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(1, 3, 4)


def network(nodes: list[Any], outputs: list[str], *, opset: int = 19, listed: bool = False, **weights: Any) -> Any:
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)]
    if listed:
        inputs += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in tensors]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, X.shape) for name in outputs]
    graph = helper.make_graph(nodes, "net", inputs, results, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3 if listed else 8)


def cleaned(model: Any) -> tuple[Any, list[str]]:
    """A cleaned copy that gives the same answers, and what was said."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    said = prepare(copy)
    onnx.checker.check_model(copy)
    before, after = (ReferenceEvaluator(one).run(None, {"x": X}) for one in (model, copy))
    for expected, got in zip(before, after, strict=True):
        np.testing.assert_array_equal(got, expected)
    return copy, said


def kinds(model: Any) -> list[str]:
    return [node.op_type for node in model.graph.node]


def test_dropout_and_identity_are_removed_also_before_an_output() -> None:
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Dropout", ["b"], ["c"]),
        helper.make_node("Identity", ["c"], ["y"]),
    ]
    model, said = cleaned(network(nodes, ["y"]))
    assert (kinds(model), said) == (["Relu"], ["removed 1 Dropout and 2 Identity"])


@pytest.mark.parametrize("kind", ["BlackmanWindow", "HammingWindow", "HannWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_a_window_of_a_constant_length_is_computed(kind: str, periodic: int) -> None:
    nodes = [
        helper.make_node(kind, ["length"], ["window"], periodic=periodic),
        helper.make_node("Mul", ["x", "window"], ["y"]),
    ]
    model = network(nodes, ["y"], length=np.array(4))
    plain, _ = cleaned(model)
    assert kinds(plain) == ["Mul"]
    np.testing.assert_allclose(answers(plain, {"x": X})[0], answers(model, {"x": X})[0], atol=1e-6)


def test_an_identity_from_input_to_output_stays() -> None:
    model, said = cleaned(network([helper.make_node("Identity", ["x"], ["y"])], ["y"]))
    assert (kinds(model), said) == (["Identity"], [])


@pytest.mark.parametrize("training", [True, False])
def test_a_dropout_of_training_stays(training: bool) -> None:
    nodes = [helper.make_node("Dropout", ["x", "ratio", "flag"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    model = network(nodes, ["y"], ratio=np.float32(0.0), flag=np.array(training))
    prepare(model)
    assert kinds(model) == (["Dropout", "Relu"] if training else ["Relu"])


def test_a_dropout_whose_mask_is_read_stays() -> None:
    nodes = [
        helper.make_node("Dropout", ["x"], ["a", "mask"]),
        helper.make_node("Cast", ["mask"], ["b"], to=1),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    assert kinds(cleaned(network(nodes, ["y"]))[0]) == ["Dropout", "Cast", "Add"]


def test_a_constant_in_numbers_becomes_a_tensor() -> None:
    nodes = [
        helper.make_node("Constant", [], ["a"], value_float=1.5),
        helper.make_node("Constant", [], ["b"], value_floats=[0.5, 1.0, 2.0, 4.0]),
        helper.make_node("Constant", [], ["c"], value_ints=[1, 3, 4]),
        helper.make_node("Constant", [], ["d"], value_int=1),
        helper.make_node("Mul", ["x", "a"], ["e"]),
        helper.make_node("Add", ["e", "b"], ["f"]),
        helper.make_node("Reshape", ["f", "c"], ["g"]),
        helper.make_node("CumSum", ["g", "d"], ["y"]),
    ]
    model, said = cleaned(network(nodes, ["y"]))
    constants = [node for node in model.graph.node if node.op_type == "Constant"]
    assert [[attribute.name for attribute in node.attribute] for node in constants] == [["value"]] * len(constants)
    assert said[0] == "wrote 4 Constant as tensors"


def test_shapes_that_are_known_and_constants_are_folded() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"]),
        helper.make_node("Unsqueeze", ["batch", "axes"], ["batch_1"]),
        helper.make_node("Constant", [], ["rest"], value=numpy_helper.from_array(np.array([-1]), "v")),
        helper.make_node("Concat", ["batch_1", "rest"], ["flat"], axis=0),
        helper.make_node("Reshape", ["x", "flat"], ["y"]),
    ]
    model, said = cleaned(network(nodes, ["y"], zero=np.array(0), axes=np.array([0])))
    assert (kinds(model), said) == (["Reshape"], ["folded 4 operators on constants"])
    assert [tensor.name for tensor in model.graph.initializer] == ["flat"]


def test_a_shape_is_folded_that_an_old_operator_set_joins_along_the_last_axis() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Slice", ["shape", "zero", "one"], ["batch"]),
        helper.make_node("Concat", ["batch", "twice"], ["repeats"], axis=-1),
        helper.make_node("Tile", ["x", "repeats"], ["y"]),
    ]
    zero, one, twice = (np.array(numbers, np.int64) for numbers in ([0], [1], [1, 1]))
    model, _said = cleaned(network(nodes, ["y"], opset=10, zero=zero, one=one, twice=twice))
    assert "Concat" not in kinds(model)


def test_an_output_that_depends_on_no_input_is_a_constant() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        helper.make_node("Relu", ["x"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_empty_tensor_value_info(name) for name in ("y", "zeros")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    prepare(model)
    assert sorted(kinds(model)) == ["Constant", "Relu"]
    np.testing.assert_array_equal(answers(model, {"x": values(2, 3)})[1], np.zeros((2, 3)))


def test_what_would_be_large_is_computed_and_not_stored() -> None:
    nodes = [
        helper.make_node("ConstantOfShape", ["huge"], ["a"]),
        helper.make_node("ReduceSum", ["a"], ["b"], keepdims=0),
        helper.make_node("Add", ["x", "b"], ["y"]),
    ]
    model = network(nodes, ["y"], huge=np.array([1 << 20, 1 << 20]))
    assert prepare(model) == []
    assert kinds(model) == ["ConstantOfShape", "ReduceSum", "Add"]


def test_quantised_weights_stay_quantised() -> None:
    nodes = [helper.make_node("DequantizeLinear", ["q", "scale"], ["w"]), helper.make_node("Add", ["x", "w"], ["y"])]
    model, _ = cleaned(network(nodes, ["y"], q=np.arange(4, dtype=np.int8), scale=np.float32(0.5)))
    assert kinds(model) == ["DequantizeLinear", "Add"]


def test_listed_weights_are_inputs_no_longer() -> None:
    model, said = cleaned(network([helper.make_node("Add", ["x", "w"], ["y"])], ["y"], listed=True, w=X))
    assert ([value.name for value in model.graph.input], said) == (["x"], ["1 weights are inputs no longer"])


def test_what_leads_nowhere_is_removed_with_its_weights() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Add", ["x", "w"], ["lost"])]
    model, said = cleaned(network(nodes, ["y"], w=X))
    assert (kinds(model), list(model.graph.initializer)) == (["Relu"], [])
    assert said == ["removed 1 operator that leads to no output"]


def test_names_that_an_inner_graph_reads_are_followed() -> None:
    def branch(name: str) -> Any:
        result = helper.make_tensor_value_info(name, TensorProto.FLOAT, X.shape)
        return helper.make_graph([helper.make_node("Neg", ["a"], [name])], name, [], [result])

    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0),
        helper.make_node("Cast", ["m"], ["flag"], to=TensorProto.BOOL),
        helper.make_node("If", ["flag"], ["y"], then_branch=branch("t"), else_branch=branch("e")),
    ]
    assert kinds(cleaned(network(nodes, ["y"]))[0]) == ["ReduceMax", "Cast", "Neg", "Neg", "Where"]


def test_an_old_operator_set_is_converted() -> None:
    nodes = [helper.make_node("Add", ["x", "w"], ["y"], broadcast=1)]
    model = network(nodes, ["y"], opset=6, w=np.arange(4, dtype=np.float32))
    assert prepare(model) == ["converted operator set 6 to 13"]
    (got,) = ReferenceEvaluator(model).run(None, {"x": X})
    np.testing.assert_array_equal(got, X + np.arange(4, dtype=np.float32))


@pytest.mark.parametrize(
    ("node", "opset"),
    [
        (helper.make_node("Add", ["x", "w"], ["y"], broadcast=1, axis=1), 6),
        (helper.make_node("Upsample", ["x"], ["y"], height_scale=2.0, width_scale=2.0), 1),
    ],
)
def test_what_cannot_be_converted_says_what_to_do(node: Any, opset: int) -> None:
    model = network([node], ["y"], opset=opset, w=np.arange(3, dtype=np.float32))
    with pytest.raises(ModelError, match=rf"operator set {opset}, which ONNX cannot convert.*with operator set 13"):
        prepare(model)


def test_functions_of_the_model_are_inlined() -> None:
    body = [helper.make_node("Relu", ["a"], ["b"])]
    opset = helper.make_opsetid("", 17)
    function = helper.make_function("mine", "Rectify", ["a"], ["b"], body, [opset])
    model = network([helper.make_node("Rectify", ["x"], ["y"], domain="mine")], ["y"], opset=17)
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("mine", 1))
    assert prepare(model) == ["inlined 1 functions"]
    assert kinds(model) == ["Relu"]


@st.composite
def chains(draw: st.DrawFn) -> Any:
    """Operators that read any earlier tensors, many of which pass through or depend on constants only."""
    nodes, tensors = [], ["x", "w"]
    for number in range(draw(st.integers(1, 8))):
        kind, count = draw(st.sampled_from([("Identity", 1), ("Dropout", 1), ("Neg", 1), ("Add", 2)]))
        reads = [draw(st.sampled_from(tensors)) for _ in range(count)]
        nodes.append(helper.make_node(kind, reads, [f"t{number}"]))
        tensors.append(f"t{number}")
    outputs = draw(st.lists(st.sampled_from(tensors[2:]), min_size=1, max_size=3, unique=True))
    return network(nodes, outputs, w=X + 1)


@given(chains())
def test_every_answer_stays_the_same_and_nothing_is_left_to_clean(model: Any) -> None:
    clean, _ = cleaned(model)
    assert [value.name for value in clean.graph.output] == [value.name for value in model.graph.output]
    assert prepare(clean) == []


@pytest.mark.parametrize(("start", "end"), [(0, None), (1, 3), (-2, None), (0, -1), (2, 1), (-9, 9)])
def test_a_shape_from_start_to_end_is_folded(start: int, end: int | None) -> None:
    ends = {"start": start} | ({} if end is None else {"end": end})
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], **ends),
        helper.make_node("Cast", ["s"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["f"], ["t"], keepdims=0),
        helper.make_node("Add", ["x", "t"], ["y"]),
    ]
    assert kinds(cleaned(network(nodes, ["y"]))[0]) == ["Add"]


def test_a_split_into_one_part_is_removed() -> None:
    nodes = [helper.make_node("Split", ["x"], ["a"], axis=1), helper.make_node("Relu", ["a"], ["y"])]
    model, said = cleaned(network(nodes, ["y"], opset=17))
    assert (kinds(model), said) == (["Relu"], ["removed 1 Split"])
