"""A user's own file: every defect is one clear line, and nothing outside its folder is read."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from small_networks import answers

from harness.base.failures import ModelError
from harness.compile.models.onnx_inputs import input_specs, require_tensors
from harness.compile.models.onnx_read import load
from harness.compile.models.outline import double_operators
from harness.compile.models.sources import OnnxFile
from harness.tools.zoo import tiny


def relu_model(shape: list[Any] | None = None, dtype: int = TensorProto.FLOAT) -> Any:
    """`x + w`, then a rectifier."""
    shape = [1, 4] if shape is None else shape
    nodes = [helper.make_node("Add", ["x", "w"], ["y"]), helper.make_node("Relu", ["y"], ["z"])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", dtype, shape)],
        [helper.make_tensor_value_info("z", dtype, shape)],
        [numpy_helper.from_array(np.arange(4, dtype=np.float32), "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def saved(folder: Path, model: Any) -> Path:
    file = folder / "model.onnx"
    file.write_bytes(model.SerializeToString())
    return file


def with_external_weight(location: str) -> Any:
    model = relu_model()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return model


def test_good_file_is_used_as_it_is(tmp_path: Path) -> None:
    file = saved(tmp_path, relu_model())
    assert OnnxFile("mine", file).onnx_file(tmp_path / "cache") == file
    assert not (tmp_path / "cache").exists()


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="does not exist: correct"):
        load(tmp_path / "absent.onnx")


def test_folder_instead_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is a folder, not a file"):
        load(tmp_path)


def test_empty_file(tmp_path: Path) -> None:
    file = tmp_path / "empty.onnx"
    file.touch()
    with pytest.raises(ModelError, match="is empty"):
        load(file)


@pytest.mark.parametrize("content", [b"PK\x03\x04 a zip", b"<html>not found</html>", b"\x00" * 64, b"\x08\x08"])
def test_not_onnx(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "other.onnx"
    file.write_bytes(content)
    with pytest.raises(ModelError, match="is not an ONNX file"):
        load(file)


def test_truncated(tmp_path: Path) -> None:
    data = tiny.build().to_bytes()
    file = tmp_path / "half.onnx"
    file.write_bytes(data[: len(data) // 2])
    with pytest.raises(ModelError, match="is truncated or damaged"):
        load(file)


@given(data=st.binary(max_size=400), keep=st.integers(0, 250))
def test_damage_is_a_model_error_or_nothing(tmp_path_factory: pytest.TempPathFactory, data: bytes, keep: int) -> None:
    file = tmp_path_factory.mktemp("damage") / "model.onnx"
    file.write_bytes(relu_model().SerializeToString()[:keep] + data)
    with contextlib.suppress(ModelError):
        input_specs(load(file), {})


def test_a_network_that_computes_nothing(tmp_path: Path) -> None:
    """What leads to no output is removed, and what was left was called no ONNX file."""
    model = relu_model()
    del model.graph.output[:]
    with pytest.raises(ModelError, match=r"model\.onnx has no outputs"):
        OnnxFile("mine", saved(tmp_path, model)).prepare(tmp_path)


def test_a_network_without_operators(tmp_path: Path) -> None:
    model = relu_model()
    del model.graph.node[:]
    with pytest.raises(ModelError, match=r"model\.onnx has no operators"):
        load(saved(tmp_path, model))


def test_two_outputs_with_one_name(tmp_path: Path) -> None:
    """ONNX's checker takes them; an answer by name has one of them."""
    model = relu_model()
    model.graph.output.append(model.graph.output[0])
    with pytest.raises(ModelError, match="has two outputs with one name: export"):
        load(saved(tmp_path, model))


