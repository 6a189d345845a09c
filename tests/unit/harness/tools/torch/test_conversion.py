"""`torch.export` programs: what is taken from a file of others, and what torch never gets to see."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import sys
import zipfile
from pathlib import Path
from typing import Any

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_runner.failures import SetupMissing
from harness.base.failures import ModelError
from harness.compile.models.sources import OnnxFile
from harness.tools.torch import conversion
from harness.tools.torch.conversion import EXAMPLES, GRAPH, as_onnx, plain_archive

SPEC = json.dumps([1, {"type": "builtins.tuple", "context": "null", "children_spec": []}])


def graph(**more: Any) -> dict[str, Any]:
    """What torch writes of `relu(x)`, as far as it is looked at."""
    node = {"target": "torch.ops.aten.relu.default", "inputs": [], "outputs": [], "metadata": {"torch_fn": "secret"}}
    return {
        "graph_module": {
            "graph": {"nodes": [node], "tensor_values": {}},
            "module_call_graph": [{"signature": {"in_spec": SPEC, "out_spec": SPEC}}],
        },
        "range_constraints": {"s77": {"min_val": 0}},
        "guards_code": ["__import__('os').abort()"],
        **more,
    }


def weights(**more: Any) -> dict[str, Any]:
    return {"config": {"w": {"path_name": "weight_0", "use_pickle": False, "tensor_meta": {}, **more}}}


def archive(file: Path, **more: bytes) -> Path:
    """A program as torch.export.save lays it out, with some entries changed."""
    entries = {
        "archive_format": b"pt2",
        "byteorder": b"little",
        GRAPH: json.dumps(graph()).encode(),
        "data/weights/model_weights_config.json": json.dumps(weights()).encode(),
        "data/weights/weight_0": b"\0" * 16,
        "data/constants/model_constants_config.json": b'{"config": {}}',
        EXAMPLES: pickle.dumps(ValueError("unpickled")),
        "extra/evil.py": b"raise SystemExit",
        **more,
    }
    with zipfile.ZipFile(file, "w") as made:
        for name, data in entries.items():
            made.writestr(f"net/{name}", data)
    return file


def test_torch_gets_numbers_and_the_graph_and_nothing_that_could_be_executed(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(plain_archive(archive(tmp_path / "net.pt2")))) as plain:
        assert {name.partition("/")[2] for name in plain.namelist()} == {
            *("archive_format", "byteorder", GRAPH, EXAMPLES, "data/weights/weight_0"),
            *("data/weights/model_weights_config.json", "data/constants/model_constants_config.json"),
        }
        assert plain.read(f"model/{EXAMPLES}") == b""
        told = json.loads(plain.read(f"model/{GRAPH}"))
    assert told["guards_code"] == []
    assert told["graph_module"]["graph"]["nodes"][0]["metadata"] == {}


def with_node(**more: Any) -> dict[str, Any]:
    told = graph()
    told["graph_module"]["graph"]["nodes"][0].update(more)
    return told


@pytest.mark.parametrize("name", ["relu.default", "add.Tensor", "_upsample_bilinear2d_aa.vec", "_softmax.default"])
def test_operators_of_aten_pass_also_those_of_its_own_use(tmp_path: Path, name: str) -> None:
    told = with_node(target=f"torch.ops.aten.{name}")
    plain_archive(archive(tmp_path / "net.pt2", **{GRAPH: json.dumps(told).encode()}))


def with_extent(text: str) -> dict[str, Any]:
    return with_node(inputs=[{"arg": {"as_sym_int": {"as_expr": {"expr_str": text}}}}])


@pytest.mark.parametrize(
    "told",
    [
        with_node(target="torch.hub.load"),
        with_node(target="torch.ops.aten.relu.default.__class__"),
        with_node(target="torch.ops.aten.relu.__class__"),
        with_node(target="torch.ops.aten.__class__.mro"),
        with_node(target="torch.ops.aten._dir.append"),
        with_node(target="math.floor"),
        with_node(target="my_ops.thing"),
        with_node(inputs=[{"arg": {"as_operator": "torch.load"}}]),
        with_extent("__import__('os').system('id')"),
        with_extent("Symbol('s0').__class__"),
        with_extent("s0(1)"),
        with_extent("9**9**9**9"),
        with_extent("exec"),
        graph(range_constraints={"print(1)": {}}),
        graph(in_spec=json.dumps([1, {"type": "collections.defaultdict", "context": "{}", "children_spec": []}])),
    ],
)
def test_what_torch_would_look_up_evaluate_or_import_is_refused(tmp_path: Path, told: dict[str, Any]) -> None:
    file = archive(tmp_path / "net.pt2", **{GRAPH: json.dumps(told).encode()})
    with pytest.raises(ModelError) as refused:
        plain_archive(file)
    assert "--trust" in refused.value.hint


@pytest.mark.parametrize(
    "text", ["s77", "Symbol('s77', positive=True, integer=True)", "2*s0 + 1", "Add(Integer(1), Symbol('u0'))"]
)
def test_extents_as_torch_writes_them_pass(tmp_path: Path, text: str) -> None:
    plain_archive(archive(tmp_path / "net.pt2", **{GRAPH: json.dumps(with_extent(text)).encode()}))


@pytest.mark.parametrize("wrong", [{"use_pickle": True}, {"path_name": "../../etc/passwd"}, {"path_name": "opaque_0"}])
def test_pickled_weights_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    config = json.dumps(weights(**wrong)).encode()
    file = archive(tmp_path / "net.pt2", **{"data/weights/model_weights_config.json": config})
    with pytest.raises(ModelError, match="keeps 'w' as a pickle"):
        plain_archive(file)


def test_an_archive_of_an_older_torch_says_what_to_do(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "old.pt2", "w") as made:
        made.writestr("serialized_exported_program.json", "{}")
    with pytest.raises(ModelError, match="of an older torch") as refused:
        plain_archive(tmp_path / "old.pt2")
    assert "export it again with torch 2.8 or later" in refused.value.hint


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.pt2", "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(f"net/{GRAPH}", b" " * 10_000_000)
    with pytest.raises(ModelError, match="compressed"):
        plain_archive(tmp_path / "bomb.pt2")


@given(st.integers(0, 5000), st.binary(max_size=40), st.integers(0, 5000))
def test_a_damaged_file_is_one_clear_line(tmp_path: Path, place: int, put: bytes, cut: int) -> None:
    data = archive(tmp_path / "net.pt2").read_bytes()
    place %= len(data)
    (tmp_path / "net.pt2").write_bytes((data[:place] + put + data[place + len(put) :])[: max(1, len(data) - cut % 500)])
    with contextlib.suppress(ModelError):
        plain_archive(tmp_path / "net.pt2")


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    ["graph_module", "graph", "nodes", "range_constraints", "target", "expr_str", "in_spec"]
                ),
                inner,
            )
        ),
        max_leaves=20,
    )
)
def test_any_other_json_is_one_clear_line(tmp_path: Path, told: Any) -> None:
    file = archive(tmp_path / "net.pt2", **{GRAPH: json.dumps(told).encode()})
    with pytest.raises(ModelError):
        plain_archive(file)


def test_without_torch_it_is_said_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "find_spec", lambda _: None)
    with pytest.raises(SetupMissing, match=r"reading .*net\.pt2 takes torch and onnxscript, not installed") as missing:
        as_onnx(archive(tmp_path / "net.pt2"), tmp_path)
    assert f"`{sys.executable} -m pip install torch onnxscript --extra-index-url https://" in missing.value.hint


def relu() -> bytes:
    value = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 4]) for name in ("x", "y")]
    made = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", value[:1], value[1:])
    opsets = [onnx.helper.make_opsetid("", 18)]
    return bytes(onnx.helper.make_model(made, opset_imports=opsets, ir_version=9).SerializeToString())


@pytest.mark.parametrize("trust", [False, True])
def test_torch_gets_the_file_itself_only_if_it_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trust: bool
) -> None:
    given_to_torch: list[bytes] = []

    def converting(_file: Path, source: Path, target: Path) -> None:
        given_to_torch.append(source.read_bytes())
        target.write_bytes(relu())

    monkeypatch.setattr(conversion, "find_spec", lambda _: object())
    monkeypatch.setattr(conversion, "_convert_in_a_process", converting)
    file = archive(tmp_path / "net.pt2")
    model = OnnxFile("net", file, trust=trust)
    assert model.prepare(tmp_path / "made").changes[0] == "converted net.pt2 from a torch.export program"
    assert (given_to_torch[0] == file.read_bytes()) is trust
    OnnxFile("again", file, trust=trust).prepare(tmp_path / "made")
    assert len(given_to_torch) == 1, "what was converted is kept"


def test_a_conversion_that_fails_says_its_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "find_spec", lambda _: object())
    monkeypatch.setattr(conversion, "_CODE", "import sys; sys.exit('no such operator')")
    with pytest.raises(ModelError, match=r"torch cannot convert .*net\.pt2 to ONNX: no such operator"):
        as_onnx(archive(tmp_path / "net.pt2"), tmp_path)


def test_a_real_program_is_converted(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU()).eval()
    torch.export.save(torch.export.export(net, (torch.ones(1, 3, 8, 8),)), tmp_path / "net.pt2")
    model = onnx.load(as_onnx(tmp_path / "net.pt2", tmp_path / "made"))
    onnx.checker.check_model(model)
    assert [node.op_type for node in model.graph.node] == ["Conv", "Relu"]
