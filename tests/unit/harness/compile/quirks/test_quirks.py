"""The quirks: which apply when."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import onnx
import pytest
from defects.sample import Emit, conv_and_padding, lower, network, source
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from small_networks import network as small_network
from tvm import relax, tirx
from tvm.relax.frontend.onnx import from_onnx

from device_runner.failures import RigFailure
from harness.base.case import Precision
from harness.base.failures import UsageError
from harness.compile.compiler.compat import return_type, structurally_equal
from harness.compile.compiler.passes import insert_before, replace_last
from harness.compile.compiler.releases import release
from harness.compile.compiler.tir import unbound_blocks
from harness.compile.paths.clml.patterns import ClmlEdits
from harness.compile.paths.kernels import kernels
from harness.compile.paths.opencl import OpenCLPath
from harness.compile.quirks import QUIRKS, fusions, policy_of, quirks_for, require_known
from harness.compile.quirks.importer import fold_functions_of_constants, give_squeezes_axes, identifiers, know_shapes
from harness.compile.quirks.layouts import without_split_points
from harness.compile.quirks.misreadings import MISREADINGS


def applied(path: str, precision: Precision = Precision.FLOAT32, *, as_shipped: bool = False, tvm: str) -> set[str]:
    return {quirk.id for quirk in quirks_for(path, precision, as_shipped=as_shipped, tvm=tvm)}


def test_ids_differ() -> None:
    assert len({quirk.id for quirk in QUIRKS}) == len(QUIRKS)


def test_edits_of_what_goes_to_clml_are_of_quirks_of_that_path_alone() -> None:
    """Another path would take no notice of them."""
    assert {quirk.paths for quirk in QUIRKS if isinstance(quirk.edits, ClmlEdits)} == {("clml",)}


def test_release_decides() -> None:
    has = [
        "texture-store-broadcast" in applied("texture", tvm=tvm) for tvm in ("0.25.0.post1", "0.26.0", "0.27.0.post1")
    ]
    assert has == [False, True, True]


def test_until_is_the_first_release_without_it() -> None:
    quirk = dataclasses.replace(QUIRKS[0], since="0.26", until="0.28")
    has = [quirk.affects(tvm, "opencl", Precision.FLOAT32) for tvm in ("0.25.0", "0.26.0", "0.27.9", "0.28.0.dev1")]
    assert has == [False, True, True, False]
    assert quirk.releases == "0.26 to before 0.28"


def test_what_the_first_release_alone_has_ends_with_it() -> None:
    ended = applied("opencl", tvm="0.25.0.post1") - applied("opencl", tvm="0.26.0")
    assert ended == {"shape-to-tensor", "squeeze-axes"}


def test_a_schedule_that_raises_does_so_on_every_path_until_it_is_mended() -> None:
    for path in ("opencl", "texture", "clml"):
        assert "reduction-schedule-raises" in applied(path, tvm="0.26.0")
        assert "reduction-schedule-raises" not in applied(path, tvm="0.27.0")


def test_what_is_for_buffers_comes_after_what_stores_whole_texels() -> None:
    ids = [quirk.id for quirk in quirks_for("texture", Precision.FLOAT32, as_shipped=False, tvm="0.26.0")]
    of_texels = max(map(ids.index, ("texture-average-pool", "texture-scalar-schedule")))
    assert of_texels < ids.index("reduction-schedule-raises"), "an average pool would store single numbers as texels"


def test_a_shape_that_is_known_becomes_a_constant() -> None:
    def body(emit: Emit, data: Any) -> Any:
        shape = emit(relax.op.shape_to_tensor(emit(relax.op.shape_of(data))))
        return emit(relax.op.take(shape, relax.const(1, "int64"), axis=0))

    known = know_shapes(network(body))
    assert "shape_to_tensor" not in known.script()


@pytest.mark.parametrize(("opset", "given"), [(11, 2), (13, 2)])
def test_a_squeeze_reads_its_axes_as_an_input(opset: int, given: int) -> None:
    axes: dict[str, Any] = {"axes": [1]} if opset < 13 else {}
    weights: dict[str, Any] = {} if axes else {"axes": np.array([1])}
    model = small_network(
        [helper.make_node("Squeeze", ["x", *weights], ["y"], **axes)], {"x": (1, 1, 3)}, opset=opset, **weights
    )
    give_squeezes_axes(model)
    assert len(model.graph.node[0].input) == given
    mod = from_onnx(model)
    assert [int(extent) for extent in return_type(mod["main"]).shape.values] == [1, 3]


def test_path_and_precision_decide() -> None:
    assert applied("cpu", tvm="0.27.0") == set()
    assert applied("opencl", tvm="0.27.0") == {
        *(misreading.id for misreading in MISREADINGS),
        "tir-pipeline-tuple",
        "input-name-in-kernel",
        "function-of-constants",
        "constants-compiled",
        "roi-align-half-pixel",
        "long-kernel-name",
        "builtin-suffix",
        "narrow-integers",
        "bytes-apart",
        "flattened-index",
        "reduction-part-read",
        "reduction-of-pairs",
        "reduction-extents",
        "reduction-epilogue-private",
        "reduction-of-one",
        "inner-reduction-tile",
        "local-memory-overflow",
        "fusion-repeats",
        "opaque-kernel-schedule",
    }
    assert "texture-conv-out-dtype" in applied("texture", tvm="0.27.0"), "a network may itself be in float16"
    assert "texture-conv-out-dtype" not in applied("opencl", Precision.FLOAT16_ACC32, tvm="0.27.0")


def test_as_shipped_leaves_only_what_nothing_runs_without() -> None:
    shipped = applied("texture", Precision.FLOAT16, as_shipped=True, tvm="0.27.0")
    assert shipped == {"tir-pipeline-tuple", "default-tir-pipeline"}


def test_as_shipped_but_for_some_keeps_the_order_and_leaves_what_the_release_has_not_got() -> None:
    chosen = ["vectorized-alloc", "grouped-conv-nchw4c", "reduction-schedule-raises"]
    made = quirks_for("texture", Precision.FLOAT32, as_shipped=True, but_for=chosen, tvm="0.27.0")
    ids = [quirk.id for quirk in made]
    assert ids == ["tir-pipeline-tuple", "default-tir-pipeline", "grouped-conv-nchw4c", "vectorized-alloc"]


def test_a_quirk_that_there_is_not_is_named_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="no quirk 'vectorised-alloc': did you mean 'vectorized-alloc'"):
        require_known(["vectorised-alloc"])


def test_quirks_are_chosen_only_of_what_is_as_shipped() -> None:
    assert policy_of(True, ["vectorized-alloc"]).with_quirks == ("vectorized-alloc",)
    with pytest.raises(UsageError, match="--with-quirk goes with --as-shipped"):
        policy_of(False, ["vectorized-alloc"])


def test_release_reads_versions() -> None:
    assert release("0.27.0.post1") == (0, 27, 0)
    assert release("0.28.dev3+g1234") == (0, 28)


def test_parts_of_channels_that_four_does_not_divide_are_left_to_the_layout_pass() -> None:
    def split(points: list[int]) -> Any:
        return network(lambda emit, data: relax.TupleGetItem(emit(relax.op.split(data, points, 1)), 0), (1, 16, 8, 8))

    assert structurally_equal(without_split_points(split([6]))["main"], split([6])["main"])
    assert "strided_slice" in without_split_points(split([4])).script()
    assert "indices_or_sections=2" in without_split_points(split([8])).script()


@pytest.mark.parametrize("on_input", [True, False])
def test_constants_are_folded_only_where_a_function_takes_nothing_else(
    on_input: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Picodet has 188 functions of its input, and to fold all its constants for nothing took 21 s."""
    tries: list[Any] = []
    nodes = [
        helper.make_node("Clip", ["x" if on_input else "weight", "low", "high"], ["clipped"]),
        helper.make_node("Add", ["x", "clipped"], ["y"]),
    ]
    weights = [
        onnx.numpy_helper.from_array(np.ones(shape, np.float32), name)
        for name, shape in (("weight", (3,)), ("low", ()), ("high", ()))
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy")
    graph = helper.make_graph(nodes, "clips", [x], [y], weights)
    mod = from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))

    def fold(mod: Any) -> Any:
        tries.append(mod)
        return mod

    monkeypatch.setattr(relax.transform, "FoldConstant", lambda: fold)
    assert fold_functions_of_constants(mod).same_as(mod)
    assert len(tries) == (0 if on_input else 1)