def test_a_pointer_of_git_lfs(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n")
    with pytest.raises(ModelError, match="is a pointer of Git LFS: get the network: `git lfs pull`"):
        load(file)


def test_the_reason_of_the_checker_is_whole(tmp_path: Path) -> None:
    model = relu_model()
    model.graph.node[1].input[0] = "nobody"
    with pytest.raises(ModelError, match=r"input 'nobody' of node: name:.* is not output of any previous nodes: exp"):
        load(saved(tmp_path, model))


def test_structurally_invalid_model(tmp_path: Path) -> None:
    model = relu_model()
    model.graph.node[1].input[0] = "nobody"
    with pytest.raises(ModelError, match="is not a valid ONNX model") as caught:
        load(saved(tmp_path, model))
    assert "nobody" in caught.value.evidence


@pytest.mark.parametrize("field", ["shape", "type"])
def test_an_output_may_leave_out_its_shape_or_type(tmp_path: Path, field: str) -> None:
    """As onnxruntime takes it: exporters leave out what they cannot tell."""
    model = relu_model()
    output = model.graph.output[0]
    output.type.tensor_type.ClearField("shape") if field == "shape" else output.ClearField("type")
    loaded = load(saved(tmp_path, model))
    assert not loaded.graph.output[0].type.tensor_type.HasField("shape")


def test_dynamic_shape_says_how_to_fix_it(tmp_path: Path) -> None:
    model = load(saved(tmp_path, relu_model(["batch", 4])))
    with pytest.raises(ModelError, match=r"dynamic shape \[batch, 4\]") as caught:
        input_specs(model, {})
    assert 'shapes = { "batch" = 1 }' in caught.value.hint
    (spec,) = input_specs(model, {"x": [2, 4]})
    assert spec.shape == (2, 4)


def test_an_input_without_a_rank_takes_the_shape_that_is_given(tmp_path: Path) -> None:
    """As onnxruntime takes it. ONNX's checker does not."""
    model = relu_model()
    model.graph.input[0].type.tensor_type.ClearField("shape")
    file = saved(tmp_path, model)
    with pytest.raises(ModelError, match=r"any number of axes: fix it with --shape x=1x3x224x224"):
        OnnxFile("mine", file).prepare(tmp_path)
    (spec,) = OnnxFile("mine", file, {"x": [1, 4]}).prepare(tmp_path).inputs
    assert spec.shape == (1, 4)


def test_an_input_in_bfloat16_is_given_in_float32(tmp_path: Path) -> None:
    model = relu_model(dtype=TensorProto.BFLOAT16)
    model.graph.initializer[0].CopyFrom(helper.make_tensor("w", TensorProto.BFLOAT16, [4], [0.5, 1, 2, 3]))
    prepared = OnnxFile("mine", saved(tmp_path, model)).prepare(tmp_path)
    assert prepared.changes == ("computed bfloat16 in float32",)
    assert prepared.inputs[0].dtype == "float32"


def test_a_fixed_extent_of_zero_is_no_dynamic_one() -> None:
    model = relu_model([1, 4])
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 0
    for look in (lambda: input_specs(model, {}), lambda: require_tensors(model)):  # as `run` and `inspect` do
        with pytest.raises(ModelError, match=r"the fixed shape \[1, 0\], which holds nothing"):
            look()


@pytest.mark.parametrize("shape", [[1, 5], [1, 4, 1], [0, 4], [1.5, 4]])
def test_given_shape_that_cannot_be(shape: list[Any]) -> None:
    with pytest.raises(ModelError, match="is given the shape"):
        input_specs(relu_model([None, 4]), {"x": shape})


def test_a_shape_other_than_the_files_own_needs_another_export() -> None:
    with pytest.raises(ModelError) as caught:
        input_specs(relu_model([1, 4]), {"x": [2, 4]})
    assert caught.value.message == "input 'x' is given the shape [2, 4], the model says [1, 4]"
    assert caught.value.hint.startswith("the file fixes it: leave --shape out, or export the network for this shape")


def test_named_extents_are_to_be_fixed_once_for_all_inputs() -> None:
    wanted = r'--shape rows=1 --shape width=224, or in the suite with shapes = \{ "rows" = 1, "width" = 224 \}'
    with pytest.raises(ModelError, match=wanted):
        input_specs(relu_model(["rows", "width"]), {})
    with pytest.raises(ModelError, match=r"fix it with --shape x=1x224, or"):  # tf2onnx names each extent otherwise
        input_specs(relu_model(["unk__1", "unk__2"]), {})


def test_a_named_extent_is_fixed_wherever_it_stands() -> None:
    model = relu_model(["batch", "width"])
    (spec,) = input_specs(model, {"batch": 1, "width": 4})
    assert spec.shape == (1, 4)
    with pytest.raises(ModelError, match=r"dynamic shape \[batch, width\]"):
        input_specs(model, {"batch": 1})
    with pytest.raises(ModelError, match="dimension 'height': its inputs and dynamic dimensions: x, batch, width"):
        input_specs(model, {"height": 1})
    with pytest.raises(ModelError, match="extent 'batch' is given as 0"):
        input_specs(model, {"batch": 0, "width": 4})


def test_an_absurd_shape_is_refused_before_there_is_an_array() -> None:
    with pytest.raises(ModelError, match="takes more than 4 GB"):
        input_specs(relu_model(["batch", 4]), {"batch": 10**12})


def test_a_dynamic_file_is_prepared_with_its_shapes_and_says_so(tmp_path: Path) -> None:
    source = OnnxFile("mine", saved(tmp_path, relu_model(["batch", 4])), {"batch": 2})
    copy = source.onnx_file(tmp_path / "cache")
    assert source.changes(tmp_path / "cache") == ("fixed x [2, 4]",)
    (spec,) = input_specs(load(copy))
    assert spec.shape == (2, 4)


def test_what_is_changed_is_said_of_a_model_with_a_file_of_inputs(tmp_path: Path) -> None:
    np.savez(inputs := tmp_path / "x.npz", x=np.ones((2, 4), np.float32))
    source = OnnxFile("mine", saved(tmp_path, relu_model(["batch", 4])), {"batch": 2}, inputs=inputs)
    assert source.changes(tmp_path / "cache") == ("fixed x [2, 4]",)


def test_what_an_exporter_left_is_kept_where_that_is_asked(tmp_path: Path) -> None:
    model = relu_model()
    model.graph.node.insert(0, helper.make_node("Identity", ["x"], ["same"]))
    model.graph.node[1].input[0] = "same"
    file = saved(tmp_path, model)
    assert OnnxFile("mine", file, clean=False).onnx_file(tmp_path / "cache") == file
    assert OnnxFile("mine", file).changes(tmp_path / "cache") == ("removed 1 Identity",)


def test_a_weight_that_is_no_number_is_refused_and_an_infinite_one_is_not(tmp_path: Path) -> None:
    model = relu_model()
    for bad in (np.inf, np.nan):
        array = np.array([0, bad, bad, 1], np.float32)
        model.graph.initializer[0].CopyFrom(numpy_helper.from_array(array, "w"))
        source = OnnxFile("mine", saved(tmp_path, model))
        if np.isinf(bad):
            source.onnx_file(tmp_path / "cache")
        else:
            with pytest.raises(ModelError, match="2 of 4 elements of the weight 'w' are NaN"):
                source.onnx_file(tmp_path / "cache")


def test_a_nan_that_a_network_puts_where_its_mask_is_false_is_no_weight(tmp_path: Path) -> None:
    model = relu_model()
    nan = numpy_helper.from_array(np.array([np.nan], np.float32))
    model.graph.node.insert(0, helper.make_node("ConstantOfShape", ["four"], ["nothing"], value=nan))
    model.graph.node.append(helper.make_node("IsNaN", ["y"], ["bad"]))
    model.graph.node.append(helper.make_node("Where", ["bad", "nothing", "y"], ["masked"]))
    model.graph.initializer.append(numpy_helper.from_array(np.array([4], np.int64), "four"))
    model.graph.output[0].name = "masked"
    OnnxFile("mine", saved(tmp_path, model)).onnx_file(tmp_path / "cache")


@pytest.mark.parametrize(("dims", "said"), [([1 << 40], "takes 4398046511104 bytes"), ([-4], "has the shape")])
def test_a_weight_that_lies_about_its_shape_costs_no_memory(tmp_path: Path, dims: list[int], said: str) -> None:
    model = relu_model()
    model.graph.initializer[0].dims[:] = dims
    with pytest.raises(ModelError, match=said):
        load(saved(tmp_path, model))


def sparse(name: str, dense: Any, *, counted_through: bool = False) -> Any:
    places = np.argwhere(dense)
    elements = numpy_helper.from_array(dense[tuple(places.T)], name)
    rows = np.ravel_multi_index(tuple(places.T), dense.shape) if counted_through else places
    return helper.make_sparse_tensor(elements, numpy_helper.from_array(rows.astype(np.int64), f"{name}_i"), dense.shape)


def sparse_model(weight: Any, constant: Any, branch: Any) -> Any:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("x", "y")]
    out = helper.make_empty_tensor_value_info
    own = helper.make_graph([helper.make_node("Mul", ["b", "k"], ["p"])], "own", [], [out("p")])
    own.sparse_initializer.append(branch)
    other = helper.make_graph([helper.make_node("Neg", ["b"], ["q"])], "other", [], [out("q")])
    nodes = [
        helper.make_node("Constant", [], ["c"], sparse_value=constant),
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("MatMul", ["a", "c"], ["b"]),
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["any"], to=TensorProto.BOOL),
        helper.make_node("If", ["any"], ["y"], then_branch=own, else_branch=other),
    ]
    graph = helper.make_graph(nodes, "sparse", ends[:1], ends[1:], sparse_initializer=[weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("clean", [True, False])
def test_sparse_weights_and_constants_are_dense_in_what_is_compiled(tmp_path: Path, clean: bool) -> None:
    dense = np.random.default_rng(0).standard_normal((3, 6)).astype(np.float32)
    dense[np.abs(dense) < 0.8] = 0
    tensors = sparse("w", dense, counted_through=True), sparse("c_v", dense.T), sparse("k", dense[:2, :3])
    model = sparse_model(*tensors)
    source = OnnxFile("net", saved(tmp_path, model), clean=clean)
    assert "wrote 3 sparse tensors as dense" in source.changes(tmp_path)
    made = onnx.load(source.onnx_file(tmp_path))
    assert "sparse" not in str(made.graph).replace(made.graph.name, "")
    for x in ({"x": np.ones((2, 3), np.float32)}, {"x": np.zeros((2, 3), np.float32)}):
        np.testing.assert_allclose(answers(made, x)[0], answers(model, x)[0], rtol=1e-6)


@pytest.mark.parametrize("place", [0, 1])
def test_a_sparse_tensor_that_claims_more_than_it_holds_is_refused(tmp_path: Path, place: int) -> None:
    dense = np.eye(3, dtype=np.float32)
    tensors = sparse("w", dense), sparse("c_v", dense), sparse("k", dense)
    tensors[place].dims[:] = [1 << 20, 1 << 20]
    with pytest.raises(
        ModelError,
        match="its sparse tensors take 8796093 MB once they are dense: export dense ones, or fewer than 268 MB",
    ):
        OnnxFile("net", saved(tmp_path, sparse_model(*tensors))).onnx_file(tmp_path)
    tensors[place].dims[:] = [3, 2]
    with pytest.raises(ModelError):
        OnnxFile("net", saved(tmp_path, sparse_model(*tensors))).onnx_file(tmp_path)
    tensors[place].dims[:] = [3, 3]
    tensors[place].values.ClearField("raw_data")
    with pytest.raises(ModelError, match="takes 12 bytes, and the file holds 0"):
        OnnxFile("net", saved(tmp_path, sparse_model(*tensors))).onnx_file(tmp_path)


def test_a_cycle_and_a_name_that_is_there_twice_are_refused(tmp_path: Path) -> None:
    cycle, twice = relu_model(), relu_model()
    cycle.graph.node[0].input[1] = "z"
    twice.graph.node[1].output[0] = "y"
    for model in (cycle, twice):
        with pytest.raises(ModelError, match=r"is not a valid ONNX model.*: export it again"):
            load(saved(tmp_path, model))


def test_an_operator_that_onnx_does_not_have_is_refused_by_its_name(tmp_path: Path) -> None:
    """As `tf2onnx` writes what only a package's own TensorFlow Lite has."""
    model = relu_model()
    model.graph.node[1].op_type = "TFL_Convolution2DTransposeBias"
    with pytest.raises(ModelError, match=r"TFL_Convolution2DTransposeBias.*: export it without custom operators"):
        load(saved(tmp_path, model))


def test_an_operator_set_of_the_future_is_refused(tmp_path: Path) -> None:
    model = relu_model()
    model.opset_import[0].version = 999
    with pytest.raises(ModelError, match=r"is in operator set 999, and onnx .* knows them up to"):
        load(saved(tmp_path, model))


def test_an_ir_version_of_the_future_is_refused(tmp_path: Path) -> None:
    model = relu_model()
    model.ir_version = 99
    with pytest.raises(ModelError, match=r"is in IR version 99, .* knows them up to .*: export it with an older one"):
        load(saved(tmp_path, model))


def test_operators_of_a_domain_without_operator_set_are_custom_ones(tmp_path: Path) -> None:
    model = relu_model()
    model.graph.node[1].domain = "my.ops"
    with pytest.raises(ModelError, match=r"No opset import for domain 'my.ops': export it without custom operators"):
        load(saved(tmp_path, model))


def mutated(draw: st.DrawFn) -> bytes:
    """A network's bytes with some of them changed, cut out or doubled."""
    data = bytearray(relu_model().SerializeToString())
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data) - 1))
        kind = draw(st.sampled_from(("change", "cut", "double")))
        if kind == "change":
            data[place] = draw(st.integers(0, 255))
        elif kind == "cut":
            del data[place : place + draw(st.integers(1, 8))]
        else:
            data[place:place] = data[place : place + draw(st.integers(1, 40))]
        data = data or bytearray(b"\x08")
    return bytes(data)


