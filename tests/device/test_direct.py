"""This machine's OpenCL through pipes and tvm-ffi's C interface: a device like any other, without TVM's packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from device_runner.device import Loadable
from device_runner.direct import device as direct_device
from device_runner.direct import session as direct_session
from device_runner.direct.device import DirectDevice
from device_runner.failures import DeviceCrash, Hang, ProgramFailure, SetupMissing
from device_runner.installed_tvm import package_folder
from device_runner.registry import open_device
from device_runner.runtimes import opencl, probe

pytestmark = pytest.mark.device


@pytest.fixture
def device(sidecar_cache: Path, tmp_path: Path) -> DirectDevice:
    tvm, ffi = package_folder("tvm") / "lib", package_folder("tvm_ffi") / "lib"
    own = opencl.sidecar(sidecar_cache) if opencl.needed() else opencl.own()
    libraries = [ffi / "libtvm_ffi.so", tvm / "libtvm_runtime.so", own]
    return DirectDevice("direct", tmp_path, libraries, probe.library(sidecar_cache), runtime="brought")


def test_it_is_the_same_device_with_the_same_answers(
    device: DirectDevice, sidecar_cache: Path, opencl_program: Loadable
) -> None:
    x = np.random.default_rng(0).standard_normal((4, 8)).astype("float32")
    with device.session({}, timeout_s=60) as session:
        program = session.load(opencl_program, timeout_s=60)
        (y,), first_ms = program.run([x], timeout_s=60)
        assert first_ms > 0
        assert len(program.wall_ms(3, timeout_s=60)) == len(program.device_ms(3, timeout_s=60)) == 3
        batched, synced = program.batches(4, 2, timeout_s=60)
        assert len(batched) == len(synced) == 2
        assert [len(one) for one in program.launches(2, timeout_s=60)] == [1, 1]
        assert session.program_counts(timeout_s=60)["programs_from_source"] >= 1
    np.testing.assert_array_equal(y, 2 * np.maximum(x, 0))
    with open_device("local", sidecar_cache) as local:
        assert device.identity.key == local.identity.key
    assert device.identity.runtime == "brought"


def test_a_program_that_dies_or_hangs_takes_its_session_and_no_other(
    device: DirectDevice, misbehaving: Loadable
) -> None:
    with device.session({}, timeout_s=60) as session:
        program = session.load(misbehaving, timeout_s=60)
        with pytest.raises(DeviceCrash, match="SIGSEGV while running"):
            program.run([np.array([0, 11, 0], "int32")], timeout_s=60)
        with pytest.raises(DeviceCrash):
            program.wall_ms(1, timeout_s=60)
    with device.session({}, timeout_s=60) as session:
        program = session.load(misbehaving, timeout_s=60)
        program.run([np.array([0, 0, 0], "int32")], timeout_s=60)


def test_a_process_that_says_nothing_hangs(
    device: DirectDevice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    silent = "import time; time.sleep(600)"
    monkeypatch.setattr(direct_session, "CODE", silent)
    with pytest.raises(SetupMissing, match="did not end within") as raised, device.session({}, timeout_s=1):
        pass
    assert isinstance(raised.value.__cause__, Hang)


def test_a_runtime_of_tvms_own_finds_opencl_by_the_name_that_it_knows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(direct_device, "linked_opencl", lambda transport: f"{transport.root}/opencl")
    monkeypatch.setattr(direct_session, "CODE", "import os; print(os.environ['LD_LIBRARY_PATH'], flush=True)")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/theirs")
    with (
        pytest.raises(SetupMissing) as raised,
        DirectDevice("direct", tmp_path, [], None, runtime="brought").session({}, timeout_s=60),
    ):
        pass
    assert raised.value.evidence == f"{tmp_path}/opencl:/theirs\n"


def test_libraries_that_do_not_load_are_a_missing_setup(tmp_path: Path) -> None:
    device = DirectDevice("direct", tmp_path, [Path(sys.executable).with_name("no-such.so")], None)
    with (
        pytest.raises(SetupMissing, match="TVM's runtime does not load on this machine"),
        device.session({}, timeout_s=60),
    ):
        pass


def test_without_profiling_queues_there_is_an_answer_and_wall_time_but_no_time_of_kernels(
    device: DirectDevice, opencl_program: Loadable, tmp_path: Path
) -> None:
    shim = tmp_path / "no_profiling.so"
    source = Path(__file__).with_name("no_profiling.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(shim), str(source), "-ldl"], check=True)
    x = np.ones((4, 8), np.float32)
    with device.session({"LD_PRELOAD": str(shim)}, timeout_s=60) as session:
        program = session.load(opencl_program, timeout_s=60)
        (y,), _ = program.run([x], timeout_s=60)
        np.testing.assert_array_equal(y, 2 * x)
        assert len(program.wall_ms(3, timeout_s=60)) == 3
        with pytest.raises(ProgramFailure, match="CL_INVALID_QUEUE_PROPERTIES"):
            program.device_ms(1, timeout_s=60)
        assert program.run([x], timeout_s=60)[1] > 0  # the session goes on
