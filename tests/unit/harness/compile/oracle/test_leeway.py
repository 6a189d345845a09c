"""How far another right answer may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.base.case import RELATIVE_TOLERANCE, ROUNDING_FACTOR
from harness.compile.oracle.leeway import Leeway, Measured, load_leeway, save_leeway
from harness.compile.oracle.leeway_measurement import measure_leeway
from harness.compile.oracle.onnx_reference import OnnxReference
from harness.compile.oracle.onnx_runtime import OnnxRuntime
from harness.compile.oracle.truth import first_answer, judges_of
from harness.measure.correctness import compare_answers
from harness.measure.facts import Accuracy

F = TensorProto.FLOAT
CHANCE = np.random.default_rng(0)
X = CHANCE.standard_normal((1, 64)).astype(np.float32)
W = CHANCE.standard_normal((64, 64)).astype(np.float32) / np.float32(8)
Weights = Mapping[str, Any]


def network(nodes: Sequence[Any], weights: Weights, output: int = F, functions: Sequence[Any] = ()) -> onnx.ModelProto:
    """A network of `x` that ends in `y`."""
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    x, y = helper.make_tensor_value_info("x", F, None), helper.make_tensor_value_info("y", output, None)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ours", 1)]
    graph = helper.make_graph(nodes, "small", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=8)


def judged(model: onnx.ModelProto, answer: np.ndarray, x: np.ndarray = X, precision: str = "float32") -> Accuracy:
    """What the judge says of an answer to `x`."""
    truth = OnnxRuntime(model).ask({"x": x})
    measured, factor = measure_leeway(model, {"x": x}, truth), ROUNDING_FACTOR[precision]
    leeway = [one.leeway(factor, precision) for one in measured]
    rounding = [one.rounding for one in leeway]
    return compare_answers([answer], truth, RELATIVE_TOLERANCE[precision], rounding, leeway)


def answer_of(model: onnx.ModelProto, x: np.ndarray = X) -> np.ndarray:
    (answer,) = OnnxRuntime(model).ask({"x": x})
    return np.asarray(answer)


def rounding(model: onnx.ModelProto, x: np.ndarray = X) -> float:
    (measured,) = measure_leeway(model, {"x": x}, [answer_of(model, x)])
    return measured.rounding["float32"]


SQUARE = network([helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Mul", ["m", "m"], ["y"])], {"w": W})
POWER = network([helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Pow", ["m", "two"], ["y"])],
                {"w": W, "two": np.float32(2)})  # fmt: skip


def test_the_exponent_of_a_power_is_kept_so_that_it_rounds_as_the_product_does() -> None:
    assert rounding(POWER) == pytest.approx(rounding(SQUARE), rel=3)
    assert rounding(POWER) > 0


@pytest.mark.parametrize(
    ("operator", "opset"), [("Relu", 22), ("Relu", 26), ("Swish", 24), ("RMSNormalization", 23), ("SwiGLU", 28)]
)
def test_networks_in_new_operator_sets_have_the_leeway_of_older_ones(operator: str, opset: int) -> None:
    """onnxruntime 1.24 has no RandomUniformLike beyond operator set 21, and no operator set beyond 25."""
    measured, more = {}, {"SwiGLU": ["x"], "RMSNormalization": ["scale"]}
    for last in ("Identity", "Round"):
        nodes = [
            helper.make_node("MatMul", ["x", "w"], ["m"]),
            helper.make_node(operator, ["m", *more.get(operator, [])], ["n"]),
            helper.make_node(last, ["n"], ["y"]),
        ]
        model = network(nodes, {"w": W, "scale": X[0]})
        model.opset_import[0].version = opset
        (measured[last],) = measure_leeway(model, {"x": MANY}, first_answer(judges_of(model), {"x": MANY}).outputs)
    assert 1e-8 < measured["Identity"].rounding["float32"] < 1e-5
    assert measured["Round"].decided["float16"].max() == 1


def test_a_new_network_whose_judge_takes_the_other_side_of_ties_has_the_leeway_of_its_older_form() -> None:
    """ONNX's reference is at a tie with each number, and onnxruntime beside it with some."""
    gate = helper.make_node("SwiGLU", ["x", "x"], ["y"])
    alone = network([gate], {})
    alone.opset_import[0].version = 28
    ties = np.float32(1.5) - OnnxReference(alone).ask({"x": MANY})[0]
    gate.output[:] = ["n"]
    nodes = [gate, helper.make_node("Add", ["n", "ties"], ["m"]), helper.make_node("Round", ["m"], ["y"])]
    model = network(nodes, {"ties": ties})
    model.opset_import[0].version = 28
    (measured,) = measure_leeway(model, {"x": MANY}, OnnxReference(model).ask({"x": MANY}))
    assert (measured.decided["float32"] == 1).mean() > 0.9
    assert measured.rounding["float32"] == 0


