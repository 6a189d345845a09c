"""Kernels that the virtual phone slows, hangs or resets the GPU under, and what a session sees of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from phone_processes import commands_of
from waiting import LONG_S

from device_runner.adb_device import AdbDevice
from device_runner.device import Loadable
from device_runner.failures import Hang
from device_runner.runtimes import opencl as opencl_runtime
from device_runner.stand_ins.virtual import Faults, Kernels, SlowKernels, VirtualPhone, virtual_phone
from device_runner.transport.adb_transport import AdbTransport

pytestmark = [pytest.mark.rest, pytest.mark.device]
MATRIX = np.linspace(-1, 1, 32, dtype="float32").reshape(4, 8)


def fastest_ms(device: AdbDevice, program: Loadable) -> tuple[float, float, int]:
    """Device and wall time of the fastest of some inferences, and how many kernels the process says that it slowed."""
    with device.session({}, timeout_s=LONG_S) as session:
        loaded = session.load(program, timeout_s=LONG_S)
        outputs, _ = loaded.run([MATRIX], timeout_s=LONG_S)
        assert np.array_equal(outputs[0], 2 * np.maximum(MATRIX, 0))
        device_ms, wall_ms = loaded.device_ms(5, timeout_s=LONG_S), loaded.wall_ms(5, timeout_s=LONG_S)
        slowed = session.log().count("slowing kernel")
        assert "injected into" in session.log() or not slowed
    return min(device_ms), min(wall_ms), slowed


def test_a_slowed_kernel_lasts_longer_by_its_factor(
    phone: VirtualPhone, device: AdbDevice, opencl_program: Loadable
) -> None:
    phone.fault(slow_kernels=(SlowKernels(least_s=0.02),))
    base_ms, _, _ = fastest_ms(device, opencl_program)
    assert base_ms >= 20
    phone.fault(slow_kernels=(SlowKernels(least_s=0.02, factor=1.5),))
    device_ms, wall_ms, slowed = fastest_ms(device, opencl_program)
    assert device_ms == pytest.approx(1.5 * base_ms, rel=0.01)
    assert wall_ms >= device_ms
    assert slowed > 0


@pytest.mark.parametrize(
    "others", [SlowKernels(least_s=0.02, library="0123*"), SlowKernels(least_s=0.02, kernel="spin_*")]
)
def test_other_kernels_keep_their_pace(
    phone: VirtualPhone, device: AdbDevice, opencl_program: Loadable, others: SlowKernels
) -> None:
    phone.fault(slow_kernels=(others,))
    device_ms, _, slowed = fastest_ms(device, opencl_program)
    assert device_ms < 20
    assert not slowed


def test_a_library_is_named_by_its_hash(phone: VirtualPhone, device: AdbDevice, opencl_program: Loadable) -> None:
    phone.fault(slow_kernels=(SlowKernels(least_s=0.02, library=f"{opencl_program.sha256[:8]}*"),))
    assert fastest_ms(device, opencl_program)[0] >= 20


def test_a_kernel_that_never_ends_is_a_hang_and_leaves_nothing(
    phone: VirtualPhone, device: AdbDevice, opencl_program: Loadable
) -> None:
    phone.fault(hang_kernels=Kernels())
    with device.session({}, timeout_s=LONG_S) as session:
        assert "tvm_rpc" in " ".join(commands_of(phone.home))
        program = session.load(opencl_program, timeout_s=LONG_S)
        with pytest.raises(Hang):
            program.run([MATRIX], timeout_s=1)
    assert "tvm_rpc" not in " ".join(commands_of(phone.home))
    phone.fault(hang_kernels=None)
    assert fastest_ms(device, opencl_program)[2] == 0


def test_simulated_inferences_wait_and_the_answers_are_computed(
    phone: VirtualPhone, device: AdbDevice, opencl_program: Loadable, cpu_program: Loadable
) -> None:
    assert "inference time" not in phone.emulated
    phone.fault(simulate_inference_s=0.2, slow_kernels=(SlowKernels(factor=1.5, library=f"{opencl_program.sha256}*"),))
    assert "inference time" in phone.emulated
    device_ms, wall_ms, _ = fastest_ms(device, opencl_program)
    assert min(device_ms, wall_ms) == pytest.approx(300, rel=0.05)
    with device.session({}, timeout_s=LONG_S) as session:
        first = session.load(cpu_program, timeout_s=LONG_S)
        answer, _ = first.run([MATRIX], timeout_s=LONG_S)
        assert min(first.wall_ms(3, timeout_s=LONG_S)) == pytest.approx(200, rel=0.05)
        assert np.array_equal(first.timed_answer(timeout_s=LONG_S)[0], answer[0])
        second = session.load(opencl_program, timeout_s=LONG_S)  # as the rig's reference kernel is
        second.run([MATRIX], timeout_s=LONG_S)
        assert min(second.device_ms(5, timeout_s=LONG_S)) < 200


@pytest.mark.parametrize("keeps", [False, True])
def test_the_driver_keeps_compiled_kernels_only_where_it_is_told_to(
    tmp_path: Path, sidecar_cache: Path, opencl_program: Loadable, keeps: bool
) -> None:
    runtime = opencl_runtime.sidecar(sidecar_cache) if opencl_runtime.needed() else None
    injected = Faults(driver_keeps_programs=keeps)
    with virtual_phone(tmp_path, opencl_runtime=runtime, injected=injected) as phone:
        transport = AdbTransport(phone.serial, phone.adb_server, phone.root)
        with AdbDevice("virtual", transport, ["tvm_rpc"]).session({}, timeout_s=LONG_S) as session:
            session.load(opencl_program, timeout_s=LONG_S).run([MATRIX], timeout_s=LONG_S)
    kept = list((tmp_path / "data/local/tmp").glob(".cache/pocl/kcache/**/*.so*"))
    assert bool(kept) == keeps
