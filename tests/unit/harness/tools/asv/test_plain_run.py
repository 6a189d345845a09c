"""A plain `asv run`: which failed benchmarks are findings about the compiler."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_records import IDENTITY, a_record

from harness.base.outcome import Outcome
from harness.judge.history import asv_process
from harness.judge.history.runs import ASV_SOME_FAILED, machine_of
from harness.tools.asv import plain_run
from harness.tools.asv.plain_run import is_finding

CASE = "tiny-texture-float32-untuned"
OF_CASE = {"case": CASE, "quirks": "as-shipped"}
OF_CODE = {"model": "tiny", "path": "texture", "precision": "float32", "GPU": "a740"}


@pytest.mark.parametrize(
    ("failed", "outcome", "as_shipped", "expected"),
    [
        (OF_CASE, Outcome.WRONG_RESULT, True, True),
        (OF_CASE, Outcome.COMPILE_ERROR, True, True),
        (OF_CASE, Outcome.DEVICE_LOST, True, False),
        (OF_CASE, Outcome.WRONG_RESULT, False, False),
        ({**OF_CASE, "case": "tiny-opencl-float32-untuned"}, Outcome.WRONG_RESULT, True, False),
        ({**OF_CASE, "case": CASE.removesuffix("ed")}, Outcome.WRONG_RESULT, True, False),
        (OF_CODE, Outcome.COMPILE_ERROR, False, True),
        ({**OF_CODE, "path": "opencl"}, Outcome.COMPILE_ERROR, False, False),
    ],
)
def test_a_failure_is_a_finding_if_a_conclusive_record_is_of_the_same_case(
    failed: dict[str, str], outcome: Outcome, as_shipped: bool, expected: bool
) -> None:
    record = a_record(CASE, outcome=outcome, as_shipped=as_shipped)
    assert is_finding(failed, [record]) is expected


@pytest.mark.parametrize(
    ("code", "failed", "expected"),
    [
        (0, [], 0),
        (ASV_SOME_FAILED, [OF_CASE], 0),
        (ASV_SOME_FAILED, [OF_CASE, {**OF_CASE, "case": "another"}], ASV_SOME_FAILED),
        (ASV_SOME_FAILED, [], ASV_SOME_FAILED),
        (1, [OF_CASE], 1),
    ],
)
def test_a_run_is_well_if_all_that_failed_are_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, failed: list[dict[str, str]], expected: int
) -> None:
    record = a_record(CASE, outcome=Outcome.WRONG_RESULT, as_shipped=True)
    monkeypatch.delenv(asv_process.IDENTITY, raising=False)
    monkeypatch.setattr(plain_run, "_file_under", lambda *_: (None, "machine"))
    monkeypatch.setattr(plain_run, "_settings", lambda *_: nullcontext(tmp_path))
    monkeypatch.setattr(plain_run, "_failures", lambda: nullcontext(failed))
    monkeypatch.setattr(plain_run, "new_records", lambda *_: [record])
    conf = SimpleNamespace(results_dir=str(tmp_path))
    assert plain_run.measure(lambda **_: code, conf, {}) == expected


def test_a_benchmark_that_died_without_a_record_is_none() -> None:
    assert not is_finding(OF_CASE, [])


def test_a_machine_file_is_of_another_device_whatever_name_it_has(tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    assert not plain_run._is_other(file, IDENTITY)
    file.write_text(json.dumps({**machine_of(IDENTITY), "machine": "a name of mine"}))
    assert not plain_run._is_other(file, IDENTITY)
    file.write_text(json.dumps({**machine_of(IDENTITY), "driver": "another"}))
    assert plain_run._is_other(file, IDENTITY)
    file.write_text("{torn")
    assert plain_run._is_other(file, IDENTITY)


@pytest.fixture
def _in_a_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(asv_process.IDENTITY, "{}")


@pytest.mark.usefixtures("_in_a_history")
def test_a_night_without_a_new_commit_is_no_failure() -> None:
    """`history run NEW` ended with 4: asv ends with 1 if no commit is left."""
    from asv.console import log

    def asv_run(**_: object) -> int:
        log.error(message)
        return 1

    message = "No commit hashes selected"
    assert plain_run.measure(asv_run, SimpleNamespace(), {}) == 0
    message = "No environments selected"
    assert plain_run.measure(asv_run, SimpleNamespace(), {}) == 1


@pytest.mark.usefixtures("_in_a_history")
def test_commits_that_do_not_exist_are_named_in_one_line() -> None:
    """asv ended in a traceback."""
    from asv.util import ProcessError, UserError

    def asv_run(**_: object) -> int:
        raise ProcessError(["git"], 128, "", "fatal: bad revision 'v9'")

    with pytest.raises(UserError, match=r"there are no commits v9 in repo: ALL takes each"):
        plain_run.measure(asv_run, SimpleNamespace(repo="repo"), {"range_spec": "v9"})