def test_integers_that_are_rounded_are_numbers_although_another_output_says_where_something_is() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("ArgMax", ["m"], ["place"]),
        helper.make_node("Cast", ["place"], ["real"], to=F),
        helper.make_node("Sub", ["m", "real"], ["n"]),
        helper.make_node("DynamicQuantizeLinear", ["n"], ["y", "scale", "zero"]),
    ]
    model = network(nodes, {"w": W}, TensorProto.UINT8)
    model.graph.output.append(helper.make_tensor_value_info("place", TensorProto.INT64, None))
    numbers, names = measure_leeway(model, {"x": X}, OnnxRuntime(model).ask({"x": X}))
    assert (numbers.choices, names.choices) == (False, True)


def test_a_new_network_whose_older_form_answers_otherwise_has_no_leeway() -> None:
    model = network([helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": W})
    model.opset_import[0].version = 22
    (measured,) = measure_leeway(model, {"x": X}, [X])
    assert measured.rounding["float32"] == 0


def test_an_answer_that_is_not_finite_under_moved_numbers_says_nothing_and_is_no_zero() -> None:
    x = np.array([[1.0, 0.5, 0.25]], np.float32)
    edge = network([helper.make_node("Asin", ["x"], ["y"])], {})  # beyond 1 it is NaN
    assert rounding(edge, x) > 0
    beyond = network([helper.make_node("Asin", ["x"], ["a"]), helper.make_node("ReduceSum", ["a"], ["y"])], {})
    ones = np.ones((1, 64), np.float32)
    assert np.isnan(rounding(beyond, ones))
    far = network([helper.make_node("Mul", ["x", "far"], ["y"])], {"far": np.float32(2)})
    assert not np.isnan(rounding(far))


def test_numbers_inside_branches_and_bodies_count() -> None:
    y, cond = helper.make_tensor_value_info("t", F, None), numpy_helper.from_array(np.array(True), "yes")
    nodes = [helper.make_node("Add", ["x", "far"], ["a"]), helper.make_node("Sub", ["a", "far"], ["t"])]
    then = helper.make_graph(nodes, "then", [], [y])
    other = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["e"])], "else", [], [helper.make_tensor_value_info("e", F, None)]
    )
    branch = network(
        [helper.make_node("If", ["yes"], ["y"], then_branch=then, else_branch=other)], {"far": np.float32(1000)}
    )
    branch.graph.initializer.append(cond)
    plain = network([then.node[0], helper.make_node("Sub", ["a", "far"], ["y"])], {"far": np.float32(1000)})
    assert rounding(branch) == pytest.approx(rounding(plain), rel=1)
    count = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    body = helper.make_graph(
        [helper.make_node("Mul", ["v", "v"], ["w2"]), helper.make_node("Identity", ["c"], ["c2"])],
        "body",
        [count, helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("v", F, None)],
        [helper.make_tensor_value_info("c2", TensorProto.BOOL, []), helper.make_tensor_value_info("w2", F, None)],
    )
    loop = network([helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], {"n": np.int64(5)})
    once = network([helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], {"n": np.int64(1)})
    assert rounding(loop) > 3 * rounding(once) > 0


def test_numbers_inside_functions_count() -> None:
    nodes = [helper.make_node("Add", ["a", "b"], ["s"]), helper.make_node("Sub", ["s", "b"], ["d"])]
    function = helper.make_function("ours", "There", ["a", "b"], ["d"], nodes, [helper.make_opsetid("", 17)])
    call = helper.make_node("There", ["x", "far"], ["y"], domain="ours")
    assert rounding(network([call], {"far": np.float32(1000)}, functions=[function])) > 1e-4


def test_a_long_sum_may_be_off_by_what_the_judge_or_a_serial_sum_is_off_by() -> None:
    x = CHANCE.uniform(0, 255, (262_144, 1)).astype(np.float32)
    mean = network([helper.make_node("ReduceMean", ["x"], ["y"], axes=[0], keepdims=0)], {})
    exact = x.astype(np.float64).mean(0).astype(np.float32)
    serial = (np.add.accumulate(x, axis=0)[-1] / np.float32(len(x))).astype(np.float32)
    assert judged(mean, exact, x).right
    assert judged(mean, serial, x).right
    assert not judged(mean, exact * np.float32(1.001), x).right


