"""A virtual phone that runs TVM's own software in place of our stand-ins."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import LONG_S

from device_runner.adb_device import AdbDevice
from device_runner.failures import RigFailure
from device_runner.runtimes.phone import PhoneRuntime
from device_runner.stand_ins.virtual import Faults, VirtualPhone, virtual_phone
from device_runner.stand_ins.virtual.faults import Mishap, NeedsStandIn, SlowKernels
from device_runner.transport.adb_transport import AdbTransport

pytestmark = [pytest.mark.rest, pytest.mark.device]
TELLING = """#!/bin/sh
echo "libraries in $LD_LIBRARY_PATH, called with $*"
exit 3
"""


@pytest.fixture
def original(tmp_path: Path) -> PhoneRuntime:
    """A build whose `tvm_rpc` says how it was started."""
    folder = tmp_path / "it's kept here"
    folder.mkdir()
    (folder / "tvm_rpc").write_text(TELLING)
    (folder / "tvm_rpc").chmod(0o755)
    return PhoneRuntime("0123", platform.machine(), "0.27.0", (), time.time(), folder)


@pytest.fixture
def phone(original: PhoneRuntime, tmp_path: Path) -> Iterator[VirtualPhone]:
    with virtual_phone(tmp_path / "phone", original=original) as running:
        yield running


def test_it_runs_what_is_kept(phone: VirtualPhone, original: PhoneRuntime) -> None:
    device = AdbDevice("virtual", AdbTransport(phone.serial, phone.adb_server, phone.root), ["tvm_rpc"], kind="virtual")
    with pytest.raises(RigFailure, match="ended at once with code 3") as failed, device.session({}, timeout_s=LONG_S):
        pass
    assert f"libraries in {original.folder}" in failed.value.evidence
    assert "called with server --host=127.0.0.1 --port=" in failed.value.evidence


@pytest.mark.parametrize(
    "fault",
    [
        {"slow_kernels": (SlowKernels(factor=2),)},
        {"simulate_inference_s": 0.1},
        {"crash_session_after_s": 1.0},
        {"mishaps": (Mishap("reset_gpu"),)},
    ],
    ids=lambda fault: next(iter(fault)),
)
def test_faults_of_the_stand_ins_are_refused(
    phone: VirtualPhone, original: PhoneRuntime, tmp_path: Path, fault: dict[str, object]
) -> None:
    """A test that waits for what cannot happen would otherwise measure a healthy phone."""
    with pytest.raises(NeedsStandIn, match="our own tvm_rpc"):
        phone.fault(**fault)
    with (
        pytest.raises(NeedsStandIn) as refused,
        virtual_phone(tmp_path / "other", original=original, injected=Faults(**fault)),  # type: ignore[arg-type]
    ):
        pass
    assert refused.value.outcome == "usage"


def test_other_faults_are_its_own(phone: VirtualPhone) -> None:
    assert phone.fault(latency_s=0.01).latency_s == 0.01
