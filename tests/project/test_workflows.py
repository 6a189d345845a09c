"""The workflows: their schema, their permissions, and the commands that their steps run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from github_stand_in import github
from places import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONS = sorted((ROOT / ".github" / "actions").glob("*/action.yml"))
SCRIPTS = sorted(path for path in (ROOT / ".ci").iterdir() if path.is_file())


def read(file: Path) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return data


def steps(file: Path) -> list[dict[str, Any]]:
    return [step for job in read(file)["jobs"].values() for step in job["steps"]]


def tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name(name)
    if not program.exists():
        pytest.skip(f"{name} is not installed here; requirements.lock has it")
    return subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def test_they_follow_the_schema() -> None:
    done = tool("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *map(str, WORKFLOWS))
    assert done.returncode == 0, done.stdout


def test_actions_follow_the_schema_and_start_a_script_beside_them() -> None:
    done = tool("check-jsonschema", "--builtin-schema", "vendor.github-actions", *map(str, ACTIONS))
    assert done.returncode == 0, done.stdout
    for file in ACTIONS:
        step, *others = read(file)["runs"]["steps"]
        script = file.parent / step["run"].strip('"').removeprefix("$GITHUB_ACTION_PATH/")
        assert os.access(script, os.X_OK)
        named = " ".join(
            value for one in (step, *others) for part in ("env", "with") for value in one.get(part, {}).values()
        )
        assert set(re.findall(r"inputs\.([\w-]+)", named)) == set(read(file)["inputs"])
        assert {name for name in step["env"] if f"${name}" in script.read_text("utf-8")} == set(step["env"])


def test_zizmor_finds_nothing() -> None:
    done = tool("zizmor", "--offline", "--quiet", ".github")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_permissions_are_said_and_written_only_where_needed(file: Path) -> None:
    workflow = read(file)
    assert "permissions" in workflow
    writes = {
        (name, scope)
        for name, job in workflow["jobs"].items()
        for scope, access in {**workflow["permissions"], **job.get("permissions", {})}.items()
        if access == "write"
    }
    allowed = {("measure", "contents"), ("deploy", "pages"), ("deploy", "id-token"), ("publish", "id-token")}
    assert writes <= allowed


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_every_script_that_a_step_runs_is_here(file: Path) -> None:
    words = [word for step in steps(file) for word in step.get("run", "").split()]
    scripts = [ROOT / word for word in words if word.startswith(".ci/")]
    assert all(os.access(script, os.X_OK) for script in scripts)
    assert any(word.startswith((".ci/", "make")) for word in words)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_are_bash(script: Path) -> None:
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0


def a_checkout(folder: Path) -> Path:
    """A repository with the scripts, and an empty one beside it to push results to."""
    subprocess.run(["git", "init", "--quiet", "--bare", folder / "remote"], check=True)
    checkout = folder / "checkout"
    (checkout / ".ci").mkdir(parents=True)
    for script in SCRIPTS:
        copy = checkout / ".ci" / script.name
        copy.write_bytes(script.read_bytes())
        copy.chmod(0o755)
    subprocess.run(["git", "init", "--quiet", checkout], check=True)
    subprocess.run(["git", "-C", checkout, "remote", "add", "origin", folder / "remote"], check=True)
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / ".venv" / "bin" / "python").symlink_to(sys.executable)
    return checkout


def script(checkout: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, **variables}
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def test_results_go_to_the_branch_and_come_back(tmp_path: Path) -> None:
    checkout = a_checkout(tmp_path)
    assert script(checkout, ".ci/results", "restore").returncode == 0
    (checkout / ".asv/results/benchmarks.json").write_text("{}")
    (checkout / ".asv/releases/results/benchmarks.json").write_text("[]")
    (checkout / ".asv/confirmed.jsonl").write_text('{"decided": 1}\n{"decided": 2}\n')
    assert script(checkout, ".ci/results", "keep").returncode == 0
    assert script(checkout, ".ci/results", "keep").stdout == "no new results\n"
    subprocess.run(["rm", "-rf", checkout / ".asv"], check=True)
    assert script(checkout, ".ci/results", "restore").returncode == 0
    assert (checkout / ".asv/results/benchmarks.json").read_text() == "{}"
    assert (checkout / ".asv/releases/results/benchmarks.json").read_text() == "[]"
    assert (checkout / ".asv/confirmed.jsonl").read_text() == '{"decided": 1}\n{"decided": 2}\n'


def test_hosts_that_measure_at_once_keep_the_results_of_each(tmp_path: Path) -> None:
    first = a_checkout(tmp_path)
    second = tmp_path / "second"
    subprocess.run(["cp", "-R", first, second], check=True)
    for checkout, host in ((first, "one"), (second, "two")):
        assert script(checkout, ".ci/results", "restore").returncode == 0
        (checkout / ".asv/results/benchmarks.json").write_text(f'"{host}"')
        (checkout / f".asv/results/{host}").mkdir()
        (checkout / f".asv/results/{host}/records.jsonl").write_text("{}\n")
        (checkout / ".asv/confirmed.jsonl").write_text(f'{{"decided": "{host}"}}\n')
    for checkout in (first, second):
        assert script(checkout, ".ci/results", "keep").returncode == 0
    assert script(first, ".ci/results", "restore").returncode == 0
    assert {file.parent.name for file in (first / ".asv/results").rglob("records.jsonl")} == {"one", "two"}
    assert (first / ".asv/results/benchmarks.json").read_text() == '"two"'
    decided = (first / ".asv/confirmed.jsonl").read_text().splitlines()
    assert sorted(decided) == ['{"decided": "one"}', '{"decided": "two"}']


FAKE = """#!/bin/sh
echo "$@" >> calls.txt
case "$*" in
  "devices --json") echo '%s' ;;
  *"--device bad"*) exit 4 ;;
