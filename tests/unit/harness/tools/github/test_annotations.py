"""Annotations of a check: what a reviewer should see, in lines that a message of others cannot leave."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_records import a_record
from typer.testing import CliRunner

from harness.base.outcome import Outcome
from harness.cli import app
from harness.measure.records.record import RecordFile


def annotate(tmp_path: Path, wrong: int, message: str) -> list[str]:
    cases = [f"net{number}-texture-float32-untuned" for number in range(wrong)]
    RecordFile(tmp_path / "base.jsonl").append(*(a_record(case) for case in [*cases, "fine-opencl-float32-untuned"]))
    RecordFile(tmp_path / "head.jsonl").append(
        *(a_record(case, outcome=Outcome.WRONG_RESULT, message=message, artifact="b") for case in cases),
        a_record("fine-opencl-float32-untuned"),
    )
    verdicts = tmp_path / "verdicts.json"
    sides = [str(tmp_path / f"{side}.jsonl") for side in ("base", "head")]
    CliRunner().invoke(app, ["compare", *sides, "--export-json", str(verdicts)])
    return CliRunner().invoke(app, ["github", "annotate", str(verdicts)], catch_exceptions=False).stdout.splitlines()


def test_what_is_wrong_is_an_error_and_what_is_the_same_is_nothing(tmp_path: Path) -> None:
    (line,) = annotate(tmp_path, 1, "output 0 is off by 4.59")
    title = "adreno-bench%3A net0-texture-float32-untuned is wrong"
    assert line.startswith(f"::error title={title}::wrong-result: output 0 is off by 4.59")


@pytest.mark.parametrize("message", ["100 %\n::set-env name=PATH::evil", "a\r\n::warning::b"])
def test_a_message_of_others_stays_in_its_line(tmp_path: Path, message: str) -> None:
    (line,) = annotate(tmp_path, 1, message)
    assert line.startswith("::error title=")
    assert "\n" not in line
    assert "%0A::" in line


def test_github_shows_ten_of_a_step_so_the_last_one_names_the_others(tmp_path: Path) -> None:
    lines = annotate(tmp_path, 12, "wrong")
    assert len(lines) == 10
    assert lines[-1].startswith("::error title=adreno-bench%3A 3 others::net")
