"""A steady state on the virtual phone, through adb: thermal events, knobs, and a run that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import pytest
from waiting import FENCE_S

from device_runner.adb_device import AdbDevice
from device_runner.deadline import Deadline
from device_runner.device import ThermalLimits
from device_runner.failures import DeviceLost, FlatBattery, Hang
from device_runner.stand_ins.virtual import VirtualPhone, phone, virtual_phone
from device_runner.stand_ins.virtual.phone import PhoneState
from device_runner.transport.adb_transport import AdbTransport
from harness.tools.fleet.devices_command import put_back

pytestmark = pytest.mark.device

COOL = PhoneState()
NOW = ThermalLimits(wait_s=0)


@pytest.fixture(autouse=True)
def _cool(phone: VirtualPhone) -> None:
    phone.update(
        gpu={"thermal_level": 0, "resets": 0, "busy_us": [0, 0, 0, 0], "busy_percent": 0},
        temperatures_mc=dict(COOL.temperatures_mc),
        thermal_status=0,
        battery={"level_percent": 100},
    )


def properties(home: Path) -> dict[str, str]:
    """What was set on the phone and is not what it is after a boot."""
    found = {file.name: file.read_text().strip() for file in (home / "data/property").iterdir()}
    return {name: value for name, value in found.items() if value not in ("Awake", "disabled", "false")}


def test_a_phone_that_stays_cool_held_its_pace(device: AdbDevice) -> None:
    did, steadiness = device.steadily(lambda: "work", NOW)
    assert did == "work"
    assert not steadiness.throttled
    assert steadiness.facts["before"] == steadiness.facts["after"]
    assert steadiness.facts["unavailable"] == []
    assert "notes" not in steadiness.facts
    device.close()


@pytest.mark.parametrize(
    "event",
    [
        {"gpu": {"thermal_level": 2}},
        {"thermal_status": 3, "temperatures_mc": {"gpuss-0": 91_000}},
        {"gpu": {"resets": 1}},
    ],
    ids=["the driver limits the clock", "Android says severe", "the GPU is reset"],
)
def test_a_thermal_event_between_two_samples_makes_the_run_throttled(
    phone: VirtualPhone, device: AdbDevice, event: dict[str, object]
) -> None:
    _, steadiness = device.steadily(lambda: phone.update(**event), NOW)
    assert steadiness.throttled
    assert steadiness.facts["before"] != steadiness.facts["after"]
    device.close()
    assert properties(phone.home) == {}


def test_a_hot_phone_is_waited_for_and_then_measured_as_it_is(phone: VirtualPhone, device: AdbDevice) -> None:
    phone.update(temperatures_mc={"gpuss-0": 60_000})
    _, steadiness = device.steadily(lambda: None, ThermalLimits(gpu_c=45, wait_s=0.2))
    assert steadiness.facts["hot_start"] == "GPU °C 60 > 45"
    assert not steadiness.throttled
    device.close()


def test_a_battery_below_its_floor_ends_the_case_before_anything_is_timed(
    phone: VirtualPhone, device: AdbDevice
) -> None:
    phone.update(battery={"level_percent": 12})
    with pytest.raises(FlatBattery, match="the battery is at 12 %, below its floor of 20 %"):
        device.steadily(lambda: pytest.fail("it was timed"), NOW)
    device.close()
    assert properties(phone.home) == {}


def test_a_gpu_that_is_busy_and_the_clocks_that_it_ran_at_are_recorded(phone: VirtualPhone, device: AdbDevice) -> None:
    phone.update(gpu={"busy_percent": 40})
    _, steadiness = device.steadily(lambda: phone.update(gpu={"busy_us": [900, 100, 0, 0], "busy_percent": 0}), NOW)
    assert steadiness.facts["busy_start"] == "GPU 40 % busy > 10"
    assert steadiness.facts["clock_histogram"] == {"800": 0.9, "600": 0.1}
    device.close()


def test_the_charge_of_a_phone_is_told_while_nothing_feeds_it(phone: VirtualPhone, device: AdbDevice) -> None:
    look = device.pulses(NOW)
    phone.update(battery={"charge_uah": 2_990_000})
    assert (look().charge_uah, look().voltage_mv) == (2_990_000, 4_000)
    phone.update(battery={"charging": True})
    assert (look().charge_uah, look().voltage_mv) == (None, None)
    phone.update(battery={"charging": False, "charge_uah": 3_000_000})


def test_everything_is_put_back_after_a_failure_in_the_middle(phone: VirtualPhone, device: AdbDevice) -> None:
    def fails() -> None:
        assert properties(phone.home)["virtual.settings.global.window_animation_scale"] == "0"
        raise Hang("no answer")

    with pytest.raises(Hang):
        device.steadily(fails, NOW)
    device.close()
    assert properties(phone.home) == {}


def test_a_phone_that_goes_away_in_the_middle_is_put_back_by_the_next_who_holds_it(
    phone: VirtualPhone, device: AdbDevice
) -> None:
    def unplugged() -> None:
        phone.fault(offline=True)
        for _ in Deadline(FENCE_S).attempts(0.01):
            device.transport.shell(["true"], timeout_s=2)

    with pytest.raises(DeviceLost):
        device.steadily(unplugged, NOW)
    device.close()
    assert properties(phone.home) != {}
    phone.fault(offline=False)
    again = AdbDevice("virtual", AdbTransport(phone.serial, phone.adb_server, phone.root), [], kind="virtual")
    for _ in Deadline(FENCE_S).attempts(0.1):  # until adb has found the phone again
        with suppress(DeviceLost):
            again.keeper.put_back()
            break
    assert properties(phone.home) == {}


@pytest.mark.parametrize("sandboxed", [None, False], ids=["sandboxed", "in-a-plain-folder"])
def test_root_holds_the_clock_through_the_whole_case(tmp_path: Path, sandboxed: bool | None) -> None:
    home = tmp_path / "phone"
    phone.prepare(home)
    cores = {str(core): 1_800_000 + core for core in (0, max(os.sched_getaffinity(0)))}
    phone.save(home, PhoneState(rooted=True, cores_khz=cores))
    governor = home / "sys/class/kgsl/kgsl-3d0/devfreq/governor"
    with virtual_phone(home, sandboxed=sandboxed) as rooted:
        device = AdbDevice("virtual", AdbTransport(rooted.serial, rooted.adb_server, rooted.root), [], kind="virtual")
        held, steadiness = device.steadily(governor.read_text, NOW)
        device.close()
    assert held == "performance\n"
    assert steadiness.facts["knobs"]["frequencies"] == "400000000 400000000"
    unknown, bound = "not bound: the clocks of the cores cannot be read", f"bound to cores {max(map(int, cores))}"
    assert steadiness.facts["cores"].startswith(unknown if rooted.sandboxed else bound), (
        "a sandbox has the host's cores"
    )
    assert governor.read_text() == "msm-adreno-tz\n"


def test_what_the_phone_does_not_show_is_recorded_and_asked_for_once(phone: VirtualPhone, device: AdbDevice) -> None:
    kgsl = phone.home / "sys/class/kgsl/kgsl-3d0"
    (kgsl / "gpu_clock_stats").unlink()
    (kgsl / "thermal_pwrlevel").write_text("")
    _, steadiness = device.steadily(lambda: None, NOW)
    assert {"clock_stats", "thermal_pwrlevel"} <= set(steadiness.facts["unavailable"])
    assert not steadiness.throttled
    device.close()


KILLED = """
    import sys, time
    from pathlib import Path
    from device_runner.device import ThermalLimits
    from device_runner.registry import open_device

    def work():
        print("measuring", flush=True)
        time.sleep(60)

    with open_device("virtual", Path(sys.argv[1])) as device:
        device.steadily(work, ThermalLimits(wait_s=0))
"""


def test_a_run_that_was_killed_is_undone_by_devices_restore(cache: Path) -> None:
    home = cache / "virtual"
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(cache)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout
        assert run.stdout.readline() == "measuring\n"
        run.send_signal(signal.SIGKILL)
        run.wait(300)
    assert properties(home)["virtual.connectivity.airplane_mode"] == "enabled"
    assert put_back("virtual", cache, timeout_s=FENCE_S)["airplane-mode"] == "disabled"
    assert properties(home) == {}
    assert put_back("virtual", cache) == {}
