"""The releases' repository, asv's machine, and runs that must not meet."""

from __future__ import annotations

import json
import subprocess
import textwrap
from pathlib import Path

import psutil
import pytest
from history_results import Folder, a_record, both
from typer.testing import CliRunner

from device_runner.device import Identity
from device_runner.failures import DeviceLost, RigFailure
from device_runner.lease import lease, tell
from harness.base.case import Case, Precision
from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.base.suite import Suite
from harness.cli import app
from harness.judge.history import asv_process, releases, runs
from harness.judge.history.runs import ASV_SOME_FAILED, HistoryRequest, asv, load_project, machine_of, register, run
from harness.judge.report.site import publish

PHONE = Identity("phone", "abc", soc="SM8650", gpu="Adreno 750", driver="E031.45", clml="4", rom="r1", abi="arm64-v8a")


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, package: str, **modules: str) -> None:
    """Let processes find another package of this name, with these modules."""
    place = folder / "stand-in" / package
    place.mkdir(parents=True)
    for module, code in {"__init__": "", **modules}.items():
        (place / f"{module}.py").write_text(textwrap.dedent(code))
    monkeypatch.setenv("PYTHONPATH", str(place.parent))


PIP = """
    import pathlib, sys
    if "wheel" in sys.argv:
        target = pathlib.Path(sys.argv[sys.argv.index("-w") + 1])
        target.mkdir(parents=True)
        (target / "harness.whl").touch()
"""
"""It can install whatever it is asked for."""


@pytest.fixture
def _pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "pip", __main__=PIP)


@pytest.fixture
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What asv's own process would do, and does not end with it."""
    monkeypatch.setattr(asv_process, "end_with_asv", lambda: None)


def git(repo: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(repo), *arguments], capture_output=True, text=True, check=True).stdout


@pytest.mark.usefixtures("_pip")
def test_releases_are_commits_with_their_dates_and_pins(tmp_path: Path) -> None:
    assert releases.maintain(tmp_path / "r", ["0.26.0", "0.25.0.post1"]) == ["0.25.0.post1", "0.26.0"]
    repo = tmp_path / "r" / "repo"
    assert git(repo, "tag").split() == ["0.25.0.post1", "0.26.0"]
    assert git(repo, "show", "0.26.0:requirements.txt") == "apache-tvm==0.26.0\napache-tvm-ffi==0.1.14.post1\n"
    assert git(repo, "log", "-1", "--format=%cI", "0.26.0").strip() == "2026-08-11T02:34:21+00:00"


@pytest.mark.usefixtures("_pip")
def test_a_relative_folder_is_where_the_command_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert releases.maintain(Path("some/where"), ["0.26.0"]) == ["0.26.0"]
    assert git(tmp_path / "some/where/repo", "tag").split() == ["0.26.0"]


@pytest.mark.usefixtures("_pip")
def test_adding_a_release_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    releases.maintain(tmp_path, ["0.25.0.post1", "0.26.0"])
    before = git(tmp_path / "repo", "rev-parse", "0.25.0.post1", "0.26.0")
    assert releases.maintain(tmp_path, ["0.27.0.post1"]) == ["0.27.0.post1"]
    assert releases.maintain(tmp_path, ["0.26.0"]) == []
    assert git(tmp_path / "repo", "rev-parse", "0.25.0.post1", "0.26.0") == before


@pytest.mark.usefixtures("_pip")
def test_a_release_before_the_last_one_is_refused(tmp_path: Path) -> None:
    releases.maintain(tmp_path, ["0.26.0"])
    with pytest.raises(UsageError, match=r"0\.25\.0\.post1 was released before 0\.26\.0"):
        releases.maintain(tmp_path, ["0.25.0.post1"])


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
    with pytest.raises(UsageError, match=r"\.asv-machine\.json is not asv's"):
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