def test_inputs_keep_different_names_that_c_takes() -> None:
    assert identifiers(["a/b", "a_b", "a:b", "plain"]) == ["a_b_", "a_b", "a_b__", "plain"]


@given(st.lists(st.text(max_size=4), unique=True, max_size=6))
def test_identifiers_are_as_many_and_different(names: list[str]) -> None:
    found = identifiers(names)
    assert len(set(found)) == len(names)
    assert all(name.replace("_", "a").isalnum() and name.isascii() for name in found if name)


def test_workaround_without_its_pass_fails_loudly() -> None:
    with pytest.raises(RigFailure, match="has no pass VectorizeLoop"):
        insert_before([], "VectorizeLoop", None)
    with pytest.raises(RigFailure, match="has no pass ConvertLayout"):
        replace_last([], "ConvertLayout", None)


@pytest.mark.parametrize("side", [8, 73])
def test_no_work_group_keeps_all_results_of_a_convolution(side: int) -> None:
    """With TVM's schedule one work-group computes them in turn, whatever their size."""
    most = [
        max(kernel.local_bytes for kernel in kernels(source(conv_and_padding(side=side), quirks, OpenCLPath())))
        for quirks in ((), [quirk for quirk in QUIRKS if quirk.id == "local-memory-overflow"])
    ]
    assert most[0] > 8 * side * side * 4
    assert most[1] == 0


