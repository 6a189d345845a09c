"""Switching the power of a phone's USB port, with a program in the place of `uhubctl`: no hub was at hand."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_runner.device import Permission
from device_runner.failures import DeviceLost, RigFailure, SetupMissing
from device_runner.recovery import rungs
from device_runner.recovery.rungs import hub_and_port, switch_port
from device_runner.transport.adb_transport import AdbTransport

SERIAL = "R5CT30ABCDE"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the programs of this host, and with the devices on its USB."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    plug(tmp_path, "1-2.3", SERIAL)
    return tmp_path


def plug(host: Path, path: str, serial: str) -> None:
    (host / "usb" / path).mkdir(parents=True, exist_ok=True)
    (host / "usb" / path / "serial").write_text(f"{serial}\n")


def install(host: Path, script: str) -> None:
    program = host / "bin/uhubctl"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def cycled(host: Path, path: str = "1-2.3", timeout_s: float = 30.0) -> None:
    switch_port(path, SERIAL, timeout_s, devices=host / "usb")


@pytest.mark.parametrize(
    ("path", "expected"), [("1-2.3", ("1-2", "3")), ("1-4", ("1", "4")), ("10-1.4.2", ("10-1.4", "2"))]
)
def test_a_path_names_its_hub_and_port(path: str, expected: tuple[str, str]) -> None:
    assert hub_and_port(path) == expected


@given(st.text(max_size=12))
def test_what_is_no_path_is_never_handed_to_a_program(text: str) -> None:
    try:
        hub, port = hub_and_port(text)
    except ValueError:
        return
    assert port.isdecimal()
    assert f"{hub}.{port}" == text or f"{hub}-{port}" == text
    assert set(text) <= set("0123456789-.")


def test_that_port_and_no_other_is_switched(host: Path) -> None:
    install(host, f'echo "$@" >{host}/asked')
    cycled(host)
    assert (host / "asked").read_text() == "-l 1-2 -p 3 -a cycle -d 3\n"


def test_a_phone_that_is_off_the_bus_is_switched_all_the_same(host: Path) -> None:
    (host / "usb/1-2.3/serial").unlink()
    install(host, f"touch {host}/asked")
    cycled(host)
    assert (host / "asked").exists()


def test_a_port_with_another_device_by_now_is_left_alone(host: Path) -> None:
    install(host, f"touch {host}/asked")
    plug(host, "1-2.3", "somebody's disk")
    with pytest.raises(RigFailure, match="somebody's disk is on USB port 3 of hub 1-2 now"):
        cycled(host)
    assert not (host / "asked").exists()


def test_a_hub_that_cannot_is_named_with_what_uhubctl_says(host: Path) -> None:
    install(host, "echo 'No compatible devices detected at location 1-2!'; echo more; exit 1")
    with pytest.raises(RigFailure, match="cannot switch port 3 of hub 1-2: No compatible devices") as caught:
        cycled(host)
    assert "more" in caught.value.evidence


def test_one_that_does_not_end_is_ended(host: Path) -> None:
    install(host, "exec sleep 60")
    with pytest.raises(RigFailure, match="did not end within"):
        cycled(host, timeout_s=0.3)


def test_without_uhubctl_it_says_so(host: Path) -> None:
    with pytest.raises(SetupMissing, match="uhubctl is not installed"):
        cycled(host)


class Phone(AdbTransport):
    """A phone that answers once its port was switched."""

    def find(self, *, timeout_s: float) -> None:
        if not Path(self.root).exists():
            raise DeviceLost("gone")


def test_the_rung_switches_the_port_and_waits_for_the_phone(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(host, f"touch {host}/on")
    monkeypatch.setattr(rungs, "look", lambda *_: None)
    phone = cast("AdbTransport", Phone(SERIAL, 1, f"{host}/on"))
    with pytest.raises(DeviceLost):
        rungs.find(phone, 1.0)
    (power,) = (rung for rung in rungs.adb_rungs(phone, lambda: None, "1-2.3") if rung.name == "USB power")
    power.act(30.0)


def test_it_is_climbed_before_a_reboot_only_by_usb_and_needs_leave() -> None:
    phone = AdbTransport(SERIAL, 1, "/data")
    names = [(rung.name, rung.needs) for rung in rungs.adb_rungs(phone, lambda: None, "1-2.3")]
    assert names[-2:] == [("USB power", Permission.USB_POWER), ("reboot", Permission.REBOOT)]
    assert {needs for _, needs in names[:-2]} == {None}
    assert "USB power" not in [rung.name for rung in rungs.adb_rungs(phone, lambda: None)]
