"""What `diverge` runs again, and the hints that name it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_records import a_record
from typer.testing import CliRunner

from harness.base.model import OnnxModel
from harness.base.outcome import Outcome
from harness.cli import app
from harness.cli.hints import runnable
from harness.cli.options import CaseOptions
from harness.judge.report.sections import BuildKey
from harness.measure.records.record import RecordFile
from harness.tools.explain.first_wrong import FirstWrong, read_first_wrong

DIVERGE = "`adreno-bench diverge net-opencl-float32-untuned` finds the first operator whose output is off"

BUILD = BuildKey("phone", "net-texture-float32-untuned", False, "a" * 24, "0.27.0")
FIRST = FirstWrong(build=BUILD, sentences=("It reads x.",))
FOUND = SimpleNamespace(text=lambda: "found", first_wrong=lambda: FIRST)


@pytest.fixture
def records(tmp_path: Path) -> str:
    file = tmp_path / "records.jsonl"
    RecordFile(file).append(a_record("net-texture-float32-untuned", outcome=Outcome.WRONG_RESULT, message="off"))
    return str(file)


def test_a_network_of_the_command_line_is_named_again(records: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[Sequence[str | OnnxModel]] = []

    def diverging(_record: object, _suite: Path, models: Sequence[str | OnnxModel], _device: object) -> SimpleNamespace:
        looked_at.append(models)
        return FOUND

    monkeypatch.setattr("harness.tools.explain.divergence.find_divergence", diverging)
    asked = ["--model", "net.onnx", "--shape", "batch=1", "--input", "x=integers(0, 9)"]
    done = CliRunner().invoke(app, ["diverge", "--records", records, *asked])
    assert done.stdout == "found\n"
    assert read_first_wrong([Path(records)]) == {BUILD: FIRST}  # for `report`
    assert looked_at == [[OnnxModel(onnx=Path("net.onnx"), shapes={"batch": 1}, inputs={"x": "integers(0, 9)"})]]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (["show", "net-*", "--diverge", "--device", "virtual"], "diverge"),
        (["show", "--kernels", "net-*"], "kernels"),
        (["show", "--json", "--crossover"], "crossover"),
    ],
)
def test_the_spelling_of_before_works_and_says_the_new_one(
    before: list[str], now: str, records: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.tools.explain.divergence.find_divergence", lambda *_: FOUND)
    new = [now, *(word for word in before if word not in ("show", f"--{now}"))]
    done, expected = (CliRunner().invoke(app, [*words, "--records", records]) for words in (before, new))
    assert (done.exit_code, done.stdout, expected.stderr) == (0, expected.stdout, "")
    assert done.stderr == f"adreno-bench: `show --{now}` is now `{now}`\n"


def test_one_case_is_run_in_pieces(records: str) -> None:
    RecordFile(Path(records)).append(
        a_record("net-opencl-float32-untuned", outcome=Outcome.WRONG_RESULT, message="off")
    )
    done = CliRunner().invoke(app, ["diverge", "--records", records])
    assert str(done.exception).startswith("diverge takes one case, and 2 match: name one: net-")


def test_the_hint_of_show_runs_as_printed(records: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.tools.explain.divergence.find_divergence", lambda *_: FOUND)
    wrong = a_record("net-opencl-float32-untuned", outcome=Outcome.WRONG_RESULT, message="off", hint=DIVERGE)
    RecordFile(Path(records)).append(wrong)
    told = " ".join(CliRunner().invoke(app, ["show", "--records", records]).stdout.split())
    _, command, _ = told.split("`")
    name, *words = shlex.split(command)
    assert name == "adreno-bench"
    assert CliRunner().invoke(app, words).stdout == "found\n"


def test_a_hint_repeats_records_suite_and_models_quoted_for_the_shell() -> None:
    what = CaseOptions(suite=Path("my suite.toml"), model=["a b.onnx"], shape=["batch=1"], trust=True)
    told = runnable(f"off; {DIVERGE}", Path("out.jsonl"), what.words)
    command = "adreno-bench diverge net-opencl-float32-untuned --records out.jsonl --suite 'my suite.toml'"
    assert f"`{command} --model 'a b.onnx' --shape batch=1 --trust` finds" in told


def test_a_hint_of_a_record_that_names_its_models_does_not_name_them_twice() -> None:
    what = CaseOptions(model=["net.onnx"])
    once = DIVERGE.replace("untuned`", "untuned --model net.onnx`")
    assert runnable(once, Path("records.jsonl"), what.words) == once
    assert "net.onnx --records out.jsonl` finds" in runnable(once, Path("out.jsonl"), what.words)


def test_a_hint_stays_as_it_is_where_all_is_as_usual() -> None:
    assert runnable(DIVERGE, Path("records.jsonl"), CaseOptions().words) == DIVERGE


def test_kernels_are_shown_without_models() -> None:
    told = runnable("`adreno-bench kernels net` prints", Path("out.jsonl"), ["--model", "net.onnx"])
    assert told == "`adreno-bench kernels net --records out.jsonl` prints"
