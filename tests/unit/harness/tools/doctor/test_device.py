"""The doctor at a phone that is a folder: each thing that can be wrong is found, and comes with its fix."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from device_runner.failures import SetupMissing
from device_runner.registry import UnknownDevice
from device_runner.runtimes import cross_linker
from device_runner.stability.keeper import Keeper
from device_runner.stand_ins.local import LocalTransport
from device_runner.stand_ins.virtual import phone
from device_runner.transport import adb_server
from device_runner.transport.adb_server import AdbEntry
from harness.tools.doctor.device import PHONE_CHECKS, examine_device, examine_linker, examine_phone
from harness.tools.shared.finding import Condition, DoctorFinding, guarded


@dataclass
class Patient:
    """As much of a device as the doctor looks at without a session."""

    transport: LocalTransport
    keeper: Keeper


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    phone.prepare(tmp_path)
    path = f"{tmp_path / 'system/bin'}:{os.environ['PATH']}"
    transport = LocalTransport(str(tmp_path / "data/local/tmp/adreno-bench"), {"PATH": path})
    return Patient(transport, Keeper(transport, system=str(tmp_path), wired=True))


def findings(patient: Patient, check: str) -> list[DoctorFinding]:
    return list(guarded(check, PHONE_CHECKS[check](patient)))  # type: ignore[arg-type]


def change(home: Path, **changes: object) -> None:
    phone.save(home, phone.load(home).changed(changes))


@pytest.mark.parametrize("check", PHONE_CHECKS)
def test_a_healthy_phone_lacks_nothing(patient: Patient, check: str) -> None:
    assert {finding.state for finding in findings(patient, check)} <= {Condition.OK, Condition.NOTE}


def test_whatever_fails_has_a_fix(patient: Patient, tmp_path: Path) -> None:
    Path(patient.transport.root).write_text("a file where our folder should be")
    for check in ("space", "executable"):
        (finding,) = findings(patient, check)
        assert finding.state is Condition.MISSING
        assert finding.fix


def test_a_phone_without_a_linker_for_it_lacks_one_and_the_command_is_told(
    patient: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> DoctorFinding:
        (finding,) = guarded("linker", examine_linker(patient))  # type: ignore[arg-type]
        return finding

    assert found().state is Condition.OK, "this host's own processor needs none"
    change(tmp_path, properties={"ro.product.cpu.abi": "arm64-v8a"})
    monkeypatch.setattr(cross_linker, "linker", lambda triple: cross_linker.Linker(f"a linker for {triple}", ()))
    assert found() == DoctorFinding("linker", Condition.OK, "a linker for aarch64-linux-android, for arm64-v8a")

    def none(triple: str) -> cross_linker.Linker:
        raise SetupMissing(f"there is no linker for {triple}", hint="`make phones`")

    monkeypatch.setattr(cross_linker, "linker", none)
    assert found() == DoctorFinding(
        "linker", Condition.MISSING, "there is no linker for aarch64-linux-android", "`make phones`"
    )
    change(tmp_path, properties={"ro.product.cpu.abi": "armeabi-v7a"})
    assert (found().state, "the ABI armeabi-v7a" in found().seen) == (Condition.MISSING, True)


def test_an_old_android_is_noted(patient: Patient, tmp_path: Path) -> None:
    change(tmp_path, properties={"ro.build.version.sdk": "28"})
    (finding,) = findings(patient, "android")
    assert finding.state is Condition.NOTE
    assert "API 30" in finding.fix


def test_nodes_that_are_denied_are_named(patient: Patient, tmp_path: Path) -> None:
    kgsl = tmp_path / "sys/class/kgsl/kgsl-3d0"
    (kgsl / "gpu_clock_stats").unlink()
    (finding,) = findings(patient, "GPU nodes")
    assert finding.state is Condition.OK
    assert finding.seen.endswith("denied or absent: gpu_clock_stats")
    (kgsl / "max_clock_mhz").unlink()
    (kgsl / "thermal_pwrlevel").unlink()
    patient.keeper = Keeper(patient.transport, system=str(tmp_path), wired=True)  # what it has seen, it asks again
    (finding,) = findings(patient, "GPU nodes")
    assert finding.state is Condition.NOTE


def test_a_faked_status_and_a_low_battery_are_told(patient: Patient, tmp_path: Path) -> None:
    change(tmp_path, battery={"level_percent": 9})
    page = tmp_path / "system/etc/dumpsys/thermalservice"
    page.write_text(page.read_text().replace("IsStatusOverride: false", "IsStatusOverride: true"))
    by_name = {finding.what + finding.fix: finding for finding in findings(patient, "temperature")}
    assert by_name["temperatureadb shell cmd thermalservice reset"].state is Condition.NOTE
    assert any(finding.what == "battery" and finding.state is Condition.NOTE for finding in by_name.values())


def test_what_a_killed_run_left_is_put_back_and_nothing_stays_turned(patient: Patient, tmp_path: Path) -> None:
    patient.keeper.hold()
    found = {finding.what: finding.seen for finding in findings(patient, "controllable")}
    assert "airplane-mode" in found["left over"]
    assert "fixed-performance" in found["controllable"]
    airplane = tmp_path / "data/property/virtual.connectivity.airplane_mode"
    assert airplane.read_text() == "disabled\n"


@pytest.mark.parametrize(("state", "fix"), [("unauthorized", "unlock"), ("offline", "plug"), ("no", "udev")])
def test_a_phone_that_cannot_be_reached_is_told_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: str, fix: str
) -> None:
    monkeypatch.setattr(adb_server, "known_devices", lambda: [AdbEntry("R5CT30ABCDE", state)])
    (finding,) = examine_device("R5CT30ABCDE", tmp_path)
    assert finding.state is Condition.MISSING
    assert fix in finding.fix


def test_a_phone_that_is_gone_is_no_crash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(adb_server, "known_devices", lambda: [AdbEntry("R5CT30ABCDE", "device")])
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", "1")
    found = list(examine_device("R5CT30ABCDE", tmp_path))
    assert found[0].state is Condition.OK
    assert {finding.state for finding in found[1:]} == {Condition.MISSING}
    assert any("no adb server answers on port 1" in finding.seen for finding in found)


def test_an_unknown_device_is_a_usage_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(adb_server, "known_devices", list)
    with pytest.raises(UnknownDevice):
        list(examine_device("nope", tmp_path))


def test_a_phone_that_is_too_slow_is_asked_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def ask(_: object) -> Iterator[DoctorFinding]:
        asked.append(1)
        yield DoctorFinding("a", Condition.OK, "well")

    monkeypatch.setattr("harness.tools.doctor.device.PHONE_CHECKS", dict.fromkeys("abc", ask))
    assert [one.what for one in examine_phone(None)] == ["a"] * 3  # type: ignore[arg-type]
    monkeypatch.setattr("harness.tools.doctor.device.CHECKS_S", 0.0)
    (finding,) = examine_phone(None)  # type: ignore[arg-type]
    assert (finding.what, finding.seen) == ("slow", "it answered 0 of 3 checks within 0 s")
    assert len(asked) == 3
