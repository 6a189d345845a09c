"""`adreno-bench init` and `--version`."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

from device_runner.device import DeviceEntry
from device_runner.failures import RigFailure
from harness.base import suite
from harness.base.case import RELATIVE_TOLERANCE
from harness.base.failures import UsageError
from harness.base.model import OnnxModel, model_name
from harness.base.suite import Suite, load_suite
from harness.cli import app
from harness.compile.artifacts.planner import check
from harness.compile.compiler.releases import harness_version, versions
from harness.tools.init import command, search
from harness.tools.init.command import PRESETS, PresetName, suite_text
from harness.tools.zoo.models import ZOO


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path / ".cache"))
    monkeypatch.setattr("device_runner.registry.list_devices", lambda _: [])


def network(file: str, shape: Sequence[int | str | None]) -> None:
    node = helper.make_node("Relu", ["x.1"], ["y"])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x.1", "y")]
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(helper.make_graph([node], "net", ends[:1], ends[1:])), file)


def init(*words: str) -> str:
    done = CliRunner().invoke(app, ["init", *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_full_disk_leaves_no_empty_suite_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second `init` said that it exists, and every other command that a key is missing."""

    def refuse(*_: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(command, "suite_text", refuse)
    done = CliRunner().invoke(app, ["init"])
    assert "cannot write adreno-bench.toml: No space left" in str(done.exception)
    assert not Path("adreno-bench.toml").exists()


def test_networks_below_the_folder_become_a_suite_that_can_be_built(tmp_path: Path) -> None:
    network("net.onnx", [1, 8])
    network("nets/net.onnx", ["batch", 3, "h", "w"])
    network("nets/nhwc.onnx", [None, None, None, 3])
    network("nets/text.onnx", ["batch", "sequence"])
    network(".hidden/other.onnx", [1, 8])
    network("venv/lib/site-packages/other.onnx", [1, 8])
    Path("nets/broken.onnx").write_text("this is no network")
    said = init()
    suite = load_suite(Path("adreno-bench.toml"))
    made = [
        (model.onnx.name, model_name(model), model.shapes) for model in suite.models if isinstance(model, OnnxModel)
    ]
    assert made == [
        ("net.onnx", "net", {}),
        ("net.onnx", "nets_net", {"x.1": [1, 3, 224, 224]}),
        ("nhwc.onnx", "nhwc", {"x.1": [1, 224, 224, 3]}),
    ]
    assert "left out nets/broken.onnx: " in said
    assert "left out nets/text.onnx: input 'x.1' has the dynamic shape [batch, sequence]: add it to the suite" in said
    assert 'with its size, such as shapes = { "x.1" = [1, 1] }' in said
    check(suite, suite.cases, tmp_path / "cache")  # what `run` and `list` refuse
    assert CliRunner().invoke(app, ["list"]).exit_code == 0


def test_networks_of_one_name_get_names_of_their_own() -> None:
    for file in ("a_b.onnx", "b.onnx", "a/b.onnx"):
        network(file, [1, 8])
    init("--path", "opencl")
    suite = load_suite(Path("adreno-bench.toml"))
    assert [model_name(model) for model in suite.models] == ["a_b", "b", "a_b_2"]


def test_without_networks_the_suite_is_of_the_zoo() -> None:
    assert "left out" not in init()
    assert load_suite(Path("adreno-bench.toml")).models == ["mobilenet_v1"]


def test_many_networks_are_not_all_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_MODELS", 3)
    for number in range(5):
        network(f"{number}.onnx", [1])
    said = init("--path", "opencl")
    assert len(load_suite(Path("adreno-bench.toml")).models) == 3
    assert "left out 4.onnx: only the first 3 are taken" in said


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ([], "`adreno-bench run`"),
        (["ready"], "`adreno-bench run --device R0`"),
        (["ready", "ready"], "`adreno-bench run --device all`"),
        (["unauthorized"], "`adreno-bench run`"),
    ],
)
def test_phones_that_are_attached_are_named(states: list[str], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    phones = [DeviceEntry(f"R{at}", "phone", state) for at, state in enumerate(states)]
    virtual = DeviceEntry("virtual", "virtual", "ready")
    monkeypatch.setattr("device_runner.registry.list_devices", lambda _: [virtual, *phones])
    said = init()
    assert words in said
    for phone in phones:
        told = "is attached: `adreno-bench doctor --device R" if phone.state == "ready" else "is unauthorized"
        assert f"{phone.name} {told}" in said


def test_an_adb_server_that_does_not_answer_is_no_reason_to_write_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(_: Path) -> list[DeviceEntry]:
        raise RigFailure("the adb server on port 5037 does not answer")

    monkeypatch.setattr("device_runner.registry.list_devices", silent)
    assert "no phone was looked for: the adb server on port 5037 does not answer" in init()


def test_a_new_suite_is_one_of_the_chosen_models_and_paths() -> None:
    Path("nets").mkdir()
    Path("nets/mine.onnx").touch()
    done = CliRunner().invoke(app, ["init", "--model", "tiny", "--model", "nets/mine.onnx", "--path", "opencl"])
    assert done.exit_code == 0
    assert "now see its cases with `adreno-bench list` and run them with `adreno-bench run`" in done.stdout
    cases = load_suite(Path("adreno-bench.toml")).cases
    assert [case.id for case in cases] == ["tiny-opencl-float32-untuned", "mine-opencl-float32-untuned"]


@pytest.mark.parametrize(
    ("model", "why"), [("gone.onnx", "there is no file gone.onnx"), ("tinny", "there is no model 'tinny'")]
)
def test_a_suite_of_a_model_that_does_not_exist_is_not_written(model: str, why: str) -> None:
    done = CliRunner().invoke(app, ["init", "--model", "tiny", "--model", model])
    assert isinstance(done.exception, UsageError)
    assert done.exception.message.startswith(why)
    assert not Path("adreno-bench.toml").exists()


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_a_suite_of_the_zoo(preset: str) -> None:
    assert CliRunner().invoke(app, ["init", "--preset", preset]).exit_code == 0
    suite = load_suite(Path("adreno-bench.toml"))
    assert {*suite.models} <= {model.name for model in ZOO}
    assert [precision.value for precision in suite.precisions] == list(PRESETS[preset].precisions)
    done = CliRunner().invoke(app, ["init", "other.toml", "--preset", preset, "--model", "mine.onnx"])
    assert isinstance(done.exception, UsageError)


def test_all_of_the_zoo_but_the_network_for_tests_is_in_the_full_suite() -> None:
    assert {*PRESETS["full"].models} == {model.name for model in ZOO} - {"tiny"}
    assert {*get_args(PresetName)} == {*PRESETS}


def test_what_is_there_is_never_touched() -> None:
    Path("mine.toml").write_text("mine")
    done = CliRunner().invoke(app, ["init", "mine.toml"])
    assert isinstance(done.exception, UsageError)
    assert "mine.toml already exists" in str(done.exception)
    assert Path("mine.toml").read_text() == "mine"


def uncommented(text: str) -> str:
    """The text with its commented-out keys and tables switched on; a sentence stays a comment."""
    return re.sub(r"^# (?=[a-z0-9_]+ = |\[)", "", text, flags=re.MULTILINE)


def test_every_key_stands_in_it_with_its_default(tmp_path: Path) -> None:
    text = suite_text(["tiny"], ["opencl"])
    for section in (suite.Suite, OnnxModel, suite.Limits, suite.DeviceLimits, suite.SteadyLimits, suite.Tolerance):
        assert [key for key in section.model_fields if key not in text] == []
    assert [model.name for model in ZOO if model.name not in text] == []
    (tmp_path / "all.toml").write_text(uncommented(text).replace("mine-*-float16-*", "tiny-*"))
    made, plain = load_suite(tmp_path / "all.toml"), Suite(models=["tiny"], paths=["opencl"])
    assert made.limits == plain.limits
    assert (made.budget_s, made.samples, made.precisions, made.tunings) == (
        plain.budget_s,
        plain.samples,
        plain.precisions,
        plain.tunings,
    )
    assert {precision.value: value for precision, value in made.tolerance.items()} == RELATIVE_TOLERANCE
    assert made.steady.thermal_limits("another") == plain.steady.thermal_limits("another")


def test_the_template_is_a_suite_and_what_is_written_in_its_places_is_in_it_once() -> None:
    text, made = command.TEMPLATE.read_text(), load_suite(command.TEMPLATE)
    assert (made.models, made.paths) == (["mobilenet_v1"], ["opencl", "texture", "clml"])
    assert [text.count(place) for place in (command.MODELS, command.PATHS, command.PRECISIONS)] == [1, 1, 1]


def test_the_releases_are_told_without_loading_tvm() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        f"adreno-bench {harness_version()}",
        f"apache-tvm {versions()['tvm']}, apache-tvm-ffi {versions()['ffi']}",
    ]
