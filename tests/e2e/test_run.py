"""The whole way, as a person goes it: the command line, TVM, adb, the virtual phone, OpenCL."""

import contextlib
import json
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import command
import psutil
import pytest
from waiting import LONG_S, eventually

from device_runner.lease import holder_of
from harness.base.outcome import ExitCode, Outcome
from harness.measure.records.record import Record, RecordFile

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.usefixtures("warm_driver")]

SUITE = 'models = ["tiny"]\npaths = ["opencl", "texture"]\nbudget_s = {budget_s}\nsamples = {samples}\n'


def start(
    folder: Path, cache: Path, *arguments: str, budget_s: float = 0.1, samples: int = 10
) -> subprocess.Popen[str]:
    (folder / "adreno-bench.toml").write_text(SUITE.format(budget_s=budget_s, samples=samples))
    return command.start(folder, cache, *arguments)


def run(folder: Path, cache: Path, *arguments: str) -> tuple[int, str, str]:
    process = start(folder, cache, "run", *arguments)
    out, err = process.communicate(timeout=LONG_S)
    return process.returncode, out, err


def records(folder: Path) -> list[Record]:
    return RecordFile(folder / "records.jsonl").load().records


def made_for(record: Record) -> tuple[str, str, int]:
    """What was run, and what of the device decided it."""
    return record.artifact, record.identity.opencl_told_by, record.identity.image2d_max_width


def is_sampling(cache: Path) -> bool:
    owner = holder_of("virtual", cache / "leases")
    return owner is not None and owner.step == "sampling"


def servers_with_a_program(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """RPC server processes below the run that have loaded a pushed library."""
    return [child for child in below(process.pid) if any("adreno-bench/files" in path for path in _maps(child))]


def below(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _maps(process: psutil.Process) -> list[str]:
    try:
        return [entry.path for entry in process.memory_maps()]
    except (psutil.Error, OSError):
        return []


@contextlib.contextmanager
def nothing_left(process: subprocess.Popen[str]) -> Iterator[None]:
    """Whatever the run started is gone soon after the block."""
    started = below(process.pid)
    assert started
    yield
    _, alive = psutil.wait_procs(started, timeout=60)
    assert [child.info for child in alive if child.status() != psutil.STATUS_ZOMBIE] == []


def test_tiny_is_right_on_both_paths_and_a_second_run_builds_and_pushes_nothing(tmp_path: Path, cache: Path) -> None:
    code, out, err = run(tmp_path, cache)
    assert code == ExitCode.GOOD, err
    first = records(tmp_path)
    assert [(record.case, record.outcome) for record in first] == [
        ("tiny-opencl-float32-untuned", Outcome.OK),
        ("tiny-texture-float32-untuned", Outcome.OK),
    ]
    assert all(len(record.wall_ms) >= 10 and record.device_ms and record.first_run_ms for record in first)
    assert "texture-store-broadcast" in first[1].quirks
    assert "texture-store-broadcast" not in first[0].quirks
    effective = [set(record.effective_quirks or ()) for record in first]
    assert {"texture-store-broadcast", "grouped-conv-nchw4c"} < effective[1] < {*first[1].quirks}
    assert f"active; {len(effective[0] | effective[1])} changed what was built" in out
    assert "gpu" in first[0].emulated
    assert "not the real thing on this device" in out
    code, out, err = run(tmp_path, cache)
    assert code == ExitCode.GOOD, err
    assert [made_for(record) for record in records(tmp_path)[2:]] == [made_for(record) for record in first]
    assert "built nothing, took 2 from the store; pushed nothing" in out
    code, out, err = run(tmp_path, cache, "--resume", "--json")
    assert code == ExitCode.GOOD, err
    assert [record["case"] for record in json.loads(out)] == [record.case for record in first]
    assert len(records(tmp_path)) == 4


@pytest.mark.long
def test_as_shipped_the_texture_path_is_wrong_and_says_where(tmp_path: Path, cache: Path) -> None:
    code, out, err = run(tmp_path, cache, "--as-shipped", "--case", "*-texture-*")
    assert code == ExitCode.WRONG_OR_BROKEN, err
    (record,) = records(tmp_path)
    assert record.outcome in (Outcome.WRONG_RESULT, Outcome.COMPILE_ERROR)
    assert record.wall_ms == []
    assert record.message in out
    code, out, err = run(tmp_path, cache, "--as-shipped", "--case", "*-texture-*", "--resume")
    assert code == ExitCode.WRONG_OR_BROKEN, err
    assert record.message in out, "a retried job does not go green"
    assert f"settled before and not run again: {record.case}" in out
    assert records(tmp_path) == [record]


@pytest.mark.long
@pytest.mark.usefixtures("waiting_inferences")
def test_killing_the_rpc_server_is_a_device_crash_of_that_case_and_the_suite_goes_on(
    tmp_path: Path, cache: Path
) -> None:
    process = start(tmp_path, cache, "run", budget_s=20, samples=2000)
    assert eventually(lambda: is_sampling(cache), LONG_S)  # before that, the reference kernel has a server of its own
    for server in servers_with_a_program(process):
        server.kill()
    out, err = process.communicate(timeout=LONG_S)
    assert [record.outcome for record in records(tmp_path)] == [Outcome.DEVICE_CRASH, Outcome.OK], err
    assert process.returncode == ExitCode.WRONG_OR_BROKEN
    assert "device-crash (owner: path)" in out


@pytest.mark.usefixtures("waiting_inferences")
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.long)])
def test_an_ended_run_leaves_no_process_and_keeps_what_was_done(
    tmp_path: Path, cache: Path, number: signal.Signals
) -> None:
    process = start(tmp_path, cache, "run", budget_s=20, samples=2000)
    assert eventually(lambda: bool(servers_with_a_program(process)), LONG_S)
    with nothing_left(process):
        process.send_signal(number)
        _, err = process.communicate(timeout=LONG_S)
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert records(tmp_path) == []
    if number == signal.SIGINT:
        assert re.search(
            r"^interrupted: 0 of \d cases are settled; `adreno-bench run .*--resume` continues$", err, re.M
        )
    code, _, err = run(tmp_path, cache, "--resume", "--case", "*-opencl-*")
    assert code == ExitCode.GOOD, err
    assert [record.outcome for record in records(tmp_path)] == [Outcome.OK]


