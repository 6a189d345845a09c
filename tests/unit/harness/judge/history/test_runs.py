"""Releases that are refused, the machine of asv, and runs that must not meet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from history_results import Folder, both
from typer.testing import CliRunner

from device_runner.device import Identity
from device_runner.failures import DeviceLost, RigFailure
from device_runner.lease import lease
from harness.base.case import Case, Precision
from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.base.suite import Suite
from harness.cli import app
from harness.judge.history import asv_process, releases, runs
from harness.judge.history.runs import HistoryRequest, load_project, machine_of, register, run
from harness.judge.report.site import publish

PHONE = Identity("phone", "abc", soc="SM8650", gpu="Adreno 750", driver="E031.45", clml="4", rom="r1", abi="arm64-v8a")


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()


@pytest.fixture
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What asv's own process would do, and does not end with it."""
    monkeypatch.setattr(asv_process, "end_with_asv", lambda: None)


def test_an_unknown_release_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"apache-tvm 0\.26\.1.*the releases are 0\.25"):
        releases.maintain(tmp_path, ["0.26.1"])
    assert not (tmp_path / "repo").exists()


def test_constraints_are_the_lock_without_hashes_and_without_tvm() -> None:
    lock = (
        "apache-tvm==0.27.0 \\\n    --hash=sha256:aa\napache-tvm-ffi==0.1 \\\n    --hash=sha256:aa\n"
        "numpy==2.2 ; python_full_version < '3.11' \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\n"
    )
    assert releases.constraints_of(lock) == "numpy==2.2 ; python_full_version < '3.11'\n"


def test_a_machine_is_an_identity_and_replaces_what_was_written_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "home" / ".asv-machine.json"
    file.write_text(json.dumps({"version": 1, PHONE.key: {"machine": PHONE.key, "ram": "by hand"}, "mine": {"a": "b"}}))
    assert register(PHONE) == PHONE.key
    kept = json.loads(file.read_text())
    assert kept[PHONE.key] == machine_of(PHONE)
    assert kept["mine"] == {"a": "b"}
    assert (machine_of(PHONE)["gpu"], machine_of(PHONE)["driver"], machine_of(PHONE)["clml"]) == (
        "Adreno 750",
        "E031.45",
        "4",
    )


@pytest.mark.parametrize("text", ["{", "[]", "3"])
def test_a_machine_file_that_is_not_asvs_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "home" / ".asv-machine.json").write_text(text)
    with pytest.raises(UsageError, match=r"\.asv-machine\.json cannot be read by asv"):
        register(PHONE)


@pytest.mark.parametrize("text", ["{", '{"version": 1}', "[]"])
def test_a_configuration_that_is_not_asvs_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "asv.conf.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"asv\.conf\.json cannot be used"):
        load_project(file)


