"""This host as a device: the same session without adb."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from waiting import FENCE_S

from device_runner.device import Loadable
from device_runner.failures import DeviceCrash, ProgramFailure, RigFailure, SetupMissing
from device_runner.registry import open_device
from device_runner.stand_ins.local import LocalDevice, LocalTransport

pytestmark = pytest.mark.device


def test_a_program_answers_right_on_this_hosts_opencl(
    cache: Path, opencl_program: Loadable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious = tmp_path / "rpc" / "mine"
    precious.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))  # where an RPC server keeps, and removes, its uploads unless told
    x = np.random.default_rng(0).standard_normal((4, 8)).astype("float32")
    with open_device("local", cache) as device:
        assert device.identity.kind == "local"
        assert device.identity.gpu
        with device.session({}, timeout_s=FENCE_S) as session:
            program = session.load(opencl_program, timeout_s=FENCE_S)
            (y,), _ = program.run([x], timeout_s=FENCE_S)
            assert len(program.wall_ms(2, timeout_s=FENCE_S)) == 2
    np.testing.assert_array_equal(y, 2 * np.maximum(x, 0))
    assert program.pushed.sent_bytes == 0
    assert precious.exists()
    assert not (tmp_path / ".cache").exists(), "kernels of tests are kept apart from the user's"


def test_a_machine_without_opencl_is_missing_a_setup(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    with open_device("local", cache) as device, pytest.raises(SetupMissing, match="OpenCL does not work"):
        _ = device.identity


def test_a_program_that_dies_here_is_a_crash_too(cache: Path, misbehaving: Loadable) -> None:
    with open_device("local", cache) as device, device.session({}, timeout_s=FENCE_S) as session:
        program = session.load(misbehaving, timeout_s=FENCE_S)
        with pytest.raises(DeviceCrash, match="SIGSEGV"):
            program.run([np.array([0, 11, 0], "int32")], timeout_s=FENCE_S)


@pytest.mark.parametrize("manners", ["connection.close()", "connection.sendall(b'HTTP/1.1 400\\r\\n')", "pass"])
def test_a_server_that_does_not_speak_rpc_is_the_rigs_fault(tmp_path: Path, manners: str) -> None:
    (tmp_path / "program.py").write_text(
        "import socket, sys, time\n"
        "port = next(int(flag[7:]) for flag in sys.argv if flag.startswith('--port='))\n"
        "connection, _ = socket.create_server(('127.0.0.1', port)).accept()\n"
        f"{manners}\n"
        "time.sleep(60)\n"
    )
    device = LocalDevice("local", LocalTransport(str(tmp_path)), [sys.executable, str(tmp_path / "program.py")])
    with pytest.raises(RigFailure, match=r"cannot be used|breaks TVM's protocol"), device.session({}, timeout_s=10):
        pytest.fail("a session with what is no RPC server")


def test_without_profiling_queues_there_is_an_answer_and_wall_time_but_no_time_of_kernels(
    cache: Path, opencl_program: Loadable, tmp_path: Path
) -> None:
    shim = tmp_path / "no_profiling.so"
    source = Path(__file__).with_name("no_profiling.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(shim), str(source), "-ldl"], check=True)
    x = np.ones((4, 8), np.float32)
    with (
        open_device("local", cache) as device,
        device.session({"LD_PRELOAD": str(shim)}, timeout_s=60) as session,
    ):
        program = session.load(opencl_program, timeout_s=60)
        (y,), _ = program.run([x], timeout_s=60)
        np.testing.assert_array_equal(y, 2 * x)
        assert len(program.wall_ms(3, timeout_s=60)) == 3
        with pytest.raises(ProgramFailure, match="CL_INVALID_QUEUE_PROPERTIES"):
            program.device_ms(1, timeout_s=60)
        assert program.run([x], timeout_s=60)[1] > 0  # the session goes on