@given(data=st.composite(mutated)())
def test_a_mutated_file_is_prepared_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("mutated")
    file = folder / "model.onnx"
    file.write_bytes(data)
    with contextlib.suppress(ModelError):
        load(OnnxFile("mine", file).onnx_file(folder / "cache"))


def test_shape_for_an_unknown_input_names_the_inputs() -> None:
    with pytest.raises(ModelError, match="no input 'image': its inputs: x"):
        input_specs(relu_model(), {"image": [1, 4]})


def test_weights_are_no_inputs_and_integers_are_welcome() -> None:
    model = relu_model(dtype=TensorProto.INT64)
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [4]))
    assert [(spec.name, spec.dtype) for spec in input_specs(model, {})] == [("x", "int64")]


def test_text_inputs_are_refused() -> None:
    with pytest.raises(ModelError, match="holds text: inputs are real numbers, integers or booleans"):
        input_specs(relu_model(dtype=TensorProto.STRING), {})


def test_external_data_inside_the_folder_is_brought_in(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "w.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    file = saved(folder, with_external_weight("data/w.bin"))
    copy = OnnxFile("mine", file).onnx_file(tmp_path / "cache")
    assert copy.parent == tmp_path / "cache"
    assert OnnxFile("mine", file).onnx_file(tmp_path / "cache") == copy
    (weight,) = onnx.load(copy, load_external_data=False).graph.initializer
    np.testing.assert_array_equal(numpy_helper.to_array(weight), np.arange(4))


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "link.bin"])
def test_external_data_outside_the_folder_is_never_read(tmp_path: Path, location: str) -> None:
    (tmp_path / "secret.bin").write_bytes(bytes(16))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    with pytest.raises(ModelError, match="outside its own folder"):
        OnnxFile("mine", saved(folder, with_external_weight(location))).onnx_file(tmp_path / "cache")