def test_a_configuration_that_is_missing_is_told_how_to_make(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^there is no .*asv\.conf\.json: `adreno-bench history releases` makes one"):
        load_project(tmp_path / "asv.conf.json")


def a_config(folder: Path) -> Path:
    file = folder / "asv.conf.json"
    file.write_text(json.dumps({"version": 1, "repo": ".", "env_dir": ".asv/env", "results_dir": ".asv/results"}))
    return file


def test_of_two_histories_at_once_the_second_says_who_has_it(tmp_path: Path) -> None:
    project = load_project(a_config(tmp_path))
    asked = HistoryRequest("virtual", None, "")
    with lease("asv", project.environments.parent, timeout_s=0), pytest.raises(RigFailure, match="another history of"):
        run(project, asked, PHONE)


@pytest.mark.parametrize("command", ["run", "releases", "publish", "summary"])
def test_every_command_has_help(command: str) -> None:
    assert "Usage" in CliRunner().invoke(app, ["history", command, "--help"]).stdout


def test_before_anything_was_measured_there_is_nothing_to_publish(tmp_path: Path) -> None:
    command = r"`adreno-bench history run ALL --config /.*/asv\.conf\.json` measures"
    with pytest.raises(UsageError, match=f"there are no results in .*: {command}"):
        publish(load_project(a_config(tmp_path)))


@pytest.mark.usefixtures("_in_this_process")
def test_without_its_device_a_case_is_lost_and_the_record_is_filed_under_the_expected_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise DeviceLost("abc went away")

    monkeypatch.setattr("device_runner.registry.open_device", gone)
    for name, value in {
        asv_process.DEVICE: "abc",
        asv_process.IDENTITY: PHONE_JSON,
        asv_process.RECORDS: str(tmp_path),
        "ASV_COMMIT": "a" * 40,
        "ASV_ENV_NAME": "env",
    }.items():
        monkeypatch.setenv(name, value)
    case = Case("tiny", "opencl").id
    record = asv_process.record_of(Suite(models=["tiny"], paths=["opencl"]), case, "as-shipped", tmp_path)
    assert (record.outcome, record.message, record.identity) == (Outcome.DEVICE_LOST, "abc went away", PHONE)
    assert (tmp_path / "aaaaaaaa-env.jsonl").exists()
    again = asv_process.record_of(Suite(models=["tiny"], paths=["opencl"]), case, "as-shipped", tmp_path)
    assert again == record


PHONE_JSON = asv_process.identity_to(PHONE)


@pytest.mark.usefixtures("_in_this_process")
def test_a_device_that_is_known_to_lack_half_precision_is_not_opened_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = Identity("phone", "abc", gpu="Adreno 750", extensions=("cl_khr_icd",))
    monkeypatch.setenv(asv_process.IDENTITY, asv_process.identity_to(identity))
    monkeypatch.setenv(asv_process.DEVICE, "there-is-none-of-this-name")
    suite = Suite(models=["tiny"], paths=["opencl"], precisions=[Precision.FLOAT16])
    record = asv_process.record_of(suite, suite.cases[0].id, "as-shipped", tmp_path)
    assert (record.outcome, record.identity) == (Outcome.UNSUPPORTED, identity)


def test_what_is_right_at_an_older_commit_does_not_settle_what_is_wrong_at_a_newer_one(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    case = "tiny-texture-float32-untuned"
    files = [folder.commit(both(case, 1.0, shipped)) for shipped in (Outcome.OK, Outcome.WRONG_RESULT, Outcome.OK)]
    oldest = files[0].with_suffix(".jsonl")
    outcomes = [record.outcome for record in runs.new_records(oldest.parent, {oldest: oldest.stat().st_size})]
    assert outcomes == [Outcome.OK, Outcome.WRONG_RESULT, Outcome.OK, Outcome.OK]


def test_what_is_kept_of_a_commit_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, cases = Folder(tmp_path / "results"), [Case(f"m{n}", "opencl").id for n in range(3)]
    kept = folder.commit({key: value for case in cases for key, value in both(case, 1.0, 2.0).items()})
    for name, value in {
        asv_process.DEVICE: "there-is-none-of-this-name",
        asv_process.RECORDS: str(kept.parent),
        asv_process.REUSE: "1",
        "ASV_COMMIT": "0" * 40,
        "ASV_ENV_NAME": kept.stem.split("-", 1)[1],
    }.items():
        monkeypatch.setenv(name, value)
    suite = Suite(models=[f"m{n}" for n in range(3)], paths=["opencl"])
    found = [asv_process.record_of(suite, case, "workarounds", tmp_path) for case in cases]
    assert [(record.case, record.wall_ms != []) for record in found] == [(case, True) for case in cases]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (HistoryRequest("virtual", None, ""), ["--record-samples", "--skip-existing"]),
        (HistoryRequest("virtual", None, "HEAD^!", skip_existing=False), ["--record-samples", "HEAD^!"]),
        (HistoryRequest("virtual", None, "", record_samples=False, options=["-q"]), ["--skip-existing", "-q"]),
    ],
)
def test_asv_is_given_what_was_asked_for(request_: HistoryRequest, words: list[str]) -> None:
    given = runs._arguments("m", request_, request_.commits)
    assert given == ["run", "--machine", "m", "--show-stderr", *words]