def stand_in_for_asv(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let processes run this code as asv's program."""
    main = f"def main():\n{textwrap.indent(textwrap.dedent(code), '    ')}"
    stand_in(folder, monkeypatch, "asv", main=main)


def test_a_commit_that_could_not_be_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = load_project(a_config(tmp_path))
    record = a_record("tiny-opencl-float32-untuned", "as-shipped", 1.0)
    files = {"aaaaaaaa-env.json": "{}", "bbbbbbbb-env.json": "{}", "bbbbbbbb-env.jsonl": f"{record.line()}\n"}
    code = f"""
        import pathlib, sys
        for name, text in {files!r}.items():
            (pathlib.Path({str(project.results / PHONE.key)!r}) / name).write_text(text)
        sys.exit({ASV_SOME_FAILED})
    """
    stand_in_for_asv(tmp_path, monkeypatch, code)
    made = run(project, HistoryRequest("virtual", None, ""), PHONE)
    assert (len(made.records), made.not_installed) == (1, ["aaaaaaaa"])


def test_after_a_kill_that_came_when_all_was_measured_nothing_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = load_project(a_config(tmp_path))
    folder = project.results / PHONE.key
    folder.mkdir(parents=True)
    (folder / "bbbbbbbb-env.jsonl").write_text(f"{a_record('tiny-opencl-float32-untuned', 'as-shipped', 1.0).line()}\n")
    code = f"""
        import pathlib, sys
        (pathlib.Path({str(folder)!r}) / "bbbbbbbb-env.json").write_text("{{}}")
        sys.exit({ASV_SOME_FAILED})
    """
    stand_in_for_asv(tmp_path, monkeypatch, code)
    made = run(project, HistoryRequest("virtual", None, ""), PHONE)
    assert (made.records, made.not_installed) == ([], [])


@pytest.mark.parametrize("command", ["run", "releases", "publish", "summary"])
def test_every_command_has_help(command: str) -> None:
    assert "Usage" in CliRunner().invoke(app, ["history", command, "--help"]).stdout


def test_before_anything_was_measured_there_is_nothing_to_publish(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there are no results"):
        publish(load_project(a_config(tmp_path)))


def test_output_of_asv_can_be_had_line_by_line(tmp_path: Path) -> None:
    said: list[str] = []
    assert asv(load_project(a_config(tmp_path)), ["show", "--nonsense"], output=said.append) == 2
    assert "unrecognized arguments: --nonsense" in said[-1]


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


def test_a_silence_of_asv_is_broken_by_what_its_benchmarks_are_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(tmp_path / 'said')!r}).exists(): time.sleep(0.01)"
    stand_in_for_asv(tmp_path, monkeypatch, wait)
    monkeypatch.setattr(runs, "POLL_S", 0.01)
    monkeypatch.setattr("harness.measure.progress.Silence.FIRST_S", 0.01)
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path))
    said: list[str] = []

    def hear(line: str) -> None:
        said.append(line)
        (tmp_path / "said").touch()

    with lease("R5CT", tmp_path / "leases", timeout_s=0):
        tell("R5CT", tmp_path / "leases", "tiny-opencl-float32-untuned", "first run")
        asv(load_project(a_config(tmp_path)), ["run"], output=hear, going_on=runs._on_devices)
    assert said[0] == "still: R5CT: tiny-opencl-float32-untuned first run"


def test_what_asv_leaves_among_temporary_files_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_for_asv(tmp_path, monkeypatch, "import tempfile; print(tempfile.mkdtemp())")
    said: list[str] = []
    asv(load_project(a_config(tmp_path)), ["run"], output=said.append)
    assert [Path(line).exists() for line in said] == [False]


def test_an_asv_that_falls_silent_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf = "import subprocess, sys, time; print('[ 0%] begun', flush=True); "
    deaf += f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)', {str(tmp_path)!r}]); "
    deaf += "time.sleep(60)"
    stand_in_for_asv(tmp_path, monkeypatch, deaf)
    said: list[str] = []
    with pytest.raises(RigFailure, match="`asv run` said nothing for 5 s"):
        asv(load_project(a_config(tmp_path)), ["run"], output=said.append, silence_s=5.0)  # it starts within
    assert said == ["[ 0%] begun"]
    assert not [p for p in psutil.process_iter(["cmdline"]) if str(tmp_path) in (p.info["cmdline"] or [])]


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
