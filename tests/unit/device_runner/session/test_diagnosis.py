"""Whose failure an error is, and what a phone itself knows of a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from device_runner.device import ShellResult
from device_runner.failures import (
    EVIDENCE_LIMIT_BYTES,
    DeviceCrash,
    DeviceLost,
    Failure,
    Hang,
    KernelBuildFailure,
    PathFailure,
    ProgramFailure,
    RigFailure,
    Unsupported,
)
from device_runner.session.diagnosis import explain_crash, failure_of, one_line, own_assertion
from device_runner.stand_ins.virtual import phone
from device_runner.stand_ins.virtual.tvm_rpc.server import CRASH_LOG, note_crash
from device_runner.transport.base import Transport


@dataclass
class Phone:
    """A phone in a folder, whose shell is this host's."""

    home: Path

    def shell(self, command: Sequence[str], *, timeout_s: float) -> ShellResult:
        path = f"{self.home}/system/bin:{os.environ['PATH']}"
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": path})
        return ShellResult(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    phone.prepare(tmp_path)
    monkeypatch.setenv("ANDROID_ROOT", str(tmp_path / "system"))
    return tmp_path


def evidence(home: Path, failure: Failure, before: int | None = None, status: int = signal.SIGSEGV) -> str:
    node = str(home / "sys/class/kgsl/kgsl-3d0/reset_count")

    def crash() -> None:
        with explain_crash(cast("Transport", Phone(home)), node, lambda: before):
            note_crash(4711, status)
            raise failure

    with pytest.raises(type(failure)):
        crash()
    return failure.evidence


@pytest.mark.parametrize("kind", [DeviceCrash, Hang, ProgramFailure])
def test_the_crash_log_and_the_gpus_resets_follow_what_the_server_said(home: Path, kind: type[Failure]) -> None:
    phone.edit(home, lambda state: state.changed({"gpu": {"resets": 3}}))
    told = evidence(home, kind("died", evidence="the server's log"), before=2)
    assert told.startswith("the server's log\nGPU resets since the phone booted: 3 (2 at the last reading)\n")
    assert "--------- beginning of crash\n" in told
    assert "Fatal signal 11 (SIGSEGV), code -6 in tid 4711 (tvm_rpc)" in told


def test_it_is_bounded_and_leaves_room_for_the_servers_log(home: Path) -> None:
    for number in range(200):
        note_crash(number, signal.SIGABRT)
    told = evidence(home, DeviceCrash("died", evidence="x" * EVIDENCE_LIMIT_BYTES))
    assert len(told) <= EVIDENCE_LIMIT_BYTES
    assert told.count("x") > EVIDENCE_LIMIT_BYTES // 3
    assert told.rstrip().endswith("(the virtual phone has no backtrace)")
    assert "4711" in told


def test_what_crashed_before_the_session_is_not_told(home: Path) -> None:
    note_crash(1, signal.SIGSEGV)
    log = home / CRASH_LOG
    log.write_text(log.read_text().replace(f"{time.time():.0f}"[:6], "100000"))
    assert "pid: 1," not in evidence(home, DeviceCrash("died"))


def test_a_process_that_was_killed_leaves_nothing(home: Path) -> None:
    told = evidence(home, DeviceCrash("killed", evidence="log"), status=signal.SIGKILL)
    assert told == "log\nGPU resets since the phone booted: 0"


def test_a_phone_without_logcat_or_the_node_says_what_it_can(home: Path) -> None:
    (home / "system/bin/logcat").unlink()
    (home / "sys/class/kgsl/kgsl-3d0/reset_count").unlink()
    assert evidence(home, DeviceCrash("died", evidence="log")) == "log"


def test_a_phone_that_is_gone_hides_no_crash() -> None:
    class Gone:
        def shell(self, command: Sequence[str], *, timeout_s: float) -> ShellResult:
            raise DeviceLost("gone")

    crash = DeviceCrash("died", evidence="log")
    with pytest.raises(DeviceCrash), explain_crash(cast("Transport", Gone()), "", lambda: None):
        raise crash
    assert crash.evidence == "log"


def test_a_lost_phone_is_not_asked() -> None:
    with pytest.raises(DeviceLost), explain_crash(cast("Transport", None), "", lambda: None):
        raise DeviceLost("gone")


def test_logcat_refuses_what_it_does_not_know(home: Path) -> None:
    done = subprocess.run([str(home / "system/bin/logcat"), "-d"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "knows only" in done.stderr


REMOTE = "RPCError: Error caught from RPC call:\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (REMOTE + "OpenCL build error for device=0x5f\nuse of undeclared identifier 'param_2'", KernelBuildFailure),
        (REMOTE + "InternalError: CLML Runtime Init: Qualcomm extn not present.", Unsupported),
        (REMOTE + "Module loader ffi.Module.load_from_bytes.clml is not found", Unsupported),
        (
            REMOTE + "Check failed: (e == 0) is false: OpenCL Error, code=-59: CL_INVALID_OPERATION",
            ProgramFailure,
        ),
        (REMOTE + "Unknown function: nope", ProgramFailure),
        (REMOTE + "Error: Cannot find ffi::Function fused_add in either Relax VM kernel library", ProgramFailure),
        ("", ProgramFailure),
    ],
)
def test_an_error_finds_its_owner(text: str, kind: type[PathFailure]) -> None:
    failure = failure_of(text, "running a.so")
    assert type(failure) is kind
    assert failure.message.startswith("running a.so failed: ")
    assert failure.evidence == text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (REMOTE + "Unknown function: nope", "Unknown function: nope"),
        ("[12:00:01] /ws/src/runtime/x.cc:78: InternalError: it broke\nStack", "InternalError: it broke"),
        (
            REMOTE + "Traceback (most recent call last):\n"
            '  File "x.cc", line 5, in run\n  0: f(int)\nInternalError: Check failed: a == b',
            "InternalError: Check failed: a == b",
        ),
        ("\n\n", "an error without a message"),
    ],
)
def test_a_person_reads_the_message_without_the_stack(text: str, line: str) -> None:
    assert one_line(text) == line