def test_a_global_pool_over_a_large_image_may_be_off_by_a_serial_sum() -> None:
    x = CHANCE.uniform(0, 1, (1, 2, 512, 512)).astype(np.float32)
    pool = network([helper.make_node("GlobalAveragePool", ["x"], ["y"])], {})
    pool.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", F, x.shape))
    serial = np.add.accumulate(x.reshape(1, 2, -1), axis=2)[..., -1:, None] / np.float32(512 * 512)
    assert judged(pool, serial.astype(np.float32), x).right
    assert not judged(pool, serial.astype(np.float32) * np.float32(1.001), x).right


ROUNDED = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Mul", ["m", "ten"], ["t"])]
MANY = CHANCE.standard_normal((64, 64)).astype(np.float32)


@pytest.mark.parametrize(("operator", "wrong"), [("Round", "Floor"), ("Floor", "Ceil"), ("Ceil", "Round")])
def test_another_way_to_round_inside_a_network_is_wrong(operator: str, wrong: str) -> None:
    def model(rounding: str) -> onnx.ModelProto:
        after = [helper.make_node(rounding, ["t"], ["r"]), helper.make_node("MatMul", ["r", "w"], ["y"])]
        return network([*ROUNDED, *after], {"w": W, "ten": np.float32(1000)})

    right = model(operator)
    assert judged(right, answer_of(right, MANY), MANY).right
    assert not judged(right, answer_of(model(wrong), MANY), MANY).right


def tie_network(after: Sequence[Any]) -> onnx.ModelProto:
    """A network that rounds sums which lie at a tie, but for what their order makes of them."""
    return network([helper.make_node("MatMul", ["x", "ones"], ["m"]), *after],
                   {"ones": np.ones((64, 4), np.float32), "scale": np.float32(1), "zero": np.uint8(128)},
                   TensorProto.UINT8)  # fmt: skip


def test_a_quantised_number_at_a_tie_may_fall_to_either_side_and_no_farther() -> None:
    quantise = tie_network([helper.make_node("QuantizeLinear", ["m", "scale", "zero"], ["y"])])
    x = X.copy()
    x[0, 0] += np.float32(0.5) - np.float32(x.astype(np.float64).sum() % 1)
    right = answer_of(quantise, x)
    either = [judged(quantise, right + np.uint8(step), x) for step in (0, 1, 255)]
    assert either[0].right
    assert [one.right for one in either[1:]].count(True) == 1
    assert max(one.ties for one in either) == right.size
    assert not judged(quantise, right + np.uint8(2), x).right
    far = X.copy()
    far[0, 0] -= np.float32(X.astype(np.float64).sum() % 1)  # halfway between two ties
    assert not judged(quantise, answer_of(quantise, far) + np.uint8(1), far).right


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_a_scalar_that_is_compared_leaves_the_ties_of_other_numbers(precision: str) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "ones"], ["m"]),
        helper.make_node("DynamicQuantizeLinear", ["m"], ["y", "step", "middle"]),
        helper.make_node("Floor", ["step"], ["scale"]),
    ]
    model = network(nodes, {"ones": np.ones((64, 4), np.float32)}, TensorProto.UINT8)
    model.graph.output.append(helper.make_tensor_value_info("scale", F, None))
    measured = measure_leeway(model, {"x": X}, OnnxRuntime(model).ask({"x": X}))
    assert all(precision in output.decided for output in measured)


def sum_in_8_bits(operator: str) -> onnx.ModelProto:
    """A network whose operator adds whole numbers and rounds a quarter or half of them to 8 bits."""
    weights = {"one": np.float32(1), "scale": np.float32(4), "middle": np.uint8(128),
               "two": np.full((1, 64), 130, np.uint8), "ones": np.ones((64, 4), np.uint8),
               "zero": np.uint8(0)}  # fmt: skip
    nodes = [helper.make_node("QuantizeLinear", ["x", "one", "middle"], ["q"])]
    if operator == "QLinearAdd":
        rest = ["two", "one", "middle", "scale", "middle"]
        nodes.append(helper.make_node(operator, ["q", "one", "middle", *rest], ["y"], domain="com.microsoft"))
    else:
        rest = ["ones", "one", "zero", "scale", "middle"]
        nodes.append(helper.make_node(operator, ["q", "one", "middle", *rest], ["y"]))
    model = network(nodes, weights, TensorProto.UINT8)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


