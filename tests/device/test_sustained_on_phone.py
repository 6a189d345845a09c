"""Sustained runs on the virtual phone, through adb: heat that slows inferences down, and a reboot in the middle."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from waiting import LONG_S, eventually

from device_runner.adb_device import AdbDevice
from device_runner.device import Loadable, ThermalLimits
from device_runner.failures import DeviceLost
from device_runner.stand_ins.virtual import Heat, VirtualPhone
from device_runner.stand_ins.virtual.phone import PhoneState
from harness.base.plan import Budget
from harness.tools.sustain.measure import SustainedRun, sustain
from harness.tools.sustain.part import Sustained

pytestmark = [pytest.mark.rest, pytest.mark.device]
HOTHEAD = Heat(speed=150, full_load_c=200.0)
"""Slowed down within a second or two, however little of its time a busy host leaves it to work."""
COLD = Heat(speed=1e-6)
"""Follows its clock, and never gets warm."""


def sustained(
    device: AdbDevice,
    program: Loadable,
    seconds: float,
    into: SustainedRun | None = None,
    tell: Callable[[str], object] = lambda _: None,
) -> Sustained:
    into, budget = into or SustainedRun(seconds), Budget(sustain_s=seconds, timeout_s=LONG_S)
    with device.session({}, timeout_s=LONG_S) as session:
        loaded = session.load(program, timeout_s=LONG_S)
        loaded.run([np.ones((4, 8), np.float32)], timeout_s=LONG_S)
        sustain(loaded, budget, device.pulses(ThermalLimits()), into, tell=tell)
    return into.so_far


@pytest.mark.parametrize(
    "simulated_s", [0.003, pytest.param(None, marks=pytest.mark.long)], ids=["simulated", "computed"]
)
def test_inference_follows_the_clock_that_heat_lowers(
    phone: VirtualPhone, device: AdbDevice, opencl_program: Loadable, simulated_s: float | None
) -> None:
    phone.fault(heat=HOTHEAD, simulate_inference_s=simulated_s)
    assert phone.emulated[-2:] == ("inference time", "heat at 150 times its pace")
    measured = sustained(device, opencl_program, 5)
    assert measured.throttled_after_s is not None
    # Which sign of heat is seen first is a matter of when the phone is read: it cools down between two inferences.
    assert re.search("heat held the GPU|cooling of the GPU|thermal status", measured.throttled_why)
    assert measured.figures
    # The warm-up may have been the hottest of it; a phone that heat holds back is hardly cooler than what lets it go.
    assert (measured.figures.hottest_c or 0) > HOTHEAD.speed_up_c - 5
    assert min(one.clock_mhz or 800 for one in measured.bins) < 800
    if simulated_s:  # a busy host tells the phone late of its work, which then counts at a later clock
        took_ms = [one.wall_ms for one in measured.bins]
        slowest_ms = 3 * 800 / min(PhoneState().gpu.levels_mhz)
        assert min(took_ms) > 3 * 0.95
        assert 3 * 1.2 < max(took_ms) < slowest_ms * 1.05


@pytest.mark.long
def test_an_inference_lasts_as_long_as_the_clock_of_the_level_says(
    phone: VirtualPhone, device: AdbDevice, opencl_program: Loadable
) -> None:
    phone.fault(heat=COLD, simulate_inference_s=0.03)  # long beside what a busy host adds
    try:
        with device.session({}, timeout_s=LONG_S) as session:
            loaded = session.load(opencl_program, timeout_s=LONG_S)
            loaded.run([np.ones((4, 8), np.float32)], timeout_s=LONG_S)
            for level, clock_mhz in enumerate(PhoneState().gpu.levels_mhz):
                phone.update(gpu={"thermal_level": level})
                expected = pytest.approx(30 * 800 / clock_mhz, rel=0.05)
                assert eventually(lambda: min(loaded.wall_ms(9, timeout_s=LONG_S)) == expected)  # noqa: B023
    finally:
        phone.update(gpu={"thermal_level": 0})


def test_a_reboot_in_the_middle_keeps_what_was_measured(
    phone: VirtualPhone, device: AdbDevice, opencl_program: Loadable
) -> None:
    phone.fault(simulate_inference_s=0.003)
    into, rebooted = SustainedRun(60), list[float]()

    def reboot_soon(_: str) -> None:
        if into.so_far.lasted_s > 2 and not rebooted:
            rebooted.append(into.so_far.lasted_s)
            device.adb.reboot(timeout_s=LONG_S)

    with pytest.raises(DeviceLost, match=r"rebooted|went away|cannot be reached|broke"):
        sustained(device, opencl_program, 60, into, reboot_soon)
    assert 2 <= into.so_far.lasted_s < 60
    assert len(into.so_far.bins) >= 2
