"""The releases' repository and runs, with processes that stand in for pip and asv."""

from __future__ import annotations

import json
import subprocess
import textwrap
from pathlib import Path

import psutil
import pytest
from history_results import a_record

from device_runner.device import Identity
from device_runner.failures import RigFailure
from device_runner.lease import lease, tell
from harness.base.failures import UsageError
from harness.judge.history import releases, runs
from harness.judge.history.runs import ASV_SOME_FAILED, HistoryRequest, asv, load_project, run

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


def a_config(folder: Path) -> Path:
    file = folder / "asv.conf.json"
    file.write_text(json.dumps({"version": 1, "repo": ".", "env_dir": ".asv/env", "results_dir": ".asv/results"}))
    return file


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


def test_output_of_asv_can_be_had_line_by_line(tmp_path: Path) -> None:
    said: list[str] = []
    assert asv(load_project(a_config(tmp_path)), ["show", "--nonsense"], output=said.append) == 2
    assert "unrecognized arguments: --nonsense" in said[-1]


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
    with pytest.raises(RigFailure, match="`asv run` printed nothing for 5 s"):
        asv(load_project(a_config(tmp_path)), ["run"], output=said.append, silence_s=5.0)  # it starts within
    assert said == ["[ 0%] begun"]
    assert not [p for p in psutil.process_iter(["cmdline"]) if str(tmp_path) in (p.info["cmdline"] or [])]