@pytest.mark.parametrize("operator", ["QLinearAdd", "QLinearMatMul"])
def test_an_operator_that_rounds_to_8_bits_inside_may_round_a_tie_to_either_side(operator: str) -> None:
    model = sum_in_8_bits(operator)
    rest = 2 if operator == "QLinearAdd" else 0  # a 2 is added to each
    tie, whole = np.full((1, 64), rest, np.float32), np.full((1, 64), rest, np.float32)
    tie[0, 0], whole[0, 0] = 6 - rest, 8 - rest
    right = answer_of(model, tie)
    either = [judged(model, _first_moved(right, step), tie) for step in (0, 1, -1)]
    assert either[0].right
    assert [one.right for one in either[1:]].count(True) == 1
    assert not judged(model, _first_moved(right, 2), tie).right
    for step in (1, -1):
        assert not judged(model, _first_moved(answer_of(model, whole), step), whole).right


def _first_moved(answer: np.ndarray, step: int) -> np.ndarray:
    """Return 8 bits of which the first differs by a step."""
    moved = answer.astype(np.int32)
    moved[0, 0] += step
    return moved.astype(np.uint8)


PLACE_IN_ROW = (helper.make_node("ArgMax", ["m"], ["y"], axis=1),)
PLACE_IN_WINDOW = (
    helper.make_node("Unsqueeze", ["m", "axes"], ["signal"]),
    helper.make_node("MaxPool", ["signal"], ["largest", "places"], kernel_shape=[3]),
    helper.make_node("Flatten", ["places"], ["y"]),
)


@pytest.mark.parametrize("place", [PLACE_IN_ROW, PLACE_IN_WINDOW])
def test_the_place_of_the_largest_of_two_equal_numbers_is_either_and_no_third(place: tuple[Any, ...]) -> None:
    weights = np.array(CHANCE.standard_normal((64, 3)), np.float32)
    weights[:, 2] = weights[::-1, 0][np.argsort(np.argsort(np.zeros(64)))]
    weights[:, 2] = weights[:, 0]
    weights[:, 1] = weights[:, 0] - np.float32(1) * np.sign(X[0])
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), *place]
    model = network(nodes, {"w": weights, "axes": np.array([0])}, TensorProto.INT64)
    assert judged(model, np.array([[0]])).right
    tie = judged(model, np.array([[2]]))
    assert tie.right
    assert tie.ties == 1
    assert not judged(model, np.array([[1]])).right  # between two right names there is no third


@pytest.mark.parametrize("last", [0, 1])
def test_copies_of_an_input_are_no_tie(last: int) -> None:
    """`select_last_index` says which is the largest; nothing is rounded before something is computed."""
    nodes = [
        helper.make_node("Concat", ["x", "x"], ["twice"], axis=1),
        helper.make_node("Relu", ["twice"], ["positive"]),
        helper.make_node("ArgMax", ["positive"], ["y"], axis=1, select_last_index=last),
    ]
    model = network(nodes, {}, TensorProto.INT64)
    right = answer_of(model)
    assert judged(model, right).right
    assert not judged(model, right + X.shape[1] * (1 - 2 * last)).right


def test_exact_numbers_have_no_ties() -> None:
    model = network([helper.make_node("Floor", ["x"], ["y"])], {})
    whole = np.array([[1.0, 2.0, 3.5]], np.float32)
    off = answer_of(model, whole)
    off[0, 1] = 1.0
    assert not judged(model, off, whole).right


PEAKS = network(
    [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Reshape", ["m", "image"], ["heat"]),
        helper.make_node("MaxPool", ["heat"], ["largest"], kernel_shape=[3, 3], pads=[1] * 4),
        helper.make_node("Equal", ["largest", "heat"], ["peak"]),
        helper.make_node("Cast", ["peak"], ["kept"], to=F),
        helper.make_node("Mul", ["heat", "kept"], ["y"]),
    ],
    {"w": W, "image": np.array([1, 1, 8, 8])},
)
"""The end of a CenterNet: only the peaks of a map stay."""
NOT_LARGEST = network(
    [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("ReduceMax", ["m"], ["largest"], axes=[1]),
        helper.make_node("Less", ["m", "largest"], ["less"]),
        helper.make_node("Where", ["less", "zero", "m"], ["y"]),
    ],
    {"w": W, "zero": np.float32(0)},
)


