"""What `show --diverge` runs again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_records import a_record
from typer.testing import CliRunner

from harness.cases.model import OnnxModel
from harness.cli import app
from harness.failures import UsageError
from harness.run.outcome import Outcome
from harness.run.record import RecordFile


@pytest.fixture
def records(tmp_path: Path) -> str:
    file = tmp_path / "records.jsonl"
    RecordFile(file).append(a_record("net-texture-float32-untuned", outcome=Outcome.WRONG_RESULT, message="off"))
    return str(file)


def test_a_network_of_the_command_line_is_named_again(records: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[Sequence[str | OnnxModel]] = []

    def diverging(_record: object, _suite: Path, models: Sequence[str | OnnxModel], _device: object) -> SimpleNamespace:
        looked_at.append(models)
        return SimpleNamespace(text=lambda: "found")

    monkeypatch.setattr("harness.cli.show_case.diverge", diverging)
    asked = ["--diverge", "--model", "net.onnx", "--shape", "batch=1", "--input", "x=integers(0, 9)"]
    done = CliRunner().invoke(app, ["show", "--records", records, *asked])
    assert done.stdout == "found\n"
    assert looked_at == [[OnnxModel(onnx=Path("net.onnx"), shapes={"batch": 1}, inputs={"x": "integers(0, 9)"})]]


def test_a_network_is_named_for_nothing_else(records: str) -> None:
    done = CliRunner().invoke(app, ["show", "--records", records, "--model", "net.onnx"])
    assert isinstance(done.exception, UsageError)
