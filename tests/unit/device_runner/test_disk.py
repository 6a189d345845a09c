"""A full disk is a full disk, wherever it is met and in whatever words."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from build_workers import forks
from fake_records import IDENTITY, a_record

from device_runner.device import Identity, ShellResult
from device_runner.disk import disk_full, nearly_full
from device_runner.failures import DeviceCrash, DeviceFull, DiskFull, Failure, RigFailure
from device_runner.rpc_device import RpcDevice
from device_runner.runtimes.recipe import Sidecar
from device_runner.store import Store
from harness import cli
from harness.base.case import Case
from harness.base.outcome import ExitCode, Owner
from harness.base.plan import Job
from harness.base.suite import Limits
from harness.compile.artifacts import compile as compiling
from harness.compile.artifacts import worker
from harness.compile.artifacts.pool import REPEATABLE, Builder
from harness.measure.context import Origin
from harness.measure.recording import Recording
from harness.measure.records.record import RecordFile

NO_SPACE = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
GPP = "/tmp/ccx.s: Assembler messages:\nfatal error: can't write 0 bytes to section .text: 'No space left on device'\n"
JOB = Job("compile", "0123456789abcdef", "tiny", {})


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """No disk has any room."""
    monkeypatch.setattr(os, "statvfs", lambda _: blocks_free(0))


def blocks_free(count: int) -> SimpleNamespace:
    return SimpleNamespace(f_bavail=count, f_frsize=4096, f_files=9, f_favail=9, f_fsid=1 + count)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of its own of 300 kB, where this may be made."""
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("only root may mount a disk in memory")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def told(failure: Failure | None, folder: Path) -> None:
    """It says which folder, how much is free and what to do, in one line, and it is the rig's."""
    assert isinstance(failure, DiskFull)
    assert failure.message.startswith("the disk is full: ")
    assert failure.message.endswith(f" MB free in {folder}")
    assert "free some space" in failure.hint
    assert "\n" not in str(failure)


def test_an_error_and_what_it_was_caused_by(tmp_path: Path) -> None:
    told(disk_full(NO_SPACE, tmp_path), tmp_path)
    told(disk_full(OSError(errno.EDQUOT, "quota", str(tmp_path / "a" / "b")), tmp_path), tmp_path)
    told(disk_full(OSError(errno.ENOSPC, "full", "/proc/x")), Path("/proc"))
    outer = RuntimeError("TVM says something else")
    outer.__cause__ = NO_SPACE
    told(disk_full(outer, tmp_path), tmp_path)
    told(disk_full(GPP, tmp_path), tmp_path)
    assert disk_full(OSError(errno.EACCES, "denied"), tmp_path) is None
    assert disk_full("error: no such file", tmp_path) is None


def test_of_two_folders_on_one_disk_the_first_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    falling = iter(range(99, 0, -1))

    def shrinking(_: object) -> SimpleNamespace:
        return SimpleNamespace(**{**vars(blocks_free(0)), "f_bavail": next(falling)})

    monkeypatch.setattr(os, "statvfs", shrinking)
    told(disk_full(GPP, tmp_path, tmp_path / "a", Path("/")), tmp_path)


def test_silence_is_explained_only_where_there_is_no_room(tmp_path: Path, full: None) -> None:
    told(nearly_full("", tmp_path), tmp_path)


def test_silence_elsewhere_is_not(tmp_path: Path) -> None:
    assert nearly_full("", tmp_path) is None


def test_the_disk_with_the_least_room_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda folder: blocks_free(5 if folder == tmp_path else 9))
    told(disk_full(GPP, Path("/"), tmp_path), tmp_path)
    failure = disk_full(GPP, Path("/"))
    assert failure
    assert "TMPDIR" not in failure.hint
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    failure = disk_full(GPP, Path("/"))
    assert failure
    assert "TMPDIR" in failure.hint


def test_a_runtime_that_finds_no_room_compiles_all_the_same(small: Path, tmp_path: Path) -> None:
    sources = tmp_path / "src"
    sources.mkdir()
    (sources / "one.cc").write_text("extern const char big[1 << 20] = {1};\n")
    with pytest.raises(DiskFull) as caught:
        Sidecar("big.so", "a large library", "runtimes", "", sources).library(small)
    told(caught.value, small / "runtimes")
    assert "No space left on device" in caught.value.evidence


def test_neither_is_a_compiler_to_blame_that_dies_without_a_word(
    tmp_path: Path, full: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "c++"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] && exit\nkill -BUS $$\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(DiskFull):
        Sidecar("x.so", "a library", "runtimes", "", tmp_path).library(tmp_path)


