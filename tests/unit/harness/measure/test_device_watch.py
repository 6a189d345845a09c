"""Looking at a device while it works: often, never while it is timed, and only if somebody wants to know."""

from __future__ import annotations

import queue
import threading

import pytest
from fake_device import FakeDevice

from device_runner.device import Pulse
from device_runner.failures import DeviceLost
from harness.measure import device_watch
from harness.measure.device_watch import DeviceWatch

WAIT_S = 20
WARM = Pulse(clock_mhz=585, gpu_c=41.0)


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_watch, "LOOK_EVERY_S", 0.001)


def test_a_watch_looks_again_and_again_and_not_after_its_end() -> None:
    device, pulses = FakeDevice(pulse=WARM), queue.Queue[Pulse]()
    with DeviceWatch(pulses.put).looking_at(device):
        assert [pulses.get(timeout=WAIT_S) for _ in range(3)] == [WARM] * 3
    assert "device watch" not in [thread.name for thread in threading.enumerate()]


def test_nobody_looks_while_the_device_is_timed() -> None:
    device, pulses = FakeDevice(pulse=WARM), queue.Queue[Pulse]()
    watch = DeviceWatch(pulses.put)
    with watch.paused(), watch.looking_at(device):
        with pytest.raises(queue.Empty):
            pulses.get(timeout=0.05)
        assert device.steps == []
        watch.note(Pulse(gpu_c=60.0))
        assert pulses.get(timeout=WAIT_S).gpu_c == 60.0


def test_a_device_that_is_lost_is_looked_at_until_it_answers() -> None:
    device, pulses = FakeDevice({"look": DeviceLost("unplugged")}, pulse=WARM), queue.Queue[Pulse]()
    with DeviceWatch(pulses.put).looking_at(device):
        while device.steps.count("look") < 3:
            threading.Event().wait(0.001)
        assert pulses.empty()
        device.fails.clear()
        assert pulses.get(timeout=WAIT_S) == WARM


def test_without_anybody_who_wants_to_know_no_device_is_looked_at() -> None:
    device, watch = FakeDevice(), DeviceWatch()
    with watch.looking_at(device):
        watch.note(WARM)
        assert "device watch" not in {thread.name for thread in threading.enumerate()}
    assert device.steps == []


def test_a_watch_ends_when_nobody_listens_any_more() -> None:
    ended = threading.Event()

    def refuse(_: Pulse) -> None:
        ended.set()
        raise BrokenPipeError

    device = FakeDevice()
    with DeviceWatch(refuse).looking_at(device):
        assert ended.wait(WAIT_S)
    assert device.steps == ["look"]
