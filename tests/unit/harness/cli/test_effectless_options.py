"""An option that changes nothing of what was chosen is an error, which says what to do instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from complaints import complaint
from fake_records import sessions

from harness.base.case import Case, Precision
from harness.base.failures import UsageError
from harness.base.model import models_given
from harness.base.suite import Suite
from harness.cli.options import CaseOptions
from harness.measure.workbench import Request

UNTUNED, SCHEDULED = Case.parse("tiny-opencl-float32-untuned"), Case.parse("tiny-opencl-float32-scheduled")


def request_of(*cases: Case) -> Request:
    return Request(Suite(models=["tiny"], paths=["opencl"]), cases, Path("cache"))


def test_schedules_that_no_case_is_built_with() -> None:
    what = CaseOptions(schedules=Path("s.jsonl"))
    with pytest.raises(UsageError, match=r"--schedules s.jsonl has no effect: .*'\*-scheduled'"):
        what.require_effect(request_of(UNTUNED))
    assert what.require_effect(request_of(UNTUNED, SCHEDULED)).cases == (UNTUNED, SCHEDULED)


def test_a_quirk_that_no_case_meets() -> None:
    what = CaseOptions(as_shipped=True, with_quirks=["texture-store-broadcast"])
    said = "--with-quirk texture-store-broadcast has no effect: no chosen case meets it: it is about texture in float32"
    with pytest.raises(UsageError, match=said):
        what.require_effect(request_of(UNTUNED))
    assert what.require_effect(request_of(Case("tiny", "texture", Precision.FLOAT16)))


def test_trust_without_a_program_of_torch() -> None:
    with pytest.raises(UsageError, match="--trust has no effect"):
        models_given(["net.onnx"], (), (), trust=True)
    assert models_given(["net.onnx", "net.pt2"], (), (), trust=True)


@pytest.mark.parametrize("option", ["--allow-reboot", "--allow-usb-power"])
def test_what_only_a_phone_can_do_on_this_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    def opened(*_: Any, **__: Any) -> None:
        raise AssertionError("a device was opened")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.measure.workbench.open_workbench", opened)
    said = complaint("run", "--model", "tiny", "--device", "local", option)
    assert said == f"{option} has no effect on the device local: it is for phones: leave {option} out"


@pytest.mark.parametrize("words", [["--minutes", "5"], ["--suite", "my.toml"], ["--schedules", "s.jsonl"]])
def test_how_to_run_where_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("records.jsonl").write_text("".join(f"{record.line()}\n" for record in sessions(10)))
    said = complaint("gate", "--from", "records.jsonl", *words)
    assert said == f"{words[0]} has no effect with --from, which runs nothing: leave {words[0]} out"


@pytest.mark.parametrize("words", [["--op", "conv*"], ["--set", "onnx"], ["--device", "local"]])
def test_what_to_test_where_nothing_is_tested(words: list[str]) -> None:
    assert f"{words[0]} has no effect with --from" in complaint("ops", "--from", "cells.json", *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--quirk", "vectorized-alloc", "--case", "x"], "--case has no effect with --quirk: leave --case out"),
        (["--graft", "0.26.0"], "--graft has no effect without --quirk: leave --graft out"),
        (["--quirk", "vectorized-alloc", "--graft", "0.26.0"], "--graft takes the files that --only names"),
        (["--quirk", "vectorised-alloc"], "did you mean 'vectorized-alloc'"),
    ],
)
def test_a_bisection_by_a_report_has_no_case(words: list[str], said: str) -> None:
    assert said in complaint("bisect", "--good", "0.25.0.post1", "--bad", "0.27.0.post1", *words)
