"""The life of a worker, with a device made of plain Python and the run at the other end of a real pipe."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest
from fake_device import FakeDevice, a_plan, things

from device_runner.device import Pulse, Rung
from device_runner.failures import DeviceLost, ProgramFailure
from device_runner.workers import Arrival, serve
from harness.base.outcome import Outcome
from harness.measure import case_worker
from harness.measure.case_worker import (
    Absence,
    CaseOrder,
    CaseResult,
    DeviceState,
    Return,
    Settings,
    StepChange,
    run_cases,
)

WAIT_S = 20


class Rig:
    """A worker in a thread, and what it says."""

    def __init__(self, device: FakeDevice, folder: Path, *, watched: bool = False) -> None:
        self.told: list[tuple[str, str]] = []
        self.plan, self.built = a_plan(), things(folder)
        self.pipe, theirs = Pipe()

        @contextmanager
        def opener(name: str, cache: Path, say: Callable[[str], object]) -> Iterator[Any]:
            yield device, lambda case, step: self.told.append((case, step))

        work = partial(run_cases, Settings(folder, "the run", watched=watched))

        def live() -> None:
            with theirs:
                serve(theirs, "fake", folder, work, opener)

        self._thread = threading.Thread(target=live)
        self._thread.start()

    def order(self) -> None:
        self.pipe.send(CaseOrder(self.plan, self.built))

    def said(self) -> Any:
        assert self.pipe.poll(WAIT_S)
        return self.pipe.recv()

    def end(self) -> None:
        self.pipe.close()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case_worker, "LOOK_EVERY_S", 0.01)


def test_a_worker_tells_the_state_of_its_device_if_that_is_asked_for(tmp_path: Path) -> None:
    device = FakeDevice(pulse=Pulse(gpu_c=41.0))
    rig = Rig(device, tmp_path, watched=True)
    assert rig.said() == Arrival(device.identity, "fake")
    assert rig.said() == DeviceState(Pulse(gpu_c=41.0))
    rig.end()


def test_a_worker_settles_cases_until_nobody_wants_more(tmp_path: Path) -> None:
    device = FakeDevice()
    rig = Rig(device, tmp_path)
    assert rig.said() == Arrival(device.identity, "fake")
    for _ in range(2):
        rig.order()
        steps = []
        while isinstance(message := rig.said(), StepChange):
            steps.append(message.step)
        assert steps[0] == "preparing"
        assert steps[-1] == "sampling"
        assert isinstance(message, CaseResult)
        assert (message.record.outcome, message.record.run, message.lost) == (Outcome.OK, "the run", "")
    rig.end()
    assert ("tiny-opencl-float32-untuned", "sampling") in rig.told
    assert rig.told[-1] == ("", "")


class Cable:
    """What can be pulled out."""

    def __init__(self, device: FakeDevice) -> None:
        self.is_in = True
        device.rungs = [Rung("look", 1.0, self.look)]

    def look(self, _timeout_s: float) -> None:
        if not self.is_in:
            raise DeviceLost("unplugged")


def test_an_idle_device_that_goes_and_comes_is_noticed(tmp_path: Path) -> None:
    cable = Cable(device := FakeDevice())
    rig = Rig(device, tmp_path)
    rig.said()
    cable.is_in = False
    assert rig.said() == Absence("unplugged")
    assert rig.told[-1] == ("", case_worker.AWAY)
    cable.is_in = True
    assert rig.said() == Return()
    assert rig.told[-1] == ("", "")
    rig.end()


def test_a_device_that_is_lost_in_a_case_is_given_up_with_the_reason(tmp_path: Path) -> None:
    cable = Cable(device := FakeDevice(fails={"wall": DeviceLost("unplugged in a sample")}))
    rig = Rig(device, tmp_path)
    rig.said()
    rig.order()
    cable.is_in = False
    while isinstance(message := rig.said(), StepChange):
        pass
    assert isinstance(message, CaseResult)
    assert message.record.outcome is Outcome.DEVICE_LOST
    assert message.lost == "unplugged in a sample"
    rig.end()


class ResetGpu(FakeDevice):
    """Its GPU is reset in the first runs."""

    resets = 0

    def met(self, step: str) -> None:
        super().met(step)
        if step == "run" and self.resets:
            self.resets -= 1
            failure = ProgramFailure("CL_OUT_OF_RESOURCES")
            failure.gpu_resets = 1
            raise failure


@pytest.mark.parametrize(("resets", "outcome"), [(0, Outcome.OK), (1, Outcome.OK), (2, Outcome.RUNTIME_ERROR)])
def test_a_program_is_to_blame_for_a_reset_of_the_gpu_that_happens_twice(
    tmp_path: Path, resets: int, outcome: Outcome
) -> None:
    device = ResetGpu(rungs=[Rung("retry", 1.0, lambda _timeout_s: None)])
    device.resets = resets
    rig = Rig(device, tmp_path)
    rig.said()
    rig.order()
    while isinstance(message := rig.said(), StepChange):
        pass
    rig.end()
    assert isinstance(message, CaseResult)
    assert (message.record.outcome, message.lost) == (outcome, "")
    assert [step.because for step in message.record.recovery] == ["CL_OUT_OF_RESOURCES"] * min(resets, 1)
