"""What cannot work is refused before a device is opened, and what would block is never opened."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from complaints import complaint
from onnx import TensorProto, helper, numpy_helper

from device_runner.failures import RigFailure
from device_runner.files import what_else
from harness.measure.records.record import RecordFile

SUITES = {
    "good.toml": 'models = ["tiny"]\npaths = ["opencl"]\n',
    "path.toml": 'models = ["tiny"]\npaths = ["textur"]\n',
    "zoo.toml": 'models = ["tinny"]\npaths = ["opencl"]\n',
    "gone.toml": 'models = ["gone.onnx"]\npaths = ["opencl"]\n',
    "text.toml": 'models = ["text.onnx"]\npaths = ["opencl"]\n',
    "fifo.toml": 'models = ["fifo.onnx"]\npaths = ["opencl"]\n',
    "device.toml": 'models = [{ onnx = "/dev/zero", name = "zero" }]\npaths = ["opencl"]\n',
}


@pytest.fixture(autouse=True)
def _files(no_device: None) -> None:
    for name, text in SUITES.items():
        Path(name).write_text(text)
    Path("text.onnx").write_text("this is no network")
    for name in ("fifo.onnx", "fifo.toml.fifo", "fifo.jsonl"):
        os.mkfifo(name)


@pytest.mark.parametrize("suite", [name for name in SUITES if name != "good.toml"])
def test_list_refuses_what_run_would_in_the_same_words(suite: str) -> None:
    said = complaint("list", "--suite", suite)
    assert said
    assert said == complaint("run", "--suite", suite)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "--suite", "fifo.toml"], "fifo.onnx is a FIFO, not a file"),
        (["list", "--suite", "device.toml"], "/dev/zero is a device, not a file"),
        (["list", "--suite", "fifo.toml.fifo"], "the suite fifo.toml.fifo is a FIFO, not a file"),
        (["list", "--suite", "."], "the suite . is a folder, not a file"),
        (["run", "--suite", "good.toml", "--records", "fifo.jsonl"], "fifo.jsonl is a FIFO, not a file"),
        (["run", "--suite", "good.toml", "--records", "/dev/full"], "/dev/full is a device, not a file"),
        (["show", "--records", "fifo.jsonl"], "fifo.jsonl is a FIFO, not a file"),
        (["gate", "--from", "fifo.jsonl"], "fifo.jsonl is a FIFO, not a file"),
        (["compare", "fifo.jsonl", "fifo.jsonl"], "fifo.jsonl is a FIFO, not a file"),
        (["bless", "--records", "fifo.jsonl"], "fifo.jsonl is a FIFO, not a file"),
    ],
)
def test_what_only_looks_like_a_file_is_refused_and_never_opened(words: list[str], said: str) -> None:
    assert said in complaint(*words)


@pytest.mark.parametrize(
    "words", [["net.onnx"], ["net.onnx", "net.onnx"], ["--a", "--tuning tuned", "--b", "--tuning tuned"]]
)
def test_a_comparison_of_a_thing_with_itself_is_a_mistake(words: list[str]) -> None:
    assert complaint("compare", *words).startswith("both sides are the same: name two models, or options of one side")


def test_an_index_beyond_its_table_is_refused_with_what_to_pass_instead() -> None:
    ends = [
        helper.make_tensor_value_info(*end)
        for end in (("ids", TensorProto.INT64, [4]), ("y", TensorProto.FLOAT, [4, 2]))
    ]
    nodes = [helper.make_node("Gather", ["table", "ids"], ["y"], name="gather")]
    table = numpy_helper.from_array(np.ones((50, 2), np.float32), "table")
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], [table])), "gather.onnx")
    said = complaint("run", "--model", "gather.onnx", "--input", "ids=integers(0, 100000)")
    assert "but Gather gather takes -50 to 49" in said
    assert "pass --input 'ids=integers(0, 49)'" in said


@pytest.mark.parametrize("command", ["run", "gate", "calibrate"])
def test_records_that_cannot_be_written_are_noticed_before_the_device_is_opened(command: str) -> None:
    Path("a file").touch()
    assert "cannot write the record to a file/records.jsonl: Not a directory" in complaint(
        command, "--suite", "good.toml", "--records", "a file/records.jsonl"
    )


def test_looking_whether_records_can_be_written_makes_nothing(tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    RecordFile(tmp_path / "new" / "records.jsonl").require_writable()
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_is_read_only_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.touch(mode=0o444)
    with pytest.raises(RigFailure, match="Permission denied"):
        RecordFile(file).require_writable()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--suite", "good.toml", "--export-json", "folder"], "folder is a folder: name a file in it"),
        (["gate", "--suite", "good.toml", "--export-csv", "folder"], "folder is a folder: name a file in it"),
        (["ops", "--html", "folder"], "folder is a folder: name a file in it"),
        (["tune", "--suite", "good.toml", "--out", "folder"], "folder is a folder: name a file in it"),
        (["doctor", "--device", "virtual", "--bundle", "folder"], "folder is a folder: name a file in it"),
        (["report", "--out", "folder"], "a report is a page or Markdown, and folder is neither: name it folder.html"),
        (["report", "--out", "page.pdf"], "page.pdf is neither: name it page.html"),
    ],
)
def test_a_folder_is_no_file_to_write_at_the_end(words: list[str], said: str) -> None:
    Path("folder").mkdir()
    assert said in complaint(*words)


@pytest.mark.parametrize(
    "words",
    [
        ["ops", "--table", "text.onnx"],
        ["reduce", "--suite", "good.toml", "--out", "text.onnx"],
        ["quirks", "--report", "texture-store-broadcast", "--out", "text.onnx"],
    ],
)
def test_a_file_is_no_folder_to_write_at_the_end(words: list[str]) -> None:
    assert complaint(*words) == "text.onnx is a file: name a folder"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder", "folder is a folder: name a file in it that ends in .onnx or .pt2"),
        ("net.pth", "net.pth does not end in .onnx or .pt2: write the program with torch.export.save, as .pt2"),
        ("net.pte", "net.pte does not end in .onnx or .pt2: an ExecuTorch program is compiled already"),
        ("net.tflite", "net.tflite does not end in .onnx or .pt2: convert it"),
        ("good.toml", "good.toml does not end in .onnx or .pt2: export the network as ONNX"),
        ("NET.ONNX", "there is no model 'NET.ONNX': a file of your own ends in .onnx or .pt2, and the zoo has"),
        ("LOUD.ONNX", "LOUD.ONNX does not end in .onnx or .pt2: rename it: small letters, .onnx"),
        ("net", "net does not end in .onnx or .pt2: rename it to net.onnx if it is an ONNX file, or export"),
    ],
)
@pytest.mark.parametrize("command", [["run", "--model"], ["inspect"]])
def test_a_file_of_another_kind_is_no_network_of_the_zoo(command: list[str], name: str, said: str) -> None:
    Path("folder").mkdir()
    Path("LOUD.ONNX").touch()
    Path("net").touch()
    assert said in complaint(*command, name)


def test_a_file_and_nothing_are_nothing_else(tmp_path: Path) -> None:
    assert what_else(tmp_path / "good.toml") == what_else(tmp_path / "gone") == ""
    assert what_else(tmp_path) == "a folder"


def test_operators_that_tvm_lacks_are_all_named_before_a_device_is_opened() -> None:
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("QLinearWhere", ["x", "s", "z"], ["a"], domain="com.microsoft"),
        helper.make_node("Frob", ["a"], ["b"], domain="acme"),
        helper.make_node("GRU", ["b", "w", "r"], ["y"], hidden_size=2),
    ]
    tensors = {"s": np.float32(1), "z": np.uint8(0), "w": np.ones((1, 6, 4)), "r": np.ones((1, 6, 2))}
    weights = [numpy_helper.from_array(np.asarray(array), name) for name, array in tensors.items()]
    graph = helper.make_graph(
        nodes,
        "net",
        [value("x", TensorProto.UINT8, [3, 1, 4])],
        [value("y", TensorProto.DOUBLE, [3, 1, 1, 2])],
        weights,
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in (("", 17), ("acme", 1), ("com.microsoft", 1))]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), "lacking.onnx")
    assert complaint("run", "--model", "lacking.onnx") == (
        "lacking.onnx: TVM's ONNX importer does not know GRU (y); acme.Frob (b); com.microsoft.QLinearWhere (a): "
        "GRU is unrolled if --shape gives its length; "
        "export the model without acme.Frob; "
        "onnxruntime's optimiser made QLinearWhere: take the model from before that"
    )


@pytest.mark.parametrize(
    "words",
    [
        "run --export-json",
        "gate --export-csv",
        "compare --plot",
        "profile --plot",
        "profile --trace",
        "ops --html",
        "ops --table",
        "sustained --plot",
        "tune --out",
        "pack --out",
        "report --out",
        "isa --records",
        "quirks --report merge-barrier --out",
        "reduce --out",
    ],
)
def test_what_a_command_cannot_write_at_its_end_is_refused_at_once(words: str) -> None:
    Path("a file").touch()
    assert "cannot write a file/x.html: Not a directory: name a file or folder in a folder of yours" in complaint(
        *words.split(), "a file/x.html"
    )