@pytest.mark.parametrize("model", [PEAKS, NOT_LARGEST])
@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_a_number_that_is_compared_with_itself_is_no_tie(model: onnx.ModelProto, precision: str) -> None:
    truth = answer_of(model)
    assert judged(model, truth, precision=precision).right
    wrong = truth.copy()
    wrong.flat[np.abs(truth).argmax()] = 0
    assert not judged(model, wrong, precision=precision).right


@pytest.mark.parametrize("last", ["m", "scaled"])
def test_products_that_cancel_leave_what_one_of_them_is_rounded_by_and_no_more(last: str) -> None:
    """A compiler may compute `a * b - a * b` by a product that it does not round."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Mul", ["m", "two"], ["scaled"]),
        helper.make_node("Sub", [last, last], ["y"]),
    ]
    model = network(nodes, {"w": W, "two": np.float32(2)})
    truth = answer_of(model)
    assert not truth.any()
    assert judged(model, truth + np.float32(2e-7)).right
    assert not judged(model, truth + np.float32(1e-3)).right


def test_an_input_cancels_exactly() -> None:
    model = network([helper.make_node("Sub", ["x", "x"], ["y"])], {})
    truth = answer_of(model)
    assert not judged(model, truth + np.float32(1e-7)).right


def test_a_number_that_is_compared_with_its_double_is_a_tie() -> None:
    """Two rows of a product that are alike are computed apart."""
    nodes = [
        helper.make_node("Concat", ["x", "x"], ["twice"], axis=0),
        helper.make_node("MatMul", ["twice", "w"], ["m"]),
        helper.make_node("Gather", ["m", "upper"], ["first"]),
        helper.make_node("Gather", ["m", "lower"], ["second"]),
        helper.make_node("Less", ["first", "second"], ["less"]),
        helper.make_node("Cast", ["less"], ["y"], to=F),
    ]
    model = network(nodes, {"w": W, "upper": np.array([0]), "lower": np.array([len(X)])})
    truth = answer_of(model)
    assert not truth.any()
    assert judged(model, np.ones_like(truth)).right


def test_numbers_of_two_tensors_that_are_equal_by_chance_are_a_tie() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("MatMul", ["x", "v"], ["n"]),
        helper.make_node("Less", ["m", "n"], ["less"]),
        helper.make_node("Cast", ["less"], ["y"], to=F),
    ]
    model = network(nodes, {"w": W, "v": W})
    truth = answer_of(model)
    assert not truth.any()
    assert judged(model, np.ones_like(truth)).right


def test_what_is_measured_is_kept(tmp_path: Path) -> None:
    model = tie_network([helper.make_node("QuantizeLinear", ["m", "scale", "zero"], ["y"])])
    measured = measure_leeway(model, {"x": X}, [answer_of(model)])
    save_leeway(tmp_path / "leeway.npz", measured)
    (read,) = load_leeway(tmp_path / "leeway.npz")
    assert (read.rounding["float32"], read.choices, sorted(read.decided)) == (0.0, False, ["float16", "float32"])
    np.testing.assert_array_equal(read.decided["float16"], measured[0].decided["float16"])
    assert load_leeway(tmp_path / "nothing.npz") == []


def test_what_is_measured_of_a_single_number_is_kept_as_an_array(tmp_path: Path) -> None:
    model = network(
        [helper.make_node("Round", ["x"], ["r"]), helper.make_node("ReduceSum", ["r"], ["y"], keepdims=0)], {}
    )
    measured = measure_leeway(model, {"x": X}, [answer_of(model)])
    save_leeway(tmp_path / "leeway.npz", measured)
    (read,) = load_leeway(tmp_path / "leeway.npz")
    assert read.own is not None
    assert read.moved["float32"].shape == read.own.shape == read.decided["float16"].shape == ()
    assert (read.rounding, read.spread) == (measured[0].rounding, measured[0].spread)
    assert read.leeway(8.0, "float32").most(answer_of(model)) >= 0


def test_what_could_not_be_measured_excuses_nothing() -> None:
    distances = np.array([np.nan, np.inf, 0.5], np.float32)
    leeway = Measured(own=distances, decided={"float32": distances}).leeway(1.0, "float32")
    for excused in (leeway.own, leeway.decided):
        np.testing.assert_array_equal(excused, np.array([0.0, 0.0, 0.5], np.float32))


def test_half_precision_makes_more_ties() -> None:
    model = network([helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Floor", ["m"], ["y"])], {"w": W})
    (measured,) = measure_leeway(model, {"x": MANY}, [answer_of(model, MANY)])
    ties = {kind: int(np.count_nonzero(off)) for kind, off in measured.decided.items()}
    assert ties["float16"] > 50
    assert ties["float32"] < 5


def in_half_sums(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return a product of matrices in half precision whose terms are added one by one."""
    products = x.astype(np.float16)[:, :, None] * weight.astype(np.float16)
    return np.add.accumulate(products, axis=1, dtype=np.float16)[:, -1].astype(np.float32)


