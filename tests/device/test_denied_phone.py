"""A phone that keeps much from adb's shell, and is slow: found out, measured and put back through the real adb."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from waiting import FENCE_S, LONG_S

from device_runner.adb_device import AdbDevice
from device_runner.device import Loadable, ThermalLimits
from device_runner.failures import DeviceCrash
from device_runner.runtimes import opencl as opencl_runtime
from device_runner.runtimes import probe
from device_runner.stand_ins.virtual import Faults, VirtualPhone, opencl, virtual_phone
from device_runner.stand_ins.virtual import phone as folder
from device_runner.transport.adb_transport import AdbTransport
from harness.tools.doctor.device import examine_phone
from harness.tools.shared.finding import Condition

pytestmark = [pytest.mark.rest, pytest.mark.device]

STATE = {
    "properties": {"persist.sys.locale": "ar-EG", "ro.product.locale": "ar-EG"},
    "restrictions": {"gpu_nodes": True, "settings": True, "su_dialog_s": 3600, "dumpsys_s": 0.2},
}
FAULTS = Faults(latency_s=0.08, crash_delay_s=2.0)
NO_MEMORY = {"PHONE_GPU_MEMORY": "0"}


@pytest.fixture(scope="module")
def phone(tmp_path_factory: pytest.TempPathFactory, sidecar_cache: Path) -> Iterator[VirtualPhone]:
    runtime = opencl_runtime.sidecar(sidecar_cache) if opencl_runtime.needed() else None
    home, layer = tmp_path_factory.mktemp("denied"), opencl.layer(sidecar_cache)
    folder.prepare(home)
    folder.edit(home, lambda state: state.changed(STATE))
    with virtual_phone(home, opencl_runtime=runtime, opencl_layer=layer, injected=FAULTS, env=NO_MEMORY) as phone:
        yield phone


@pytest.fixture(scope="module")
def device(phone: VirtualPhone, sidecar_cache: Path) -> AdbDevice:
    transport = AdbTransport(phone.serial, phone.adb_server, phone.root)
    make_probe = partial(probe.library, sidecar_cache)
    return AdbDevice("virtual", transport, ["tvm_rpc"], make_probe, kind="virtual", emulated=phone.emulated)


def needs_root(phone: VirtualPhone) -> bool:
    """Whether adb's shell is not root: without a sandbox it is who runs the tests."""
    return phone.sandboxed or os.getuid() != 0


def test_a_program_runs_and_what_is_denied_is_told_by_name(
    phone: VirtualPhone, device: AdbDevice, opencl_program: Loadable
) -> None:
    x = np.arange(-16, 16, dtype=np.float32).reshape(4, 8)

    def run() -> list[np.ndarray]:
        with device.session({}, timeout_s=LONG_S) as session:
            program = session.load(opencl_program, timeout_s=FENCE_S)
            answer, _ = program.run([x], timeout_s=FENCE_S)
            assert program.wall_ms(2, timeout_s=FENCE_S)
            return answer

    (answer,), steadiness = device.steadily(run, ThermalLimits(wait_s=0))
    np.testing.assert_array_equal(answer, 2 * np.maximum(x, 0))
    assert not steadiness.throttled
    knobs = steadiness.facts["knobs"]
    denied = {name for name, came in knobs.items() if came.startswith("refused: java.lang.SecurityException: ")}
    assert denied >= {"window-animation-scale", "brightness", "stay-awake"}
    if needs_root(phone):
        assert knobs["governor"] == "left alone: it needs root"
    assert not {"clock_mhz", "clocks_mhz", "reset_count", "gpu_busy_percent"} & steadiness.facts["before"].keys()
    assert steadiness.facts["before"]["battery_percent"] == 100
    device.close()
    assert not device.keeper.put_back()


def test_a_phone_that_tells_no_memory_is_identified_and_not_too_small(device: AdbDevice) -> None:
    identity = device.identity
    assert identity.memory_bytes == 0
    assert identity.image2d_max_width > 0
    assert identity.gpu


def test_the_doctor_ends_and_finds_only_what_is_denied(phone: VirtualPhone, device: AdbDevice) -> None:
    findings = {finding.what: finding for finding in examine_phone(device)}
    assert {what for what, finding in findings.items() if finding.state is Condition.MISSING} == set()
    assert findings["root"].seen.startswith("no, which is normal" if needs_root(phone) else "by `sh -c`")


def test_a_crash_that_shows_late_is_the_programs(device: AdbDevice, misbehaving: Loadable) -> None:
    def crash() -> None:
        with device.session({}, timeout_s=LONG_S) as session:
            program = session.load(misbehaving, timeout_s=FENCE_S)
            program.run([np.array([0, signal.SIGSEGV, 0], np.int32)], timeout_s=FENCE_S)

    with pytest.raises(DeviceCrash, match=r"died of SIGSEGV while running misbehaving\.so") as caught:
        crash()
    assert "Fatal signal 11 (SIGSEGV)" in caught.value.evidence