@pytest.mark.parametrize("applied", [True, False])
def test_a_softmax_with_a_padding_keeps_tvms_schedule(applied: bool) -> None:
    def body(emit: Emit, data: Any) -> Any:
        return emit(relax.op.nn.pad(emit(relax.op.nn.softmax(data)), [0, 0, 0, 3]))

    quirks = [quirk for quirk in QUIRKS if quirk.id == "local-memory-overflow"] if applied else []
    assert any(kernel.local_bytes for kernel in kernels(source(network(body, (64, 128)), quirks, OpenCLPath())))


@pytest.mark.parametrize(("steps", "several"), [(3, False), (9, True)])
def test_a_fused_kernel_ends_where_it_would_repeat_too_much(
    steps: int, several: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def body(emit: Emit, data: Any) -> Any:
        for _ in range(steps):
            data = emit(relax.op.multiply(data, emit(relax.op.sigmoid(data))))
        return data

    monkeypatch.setattr(fusions, "LONGEST", 1000)
    quirks = [quirk for quirk in QUIRKS if quirk.id == "fusion-repeats"]
    assert (len(list(kernels(source(network(body), quirks, OpenCLPath())))) > 1) is several


@pytest.mark.parametrize(("choices", "several"), [(3, False), (4, True)])
def test_a_fused_kernel_ends_at_choices_in_the_conditions_of_choices(choices: int, several: bool) -> None:
    """TVM's simplifier took minutes for ten of them, such as a OneHot that reads a OneHot has."""

    def body(emit: Emit, data: Any) -> Any:
        for _ in range(choices):
            positive = emit(relax.op.greater(data, relax.const(0.0)))
            data = emit(relax.op.where(positive, data, emit(relax.op.exp(data))))
        return data

    quirks = [quirk for quirk in QUIRKS if quirk.id == "fusion-repeats"]
    assert (len(list(kernels(source(network(body), quirks, OpenCLPath())))) > 1) is several


def test_what_ends_a_kernel_may_have_several_results(monkeypatch: pytest.MonkeyPatch) -> None:
    def body(emit: Emit, data: Any) -> Any:
        halves = emit(relax.op.split(emit(relax.op.exp(data)), 2, 1))
        return emit(relax.op.subtract(halves[0], halves[1]))

    monkeypatch.setattr(fusions, "LONGEST", 1)
    quirks = [quirk for quirk in QUIRKS if quirk.id == "fusion-repeats"]
    assert len(list(kernels(source(network(body), quirks, OpenCLPath())))) > 1


def test_a_scatter_with_blocks_beside_its_threads_gets_tvms_schedule() -> None:
    indices, updates = relax.const(np.array([[0]], np.int64)), relax.const(np.ones((1, 4, 8, 8), np.float32))
    mod = network(lambda _emit, x: relax.op.scatter_nd(x, indices, updates))
    lowered = lower(mod, [quirk for quirk in QUIRKS if quirk.id == "opaque-kernel-schedule"])
    functions = [function for function in lowered.functions.values() if isinstance(function, tirx.PrimFunc)]
    assert functions
    assert [name for function in functions for name in unbound_blocks(function)] == []
