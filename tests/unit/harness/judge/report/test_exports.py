"""Files for spreadsheets, pull requests and programs, and the schema that says what is in them."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fake_records import a_record, sessions
from typer.testing import CliRunner

from benchmarks.export_schema import FILE, text
from harness.base.outcome import ExitCode, Outcome
from harness.cli import app
from harness.judge.report.exports import export_case
from harness.measure.records.record import Record, Releases

OPENCL, TEXTURE = "tiny-opencl-float32-untuned", "tiny-texture-float32-untuned"
SCHEMA = json.loads(text())


@pytest.fixture
def records(tmp_path: Path) -> Path:
    wrong = a_record(TEXTURE, outcome=Outcome.WRONG_RESULT, message='off, by "3"\nor so', max_abs_err=float("inf"))
    return write(tmp_path / "records.jsonl", [*sessions(10, 8, case=OPENCL, device_ms=[9.0, 9.1]), wrong])


def write(file: Path, records: list[Record]) -> Path:
    file.write_text("".join(record.line() + "\n" for record in records))
    return file


def exported(kind: str, *words: str | Path) -> str:
    """What a command writes to the file of one kind of export."""
    file = Path(str(words[-1])).parent / f"export.{kind}"
    done = CliRunner().invoke(app, [*map(str, words), f"--export-{kind}", str(file)])
    assert isinstance(done.exception, SystemExit | None), done.exception
    return file.read_text("utf-8")


def test_the_schema_of_the_docs_is_that_of_the_code() -> None:
    assert FILE.read_text("utf-8") == text()  # python -m benchmarks.export_schema
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_what_show_exports_is_as_the_schema_says(records: Path) -> None:
    told = json.loads(exported("json", "show", "--records", records))
    jsonschema.validate(told, SCHEMA)
    assert (told["schema"], told["verdict"], told["exit_code"]) == (1, "wrong-or-broken", ExitCode.WRONG_OR_BROKEN)
    right, wrong = told["cases"]
    assert right["latency_ms"] == pytest.approx(10, rel=0.05)
    assert len(right["wall_ms"]) == 10
    assert (wrong["latency_ms"], wrong["max_abs_err"], wrong["outcome"]) == (None, None, "wrong-result")


def test_an_export_names_what_compiled_a_case() -> None:
    old = Releases(tvm="0.25.0.post1", ffi="0.1.12")
    assert export_case(a_record(compiled_with=old)).tvm == old.tvm


@pytest.mark.parametrize("command", ["gate", "compare"])
def test_what_verdicts_export_is_what_they_print_and_as_the_schema_says(
    command: str, records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(app, ["bless", "--records", str(records)])
    slower = write(tmp_path / "slower.jsonl", sessions(13, 8, seed=1, case=OPENCL, artifact="b" * 24))
    words = ["gate", "--from", str(slower)] if command == "gate" else ["compare", str(records), str(slower)]
    printed = CliRunner().invoke(app, [*words, "--json", "--export-json", "out.json", "--export-csv", "out.csv"])
    assert printed.exit_code == ExitCode.SLOWER
    told = json.loads(Path("out.json").read_text("utf-8"))
    assert told == json.loads(printed.stdout)
    jsonschema.validate(told, SCHEMA)
    assert (told["verdict"], told["exit_code"]) == ("slower", ExitCode.SLOWER)
    first = next(csv.DictReader(Path("out.csv").read_text("utf-8").splitlines()))
    assert (first["case"], first["verdict"]) == (OPENCL, "slower")
    assert float(first["head_latency_ms"]) == pytest.approx(13, rel=0.05)


def keys_with_types(value: Any, found: dict[str, set[str]]) -> dict[str, set[str]]:
    """The kinds of values that stand under each name, anywhere."""
    if isinstance(value, dict):
        for name, inner in value.items():
            kind = "number" if isinstance(inner, int | float) and not isinstance(inner, bool) else type(inner).__name__
            found.setdefault(name, set()).update({kind} - {"NoneType"})
            keys_with_types(inner, found)
    elif isinstance(value, list):
        for inner in value:
            keys_with_types(inner, found)
    return found


def test_one_key_has_one_type_in_all_exports(records: Path, tmp_path: Path) -> None:
    slower = write(tmp_path / "slower.jsonl", sessions(13, 8, seed=1, case=OPENCL, artifact="b" * 24))
    told = [exported("json", "show", "--records", records), exported("json", "compare", records, slower)]
    kinds = keys_with_types([json.loads(one) for one in told], {})
    assert {name: kind for name, kind in kinds.items() if len(kind) > 1} == {}


def test_csv_has_a_line_for_each_case_whatever_its_message(records: Path) -> None:
    rows = list(csv.DictReader(exported("csv", "show", "--records", records).splitlines(keepends=True)))
    assert [row["case"] for row in rows] == [OPENCL, TEXTURE]
    assert rows[1]["message"] == 'off, by "3"\nor so'
    assert "wall_ms" not in rows[0]


def test_markdown_is_the_matrix_and_a_table_of_verdicts(records: Path, tmp_path: Path) -> None:
    assert "| ✓ right" in exported("markdown", "show", "--records", records)
    slower = write(tmp_path / "slower.jsonl", sessions(13, 8, seed=1, case=OPENCL, artifact="b" * 24))
    told = exported("markdown", "compare", records, slower)
    first, second = (line.split() for line in told.splitlines()[-2:])
    assert (first[1], first[3], second[3]) == (OPENCL, "slower", "gone")
    assert "✗ wrong" in told.splitlines()[-1]


def test_pytest_benchmark_compares_what_it_is_given(records: Path) -> None:
    exported("pytest-benchmark", "show", "--records", records)
    words = ["compare", "export.pytest-benchmark", "--columns=median,rounds"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest_benchmark", *words],
        cwd=records.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "benchmark 'tiny': 1 tests" in done.stdout + done.stderr


def test_a_pytest_benchmark_file_without_samples_is_remarked_on(tmp_path: Path) -> None:
    quick = write(tmp_path / "quick.jsonl", sessions(10, 1, case=OPENCL, quick=True))
    file = tmp_path / "b.json"
    done = CliRunner().invoke(app, ["show", "--records", str(quick), "--export-pytest-benchmark", str(file)])
    assert json.loads(file.read_text())["benchmarks"] == []
    assert f"{file} has no samples" in done.output


def test_no_file_is_written_that_nobody_asked_for(records: Path) -> None:
    before = set(records.parent.iterdir())
    CliRunner().invoke(app, ["show", "--records", str(records)])
    assert set(records.parent.iterdir()) - before <= {records.with_suffix(".jsonl.index")}
