"""`--model` in place of a suite's models: every command that takes a suite takes it, and means the same by it."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import onnx
import pytest
from complaints import complaint
from fake_records import sessions
from typer.testing import CliRunner

from harness.base.model import OnnxModel, model_name, models_given
from harness.base.suite import load_suite
from harness.cli import app, every_command
from harness.cli.commands import load_command
from harness.cli.options import CaseOptions
from harness.tools.shared.revision_options import case_ids, on_each_revision
from harness.tools.shared.toolchain import RunOptions

pytestmark = pytest.mark.usefixtures("no_device")


def commands_with(option: str) -> set[str]:
    return {
        command.name for command in every_command() if any(option in one.opts for one in load_command(command).params)
    }


def test_whatever_takes_a_suite_takes_models() -> None:
    with_models = commands_with("--model")
    assert commands_with("--suite") <= with_models
    wanted = {"profile", "tune", "gate", "bless", "isa", "compare", "bisect", "pack", "build", "calibrate", "reduce"}
    assert wanted | {"run", "list"} <= with_models


@pytest.mark.parametrize(
    "command",
    [
        ["list"],
        ["build"],
        ["profile", "--case", "*-opencl-float32-untuned"],
        ["tune"],
        ["gate"],
        ["calibrate"],
        ["pack", "--out", "bundle"],
    ],
)
def test_a_file_that_is_not_there_is_refused_as_run_does(command: list[str]) -> None:
    said = complaint("run", "--model", "gone.onnx")
    assert "gone.onnx" in said
    assert complaint(*command, "--model", "gone.onnx") == said


def test_all_models_that_cannot_be_used_are_named_at_once(tmp_path: Path) -> None:
    text, axis = tmp_path / "text.onnx", tmp_path / "axis.onnx"
    text.write_text("this is no network")
    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 4])
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([node], "net", [value], [result])), axis)
    said = complaint("run", "--model", "gone.onnx", "--model", str(text), "--model", str(axis))
    assert said.startswith("3 models cannot be used: gone.onnx does not exist: correct")
    assert f"; {text} is not an ONNX file: export" in said
    assert f"; {axis}: input 'x' has the dynamic shape [batch, 4]: fix it with --shape batch=1, or" in said


def test_a_file_of_inputs_that_is_not_there_is_the_options_fault() -> None:
    assert "--input gone.npz: there is no such file" in complaint("run", "--model", "net.onnx", "--input", "gone.npz")
    assert "--input .: it is a folder" in complaint("run", "--model", "net.onnx", "--input", ".")


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["a/net.onnx", "b/net.onnx"], ["a_net", "b_net"]),
        (["net.onnx", "net.pt2"], ["net_onnx", "net_pt2"]),
        (["a/x/net.onnx", "b/x/net.onnx"], ["a_x_net", "b_x_net"]),
        (["a/net.onnx", "other.onnx"], ["net", "other"]),
    ],
)
def test_files_of_one_name_are_told_apart(files: list[str], names: list[str]) -> None:
    assert [model_name(model) for model in models_given(files, (), ())] == names


def test_a_file_that_is_given_twice_is_refused() -> None:
    assert "the model name 'net' stands twice" in complaint("list", "--model", "net.onnx", "--model", "net.onnx")


def test_no_suite_file_is_needed_and_the_paths_are_those_of_a_new_suite() -> None:
    done = CliRunner().invoke(app, ["list", "--model", "tiny", "--json"])
    assert done.exit_code == 0
    listed = json.loads(done.stdout)
    assert CliRunner().invoke(app, ["init", "--model", "tiny"]).exit_code == 0
    assert listed == [case.id for case in load_suite(Path("adreno-bench.toml")).cases]


def test_the_keys_of_a_suite_hold_for_the_models_that_are_given() -> None:
    Path("adreno-bench.toml").write_text('models = ["resnet18"]\npaths = ["opencl"]\ntunings = ["untuned", "tuned"]\n')
    assert case_ids(CaseOptions(model=["tiny"])) == ["tiny-opencl-float32-untuned", "tiny-opencl-float32-tuned"]


def test_revisions_are_given_the_models_in_words_that_mean_the_same_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    what = CaseOptions(
        model=["my net.onnx", "tiny"], shape=["batch=1", "x=1x3x8x8"], input=["tokens=integers(0, 9)"], case=["tiny-*"]
    )
    words = on_each_revision(what, "virtual").words
    monkeypatch.chdir("/")

    def values(option: str) -> list[str]:
        return [value for word, value in pairwise(words) if word == option]

    made = models_given(values("--model"), values("--shape"), values("--input"))
    keys: dict[str, Any] = {"shapes": {"batch": 1, "x": [1, 3, 8, 8]}, "inputs": {"tokens": "integers(0, 9)"}}
    assert made == [OnnxModel(onnx=tmp_path / "my net.onnx", **keys), "tiny"]


def test_a_revision_is_given_the_file_of_inputs_by_its_whole_path(tmp_path: Path) -> None:
    words = RunOptions(
        Path("s.toml"), "virtual", models=(OnnxModel(onnx=Path("n.pt2"), inputs=Path("i.npz"), trust=True),)
    )
    assert words.words[-5:] == ["--model", str(tmp_path / "n.pt2"), "--input", str(tmp_path / "i.npz"), "--trust"]


def test_bless_takes_the_records_of_a_model() -> None:
    cases = ("tiny-opencl-float32-untuned", "my_net-opencl-float32-untuned")
    records = [record for case in cases for record in sessions(10, case=case)]
    Path("records.jsonl").write_text("".join(f"{record.line()}\n" for record in records))
    done = CliRunner().invoke(app, ["bless", "--model", "nets/My-net.onnx", "--json"])
    assert done.exit_code == 0, done.output
    assert [one["case"] for one in json.loads(done.stdout)] == [cases[1]]
    assert complaint("bless", "--model", "resnet18").startswith("nothing to bless")


@pytest.mark.parametrize("words", [["--model", "tiny"], ["--shape", "batch=1"], ["--trust"]])
def test_models_have_no_effect_where_nothing_is_run(words: list[str]) -> None:
    Path("records.jsonl").write_text("".join(f"{record.line()}\n" for record in sessions(10)))
    assert complaint("gate", "--from", "records.jsonl", *words).startswith(f"{words[0]} has no effect with --from")
    said = complaint("compare", "records.jsonl", "records.jsonl", *words)
    assert said.startswith(f"{words[0]} has no effect with files")