@pytest.mark.parametrize("operator", ["MatMul", "Gemm", "Conv", "ReduceSum"])
@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_ties_behind_a_sum_in_half_precision_are_as_many_as_its_terms_make_it_off(operator: str, mean: float) -> None:
    """Terms that cancel; and terms of one sign, whose sum moves less than they do if each is moved by chance."""
    chance = np.random.default_rng(5)
    x, weight = ((chance.standard_normal(shape) + mean).astype(np.float32) / 64 for shape in ((8, 4608), (4608, 32)))
    weight = np.ones_like(weight) if operator == "ReduceSum" else weight
    steps = 50 / np.sqrt(np.square(in_half_sums(x, weight)).mean())
    x = x * np.float32(steps)
    nodes, weights = {
        "ReduceSum": ([helper.make_node(operator, ["x", "axes"], ["m"])], {"axes": np.array([1])}),
        "Conv": (
            [
                helper.make_node("Reshape", ["x", "image"], ["i"]),
                helper.make_node(operator, ["i", "w"], ["c"]),
                helper.make_node("Reshape", ["c", "rows"], ["m"]),
            ],
            {"w": weight.T.reshape(32, 512, 3, 3), "image": np.array([8, 512, 3, 3]), "rows": np.array([8, 32])},
        ),
    }.get(operator, ([helper.make_node(operator, ["x", "w"], ["m"])], {"w": weight}))
    model = network([*nodes, helper.make_node("Round", ["m"], ["y"])], weights)
    right, answer = answer_of(model, x), np.round(in_half_sums(x, weight))
    answer = answer[:, :1] if operator == "ReduceSum" else answer
    assert 0 < np.abs(answer - right).max() < 8
    assert judged(model, answer, x, precision="float16").right
    far = right.copy()
    far[3, 0] += 40
    assert not judged(model, far, x, precision="float16").right


def test_a_tie_in_half_precision_is_as_wide_as_its_number_is_off_and_not_as_the_largest_is() -> None:
    """One channel of an encoder is often a hundred times as large as the others."""
    large = W * np.where(np.arange(64) == 7, np.float32(100), np.float32(1))
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Floor", ["m"], ["y"])]
    model = network(nodes, {"w": large})
    right, wrong = answer_of(model, MANY), answer_of(model, MANY)
    wrong[:, 8:] += 1
    assert judged(model, right, MANY, precision="float16").right
    assert not judged(model, wrong, MANY, precision="float16").right


def test_the_most_that_may_be_off_is_known_beforehand() -> None:
    want = np.array([3, 7], np.uint8)
    assert Leeway(decided=np.array([[3, 7], [4, 5]], np.uint8)).most(want) == 2
    assert Leeway(own=np.array([0.5, 0.25], np.float32)).most(want.astype(np.float32)) == 0.5
    assert Leeway(decided=np.array([0.5], np.float32)).most(np.ones(1, np.float32)) == 1.0


def drawn(scale: np.ndarray, seed: int) -> np.ndarray:
    """How far off eight answers are at most in which decisions spread everywhere; with seed 0 one more answer."""
    chance = np.random.default_rng(seed)
    return np.asarray(np.abs(chance.standard_normal((8 if seed else 1, *scale.shape)) * scale).max(axis=0))


def test_where_decisions_spread_everywhere_a_few_draws_do_not_decide_about_one_number() -> None:
    scale = np.outer(np.linspace(1, 3, 300), np.linspace(1, 40, 500))
    want, (off, moved) = np.zeros(scale.shape, np.float32), (drawn(scale, 0), drawn(scale, 1))
    assert (off > 2 * moved).any()
    leeway = Leeway(decided=moved.astype(np.float32))
    assert (off <= leeway.flips(want)).all()
    assert not compare_answers([want + 20 * scale.max()], [want], 1e-5, [], [leeway]).right
    assert leeway.flips(want)[:, 0].max() < 40  # small numbers beside large ones keep their own scale