def test_external_data_outside_the_folder_is_found_in_attributes_too(tmp_path: Path) -> None:
    model = relu_model()
    hidden = with_external_weight("../secret.bin").graph.initializer[0]
    model.graph.node.append(helper.make_node("Constant", [], ["c"], value=hidden))
    with pytest.raises(ModelError, match="outside its own folder"):
        OnnxFile("mine", saved(tmp_path, model)).onnx_file(tmp_path / "cache")


def test_external_data_that_claims_another_length_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(64))
    model = with_external_weight("w.bin")
    model.graph.initializer[0].external_data.add(key="length", value="64")
    with pytest.raises(ModelError, match=r"it has 64 bytes of 16"):
        OnnxFile("mine", saved(tmp_path, model)).onnx_file(tmp_path / "cache")


@pytest.mark.parametrize("location", ["", "\0", "x" * 5000, "loop", "folder"])
def test_external_data_at_a_place_that_is_no_file_is_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ModelError, match="keeps the data of 'w'"):
        OnnxFile("mine", saved(tmp_path, with_external_weight(location))).onnx_file(tmp_path / "cache")


@pytest.mark.parametrize("content", [None, b"short"])
def test_external_data_that_is_missing_or_short(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "w.bin").write_bytes(content)
    with pytest.raises(ModelError, match=r"w\.bin"):
        OnnxFile("mine", saved(tmp_path, with_external_weight("w.bin"))).onnx_file(tmp_path / "cache")


