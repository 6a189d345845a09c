"""Loops of known length become what onnxruntime computes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from small_networks import answers, changed, kinds, network, values

from harness.base.failures import ModelError
from harness.compile.models.preparation import prepare
from harness.compile.models.preparation.loops import unroll_loops

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def body(nodes: list[Any], inputs: dict[str, int], outputs: list[str], **weights: Any) -> Any:
    return helper.make_graph(
        nodes,
        "body",
        [helper.make_tensor_value_info(name, kind, None if kind == FLOAT else []) for name, kind in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()],
    )


def counted_loop(most: str, condition: str = "", *, rounds: int = 5, limit: int = 3) -> Any:
    """A sum that grows in every round, and all of its values; the body would end after `limit` rounds."""
    nodes = [
        helper.make_node("Add", ["number", "one"], ["next"]),
        helper.make_node("Less", ["next", "limit"], ["going"]),
        helper.make_node("Mul", ["before", "factor"], ["product"]),
        helper.make_node("Add", ["product", "x"], ["after"], name="again"),
        helper.make_node("Identity", ["after"], ["seen"]),
    ]
    inner = body(
        nodes,
        {"number": INT64, "was_going": BOOL, "before": FLOAT},
        ["going", "after", "seen"],
        one=np.array(1),
        factor=np.float32(0.5),
        limit=np.array(limit),
    )
    loop = helper.make_node("Loop", [most, condition, "x"], ["last", "all"], "loop", body=inner)
    return network([loop], {"x": [2, 3]}, ["last", "all"], rounds=np.array(rounds), yes=np.array(True))


def require_same(model: Any, x: Any) -> list[str]:
    plain, said = changed(model, prepare)
    assert not {*kinds(plain)} & {"Loop", "Scan"}
    for wanted, got in zip(answers(model, {"x": x}), answers(plain, {"x": x}), strict=True):
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)
    return list(said)


@pytest.mark.parametrize("limit", [1, 3, 9])
@pytest.mark.parametrize("ends", [("rounds", ""), ("rounds", "yes"), ("", "yes")])
def test_a_loop_ends_where_its_condition_or_its_number_of_rounds_says(ends: tuple[str, str], limit: int) -> None:
    rounds = limit if not ends[0] else min(limit, 5)
    said = require_same(counted_loop(*ends, limit=limit), values(2, 3))
    assert f"unrolled 1 Loop into {rounds} round{'s' if rounds > 1 else ''}" in said


@pytest.mark.parametrize("ends", [("none", ""), ("none", "yes"), ("", "no"), ("rounds", "no")])
def test_a_loop_without_rounds_leaves_what_it_starts_with(ends: tuple[str, str]) -> None:
    model = counted_loop(*ends)
    model.graph.initializer.extend([numpy_helper.from_array(np.array(0), "none")])
    model.graph.initializer.extend([numpy_helper.from_array(np.array(False), "no")])
    stacked, said = changed(model, unroll_loops)  # a stack of nothing is an output, which no device has
    assert (kinds(stacked), said) == (["Loop"], "")
    del model.graph.output[1]
    assert "unrolled 1 Loop into 0 rounds" in require_same(model, values(2, 3))


def test_a_condition_may_rest_on_what_rounds_before_computed_of_constants() -> None:
    nodes = [
        helper.make_node("Mul", ["half", "factor"], ["next_half"]),
        helper.make_node("Greater", ["next_half", "small"], ["going"]),
        helper.make_node("Add", ["before", "x"], ["after"]),
    ]
    inner = body(
        nodes,
        {"number": INT64, "was": BOOL, "half": FLOAT, "before": FLOAT},
        ["going", "next_half", "after"],
        factor=np.float32(0.5),
        small=np.float32(0.1),
    )
    loop = helper.make_node("Loop", ["", "yes", "start", "x"], ["end", "y"], "loop", body=inner)
    model = network([loop], {"x": [2]}, ["end", "y"], yes=np.array(True), start=np.float32(1))
    assert "unrolled 1 Loop into 4 rounds" in require_same(model, values(2))


def test_a_loop_that_an_input_ends_stays_and_says_how_to_fix_it() -> None:
    nodes = [
        helper.make_node("Add", ["before", "x"], ["after"]),
        helper.make_node("ReduceSum", ["after"], ["total"], keepdims=0),
        helper.make_node("Less", ["total", "limit"], ["going"]),
    ]
    inner = body(nodes, {"number": INT64, "was": BOOL, "before": FLOAT}, ["going", "after"], limit=np.float32(3))
    loop = helper.make_node("Loop", ["rounds", "", "x"], ["y"], "loop", body=inner)
    model = network([loop], {"x": [2]}, ["y"], rounds=np.array(9))
    plain, said = changed(model, unroll_loops)
    assert (kinds(plain), said) == (["Loop"], "")


@pytest.mark.parametrize("ends", [("n", ""), ("rounds", "c"), ("n", "c")])
def test_a_loop_whose_number_of_rounds_or_first_condition_is_an_input_stays(ends: tuple[str, str]) -> None:
    model = counted_loop(*ends)
    for name, kind in zip(ends, (INT64, BOOL), strict=True):
        if name in ("n", "c"):
            model.graph.input.append(helper.make_tensor_value_info(name, kind, []))
    plain, said = changed(model, unroll_loops)
    assert (kinds(plain), said) == (["Loop"], "")


def test_a_loop_in_a_loop_and_a_weight_that_all_rounds_share() -> None:
    inner = body(
        [helper.make_node("Identity", ["was"], ["going"]), helper.make_node("Add", ["v", "outside"], ["w"])],
        {"number": INT64, "was": BOOL, "v": FLOAT},
        ["going", "w"],
    )
    nodes = [
        helper.make_node("Identity", ["was_2"], ["going_2"]),
        helper.make_node("MatMul", ["before", "weight"], ["outside"]),
        helper.make_node("Loop", ["twice", "", "outside"], ["after"], "inner", body=inner),
    ]
    outer = body(
        nodes,
        {"n": INT64, "was_2": BOOL, "before": FLOAT},
        ["going_2", "after"],
        weight=values(3, 3),
        twice=np.array(2),
    )
    loop = helper.make_node("Loop", ["rounds", "", "x"], ["y"], "outer", body=outer)
    model = network([loop], {"x": [2, 3]}, ["y"], rounds=np.array(3))
    said = require_same(model, values(2, 3))
    assert "unrolled 4 Loop into 9 rounds" in said
    plain, _ = changed(model, prepare)
    assert sum(tensor.dims == [3, 3] for tensor in plain.graph.initializer) == 1


@pytest.mark.parametrize("opset", [11, 17])
def test_what_a_round_reads_at_its_own_number_is_a_slice(opset: int) -> None:
    nodes = [
        helper.make_node("Identity", ["was"], ["going"]),
        helper.make_node("Gather", ["x", "number"], ["row"], axis=1),
        helper.make_node("Mul", ["before", "row"], ["after"]),
    ]
    inner = body(nodes, {"number": INT64, "was": BOOL, "before": FLOAT}, ["going", "after"])
    loop = helper.make_node("Loop", ["rounds", "", "one"], ["y"], "loop", body=inner)
    model = network([loop], {"x": [2, 3]}, ["y"], opset=opset, rounds=np.array(3), one=np.ones(2, np.float32))
    require_same(model, values(2, 3))
    assert kinds(changed(model, prepare)[0]) == ["Slice", "Squeeze", "Mul"] * 3


def test_an_operator_keeps_its_name_in_every_round() -> None:
    plain, _ = changed(counted_loop("rounds", rounds=2, limit=9), unroll_loops)
    names = [node.name for node in plain.graph.node if node.name.endswith("/again")]
    assert names == ["loop/0/again", "loop/1/again"]


def test_a_long_loop_is_refused_in_one_line() -> None:
    with pytest.raises(ModelError, match=r"Loop 'loop' of 9000 rounds would become too long.*--shape"):
        changed(counted_loop("rounds", rounds=9000, limit=10_000), unroll_loops)


@pytest.mark.parametrize("back", [(0, 0), (1, 0), (0, 1)])
@pytest.mark.parametrize("axes", [(0, 0), (1, 0), (0, 1)])
def test_a_scan_is_computed_as_onnxruntime_does(axes: tuple[int, int], back: tuple[int, int]) -> None:
    nodes = [
        helper.make_node("Add", ["before", "part"], ["after"]),
        helper.make_node("Mul", ["after", "part"], ["seen"]),
    ]
    shape, width = ([4, 3], 3) if axes[0] == 0 else ([3, 4], 3)
    inner = body(nodes, {"before": FLOAT, "part": FLOAT}, ["after", "seen"])
    scan = helper.make_node(
        "Scan",
        ["zero", "x"],
        ["last", "all"],
        "scan",
        body=inner,
        num_scan_inputs=1,
        scan_input_axes=[axes[0]],
        scan_input_directions=[back[0]],
        scan_output_axes=[axes[1]],
        scan_output_directions=[back[1]],
    )
    model = network([scan], {"x": shape}, ["last", "all"], zero=np.zeros(width, np.float32))
    assert "unrolled 1 Scan into 4 rounds" in require_same(model, values(*shape))
