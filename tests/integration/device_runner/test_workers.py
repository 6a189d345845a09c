"""Workers that hold a device each: how they are heard, given up and ended."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest
from fake_device import FakeDevice

from device_runner import workers
from device_runner.device import Device
from device_runner.failures import DeviceBusy, Failure
from device_runner.workers import Channel, Loss, Processes, SideNote, WorkerHost, WorkerPool, serve

WAIT_S = 20


@contextmanager
def fake_device(name: str, cache: Path, say: workers.Say) -> Iterator[tuple[Device, workers.Show]]:
    if name == "busy":
        raise DeviceBusy("busy is in use")
    say("it opens")
    yield FakeDevice(name=f"{name}@there"), lambda case, step: None


def pool(folder: Path, names: str, said: list[str], work: workers.Work) -> WorkerPool:
    return WorkerPool(names.split(), Processes(folder, work, fake_device), said.append)


def hear_until(workers: WorkerPool, kind: type, count: int) -> dict[str, Any]:
    heard: dict[str, Any] = {}
    until = time.monotonic() + WAIT_S
    while len(heard) < count:
        assert time.monotonic() < until
        heard.update((name, message) for name, message in workers.hear(0.05) if isinstance(message, kind))
    return heard


def answer_with_process(device: Device, channel: Channel) -> None:
    while True:
        assert channel.receive() == "who are you?"
        channel.send(os.getpid())


def die_or_hang(device: Device, channel: Channel) -> None:
    """The first dies of a signal, the second ends without a word, the third is deaf and hangs."""
    if device.name.startswith("a"):
        os.kill(os.getpid(), signal.SIGKILL)
    if device.name.startswith("b"):
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    channel.say("deaf")
    channel.receive()
    time.sleep(60)


def test_workers_hold_their_devices_and_do_what_is_ordered(tmp_path: Path) -> None:
    said: list[str] = []
    with pool(tmp_path, "a b busy", said, answer_with_process) as workers:
        assert workers.opening == ["a", "b", "busy"]
        while workers.opening:
            workers.hear(WAIT_S)
        assert list(workers.identities) == ["a", "b"]
        assert workers.display_name("a") == "a@there"
        assert {name: str(why) for name, why in workers.lost.items()} == {"busy": "busy is in use"}
        for name in workers.identities:
            workers.order(name, "who are you?")
        answers = hear_until(workers, int, 2)
    assert len({os.getpid(), *answers.values()}) == 3
    assert sorted(said) == ["a: it opens", "b: it opens", "busy is out: busy is in use"]
    assert not multiprocessing.active_children()


def test_the_death_of_a_worker_is_heard_and_one_that_hangs_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "END_S", 0.2)
    said: list[str] = []

    def listen_and_leave() -> None:
        with pool(tmp_path, "a b c", said, die_or_hang) as three:
            while len(three.lost) < 2 or "c@there: deaf" not in said:
                three.hear(WAIT_S)
            assert {name: str(why) for name, why in three.lost.items()} == {
                "a": "the process that works on a died of signal 9",
                "b": "the process that works on b ended with code 0",
            }
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        listen_and_leave()
    assert not multiprocessing.active_children()


def test_a_worker_that_is_silent_after_an_order_is_ended_and_one_without_an_order_is_not(tmp_path: Path) -> None:
    said: list[str] = []
    with pool(tmp_path, "c", said, die_or_hang) as workers:
        while "c@there: deaf" not in said:
            workers.hear(WAIT_S)
        assert not hear_until(workers, Loss, 0)
        workers.order("c", "hang", patience_s=0.0)
        assert str(hear_until(workers, Loss, 1)["c"].failure) == "the process that works on c died of signal 9"


def test_the_state_of_a_device_does_not_count_as_a_sign_of_life(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class State(SideNote):
        """The state of a device."""

    class Host(WorkerHost):
        killed = False

        def receive(self, timeout_s: float) -> Iterator[tuple[str, Any]]:
            yield "a", State()

        def kill(self, name: str) -> None:
            self.killed = True

    host = Host()
    with WorkerPool(["a"], host, lambda _: None) as workers:
        workers.order("a", "hang", patience_s=0.0)
        assert workers.hear(0.0) == [("a", State())]
    assert host.killed


def test_a_lost_worker_is_opened_again_only_when_its_process_has_ended(tmp_path: Path) -> None:
    with pool(tmp_path, "a", [], answer_with_process) as workers:
        first = ask(workers)
        workers.give_up("a", Failure("unplugged"))
        assert list(workers.lost) == ["a"]
        while not workers.opening:
            workers.reopen(0.0)
        workers.reopen(0.0)  # which is being opened already
        assert ask(workers) != first
        assert not workers.lost


def ask(workers: WorkerPool) -> int:
    while workers.opening:
        workers.hear(WAIT_S)
    workers.order("a", "who are you?")
    return int(hear_until(workers, int, 1)["a"])


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


def test_a_worker_whose_host_is_gone_frees_its_device(tmp_path: Path) -> None:
    ours, theirs = Pipe()
    opened: list[str] = []

    @contextlib.contextmanager
    def opener(name: str, cache: Path, say: workers.Say) -> Iterator[Any]:
        opened.append(name)
        try:
            yield FakeDevice(), print
        finally:
            opened.remove(name)

    ours.close()
    with theirs:
        serve(theirs, "fake", tmp_path, answer_with_process, opener)
    assert not opened