def test_numbers_that_no_decision_moves_stay_exact_beside_a_few_that_it_moves() -> None:
    moved = np.zeros((40, 50), np.float32)
    moved[3, 4] = 1.0
    assert np.count_nonzero(Leeway(decided=moved).flips(np.zeros_like(moved))) == 1


def test_integers_may_be_as_far_off_as_their_neighbours_but_names_may_not() -> None:
    want = np.zeros((30, 40), np.int32)
    decided = np.repeat(want[None] + 1, 8, axis=0)
    off = want + 2
    off[0] = -1
    assert compare_answers([off], [want], 0.0, [], [Leeway(decided=decided)]).right
    assert not compare_answers([off + 1], [want], 0.0, [], [Leeway(decided=decided)]).right
    assert not compare_answers([off], [want], 0.0, [], [Leeway(decided=decided, choices=True)]).right


def sparsely_moved(others: int, by: float) -> Accuracy:
    """What the judge says if decisions move 50 numbers of 1000 by 0.5, and the answer differs in others."""
    want, moved = np.linspace(-10, 10, 1000, dtype=np.float32)[None], np.zeros((1, 1000), np.float32)
    moved[0, :50] = 0.5
    got = want.copy()
    got[0, 500 : 500 + others] += np.float32(by)
    return compare_answers([got], [want], RELATIVE_TOLERANCE["float32"], [0.0], [Leeway(decided=moved)])


def test_where_decisions_move_few_numbers_another_answer_moves_a_few_others() -> None:
    assert sparsely_moved(others=6, by=0.5).right
    assert not sparsely_moved(others=6, by=0.75).right  # farther than any of them
    assert not sparsely_moved(others=30, by=0.5).right  # more than chance explains


def test_a_few_labels_of_many_may_rest_on_ties_that_were_not_drawn() -> None:
    want = np.zeros((1, 400), np.int64)
    drawn = np.zeros((8, 1, 400), np.int64)
    drawn[0, 0, :40] = 1
    got = want.copy()
    got[0, 200:205] = 1
    decided = Leeway(decided=drawn, choices=True)
    assert compare_answers([got], [want], 0.0, [0.0], [decided]).right
    got[0, 200:230] = 1
    assert not compare_answers([got], [want], 0.0, [0.0], [decided]).right


def quantised_lstm(length: int, hidden: int) -> onnx.ModelProto:
    """An LSTM in 8 bits that an attention in 8 bits reads: its states are rounded anew in every step."""
    rng, zero = np.random.default_rng(0), np.zeros(1, np.int8)
    weights = {
        "w": rng.integers(-127, 127, (1, 64, 4 * hidden)).astype(np.int8),
        "r": rng.integers(-127, 127, (1, hidden, 4 * hidden)).astype(np.int8),
        "rows": np.array([length, 1, 64]), "zero": zero,
        "ws": np.full(1, 1e-5, np.float32), "rs": np.full(1, 0.004, np.float32),
        "dense": rng.standard_normal((hidden, 64)).astype(np.float32),
    }  # fmt: skip
    operands = ["a", "w", "r", "", "", "", "", "", "ws", "zero", "rs", "zero"]
    nodes = [
        helper.make_node("Reshape", ["x", "rows"], ["a"]),
        helper.make_node("DynamicQuantizeLSTM", operands, ["s"], domain="com.microsoft", hidden_size=hidden),
        helper.make_node("DynamicQuantizeLinear", ["s"], ["q", "step", "middle"]),
        helper.make_node("DequantizeLinear", ["q", "step", "middle"], ["d"]),
        helper.make_node("MatMul", ["d", "dense"], ["y"]),
    ]
    model = network(nodes, weights)
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", F, ["rows", 64]))
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


def test_what_rounds_inside_a_quantised_lstm_is_not_taken_for_the_rounding_of_what_reads_it() -> None:
    x = CHANCE.integers(0, 255, (16, 64)).astype(np.float32)
    x[0, :3] = 0, 255, 100.5  # steps of 1, and one tie
    model = quantised_lstm(16, 32)
    right = answer_of(model, x)
    other = x.copy()
    other[0, 2] = 101
    assert judged(model, answer_of(model, other), x).right
    noise = CHANCE.standard_normal(right.shape) * 0.01 * np.abs(right).max()
    assert not judged(model, right + noise.astype(np.float32), x).right