class TestFix:
    """An input that is one number for good becomes part of what is compiled."""

    def model(self) -> Any:
        nodes = [
            helper.make_node("Cast", ["rate"], ["r"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["x", "r"], ["y"]),
        ]
        inputs = [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4]),
            helper.make_tensor_value_info("rate", TensorProto.INT64, ["n"]),
        ]
        graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=3)

    def test_it_is_no_input_any_longer_and_the_truth_is_asked_with_it(self, tmp_path: Path) -> None:
        file = saved(tmp_path, self.model())
        source = OnnxFile("mine", file, {"rate": [1]}, fixes={"rate": 16000})
        prepared = source.prepare(tmp_path / "cache")
        assert [spec.name for spec in prepared.inputs] == ["x"]
        assert prepared.changes == ("fixed rate = 16000", "folded 1 operator on constants")
        original = source.original(tmp_path / "cache")
        assert original.onnx == file
        whole = original.with_fixed({"x": np.zeros((1, 4), np.float32)})
        assert {name: (array.tolist(), str(array.dtype)) for name, array in whole.items()} == {
            "x": ([[0.0] * 4], "float32"),
            "rate": ([16000], "int64"),
        }

    @pytest.mark.parametrize(
        ("fixes", "problem"),
        [
            ({"rat": 1.0}, "no input 'rat' to fix.*rate"),
            ({"rate": 0.5}, "'rate' holds int64, which cannot be 0.5"),
        ],
    )
    def test_what_cannot_be_fixed_is_named(self, tmp_path: Path, fixes: dict[str, float], problem: str) -> None:
        file = saved(tmp_path, self.model())
        with pytest.raises(ModelError, match=problem):
            OnnxFile("mine", file, {"rate": [1]}, fixes=fixes).prepare(tmp_path / "cache")


