"""Knobs on the folder of a virtual phone: set, read back, put back, whatever goes wrong in between."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from places import FIXTURES

from device_runner.device import ShellResult
from device_runner.failures import DeviceLost
from device_runner.stability.knobs import KNOBS, PhoneAccess, hold, probe, restore
from device_runner.stability.knobs.android import Wakefulness
from device_runner.stability.knobs.base import over_network
from device_runner.stability.knobs.keep import SAVED_FILE
from device_runner.stability.knobs.kgsl import GPU_KNOBS, available, sustainable
from device_runner.stand_ins.local import LocalTransport
from device_runner.stand_ins.virtual import phone as virtual

PAGES = FIXTURES / "android"
GPU_NAMES = {knob.name for knob in GPU_KNOBS}


@dataclass
class Folder:
    """A phone as a folder, and everything that can change on it."""

    home: Path
    phone: PhoneAccess

    @property
    def gpu(self) -> Path:
        return self.home / "sys/class/kgsl/kgsl-3d0"

    @property
    def saved(self) -> Path:
        return Path(self.phone.transport.root) / SAVED_FILE

    def state(self) -> dict[str, str]:
        """What `getprop` would say of what was set (a value that is the default counts as unset), and the nodes."""
        defaults = {"Awake", "disabled", "false"}
        properties = {f.name: f.read_text().strip() for f in (self.home / "data/property").iterdir()}
        nodes = {f.name: f.read_text().strip() for f in self.gpu.rglob("*") if f.is_file()}
        return {**{name: value for name, value in properties.items() if value not in defaults}, **nodes}


def a_phone(home: Path, *, rooted: bool) -> Folder:
    virtual.prepare(home)
    path = f"{home / 'system/bin'}:{os.environ['PATH']}"
    root = home / "data/local/tmp/adreno-bench"
    transport = LocalTransport(str(root), {"PATH": path})
    return Folder(home, PhoneAccess(transport, ("sh", "-c") if rooted else (), system=str(home)))


@pytest.fixture
def plain(tmp_path: Path) -> Folder:
    return a_phone(tmp_path, rooted=False)


@pytest.fixture
def rooted(tmp_path: Path) -> Folder:
    return a_phone(tmp_path, rooted=True)


@dataclass(frozen=True)
class Dying(LocalTransport):
    """A transport that is gone after so many commands."""

    left: list[None] = field(default_factory=list)

    def shell(self, command: Sequence[str], *, timeout_s: float) -> ShellResult:
        if not self.left:
            raise DeviceLost("gone")
        self.left.pop()
        return super().shell(command, timeout_s=timeout_s)


def test_without_root_what_needs_it_is_left_alone_and_the_rest_is_set(plain: Folder) -> None:
    before = plain.state()
    report = hold(plain.phone)
    assert list(report) == [knob.name for knob in KNOBS]
    assert {name for name, came in report.items() if came == "left alone: it needs root"} == GPU_NAMES
    assert report["airplane-mode"] == "enabled"
    assert report["screen"] == "Awake"
    assert report["fixed-performance"] == "true"
    assert report["window-animation-scale"] == "0"
    assert plain.state()["virtual.settings.global.stay_on_while_plugged_in"] == "7"
    put_back = restore(plain.phone)
    assert put_back["airplane-mode"] == "disabled"
    assert plain.state() == before
    assert not plain.saved.exists()


def test_root_holds_the_gpu_at_a_clock_that_lasts(rooted: Folder) -> None:
    before = rooted.state()
    report = hold(rooted.phone)
    assert {name: report[name] for name in GPU_NAMES} == {
        "bus-split": "0",
        "clocks-always-on": "1",
        "idle-timer": "10000",
        "governor": "performance",
        "frequencies": "400000000 400000000",
        "power-levels": "2 2",
    }
    assert (rooted.gpu / "devfreq/min_freq").read_text() == "400000000\n"
    restore(rooted.phone)
    assert rooted.state() == before


def restricted(home: Path, **restrictions: object) -> Folder:
    virtual.prepare(home)
    virtual.edit(home, lambda state: state.changed({"restrictions": restrictions}))
    return a_phone(home, rooted=False)


def test_what_a_phone_refuses_is_named_and_is_nothing_to_put_back(tmp_path: Path) -> None:
    phone = restricted(tmp_path, settings=True)
    (tmp_path / "data/property/virtual.power.wakefulness").write_text("Asleep\n")
    before = phone.state()
    report = hold(phone.phone)
    refused = {name for name, came in report.items() if came.startswith("refused: java.lang.SecurityException: ")}
    assert refused >= {"screen", "stay-awake", "brightness", "window-animation-scale"}
    assert set(json.loads(phone.saved.read_text())) == {"airplane-mode", "fixed-performance"}
    restore(phone.phone)
    assert phone.state() == before
    assert not phone.saved.exists()


def test_what_a_killed_run_saved_and_could_not_set_is_nothing_to_put_back(tmp_path: Path) -> None:
    phone = restricted(tmp_path, settings=True)
    phone.saved.parent.mkdir(parents=True, exist_ok=True)
    phone.saved.write_text(json.dumps({"brightness": "null"}))
    assert restore(phone.phone) == {"brightness": "null"}
    assert not phone.saved.exists()


def test_what_was_set_before_the_phone_refused_stays_saved(tmp_path: Path) -> None:
    phone = restricted(tmp_path, settings=False)
    hold(phone.phone)
    virtual.edit(tmp_path, lambda state: state.changed({"restrictions": {"settings": True}}))
    report = restore(phone.phone)
    assert report["brightness"].startswith("refused: java.lang.SecurityException")
    assert "brightness" in json.loads(phone.saved.read_text())


def test_an_su_that_waits_for_its_dialog_is_no_root_and_holds_nothing_up(tmp_path: Path) -> None:
    phone = restricted(tmp_path, su_dialog_s=3600)
    access = probe(phone.phone.transport, system=str(tmp_path))
    assert access.root_shell == (("sh", "-c") if os.getuid() == 0 else ())
    assert access.product == "virtual"


def test_the_old_state_is_safe_before_anything_changes(rooted: Folder) -> None:
    before = rooted.state()
    inner = rooted.phone.transport
    assert isinstance(inner, LocalTransport)
    for commands in range(12):
        dying = Dying(inner.root, inner.environment, left=[None] * commands)
        try:
            hold(replace(rooted.phone, transport=dying))
        except DeviceLost:
            assert rooted.state() == before or rooted.saved.exists()
            restore(rooted.phone)
            assert rooted.state() == before
            continue
        break
    else:
        pytest.fail("holding takes more round trips than it may")
    assert commands <= 7


def test_what_a_killed_run_left_is_put_back_before_the_next_one_saves(rooted: Folder) -> None:
    before = rooted.state()
    hold(rooted.phone)
    hold(rooted.phone)  # another process, after a kill
    assert json.loads(rooted.saved.read_text())["idle-timer"] == "80"
    restore(rooted.phone)
    assert rooted.state() == before
    assert restore(rooted.phone) == {}


def test_what_cannot_be_put_back_stays_saved_and_spoils_nothing_else(rooted: Folder) -> None:
    hold(rooted.phone)
    without_root = replace(rooted.phone, root_shell=())
    report = restore(without_root)
    assert report["airplane-mode"] == "disabled"
    assert report["governor"] == "not put back: it needs root"
    assert set(json.loads(rooted.saved.read_text())) == GPU_NAMES
    hold(without_root)  # and a run in between does not forget it
    restore(without_root)
    assert json.loads(rooted.saved.read_text())["governor"] == "msm-adreno-tz"
    assert restore(rooted.phone)["governor"] == "msm-adreno-tz"
    assert not rooted.saved.exists()


def test_a_node_that_is_missing_or_garbage_is_left_alone(rooted: Folder) -> None:
    (rooted.gpu / "bus_split").unlink()
    (rooted.gpu / "idle_timer").write_text("80 or so\n")
    (rooted.gpu / "gpu_available_frequencies").write_text("-\n")
    (rooted.gpu / "devfreq/available_governors").write_text("msm-adreno-tz\n")
    report = hold(rooted.phone)
    for name in ("bus-split", "idle-timer", "frequencies", "power-levels", "governor"):
        assert report[name].startswith("not here"), name
    assert report["clocks-always-on"] == "1"
    assert (rooted.gpu / "idle_timer").read_text() == "80 or so\n"


def test_a_value_that_does_not_stick_is_said_not_to(plain: Folder) -> None:
    settings = plain.home / "system/bin/settings"
    settings.write_text('#!/bin/sh\necho null\n[ "$1" = get ] || exit 0\n')
    report = hold(plain.phone)
    assert report["brightness"] == "reads back 'null' instead of '1'"


def test_a_command_that_android_refuses_is_said_to_be_refused(plain: Folder) -> None:
    (plain.home / "system/bin/cmd").write_text("#!/bin/sh\necho 'cmd: Failure calling service' >&2\nexit 255\n")
    report = hold(plain.phone)
    assert report["fixed-performance"] == "refused: cmd: Failure calling service"
    assert report["airplane-mode"] == "not here: cmd: Failure calling service"


def test_a_value_that_cannot_be_read_is_never_written(plain: Folder) -> None:
    (plain.home / "system/bin/settings").write_text(
        "#!/bin/sh\necho 'SecurityException: no permission' >&2\nexit 255\n"
    )
    report = hold(plain.phone)
    assert report["brightness"] == "not here: SecurityException: no permission"
    assert "brightness" not in json.loads(plain.saved.read_text())


def test_airplane_mode_is_never_touched_when_adb_comes_by_network(plain: Folder) -> None:
    report = hold(replace(plain.phone, over_network=True))
    assert report["airplane-mode"] == "left alone: adb reaches this phone through its network"
    assert "virtual.connectivity.airplane_mode" not in plain.state()


def test_two_phones_are_spared(rooted: Folder) -> None:
    report = hold(replace(rooted.phone, product="taimen"))
    assert all(report[name].startswith("left alone: this phone crashes") for name in GPU_NAMES)


@pytest.mark.parametrize("content", ["", "{", "[1]", "null", '{"idle-timer": {"a": 1}}', "\0"])
def test_a_damaged_note_of_the_old_state_does_no_harm(rooted: Folder, content: str) -> None:
    rooted.saved.parent.mkdir(parents=True)
    rooted.saved.write_text(content)
    restore(rooted.phone)
    assert hold(rooted.phone)["governor"] == "performance"


def test_values_from_the_phone_are_never_run(rooted: Folder, tmp_path: Path) -> None:
    rooted.saved.parent.mkdir(parents=True)
    evil = f"$(touch {tmp_path}/pwned); touch {tmp_path}/pwned '"
    rooted.saved.write_text(json.dumps({knob.name: evil for knob in KNOBS}))
    restore(rooted.phone)
    assert not (tmp_path / "pwned").exists()


def test_a_phone_that_takes_no_file_is_left_as_it_is(plain: Folder) -> None:
    before = plain.state()
    Path(plain.phone.transport.root).write_text("a file where our folder should be")
    report = hold(plain.phone)
    assert "cannot save the settings that a run has to restore" in report["brightness"]
    assert plain.state() == before


def test_root_is_found_by_becoming_it(tmp_path: Path) -> None:
    folder = a_phone(tmp_path, rooted=False)
    (tmp_path / "system/bin/id").unlink(missing_ok=True)
    (tmp_path / "system/bin/id").write_text("#!/bin/sh\necho 2000\n")
    (tmp_path / "system/bin/id").chmod(0o755)
    assert probe(folder.phone.transport).root_shell == ()
    virtual.save(tmp_path, replace(virtual.load(tmp_path), rooted=True))
    assert probe(folder.phone.transport).root_shell == ("su", "-c")
    assert probe(folder.phone.transport).product == "virtual"


@pytest.mark.parametrize(("page", "value"), [("power-9", "Asleep"), ("power-14", "Awake")])
def test_the_power_service_of_several_releases(page: str, value: str) -> None:
    assert Wakefulness().value((PAGES / f"{page}.txt").read_text()) == value


@pytest.mark.parametrize(
    ("serial", "network"),
    [
        ("R5CT30ABCDE", False),
        ("emulator-5554", False),
        ("192.168.1.7:5555", True),
        ("phone.lab:41231", True),
        ("[fe80::1]:5555", True),
        ("127.0.0.1:5555", True),
        ("adb-R5CT30ABCDE-x1Y2z3._adb-tls-connect._tcp", True),
        ("odd:serial", False),
    ],
)
def test_a_serial_says_how_adb_comes(serial: str, network: bool) -> None:
    assert over_network(serial) == network


@pytest.mark.parametrize(
    "listed", ["800 600 400 200", "200 400 600 800", "800\n600\n400\n200\n", "800 800 600 400 0 200"]
)
def test_clocks_count_from_the_fastest_however_they_are_listed(listed: str) -> None:
    assert available(listed) == [800, 600, 400, 200]


@pytest.mark.parametrize(("clocks", "chosen"), [([800, 600, 400, 200], 400), ([680], 680), ([900, 440, 430], 900)])
def test_the_held_clock_is_the_lowest_from_half_of_the_highest(clocks: list[int], chosen: int) -> None:
    assert sustainable(clocks) == chosen
