"""A command that is given records works on the device that they name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_records import a_record, sessions
from typer.testing import CliRunner

from device_runner.failures import RigFailure
from harness.base.failures import UsageError
from harness.cli import app
from harness.cli.record_filter import open_index, read_builds
from harness.measure.records.index import MOST_SKIPPED
from harness.measure.records.record import Record

TINY = 'models = ["tiny"]\npaths = ["opencl"]\n'


def write(file: Path, records: Sequence[Record]) -> Path:
    file.write_text("".join(record.line() + "\n" for record in records))
    return file


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The devices that a command would open; none is."""
    names: list[str] = []

    def open_workbench(_request: Any, name: str, *_: Any, **__: Any) -> None:
        names.append(name)
        raise RigFailure("nothing is opened in this test")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.measure.workbench.open_workbench", open_workbench)
    monkeypatch.setattr("device_runner.selection.select_one", lambda words, *_: {"soc=A": "a"}.get(words, words))
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "adreno-bench.toml").write_text(TINY)
    write(tmp_path / "of-a.jsonl", [a_record(device="a")])
    write(tmp_path / "of-both.jsonl", [a_record(device="a"), a_record(device="b")])
    return names


def complaint(*words: str) -> str:
    """What a command that cannot be meant says."""
    done = CliRunner().invoke(app, words)
    return str(done.exception) if isinstance(done.exception, UsageError) else ""


@pytest.mark.parametrize("command", ["gate", "calibrate"])
def test_the_device_is_that_of_the_records_unless_one_is_named(command: str, opened: list[str]) -> None:
    for words in (
        ["--records", "of-a.jsonl"],
        ["--records", "of-a.jsonl", "--device", "soc=A"],
        ["--records", "of-both.jsonl", "--device", "b"],
        ["--records", "new.jsonl"],
        ["--records", "new.jsonl", "--device", "c"],
    ):
        CliRunner().invoke(app, [command, *words])
    assert opened == ["a", "a", "b", "virtual", "c"]


@pytest.mark.parametrize("command", ["gate", "calibrate"])
def test_a_device_and_records_that_disagree_are_refused_and_nothing_is_opened(command: str, opened: list[str]) -> None:
    assert "of-a.jsonl has records of a, and --device names b" in complaint(
        command, "--records", "of-a.jsonl", "--device", "b"
    )
    assert "of-both.jsonl has records of a, b: name one of them" in complaint(command, "--records", "of-both.jsonl")
    assert opened == []


def test_the_usual_file_may_have_records_of_another_device_than_the_one_that_is_named(opened: list[str]) -> None:
    write(Path("records.jsonl"), [a_record(device="a")])
    CliRunner().invoke(app, ["gate"])
    CliRunner().invoke(app, ["gate", "--device", "b"])
    assert opened == ["a", "b"]


def test_what_is_judged_without_a_run_touches_no_device(opened: list[str]) -> None:
    CliRunner().invoke(app, ["bless", "--records", str(write(Path("good.jsonl"), sessions(10, device="a")))])
    assert CliRunner().invoke(app, ["gate", "--from", "good.jsonl"]).exit_code == 0
    assert CliRunner().invoke(app, ["gate", "--from", "good.jsonl", "--device", "a"]).exit_code == 0
    assert "good.jsonl has records of a, and --device names b" in complaint(
        "gate", "--from", "good.jsonl", "--device", "b"
    )
    assert opened == []


def test_without_a_suite_file_a_gate_is_of_the_models_that_runs_named(
    opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("adreno-bench.toml").unlink()
    requests: list[dict[str, Any]] = []

    def read(suite: Path, cases: Any, *_: Any, **how: Any) -> Any:
        requests.append({"cases": cases, **how})
        raise RigFailure("nothing is read in this test")

    monkeypatch.setattr("harness.measure.workbench.Request.read", read)
    first, second = "net-opencl-float16-untuned", "other-texture-float32-untuned"
    write(
        Path("records.jsonl"),
        [
            a_record(first, model="net", model_options=("--model", "net.onnx", "--shape", "batch=2", "--trust")),
            a_record(second, model="other", path="texture", model_options=("--model", "other.onnx", "--fix", "sr=1")),
            a_record("tiny-opencl-float32-untuned", model="tiny"),
        ],
    )
    CliRunner().invoke(app, ["gate"])
    CliRunner().invoke(app, ["gate", "--case", "net-*"])
    assert [request["cases"] for request in requests] == [[first, second], [first]]
    net, other = requests[0]["models"]
    assert (net.onnx, net.shapes, net.trust) == (Path("net.onnx"), {"batch": 2}, False), "a record trusts nobody"
    assert (other.onnx, other.shapes, other.fix) == (Path("other.onnx"), {}, {"sr": 1.0})


@pytest.mark.parametrize("records", [[], [a_record()]])
def test_without_a_suite_file_and_without_such_runs_a_gate_says_what_to_do(
    opened: list[str], records: list[Record]
) -> None:
    Path("adreno-bench.toml").unlink()
    write(Path("records.jsonl"), records)
    told = complaint("gate")
    assert told == (
        "there is no suite file adreno-bench.toml: `adreno-bench init` writes one, or name a network with --model"
    )
    assert opened == []


def test_records_can_be_read_of_one_device_alone(tmp_path: Path) -> None:
    file = write(tmp_path / "both.jsonl", [a_record(device="a"), a_record(device="b")])
    assert [[record.device for record in build] for build in read_builds(file, lambda _: True)] == [["a", "b"]]
    assert [[record.device for record in build] for build in read_builds(file, lambda _: True, "b")] == [["b"]]


def test_a_resumed_run_is_on_the_device_of_its_records_unless_another_is_named(
    opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.cli.run.select", lambda words, *_: list(words))
    for words in (["of-a.jsonl"], ["of-a.jsonl", "--device", "b"], ["new.jsonl"]):
        CliRunner().invoke(app, ["run", "--resume", "--records", *words])
    CliRunner().invoke(app, ["run", "--records", "of-a.jsonl"])
    assert opened == ["a", "b", "virtual", "virtual"]


def test_the_name_of_a_model_becomes_the_glob_of_its_cases(tmp_path: Path) -> None:
    file = write(tmp_path / "records.jsonl", sessions(10, 1))
    assert complaint("show", "tiny", "--records", str(file)).endswith("did you mean 'tiny-*'?")


def test_a_file_that_has_no_records_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "report.html"
    page.write_text("<html>\n" * 300)
    with pytest.raises(UsageError, match=r"no records in .*report.html: .*report.html:1: not a record .* \(300 such"):
        open_index(page)
    assert capsys.readouterr().err == ""


def test_of_many_lines_that_are_no_records_the_first_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "some.jsonl", [a_record()])
    file.write_text(file.read_text() + "<html>\n" * 300)
    open_index(file)
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith(f"skipped {file}:2: not a record")
    assert told[-1] == f"skipped {300 - MOST_SKIPPED} more lines"
    assert len(told) == MOST_SKIPPED + 1
