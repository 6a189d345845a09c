"""The life of a worker, with a device made of plain Python and the run at the other end of a real pipe."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from fake_device import FakeDevice, a_plan, things

from device_runner.device import Rung
from device_runner.failures import DeviceBusy, DeviceLost, Failure
from harness.fleet import worker
from harness.fleet import worker_pool as workers
from harness.fleet.messages import Away, Back, CaseDone, Gone, Message, Opened, Orders, RunCase, Said, Stepped
from harness.run.outcome import Outcome

WAIT_S = 20


class Rig:
    """A worker in a thread, and what it says."""

    def __init__(self, device: FakeDevice | None, folder: Path) -> None:
        self.told: list[tuple[str, str]] = []
        self.plan, self.built = a_plan(), things(folder)
        self.pipe, theirs = Pipe()

        @contextmanager
        def opened(name: str, orders: Orders, say: Callable[[str], None]) -> Iterator[Any]:
            if not device:
                raise DeviceBusy(f"{name} is in use")
            yield device, lambda case, step: self.told.append((case, step))

        self._thread = threading.Thread(target=self._serve, args=(theirs, Orders(folder, "the run"), opened))
        self._thread.start()

    @staticmethod
    def _serve(theirs: Connection, orders: Orders, opened: worker.Opener) -> None:
        with theirs:
            worker.serve(theirs, "fake", orders, opened, worker._run_all)

    def order(self) -> None:
        self.pipe.send(RunCase(self.plan, self.built))

    def said(self) -> Any:
        assert self.pipe.poll(WAIT_S)
        return self.pipe.recv()

    def end(self) -> None:
        self.pipe.close()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LOOK_EVERY_S", 0.01)


def test_a_worker_settles_cases_until_nobody_wants_more(tmp_path: Path) -> None:
    device = FakeDevice()
    rig = Rig(device, tmp_path)
    assert rig.said() == Opened(device.identity, "fake")
    for _ in range(2):
        rig.order()
        steps = []
        while isinstance(message := rig.said(), Stepped):
            steps.append(message.step)
        assert steps[0] == "preparing"
        assert steps[-1] == "sampling"
        assert isinstance(message, CaseDone)
        assert (message.record.outcome, message.record.run, message.lost) == (Outcome.OK, "the run", "")
    rig.end()
    assert ("tiny-opencl-float32-untuned", "sampling") in rig.told
    assert rig.told[-1] == ("", "")


def test_a_device_that_cannot_be_had_is_said_to_be_gone(tmp_path: Path) -> None:
    rig = Rig(None, tmp_path)
    message = rig.said()
    assert isinstance(message, Gone)
    assert isinstance(message.failure, DeviceBusy)
    assert str(message.failure) == "fake is in use"
    rig.end()


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
    assert rig.said() == Away("unplugged")
    assert rig.told[-1] == ("", worker.AWAY)
    cable.is_in = True
    assert rig.said() == Back()
    assert rig.told[-1] == ("", "")
    rig.end()


def test_a_device_that_is_lost_in_a_case_is_given_up_with_the_reason(tmp_path: Path) -> None:
    cable = Cable(device := FakeDevice(fails={"wall": DeviceLost("unplugged in a sample")}))
    rig = Rig(device, tmp_path)
    rig.said()
    rig.order()
    cable.is_in = False
    while isinstance(message := rig.said(), Stepped):
        pass
    assert isinstance(message, CaseDone)
    assert message.record.outcome is Outcome.DEVICE_LOST
    assert message.lost == "unplugged in a sample"
    rig.end()


def test_what_a_worker_is_called_at_a_tracker_holds_the_key() -> None:
    assert (
        worker.key_of(worker.member_name("adreno-bench/phone-Adreno #1-abc", 12)) == "adreno-bench/phone-Adreno #1-abc"
    )


def _kinds(kind: type[Failure]) -> Iterator[type[Failure]]:
    for one in kind.__subclasses__():
        yield one
        yield from _kinds(one)


@pytest.mark.parametrize("kind", [Failure, *_kinds(Failure)], ids=lambda kind: kind.__name__)
def test_every_failure_goes_through_a_pipe(kind: type[Failure]) -> None:
    sent = kind.__new__(kind)
    Failure.__init__(sent, "what happened", hint="what to do", evidence="a log")
    got = pickle.loads(pickle.dumps(sent))
    assert (type(got), str(got), got.evidence) == (kind, "what happened: what to do", "a log")


def _crash(pipe: Connection, name: str, _orders: Orders) -> None:
    """A worker: the first dies of a signal, the second ends without a word, the third is deaf and hangs."""
    if name == "a":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "c":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        pipe.send(Said("deaf"))
        time.sleep(60)


def test_the_death_of_a_worker_is_heard_and_one_that_hangs_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "END_S", 0.2)
    heard: dict[str, Message] = {}

    def listen_and_leave() -> None:
        with workers.WorkerPool("abc", Orders(tmp_path, "run"), _crash) as three:
            while len(heard) < 3:
                for name, message in three.hear(WAIT_S):
                    heard[name] = message
                    if isinstance(message, Gone):
                        three.dismiss(name)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        listen_and_leave()
    assert isinstance(heard["a"], Gone)
    assert str(heard["a"].failure) == "the process that works on a died of signal 9"
    assert isinstance(heard["b"], Gone)
    assert str(heard["b"].failure) == "the process that works on b ended with code 0"
    assert heard["c"] == Said("deaf")
    assert not multiprocessing.active_children()