def test_the_store_says_so(small: Path) -> None:
    store = Store(small, "artifacts")
    with pytest.raises(DiskFull) as caught, store.making("k", 5) as scratch:
        (scratch / "lib.so").write_bytes(bytes(1 << 20))
    told(caught.value, store.folder)
    assert not list(store.folder.glob(".k.*"))
    shutil.rmtree(store.folder)


@pytest.mark.parametrize(
    "script",
    [
        "open(f'{out}/oracle.npz', 'wb').write(bytes(1 << 20))",  # and nobody can write why
        "open(f'{out}/lib.so', 'wb').write(bytes(1 << 19)); os.kill(os.getpid(), 7)",
        "os.posix_fallocate(os.open(f'{out}/filler', os.O_CREAT | os.O_RDWR), 0, 290_000); os.kill(os.getpid(), 7)",
    ],
)
def test_a_worker_that_finds_no_room_is_not_a_crash_of_the_compiler(small: Path, tmp_path: Path, script: str) -> None:
    program = f"import json, os, sys\nout = json.load(open(sys.argv[1]))['out']\n{script}\n"
    with Builder(small, Limits(), forks=forks(tmp_path, program)) as builder:
        failure = builder.build([JOB])[JOB.key]
    assert isinstance(failure, Failure)
    told(failure, small / "artifacts")


def test_a_worker_tells_in_its_own_words_what_the_disk_said(tmp_path: Path) -> None:
    assert worker._failure_of(NO_SPACE, tmp_path / "out").message.startswith("the disk is full: ")


def test_tvm_is_not_blamed_and_the_failure_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as caught, compiling.stepping("build"):
        raise RuntimeError("LLVM ERROR: IO failure on output stream: No space left on device")
    told = worker._failure_of(caught.value, tmp_path / "out")
    assert told.message.startswith("the disk is full: ")
    assert told.outcome not in REPEATABLE


def test_a_library_that_cannot_be_linked_for_want_of_room(tmp_path: Path) -> None:
    def export_library(*_: Any, **__: Any) -> None:
        raise RuntimeError(f"Compilation error:\n{GPP}")

    with pytest.raises(DiskFull):
        compiling.export(SimpleNamespace(export_library=export_library), tmp_path / "a" / "lib.so", None)


def test_a_record_that_finds_no_room() -> None:
    with pytest.raises(DiskFull) as caught:
        RecordFile(Path("/dev/full")).append(a_record())
    told(caught.value, Path("/dev"))
    assert "pass --records" in caught.value.hint


def test_whatever_else_writes_while_a_case_runs_is_the_rigs(full: None) -> None:
    with Recording(Case("tiny", "opencl"), Origin("phone", IDENTITY, False, "run")) as recording:
        raise NO_SPACE
    assert recording.record.outcome.owner is Owner.RIG
    assert recording.record.message.startswith("the disk is full: ")


def test_a_command_ends_with_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(*_: object, **_options: object) -> None:
        raise NO_SPACE

    monkeypatch.setattr(cli, "app", refuse)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == ExitCode.RIG_FAILURE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("adreno-bench: the disk is full: ")
    assert os.environ["ADRENO_BENCH_CACHE"] in line
    assert line.endswith("or use another disk (ADRENO_BENCH_CACHE)")


class Phone:
    """Whose programs die, and which tells how much is free."""

    name, root = "phone", "/data/local/tmp/adreno-bench"

    def __init__(self, free_kb: int) -> None:
        self.df = f"Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/block 99 9 {free_kb} 99% /data\n"

    def shell(self, command: Sequence[str], *, timeout_s: float) -> ShellResult:
        return ShellResult(0, self.df if command[0] == "df" else "", "")


class Device(RpcDevice):
    def _identity(self, opencl: Mapping[str, Any]) -> Identity:
        raise NotImplementedError


@pytest.mark.parametrize(("free_kb", "kind"), [(100, DeviceFull), (100_000, DeviceCrash)])
def test_a_program_that_dies_on_a_full_device_is_not_the_paths(
    free_kb: int, kind: type[Failure], monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_session(*_: Any, **__: Any) -> Any:
        raise DeviceCrash("the process ended with code 1", evidence="its log")

    monkeypatch.setattr("device_runner.rpc_device.open_session", open_session)
    device: Any = Device("phone", Phone(free_kb), ["tvm_rpc"])  # type: ignore[arg-type]
    with pytest.raises(kind) as caught, device.session({}, timeout_s=1):
        pass
    assert "its log" in caught.value.evidence
    assert isinstance(caught.value, RigFailure) is False