esac
"""


def fake_bench(checkout: Path, devices: list[dict[str, str]]) -> str:
    program = checkout / "bench"
    program.write_text(FAKE % json.dumps(devices))
    program.chmod(0o755)
    return str(program)


def test_nightly_measures_every_phone_that_is_ready_whatever_the_others_do(tmp_path: Path) -> None:
    checkout = a_checkout(tmp_path)
    names = (
        ("virtual", "virtual", "ready"),
        ("bad", "phone", "ready"),
        ("off", "phone", "offline"),
        ("good", "phone", "ready"),
    )
    devices = [dict(zip(("name", "kind", "state"), each, strict=True)) for each in names]
    done = script(checkout, ".ci/nightly", BENCH=fake_bench(checkout, devices))
    runs = [call for call in (checkout / "calls.txt").read_text().splitlines() if call.startswith("history run")]
    assert [call.partition("--device ")[2].split()[0] for call in runs] == ["bad", "bad", "good", "good"]
    assert done.returncode == 1


def test_a_build_host_builds_for_every_device_with_results(tmp_path: Path) -> None:
    checkout = a_checkout(tmp_path)
    bench = fake_bench(checkout, [])
    assert "no results yet" in script(checkout, ".ci/build", BENCH=bench).stdout
    for name in ("one", "two"):
        (checkout / f".asv/results/{name}").mkdir(parents=True)
        (checkout / f".asv/results/{name}/records.jsonl").write_text("{}\n")
    assert script(checkout, ".ci/build", BENCH=bench, BUILDERS="tcp://farm:8786").returncode == 0
    like = " ".join(f"--like .asv/results/{name}/records.jsonl" for name in ("one", "two"))
    assert (checkout / "calls.txt").read_text().splitlines() == [
        f"build {like} --builders tcp://farm:8786",
        f"build --as-shipped {like} --builders tcp://farm:8786",
    ]


def test_nightly_without_a_phone_is_red(tmp_path: Path) -> None:
    checkout = a_checkout(tmp_path)
    done = script(checkout, ".ci/nightly", BENCH=fake_bench(checkout, []))
    assert done.returncode == 4
    assert "no phone is ready" in done.stderr


def test_the_summary_command_of_the_nightly_job_runs(tmp_path: Path) -> None:
    (tmp_path / "asv.conf.json").write_text('{"version": 1, "repo": "."}')
    program = [sys.executable, "-c", "from harness.cli import main; main()"]
    done = script(tmp_path, *program, "history", "summary", "--markdown")
    assert (done.returncode, done.stdout) == (5, "Nothing was measured.\n")


@pytest.mark.parametrize(
    ("as_shipped", "runs"), [(None, ["", "--as-shipped"]), ("both", ["", "--as-shipped"]), ("only", ["--as-shipped"])]
)
def test_the_action_runs_both_sides_with_workarounds_and_as_shipped(
    tmp_path: Path, as_shipped: str | None, runs: list[str]
) -> None:
    python, log = tmp_path / "python", tmp_path / "log"
    python.write_text(f'#!/bin/sh\n[ "$1" = -c ] && shift 2 && echo "$@" >>{log}\nexit 0\n')
    python.chmod(0o755)
    installed = tmp_path / ".github/actions/compare-tvm/compare"
    installed.parent.mkdir(parents=True)
    installed.write_text((ROOT / ".github/actions/compare-tvm/compare").read_text())
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci/system-packages").symlink_to(python)
    (tmp_path / "requirements.lock").touch()
    given = {"BASE_PYTHON": str(python), "HEAD_PYTHON": str(python), "SUITE": "s", "CASE": "*", "ISA_GPUS": ""}
    given |= {"RECORDS": str(tmp_path / "records"), **({"AS_SHIPPED": as_shipped} if as_shipped else {})}
    subprocess.run(["bash", installed], env={**os.environ, **given}, check=True)
    assert f"github annotate {tmp_path}/records/verdicts.json" in log.read_text()
    ran = [line for line in log.read_text().splitlines() if line.startswith("run ")]
    assert [line.partition("--findings-are-fine")[2].strip() for line in ran] == runs * 2


def test_the_action_writes_one_comment_and_edits_it(tmp_path: Path) -> None:
    records = tmp_path / "records"
    records.mkdir()
    (tmp_path / "event.json").write_text('{"pull_request": {"number": 7}}')
    done = read(ACTIONS[0])["runs"]["steps"]
    (step,) = (step for step in done if "GITHUB_TOKEN" in step.get("env", {}))
    assert "inputs.token != ''" in step["if"], "without a token the step is left out"
    with github() as there:
        job = {"GITHUB_API_URL": there.url, "GITHUB_REPOSITORY": "some/repo", "GITHUB_TOKEN": "secret"}
        job |= {"GITHUB_EVENT_PATH": str(tmp_path / "event.json"), "BASE_PYTHON": sys.executable, "NAME": "job"}
        for text in ("first", "second"):
            (records / "comment.md").write_text(text)
            environment = {**os.environ, **job, "RECORDS": str(records), "PYTHONPATH": str(ROOT)}
            assert subprocess.run(["bash", "-c", step["run"]], env=environment, check=False).returncode == 0
        assert [method for method, _ in there.requests] == ["GET", "POST", "GET", "PATCH"]
        assert [comment["body"] for comment in there.comments] == ["<!-- adreno-bench: job -->\nsecond"]
