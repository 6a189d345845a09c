"""What `adreno-bench run` is worth to a shell."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_device import FakeDevice, a_plan
from fake_records import IDENTITY, a_record
from typer.testing import CliRunner

from harness.base.case import Case
from harness.base.outcome import ExitCode, Outcome
from harness.cli import app
from harness.measure.context import Run
from harness.measure.records.record import Record
from harness.measure.tuning import TuningStore

VACUOUS = a_record("tiny-opencl-float32-untuned", device="virtual", vacuous=["output 0 of 1 is all zero"])


def exit_code_of(folder: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], records: list[Record]) -> int:
    """The exit code of a run whose cases are all settled by these records."""
    (folder / "records.jsonl").write_text("".join(f"{record.line()}\n" for record in records))
    (folder / "adreno-bench.toml").write_text('models = ["tiny"]\npaths = ["opencl", "texture"]\n')
    compiled = replace(a_plan().compile, key=records[0].artifact)
    plans = [replace(a_plan(), case=Case.parse(record.case), compile=compiled) for record in records]
    device: Any = FakeDevice(identity=IDENTITY)
    builder = SimpleNamespace(build=lambda _jobs: {})
    bench = SimpleNamespace(plans=plans, run=Run(device, TuningStore(folder)), builder=builder)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("harness.measure.workbench.open_workbench", lambda *_, **__: nullcontext(bench))
    return CliRunner().invoke(app, ["run", "--resume", *words]).exit_code


@pytest.mark.parametrize(
    ("words", "other", "code"),
    [
        ([], None, ExitCode.NOTHING_MEASURED),
        (["--findings-are-fine"], None, ExitCode.NOTHING_MEASURED),
        ([], Outcome.OK, ExitCode.GOOD),
        ([], Outcome.WRONG_RESULT, ExitCode.WRONG_OR_BROKEN),
        (["--findings-are-fine"], Outcome.WRONG_RESULT, ExitCode.GOOD),
    ],
)
def test_a_run_whose_right_answers_all_prove_nothing_is_not_good(
    words: list[str], other: Outcome | None, code: ExitCode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [a_record("tiny-texture-float32-untuned", device="virtual", outcome=other)] if other else []
    assert exit_code_of(tmp_path, monkeypatch, words, [VACUOUS, *others]) == code
