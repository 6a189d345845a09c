"""A device that a bundle's results stand for: who it is, and what it said of heat and pace around a turn."""

from __future__ import annotations

from typing import Any

import pytest
from bundle_runner import device_line, sections

from device_runner.device import Identity, Steadiness, ThermalLimits
from device_runner.failures import FlatBattery, RigFailure
from harness.tools.bundle.replay_device import ReplayDevice, TurnReport, identity_of
from harness.tools.bundle.replay_session import BadReport

PROPERTIES = "[ro.product.cpu.abi]: [arm64-v8a]\n[ro.serialno]: [abc]\n[ro.soc.model]: [SM8550]"


def test_a_machine_with_androids_properties_is_a_phone() -> None:
    phone = identity_of(device_line(properties=PROPERTIES), "bundle", "0123")
    assert (phone.kind, phone.abi, phone.serial, phone.soc) == ("phone", "arm64-v8a", "abc", "SM8550")
    assert (phone.gpu, phone.runtime) == ("GPU", "0123")


def test_any_other_machine_is_a_host() -> None:
    host = identity_of(device_line(board="Board\0"), "bundle", "")
    assert (host.kind, host.abi, host.serial, host.soc) == ("local", "x86_64", "host", "x86_64")
    assert (host.rom, host.board) == ("Linux-6.1-x86_64-with-glibc2.36", "Board")


def test_a_device_that_the_probe_did_not_describe_is_no_device() -> None:
    line = device_line()
    line["said"]["describe"] = "{}"
    with pytest.raises(BadReport, match="makes no sense"):
        identity_of(line, "bundle", "")


def steadiness(gpu: str, kind: str = "phone", **looks: str) -> Steadiness:
    line: dict[str, Any] = {"said": {}, "before": "", "after": "", **looks}
    device = ReplayDevice("bundle", Identity(kind, "serial", gpu=gpu), TurnReport.of(line))
    return device.steadily(lambda: None, ThermalLimits(gpu_c=45.0, battery_percent=20))[1]


def test_heat_before_the_turn_is_in_the_record_and_heat_in_it_throttles() -> None:
    hot = steadiness("Adreno(TM) 740", before=sections(temp="61000"), after=sections(temp="62000"))
    assert hot.facts["hot_start"] == "GPU °C 61 > 45"
    assert not hot.throttled
    slowed = sections(thermal_pwrlevel="2")
    assert steadiness("Adreno(TM) 740", before=slowed, after=slowed).throttled


def test_with_a_flat_battery_nothing_counts_as_timed() -> None:
    battery = sections(battery="Current Battery Service state:\n  level: 7\n  scale: 100")
    with pytest.raises(FlatBattery, match="7 %"):
        steadiness("Adreno(TM) 740", before=battery, after=battery)


def test_a_hosts_gpu_is_judged_by_its_own_driver() -> None:
    looks = (sections(gpus=f"gpu NVIDIA H200\nclock_mhz 1980\nslowed_ns {ms}000000") for ms in (5, 17))
    found = steadiness("NVIDIA H200", "local", **dict(zip(("before", "after"), looks, strict=True)))
    assert found.why == "heat slowed the GPU down for 12 ms meanwhile"
    assert steadiness("pthread-cpu", "local") == Steadiness()
    assert "0 GPUs that are called" in steadiness("NVIDIA H200", "local").facts["unavailable"][0]


def test_a_session_that_was_not_held_is_the_rigs_fault() -> None:
    device = ReplayDevice("bundle", Identity("phone", "serial"), TurnReport({}, None, {}, {}))
    with pytest.raises(RigFailure, match="held no such session"), device.session({}, timeout_s=1):
        pytest.fail("a session that nobody held")