def test_an_extent_of_minus_1_is_open(tmp_path: Path) -> None:
    file = saved(tmp_path, relu_model([-1, 4]))
    with pytest.raises(ModelError, match=r"dynamic shape \[\?, 4\]: fix it with --shape x=1x4"):
        OnnxFile("mine", file).prepare(tmp_path / "cache")
    assert OnnxFile("mine", file, {"x": [2, 4]}).prepare(tmp_path / "cache").inputs[0].shape == (2, 4)


def test_operators_in_disorder_are_sorted_unless_the_network_stays_as_it_is(tmp_path: Path) -> None:
    model = relu_model()
    model.graph.node.insert(0, model.graph.node.pop())
    file = saved(tmp_path, model)
    assert OnnxFile("mine", file).prepare(tmp_path / "cache").changes == ("sorted the operators",)
    with pytest.raises(ModelError, match="topologically sorted"):
        OnnxFile("mine", file, clean=False).prepare(tmp_path / "cache")
    assert [node.op_type for node in load(file).graph.node] == ["Add", "Relu"]


class TestLinks:
    """The cache of huggingface_hub holds links to files that lie elsewhere in its folder of the model."""

    def snapshot(self, folder: Path) -> Path:
        """A model and its data as that cache has them; returns the link to the model."""
        blobs, snapshot = (
            folder / "models--me--net" / "blobs",
            folder / "models--me--net" / "snapshots" / "abc" / "onnx",
        )
        blobs.mkdir(parents=True)
        snapshot.mkdir(parents=True)
        (blobs / "aaaa").write_bytes(with_external_weight("model.onnx_data").SerializeToString())
        (blobs / "bbbb").write_bytes(np.arange(4, dtype=np.float32).tobytes())
        for name, blob in (("model.onnx", "aaaa"), ("model.onnx_data", "bbbb")):
            (snapshot / name).symlink_to(Path("../../../blobs", blob))
        return snapshot / "model.onnx"

    def test_they_are_followed_within_the_folder_of_the_model(self, tmp_path: Path) -> None:
        (weight,) = load(self.snapshot(tmp_path)).graph.initializer
        np.testing.assert_array_equal(numpy_helper.to_array(weight), np.arange(4, dtype=np.float32))

    def test_a_link_to_anywhere_else_is_named_as_one(self, tmp_path: Path) -> None:
        model = self.snapshot(tmp_path)
        (tmp_path / "secret").write_bytes(bytes(16))
        data = model.parent / "model.onnx_data"
        data.unlink()
        data.symlink_to(tmp_path / "secret")
        with pytest.raises(ModelError, match=r"'model.onnx_data' is a link to .*secret.*`cp -rL .*/onnx COPY`"):
            load(model)

    @pytest.mark.parametrize("location", ["../../../blobs/bbbb", "../other/model.onnx_data"])
    def test_a_way_out_of_the_folder_is_no_link(self, tmp_path: Path, location: str) -> None:
        model = self.snapshot(tmp_path)
        model.unlink()
        model.write_bytes(with_external_weight(location).SerializeToString())
        with pytest.raises(ModelError, match="outside its own folder"):
            load(model)


def test_operators_in_float64_are_named_unless_they_depend_on_no_input(tmp_path: Path) -> None:
    model = relu_model()
    model.graph.node[-1].output[0] = "relu"
    wide, narrow = TensorProto.DOUBLE, TensorProto.FLOAT
    model.graph.node.extend(
        [
            helper.make_node("Cast", ["relu"], ["wide"], to=wide),
            helper.make_node("Exp", ["wide"], ["exp"]),
            helper.make_node("Cast", ["exp"], ["z"], to=narrow),
        ]
    )
    assert OnnxFile("net", saved(tmp_path, model)).prepare(tmp_path).double == ("Cast", "Exp")
    model = relu_model()
    model.graph.node[0].input[1] = "sum"
    constant = [
        helper.make_node("Cast", ["w"], ["wide"], to=wide),
        helper.make_node("Cast", ["wide"], ["sum"], to=narrow),
    ]
    nodes = [*constant, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    assert double_operators(model) == ()
