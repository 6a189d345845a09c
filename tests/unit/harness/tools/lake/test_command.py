"""Commands answer from a folder, a glob or a dataset of Parquet what they answer from the file that it was made of."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest
from fake_records import sessions
from typer.testing import CliRunner

from harness.cli import app, show
from harness.measure.records.record import RecordFile
from harness.tools.lake import compaction

LAKE = find_spec("duckdb") is not None and find_spec("pyarrow") is not None
needs_lake = pytest.mark.skipif(not LAKE, reason="`make scale` installs DuckDB and pyarrow")
CASES = ("tiny-opencl-float32-untuned", "tiny-texture-float32-untuned")
QUESTIONS = {
    "show": ["show", "--json", "--records"],
    "bless": ["bless", "--json", "--records"],
    "gate": ["gate", "--json", "--from"],
    "compare": ["compare", "--json", "records.jsonl"],
    "health": ["devices", "--health", "--json", "--records"],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nights of two cases: in one file, in a file each, and in a dataset; and baselines of them."""
    folder = tmp_path_factory.mktemp("records")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("ADRENO_BENCH_CACHE", str(folder / "cache"))
        patch.setattr(compaction, "_pool", ThreadPoolExecutor)
        for night in (1, 2):
            moment = f"2026-03-0{night}T00:00:00"
            found = [one for case in CASES for one in sessions(10, seed=night, case=case, started_at=moment)]
            RecordFile(Path("records.jsonl")).append(*found)
            RecordFile(Path(f"nights/{night}/records.jsonl")).append(*found)
        assert not LAKE or said("records", "compact", "nights", "--out", "dataset").endswith(" now\n")
        assert said("bless")
    return folder


@pytest.fixture(autouse=True)
def _nights(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of them, for each test to work in."""
    folder = shutil.copytree(made, tmp_path / "records")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(folder / "cache"))


def said(*words: str) -> str:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return done.stdout


def answer(words: Sequence[str], place: str) -> object:
    told = json.loads(CliRunner().invoke(app, [*words, place]).stdout)
    return sorted(told, key=json.dumps) if isinstance(told, list) else told


@pytest.mark.parametrize("place", ["nights", "nights/*/*.jsonl", pytest.param("dataset", marks=needs_lake)])
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_place_answers_as_one_file_does(question: str, place: str) -> None:
    assert answer(QUESTIONS[question], place) == answer(QUESTIONS[question], "records.jsonl")


@pytest.mark.parametrize("place", ["nights", pytest.param("dataset", marks=needs_lake)])
def test_a_report_of_a_place_has_its_cases(place: str) -> None:
    assert "2 cases" in said("report", "--records", place, "--out", "matrix.md")
    assert "tiny" in Path("matrix.md").read_text()


def test_a_report_of_two_files_has_their_cases_once() -> None:
    files = [word for night in (1, 2) for word in ("--records", f"nights/{night}/records.jsonl")]
    assert "2 cases" in said("report", *files, "--out", "matrix.md")


@pytest.mark.parametrize("place", ["nights", pytest.param("dataset", marks=needs_lake)])
def test_more_series_than_anybody_reads_are_shown_by_case(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "MOST_ROWS", 1)
    shown = said("show", "--records", place).splitlines()
    assert [line.split() for line in shown[2:4]] == [[case, "1", "1", "ok"] for case in CASES]
    assert shown[-1] == f"2 series: name a case, such as '{CASES[0]}', to see each; --json has all"
    assert "median" in said("show", CASES[0], "--records", place)


def test_a_folder_of_baselines_with_records_of_machine_code_is_one_of_baselines() -> None:
    RecordFile(Path("baselines/isa.jsonl")).append(*sessions(10, case="other-opencl-float32-untuned"))
    words = ["compare", "--json", "baselines", "records.jsonl"]
    told = json.loads(CliRunner().invoke(app, words).stdout)
    assert {one["case"] for one in told["cases"]} == set(CASES)


def test_what_is_in_the_dataset_itself_is_refused() -> None:
    RecordFile(Path("dataset/new.jsonl")).append(*sessions(10))
    done = CliRunner().invoke(app, ["records", "compact", "dataset", "--out", "dataset"])
    assert "new.jsonl is in the dataset itself" in str(done.exception)


@needs_lake
def test_a_dataset_alone_has_nothing_to_compact() -> None:
    done = CliRunner().invoke(app, ["records", "compact", "dataset", "--out", "other"])
    assert "there are no files of JSON lines in dataset" in str(done.exception)


def test_a_file_that_is_not_there_is_named() -> None:
    done = CliRunner().invoke(app, ["records", "compact", "gone.jsonl", "--out", "other"])
    assert "there is no gone.jsonl" in str(done.exception)


def test_a_dataset_that_cannot_be_written_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = CliRunner().invoke(app, ["records", "compact", "none.jsonl", "--out", str(tmp_path / "file")])
    assert str(done.exception) == f"{tmp_path / 'file'} is a file: name a folder"
