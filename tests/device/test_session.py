"""Sessions on the virtual phone: right answers, two clocks, and every failure traced to its owner."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil
import pytest
from interruptible import ended_by
from programs import LONG_NAP, NO_NAP
from waiting import FENCE_S

from device_runner.adb_device import AdbDevice
from device_runner.device import Loadable
from device_runner.failures import DeviceCrash, DeviceLost, Hang, ProgramFailure, RigFailure
from device_runner.session.rpc_session import RpcSession
from device_runner.stability.cores import KEEP_MASK, Binding
from device_runner.stand_ins.virtual import VirtualPhone, virtual_phone
from device_runner.transport.adb_transport import AdbTransport

pytestmark = pytest.mark.device

OPEN_S = CALL_S = FENCE_S


def matrix(seed: int = 0) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((4, 8)).astype("float32")


def orders(microseconds: int, itself: int = 0, parent: int = 0) -> list[npt.NDArray[np.int32]]:
    return [np.array([microseconds, itself, parent], "int32")]


@contextmanager
def opened(device: AdbDevice) -> Iterator[RpcSession]:
    with device.session({}, timeout_s=OPEN_S) as session:
        yield session


def answers_right(device: AdbDevice, loadable: Loadable) -> bool:
    x = matrix()
    with opened(device) as session:
        (y,), _ = session.load(loadable, timeout_s=CALL_S).run([x], timeout_s=CALL_S)
    return bool(np.array_equal(y, 2 * np.maximum(x, 0)))


@pytest.mark.parametrize("program", ["opencl_program", "cpu_program"])
def test_a_program_answers_right_and_is_timed_by_two_clocks(
    device: AdbDevice, program: str, request: pytest.FixtureRequest
) -> None:
    with opened(device) as session:
        loaded = session.load(request.getfixturevalue(program), timeout_s=CALL_S)
        for seed in range(2):
            x = matrix(seed)
            (y,), elapsed_ms = loaded.run([x], timeout_s=CALL_S)
            np.testing.assert_array_equal(y, 2 * np.maximum(x, 0))
            assert elapsed_ms > 0
        wall_ms, device_ms = loaded.wall_ms(3, timeout_s=CALL_S), loaded.device_ms(4, timeout_s=CALL_S)
    assert loaded.init_ms > 0
    assert (len(wall_ms), len(device_ms)) == (3, 4)
    assert min(wall_ms) > 0
    assert min(device_ms) > 0


def test_a_session_is_gone_with_its_context_and_waits_for_no_collection(
    device: AdbDevice, opencl_program: Loadable
) -> None:
    """TVM has room for 32, and Python may look for garbage after as many."""
    gc.collect()
    gc.disable()
    try:
        with opened(device) as session:
            program = session.load(opencl_program, timeout_s=CALL_S)
            program.run([matrix()], timeout_s=CALL_S)
            gone = weakref.ref(session.remote)
        del session, program
        assert gone() is None
    finally:
        gc.enable()


def test_a_library_is_sent_once(device: AdbDevice, cpu_program: Loadable) -> None:
    with opened(device) as session:
        session.load(cpu_program, timeout_s=CALL_S)
    with opened(device) as session:
        assert session.load(cpu_program, timeout_s=CALL_S).pushed.sent_bytes == 0


def test_a_library_whose_hash_is_not_what_was_promised_is_not_loaded(device: AdbDevice, cpu_program: Loadable) -> None:
    other = Loadable(cpu_program.library, "0" * 64, 1, "cpu")
    with opened(device) as session, pytest.raises(RigFailure, match="was damaged in the store"):
        session.load(other, timeout_s=CALL_S)


def test_an_error_of_the_program_leaves_the_session_usable(device: AdbDevice, cpu_program: Loadable) -> None:
    nameless = Loadable(cpu_program.library, cpu_program.sha256, 1, "cpu", entry="nowhere")
    with opened(device) as session:
        with pytest.raises(ProgramFailure, match="nowhere"):
            session.load(nameless, timeout_s=CALL_S).run([matrix()], timeout_s=CALL_S)
        assert session.load(cpu_program, timeout_s=CALL_S).run([matrix()], timeout_s=CALL_S)


def test_a_file_that_is_no_library_is_the_programs_fault(device: AdbDevice, cpu_program: Loadable) -> None:
    import hashlib

    text = cpu_program.library.with_name("text.so")
    text.write_bytes(b"not a library")
    with opened(device) as session, pytest.raises(ProgramFailure, match=r"loading text\.so failed"):
        session.load(Loadable(text, hashlib.sha256(text.read_bytes()).hexdigest(), 1), timeout_s=CALL_S)


def test_a_program_that_does_not_end_is_a_hang_and_the_next_session_works(
    device: AdbDevice, misbehaving: Loadable, cpu_program: Loadable
) -> None:
    with opened(device) as session:
        program = session.load(misbehaving, timeout_s=CALL_S)
        with pytest.raises(Hang, match=r"running misbehaving\.so did not end within 0\.5 s"):
            program.run(orders(LONG_NAP), timeout_s=0.5)
        with pytest.raises(Hang):
            program.run(orders(NO_NAP), timeout_s=CALL_S)  # the session is over, and says why
    assert answers_right(device, cpu_program)


@pytest.mark.parametrize("sign", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_worker_that_dies_is_a_crash_with_its_signal_and_its_log(
    device: AdbDevice, misbehaving: Loadable, cpu_program: Loadable, sign: signal.Signals
) -> None:
    with opened(device) as session:
        program = session.load(misbehaving, timeout_s=CALL_S)
        with pytest.raises(DeviceCrash, match=rf"died of {sign.name} while running misbehaving\.so") as caught:
            program.run(orders(NO_NAP, itself=sign), timeout_s=CALL_S)
    assert "New session from" in caught.value.evidence
    assert answers_right(device, cpu_program)


def test_what_the_phone_knows_of_a_crash_is_evidence_of_it(
    device: AdbDevice, misbehaving: Loadable, phone: VirtualPhone
) -> None:
    def crash() -> None:
        with device.session({}, timeout_s=CALL_S) as session:
            program = session.load(misbehaving, timeout_s=CALL_S)
            program.run([np.array([0, signal.SIGSEGV, 0], np.int32)], timeout_s=CALL_S)

    with pytest.raises(DeviceCrash) as caught:
        crash()
    assert "Child pid=" in caught.value.evidence
    assert "GPU resets since the phone booted: 0" in caught.value.evidence
    if phone.original is None:  # our stand-in writes the crash log, as Android's crash_dump does for any program
        assert "Fatal signal 11 (SIGSEGV)" in caught.value.evidence


def test_a_server_that_is_killed_in_the_middle_of_a_run_is_a_crash(
    device: AdbDevice, misbehaving: Loadable, cpu_program: Loadable
) -> None:
    with opened(device) as session:
        program = session.load(misbehaving, timeout_s=CALL_S)
        with pytest.raises(DeviceCrash, match=r"died of SIGKILL while running misbehaving\.so"):
            program.run(orders(LONG_NAP // 600, parent=signal.SIGKILL), timeout_s=CALL_S)
    assert answers_right(device, cpu_program)


def run_until(fault: Callable[[], object], device: AdbDevice, loadable: Loadable, timeout_s: float) -> None:
    """Run for a minute, while something happens."""
    with opened(device) as session:
        program = session.load(loadable, timeout_s=CALL_S)
        threading.Timer(0.3, fault).start()
        program.run(orders(LONG_NAP), timeout_s=timeout_s)


def test_an_interrupt_that_is_dropped_while_tvm_frees_a_remote_object_is_no_fault_of_the_program(
    device: AdbDevice, cpu_program: Loadable
) -> None:
    with ended_by(signal.SIGINT), opened(device) as session:
        upload = session.remote.get_function("tvm.rpc.server.upload")
        servers = [child for child in psutil.Process().children(recursive=True) if is_server(child)]
        for server in servers:
            server.suspend()
        pids = " ".join(str(server.pid) for server in servers)
        # From another process: TVM holds the interpreter's lock while it waits for the device.
        subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -INT {os.getpid()}; sleep 0.2; kill -CONT {pids}"])
        del upload
        session.load(cpu_program, timeout_s=CALL_S)
    assert answers_right(device, cpu_program)


def test_a_device_that_freezes_in_a_call_is_lost_and_works_when_it_thaws(
    phone: VirtualPhone, device: AdbDevice, misbehaving: Loadable, cpu_program: Loadable
) -> None:
    with pytest.raises(DeviceLost, match="did not answer"):
        run_until(lambda: phone.fault(frozen=True), device, misbehaving, 1)
    phone.fault(frozen=False)
    assert answers_right(device, cpu_program)


def test_a_device_that_is_unplugged_in_a_call_is_lost(
    phone: VirtualPhone, device: AdbDevice, misbehaving: Loadable
) -> None:
    with pytest.raises(DeviceLost):
        run_until(lambda: phone.fault(offline=True), device, misbehaving, CALL_S)


def test_a_frozen_device_opens_no_session(phone: VirtualPhone, device: AdbDevice) -> None:
    phone.fault(frozen=True)
    with pytest.raises(DeviceLost, match="did not answer"), device.session({}, timeout_s=1):
        pytest.fail("a session on a frozen device")


def test_an_adb_server_that_is_killed_in_a_call_is_the_rigs_fault(tmp_path: Path, misbehaving: Loadable) -> None:
    with virtual_phone(tmp_path / "phone") as phone:
        device = AdbDevice("virtual", AdbTransport(phone.serial, phone.adb_server, phone.root), ["tvm_rpc"])
        with pytest.raises(RigFailure, match="no adb server answers"):
            run_until(adb_server_of(phone).kill, device, misbehaving, CALL_S)


def adb_server_of(phone: VirtualPhone) -> psutil.Process:
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.AccessDenied, psutil.NoSuchProcess):
            if "nodaemon" in child.cmdline() and child.environ()["HOME"] == str(phone.home / "adb"):
                return child
    raise AssertionError("there is no adb server")


def test_the_identity_names_gpu_driver_and_what_is_emulated(device: AdbDevice) -> None:
    identity = device.identity
    assert identity.kind == "virtual"
    assert identity.gpu
    assert "OpenCL" in identity.driver
    assert identity.rom.startswith("adreno-bench/virtual")
    assert identity.vendor == identity.rom
    assert (identity.chip, identity.board, identity.runtime) == ("virtual none 0 1.0", "", "")
    assert identity.handset == "", "all virtual phones are one device"
    assert "gpu" in identity.emulated
    assert list(identity.extensions) == sorted(identity.extensions)
    assert identity.image2d_max_width >= 2048
    if "PoCL" in identity.driver:
        limits = (identity.image2d_max_width, identity.image2d_max_height, identity.memory_bytes <= 8 << 30)
        assert limits == (8192, 8192, True), "whatever memory this host has at the moment"
    assert device.identity is identity


def is_server(process: psutil.Process) -> bool:
    """Whether it is an RPC server or its worker; a process that has just ended is not."""
    try:
        words = process.cmdline()
    except psutil.Error:
        return False
    return "tvm_rpc" in " ".join(words) and "server" in words


def cores_of_servers() -> dict[int, set[int]]:
    """The cores that each thread of our RPC servers may use, by its id."""
    found: dict[int, set[int]] = {}
    for process in filter(is_server, psutil.Process().children(recursive=True)):
        with contextlib.suppress(psutil.Error, OSError):  # it has just ended
            found |= {thread.id: os.sched_getaffinity(thread.id) for thread in process.threads()}
    return found


def test_the_server_runs_on_the_cores_that_it_is_bound_to(device: AdbDevice) -> None:
    core = max(os.sched_getaffinity(0))
    device.__dict__["binding"] = Binding((*KEEP_MASK, "taskset", f"{1 << core:x}"), "bound")
    with opened(device) as session:
        before = cores_of_servers()
        assert {core} in before.values()
        session.remote.get_function("runtime.config_threadpool")(1, 1)  # of which TVM binds threads, and its caller
        after = cores_of_servers()
        assert {thread: after[thread] for thread in before if thread in after} == before


def test_an_unknown_function_of_the_server_is_none(device: AdbDevice) -> None:
    with opened(device) as session:
        assert session.call("adreno_bench.no_such_thing", timeout_s=CALL_S) is None
