"""`adreno-bench init` and `--version`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

from harness.cases import suite
from harness.cases.model import OnnxModel
from harness.cases.suite import Suite, load_suite
from harness.cases.template import PRESETS, suite_text
from harness.cli import app
from harness.cli.init import PresetName
from harness.compiler.installed import harness_version, versions
from harness.failures import UsageError
from harness.models.zoo import ZOO


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_new_suite_is_one_of_the_chosen_models_and_paths() -> None:
    done = CliRunner().invoke(app, ["init", "--model", "tiny", "--model", "nets/mine.onnx", "--path", "opencl"])
    assert done.exit_code == 0
    assert "now see its cases with `adreno-bench list` and run them with `adreno-bench run`" in done.stdout
    cases = load_suite(Path("adreno-bench.toml")).cases
    assert [case.id for case in cases] == ["tiny-opencl-float32-untuned", "mine-opencl-float32-untuned"]


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
    assert "mine.tomlalready exists" in str(done.exception)
    assert Path("mine.toml").read_text() == "mine"


def uncommented(text: str) -> str:
    """The text with its commented-out keys and tables switched on; a sentence stays a comment."""
    return re.sub(r"^# (?=[a-z0-9_]+ = |\[)", "", text, flags=re.MULTILINE)


def test_every_key_stands_in_it_with_its_default(tmp_path: Path) -> None:
    text = suite_text(["tiny"], ["opencl"])
    for section in (suite.Suite, OnnxModel, suite.Limits, suite.DeviceLimits, suite.Steady, suite.Tolerance):
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
    assert {precision.value: value for precision, value in made.tolerance.items()} == suite.RELATIVE_TOLERANCE
    assert made.steady.thermal_limits("another") == plain.steady.thermal_limits("another")


def test_the_releases_are_told_without_loading_tvm() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        f"adreno-bench {harness_version()}",
        f"apache-tvm {versions()['tvm']}, apache-tvm-ffi {versions()['ffi']}",
    ]
