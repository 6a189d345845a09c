"""A small network from its file to a library, on every path, without a device."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from compile_requests import request_for
from onnx import TensorProto, helper, numpy_helper
from plain_network import write_plain_onnx
from small_networks import network
from tvm import relax

from device_runner.failures import Failure, SetupMissing
from harness.base.failures import CompileFailure, UnsupportedOperator
from harness.base.outcome import Outcome, Owner
from harness.base.request import CompileRequest
from harness.compile.artifacts.artifact import CompileResult
from harness.compile.artifacts.compile import compile_model, import_request, quote
from harness.compile.compiler.compat import array_of, is_constant, is_tensor, type_of
from harness.compile.compiler.passes import adreno_relax_passes, adreno_tir_passes
from harness.compile.compiler.releases import HOST_FUNCTIONS, host_operators
from harness.compile.models.preparation import prepare
from harness.compile.paths import PATHS
from harness.compile.paths.base import ImageLimits
from harness.tools.zoo.graph_layers import ImageGraph


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of two convolutions: compiling it takes a second."""
    folder = tmp_path_factory.mktemp("models")
    write_plain_onnx(folder)
    return folder / "plain.onnx"


@pytest.fixture(scope="module")
def compiled(plain: Path) -> dict[str, CompileResult]:
    made = {}
    for path in PATHS:
        made[path] = compile_model(request_for(plain, path), plain.parent)
        assert (plain.parent / made[path].library).stat().st_size > 10_000
    return made


def test_what_came_of_it_is_plain_json(compiled: dict[str, CompileResult]) -> None:
    for made in compiled.values():
        assert json.loads(json.dumps(dataclasses.asdict(made)))["inputs"] == [["input", [1, 3, 16, 16], "float32"]]
        assert made.outputs == 1


def test_texture_keeps_tensors_in_images(compiled: dict[str, CompileResult]) -> None:
    texture, opencl = compiled["texture"], compiled["opencl"]
    assert texture.facts["texture_tensors"] >= 1
    assert texture.facts["image_kernels"] >= 3
    assert texture.vdevices == 2
    assert opencl.facts["texture_tensors"] == opencl.facts["image_kernels"] == 0
    assert opencl.vdevices == 1
    assert opencl.facts["kernels"] > 4


def test_facts_are_free_of_noise(compiled: dict[str, CompileResult], plain: Path, tmp_path: Path) -> None:
    assert compile_model(request_for(plain, "texture"), tmp_path).facts == compiled["texture"].facts


def test_cpu_has_no_kernels(compiled: dict[str, CompileResult]) -> None:
    assert compiled["cpu"].facts["kernels"] == 0
    assert compiled["cpu"].quirks == []


def numbers_of(mod: Any) -> list[float]:
    """Return the constants of a network."""
    constants = list[float]()

    def visit(expression: Any) -> None:
        if is_constant(expression) and is_tensor(type_of(expression)):
            constants.extend(array_of(expression).ravel().tolist())

    relax.analysis.post_order_visit(mod["main"], visit)
    return constants


def test_what_stays_float32_in_half_precision_keeps_its_constants(tmp_path: Path) -> None:
    """TVM rounds those of an instance norm to float16 and back, and its answer was judged as float32."""
    scale = 1.3438572
    node = helper.make_node("InstanceNormalization", ["x", "scale", "bias"], ["y"])
    weights: dict[str, Any] = {"scale": np.array([scale, 1.0], np.float32), "bias": np.ones(2, np.float32)}
    onnx.save(network([node], {"x": [1, 2, 5, 5]}, **weights), tmp_path / "n.onnx")
    mod, _ = import_request(request_for(tmp_path / "n.onnx", "texture", "float16"))
    assert np.float32(scale) in numbers_of(mod)


@pytest.mark.parametrize("path", ["opencl", "texture"])
def test_what_is_computed_of_constants_is_computed_in_float32(path: str, tmp_path: Path) -> None:
    """The importer transposes the grid and negates a bound of Shrink; in halves the grid was rounded."""
    nodes = [
        helper.make_node("GridSample", ["x", "grid"], ["sampled"]),
        helper.make_node("Shrink", ["sampled"], ["y"], lambd=0.3),
    ]
    grid = np.random.default_rng(0).uniform(-1, 1, (1, 5, 3, 2)).astype(np.float32)
    onnx.save(network(nodes, {"x": [1, 4, 12, 6]}, grid=grid), tmp_path / "n.onnx")
    mod, _ = import_request(request_for(tmp_path / "n.onnx", path, "float16"))
    assert {*grid.ravel().tolist()} <= {*numbers_of(mod)}
    assert "float16" not in mod.script()