BUILD_ERROR = "InternalError: OpenCL build error for device=0x7fcba41e24e0\nError: CL_BUILD_PROGRAM_FAILURE\n"
LOG = "error: /data/local/tmp/pocl/tempfile_sy5vCD.cl:2:121: expected ')'\nerror: /data/tempfile_sy5vCD.cl:3:1: what\n"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (BUILD_ERROR + LOG, "error: 2:121: expected ')'"),
        ("OpenCL build error for device=0x1\n" + LOG, "error: 2:121: expected ')'"),
        (
            f"{BUILD_ERROR}error: /data/tempfile_FI2N0N.cl:59:226 <Spelling=/lib/base.h:594:22>: sizes differ\n",
            "error: 59:226 <Spelling=/lib/base.h:594:22>: sizes differ",
        ),
        (
            "InternalError: OpenCL build error for device=0x1\nError: CL_BUILD_PROGRAM_FAILURE\n"
            "<source>:7:9: error: use of undeclared identifier 'data_0_ptr'\n",
            "7:9: error: use of undeclared identifier 'data_0_ptr'",
        ),
    ],
)
def test_the_line_of_a_kernel_build_error_ends_with_the_first_error_of_the_build_log(text: str, first: str) -> None:
    failure = failure_of(REMOTE + text, "running a.so")
    assert type(failure) is KernelBuildFailure
    assert failure.message.endswith(f"OpenCL build error: {first}")


def test_a_long_build_log_is_kept_from_its_first_error_on() -> None:
    text = REMOTE + BUILD_ERROR + LOG + "error: x.cl:9:9: more\n" * 10_000
    assert "expected ')'" in failure_of(text, "running a.so").evidence


def test_a_long_message_is_cut() -> None:
    assert len(one_line("x" * 5_000)) == 300


def test_an_assertion_of_pocl_itself_is_seen_and_one_of_another_program_is_not() -> None:
    line = "python3: ./lib/CL/pocl_cache.c:138: pocl_cache_kernel_cachedir_path: Assertion `bytes_written > 0' failed."
    assert own_assertion(f"something\n{line}\nmore").startswith("pocl_cache.c:138: pocl_cache_kernel_cachedir_path")
    assert own_assertion("net: ./src/net.c:1: main: Assertion `x' failed.") == ""


@pytest.mark.parametrize(
    "text",
    [
        "Error: Cannot find ffi::Function vm.builtin.kv_state_new in either Relax VM kernel library",
        "Mismatched number of arguments when calling: `vm.builtin.kv_state_popn(0: relax.vm.KVState)`. Expected 3",
        'cannot locate symbol "TVMFFIErrorSetRaised" referenced by "/data/local/tmp/lib.so"',
        "/tmp/lib.so: undefined symbol: TVMFFIEnvModLookupFromImports",
    ],
)
def test_a_library_that_calls_another_runtime_is_the_rigs(text: str) -> None:
    failure = failure_of(REMOTE + text, "running a.so")
    assert type(failure) is RigFailure
    assert failure.message.startswith("the library does not fit TVM's runtime: running a.so failed: ")
    assert "with one TVM" in failure.hint


@pytest.mark.parametrize(
    ("code", "word", "hint"),
    [
        (-61, "CL_INVALID_BUFFER_SIZE", "no room for a buffer"),
        (-5, "CL_OUT_OF_RESOURCES", "shorter steps"),
        (-54, "CL_INVALID_WORK_GROUP_SIZE", "work-group"),
        (-59, "CL_INVALID_OPERATION", ""),
    ],
)
def test_an_error_of_opencl_says_what_to_do(code: int, word: str, hint: str) -> None:
    failure = failure_of(f"{REMOTE}Check failed: (e == 0) is false: OpenCL Error, code={code}: {word}", "running a.so")
    assert type(failure) is ProgramFailure
    assert word in failure.message
    assert hint in failure.hint
    assert bool(hint) is bool(failure.hint)