@pytest.mark.rest
@pytest.mark.usefixtures("waiting_inferences")
@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("gate", "--case", "*-opencl-*"), "no verdict; finished records and builds are kept; {} measures again"),
        (
            ("compare", "--model", "tiny", "--a", "--path opencl", "--b", "--path texture"),
            "no verdict; what was built or installed is kept; {} measures again",
        ),
        (("reduce", "--case", "*-opencl-*"), "no folder was written; what was built is kept; {} continues"),
    ],
    ids=["gate", "compare", "reduce"],
)
def test_what_ctrl_c_ends_says_what_is_kept_and_leaves_nothing(
    tmp_path: Path, cache: Path, words: Sequence[str], line: str
) -> None:
    process = start(tmp_path, cache, *words, budget_s=20, samples=2000)
    assert eventually(lambda: bool(servers_with_a_program(process)), LONG_S)
    with nothing_left(process):
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 128 + signal.SIGINT
    assert err.splitlines()[-1] == "interrupted: " + line.format(f"`{shlex.join(['adreno-bench', *words])}`")
    assert holder_of("virtual", cache / "leases") is None


def holds(process: subprocess.Popen[str], cache: Path) -> bool:
    holder = holder_of("virtual", cache / "leases")
    return holder is not None and holder.pid == process.pid


@pytest.mark.long
@pytest.mark.usefixtures("waiting_inferences")
def test_of_two_runs_on_one_device_the_second_waits_and_says_who_has_it(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = start(tmp_path / "a", cache, "run", "--case", "*-opencl-*", budget_s=4, samples=200)
    assert eventually(lambda: holds(first, cache), LONG_S)  # from its opening on: the second has all of a run to come
    second = start(tmp_path / "b", cache, "run", "--case", "*-opencl-*")
    _, first_said = first.communicate(timeout=LONG_S)
    _, second_said = second.communicate(timeout=LONG_S)
    assert (first.returncode, second.returncode) == (0, 0), first_said + second_said
    assert str(first.pid) in second_said