@pytest.mark.parametrize("path", ["opencl", "texture"])
def test_an_item_of_a_tuple_may_be_an_output_in_half_precision(path: str, tmp_path: Path) -> None:
    """Where a workaround has rewritten a network, such an output is no variable more, and TVM raised an error."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Cast", ["c"], ["flags"], to=TensorProto.BOOL),
        helper.make_node("Cast", ["flags"], ["ones"], to=TensorProto.FLOAT),
        helper.make_node("Conv", ["ones", "w"], ["d"]),
        helper.make_node("Split", ["d"], ["other", "y"], axis=1, num_outputs=2),
    ]
    model = network(nodes, {"x": [1, 4, 8, 8]}, opset=18, w=np.ones((4, 4, 1, 1), np.float32))
    onnx.save(model, tmp_path / "n.onnx")
    made = compile_model(request_for(tmp_path / "n.onnx", path, "float16"), tmp_path)
    assert made.facts["half_kernels"] > 0


@pytest.mark.parametrize("precision", ["float16", "float16_acc32"])
def test_texture_in_half_precision(plain: Path, precision: str, tmp_path: Path) -> None:
    made = compile_model(request_for(plain, "texture", precision), tmp_path)
    assert "texture-conv-out-dtype" in made.quirks
    assert made.facts["image_kernels"] >= 3


def write_choice(file: Path, *otherwise: Any) -> None:
    """A convolution, or what `otherwise` makes of `x` as `e`, as an input chooses."""
    then = helper.make_node("Conv", ["x", "w"], ["t"], pads=[1, 1, 1, 1])
    ends = {name: [helper.make_empty_tensor_value_info(name)] for name in ("t", "e", "y")}
    choose = helper.make_node(
        "If",
        ["flag"],
        ["y"],
        then_branch=helper.make_graph([then], "then", [], ends["t"]),
        else_branch=helper.make_graph(list(otherwise), "else", [], ends["e"]),
    )
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 8, 8]),
        helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
    ]
    weights = {"w": np.ones((4, 4, 3, 3), np.float32), "last": np.array([-1, -1])}
    arrays = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph([choose], "choice", inputs, ends["y"], arrays)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    prepare(model)
    onnx.save(onnx.shape_inference.infer_shapes(model), file)


@pytest.mark.parametrize("path", ["opencl", "texture", "clml"])
def test_a_choice_between_branches_compiles_on_every_path(tmp_path: Path, path: str) -> None:
    """With an If, the partitioner of clml stops, and texture puts no tensor into an image."""
    write_choice(tmp_path / "net.onnx", helper.make_node("LpNormalization", ["x"], ["e"], axis=1))
    facts = compile_model(request_for(tmp_path / "net.onnx", path), tmp_path).facts
    assert (facts["texture_tensors"] > 0) == (path == "texture")


@pytest.mark.parametrize("path", ["opencl", "texture"])
def test_branches_of_unlike_shapes_compile(tmp_path: Path, path: str) -> None:
    """What the importer writes around an If is data flow: the places of a GatherND are computed before the build."""
    write_choice(tmp_path / "net.onnx", helper.make_node("GatherND", ["x", "last"], ["e"]))
    assert compile_model(request_for(tmp_path / "net.onnx", path), tmp_path).facts["kernels"] > 0


def test_as_shipped_is_the_compilers_error(tmp_path: Path) -> None:
    net = ImageGraph("depthwise", (1, 8, 8, 8))
    file = tmp_path / "depthwise.onnx"
    file.write_bytes(net.finish((net.conv(net.input, 8, 3, pad=1, groups=8), (1, 8, 8, 8))).to_bytes())
    with pytest.raises(
        CompileFailure, match=r"TVM failed to lower the model, in LegalizeOps on relax.nn.conv2d .*Divide by zero"
    ) as caught:
        compile_model(request_for(file, "texture", as_shipped=True), tmp_path)
    assert caught.value.outcome == "compile-error"
    assert "Traceback" in caught.value.evidence


def test_image_limits_of_the_device_decide_the_scopes() -> None:
    target = PATHS["texture"].target(ImageLimits(4096, 2048, 256), None)
    assert (int(target.attrs["texture_spatial_limit"]), int(target.attrs["texture_depth_limit"])) == (2048, 256)


def test_target_is_the_tagged_one_but_for_the_limits() -> None:
    from tvm.target import Target

    for path in ("opencl", "texture"):
        tag = {"opencl": "qcom/adreno-opencl", "texture": "qcom/adreno-opencl-texture"}[path]
        ours, theirs = PATHS[path].target(ImageLimits(), None).export(), Target(tag).export()
        skipped = {"tag", "host"}
        assert {k: v for k, v in ours.items() if k not in skipped} == {
            k: v for k, v in theirs.items() if k not in skipped
        }


def test_host_triple_reaches_the_target() -> None:
    host = PATHS["opencl"].target(ImageLimits(), "aarch64-linux-android").host
    assert host.attrs["mtriple"] == "aarch64-linux-android"


def test_pass_lists_are_read_from_the_release() -> None:
    relax = [p.info.name for p in adreno_relax_passes(PATHS["texture"].target(ImageLimits(), None))]
    assert {"ConvertLayout", "FuseTIR", "VMShapeLower"} <= set(relax)
    tir = [p.info.name.rpartition(".")[2] for p in adreno_tir_passes()]
    assert tir.index("TextureFlatten") < tir.index("VectorizeLoop") < tir.index("MakePackedAPI")


def saved(folder: Path, nodes: list[Any]) -> CompileRequest:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 4])],
    )
    domains = [helper.make_opsetid("", 13), helper.make_opsetid("acme", 1)]
    file = folder / "model.onnx"
    file.write_bytes(helper.make_model(graph, opset_imports=domains, ir_version=8).SerializeToString())
    return request_for(file, "opencl")


def test_unknown_operator_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperator, match=r"does not know acme\.Frobnicate \(z\)"):
        compile_model(saved(tmp_path, [helper.make_node("Frobnicate", ["x"], ["z"], domain="acme")]), tmp_path)


@pytest.mark.parametrize("path", ["opencl", "texture", "clml"])
def test_what_tvm_computes_in_python_is_refused_on_every_path_in_the_same_words(tmp_path: Path, path: str) -> None:
    request = dataclasses.replace(saved(tmp_path, [helper.make_node("NonZero", ["x"], ["z"], name="nz")]), path=path)
    said = r"^no device runs what TVM computes in Python: NonZero \(nz\)"
    with pytest.raises(UnsupportedOperator, match=said) as caught:
        compile_model(request, tmp_path)
    assert Outcome(caught.value.outcome).owner is Owner.COMPILER


def test_the_functions_that_are_said_to_be_in_python_are_those_that_tvm_calls() -> None:
    from tvm.ir import Op

    assert host_operators() == {"NonZero", "Compress", "Unique"}
    for function in set(HOST_FUNCTIONS.values()):
        assert Op.get(function.replace("relax.run.", "relax.")).get_attr("FCallPacked") == function


def test_what_tvm_raises_is_quoted_in_one_line(tmp_path: Path) -> None:
    permute = helper.make_node("Transpose", ["x"], ["z"], perm=[0, 0])
    with pytest.raises(
        CompileFailure, match="TVM failed to import the model, in from_onnx on Transpose 'z': "
    ) as caught:
        compile_model(saved(tmp_path, [permute]), tmp_path)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\n an error \nmore", "an error"),
        (
            "An error occurred in 'compute-at'.\n\n# dump\nError message: It requires all the consumer(s). However, 1",
            "It requires all the consumer(s)",
        ),
        (
            'unknown intrinsic ir.Op(span=None, ty=ir.Type(span=None), name="tirx.erf", num=-1)',
            "unknown intrinsic tirx.erf",
        ),
        ("", ""),
    ],
)
def test_the_useful_line_of_an_error_is_quoted(text: str, line: str) -> None:
    assert quote(ValueError(text)) == line


def test_foreign_host_needs_a_linker(plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANDROID_NDK_HOME", str(tmp_path))
    foreign = request_for(plain, "cpu", host_triple="aarch64-linux-android")
    with pytest.raises(SetupMissing, match="holds no Android NDK"):
        compile_model(foreign, tmp_path)


def test_no_compiler_to_link_with(plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupMissing, match="no C\\+\\+ compiler"):
        compile_model(request_for(plain, "cpu"), tmp_path)


def test_missing_model_is_no_compile_failure(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="does not exist") as caught:
        compile_model(request_for(tmp_path / "absent.onnx", "texture"), tmp_path)
    assert not isinstance(caught.value, CompileFailure)


def test_an_output_that_is_no_tensor_is_the_importers_failure(tmp_path: Path) -> None:
    shape = helper.make_node("Shape", ["x"], ["y"])
    ends = helper.make_tensor_value_info("x", 1, (3, 4)), helper.make_tensor_value_info("y", 7, (2,))
    graph = helper.make_graph([shape], "shape", [ends[0]], [ends[1]])
    file = tmp_path / "shape.onnx"
    file.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
    with pytest.raises(CompileFailure, match=r"an output is R\.Shape.* in TVM, not a tensor"):
        compile_model(request_for(file, "opencl"), tmp_path)


def test_sizes_that_are_computed_on_the_way_are_not_counted(tmp_path: Path) -> None:
    compress = helper.make_node("Compress", ["x", "c"], ["y"], axis=0)
    ends = [
        helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in (("x", 1, (3, 4)), ("c", 9, (3,)))
    ]
    graph = helper.make_graph([compress], "compress", ends, [helper.make_tensor_value_info("y", 1, (None, 4))])
    file = tmp_path / "compress.onnx"
    file.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
    made = compile_model(request_for(file, "cpu"), tmp_path)
    assert made.facts["storage_bytes"] == 0
    assert made.facts["calls"] > 0