def test_what_rounds_inside_a_product_of_onnxruntimes_optimiser_may_round_otherwise() -> None:
    weights = {"w": CHANCE.integers(-9, 9, (64, 4)).astype(np.int8), "s": np.float32(1)}
    model = network(
        [helper.make_node("DynamicQuantizeMatMul", ["x", "w", "s"], ["y"], domain="com.microsoft")], weights
    )
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    x = CHANCE.integers(0, 255, (1, 64)).astype(np.float32)
    x[0, :3] = 0, 255, 100.5  # steps of 1, and one tie
    other = x.copy()
    other[0, 2] = 101
    assert judged(model, answer_of(model, other), x).right
    assert not judged(model, answer_of(model, x) * np.float32(1.01), x).right


def test_numbers_at_one_tie_may_cross_it_together() -> None:
    """Where a tanh is 1 or -1, half a step decides. onnxruntime 1.24 has 1.0000001 in some places."""
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"]),
        helper.make_node("DynamicQuantizeLinear", ["t"], ["q", "scale", "zero"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
        helper.make_node("MatMul", ["d", "w"], ["y"]),
    ]
    model, x = network(nodes, {"w": np.abs(W)}), np.random.default_rng(3).uniform(-20, -8, (64, 64)).astype(np.float32)
    x[:, 0] *= -1
    for low, high in ((-128, 127), (-127, 127), (-127, 128)):
        answer = (np.where(x > 0, high, low) * np.float32(2 / 255)).astype(np.float32) @ np.abs(W)
        assert judged(model, answer, x).right
        assert not judged(model, answer * np.float32(1.05), x).right


def test_all_numbers_together_may_be_as_far_off_as_twice_one_answer_that_decides_otherwise() -> None:
    """Each number is farthest off in another of 18 answers: none is as far off as all of them together."""
    chance = np.random.default_rng(5)
    answers = chance.standard_normal((18, 1000))
    farthest, spread = np.abs(answers).max(axis=0), float(np.sqrt(np.square(answers).mean(axis=1)).max())
    want = 10 * chance.standard_normal(1000).astype(np.float32)
    leeway = Leeway(decided=farthest.astype(np.float32), spread=spread)
    for times, right in ((1.5, True), (2.5, False)):
        got = want + times * chance.standard_normal(1000).astype(np.float32)
        assert compare_answers([got], [want], 1e-5, [], [leeway]).right is right
    noise = want + 2.5 * chance.standard_normal(1000).astype(np.float32)
    assert compare_answers([noise], [want], 1e-5, [], [Leeway(decided=farthest.astype(np.float32))]).right


def test_how_far_one_answer_is_off_is_kept(tmp_path: Path) -> None:
    nodes = [*ROUNDED, helper.make_node("Floor", ["t"], ["r"]), helper.make_node("MatMul", ["r", "w"], ["y"])]
    model = network(nodes, {"w": W, "ten": np.float32(1000)})
    measured = measure_leeway(model, {"x": MANY}, [answer_of(model, MANY)])
    save_leeway(tmp_path / "leeway.npz", measured)
    (read,) = load_leeway(tmp_path / "leeway.npz")
    assert read.spread == measured[0].spread
    assert 0 < read.spread["float32"] < np.sqrt(np.square(read.decided["float32"]).mean())
    assert read.leeway(8.0, "float32").spread == read.spread["float32"]


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ([153, 255, 0, 25, 221, 178], True),  # -127.5 and 25.5 steps, as a GPU divides
        ([153, 255, 0, 26, 220, 179], False),  # 68.34 steps are no tie
    ],
)
@pytest.mark.parametrize("operator", ["QuantizeLinear", "DynamicQuantizeLinear"])
def test_a_quotient_of_an_input_that_lies_between_two_steps_may_be_either(
    operator: str, answer: list[int], right: bool
) -> None:
    x = np.array([0, 2, -3, -2.5, 1.34, 0.5], np.float32)  # of ONNX's node test
    fixed = operator == "QuantizeLinear"
    names = (["x", "scale", "zero"], ["y"]) if fixed else (["x"], ["y", "scale", "zero"])
    weights: Weights = {"scale": np.float32(5 / 255), "zero": np.uint8(153)} if fixed else {}
    model = network([helper.make_node(operator, *names)], weights, TensorProto.UINT8)
    accuracy = judged(model, np.array(answer, np.uint8), x)
    assert accuracy.right == right, accuracy.complaint
