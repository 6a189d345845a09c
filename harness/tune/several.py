"""Several devices of one identity that share the trials of a search: each has a process, which holds it.

A process for each, as in a fleet (`harness.fleet`): TVM holds Python's interpreter lock in its calls, and whatever
takes such a process down is the loss of one device. The search, its log and what builds for it stay here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from device_runner.device import Device, Identity, ThermalLimits
from device_runner.failures import DeviceFailure, DeviceLost, Failure, LinkFailure
from harness.fleet.messages import Gone, Opened, Orders, Said
from harness.fleet.run import SILENCE_S
from harness.fleet.worker import Tell, live, run_on
from harness.tune.devices import Act, T, require_alike
from harness.tune.dispatcher import Dispatcher, Ready
from harness.tune.search import Trial
from harness.tune.tuner import Say, Spent, Tuner

if TYPE_CHECKING:
    from harness.fleet.worker_pool import WorkerPool

WHILE_BUILDING_S = 0.02
"""How often it is looked whether a candidate was built that a device waits for."""
OTHERWISE_S = 1.0
_AGAIN = "what was tried is kept: the same command goes on"


@dataclass(frozen=True)
class Searching:
    """To a worker: try candidates until there are no more."""

    limits: ThermalLimits


@dataclass(frozen=True)
class Want:
    """From a worker: it is ready for a candidate. A `Ready` answers, or None if there are no more."""


@dataclass(frozen=True)
class Tried:
    """From a worker: what a candidate came to."""

    trial: Trial


@dataclass(frozen=True)
class Done:
    """From a worker: what its order came to."""

    result: Any


@dataclass(frozen=True)
class Failed:
    """From a worker: why its order came to nothing."""

    failure: Failure


def work(pipe: Connection, name: str, orders: Orders) -> None:
    """The whole life of a worker that takes part in searches."""
    live(pipe, name, orders, obey)


def obey(pipe: Connection, device: Device, orders: Orders, _tell: Tell) -> None:
    """Do what is ordered with the device until the pipe ends, which raises EOFError."""
    run = run_on(device, orders)

    def say(text: str) -> None:
        pipe.send(Said(text))

    while True:
        order: Searching | Act[Any] = pipe.recv()
        try:
            if isinstance(order, Searching):
                pipe.send(Done(Tuner(run, order.limits, Wire(pipe), say).search()))
            else:
                pipe.send(Done(order(run, say)))
        except Failure as failure:
            pipe.send(Failed(failure))


class Wire:
    """The supply of a worker: the search is at the other end of its pipe."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._waited_s = 0.0

    @property
    def waited_s(self) -> float:
        """As `Supply` says."""
        return self._waited_s

    def next(self) -> Ready | None:
        """As `Supply` says."""
        began = time.monotonic()
        self._pipe.send(Want())
        ready: Ready | None = self._pipe.recv()
        self._waited_s += time.monotonic() - began
        return ready

    def keep(self, trial: Trial) -> None:
        """As `Supply` says."""
        self._pipe.send(Tried(trial))


class SeveralDevices:
    """Devices of one identity, each with a worker. They are `Devices`."""

    def __init__(self, workers: WorkerPool, names: Sequence[str], say: Say) -> None:
        """Waits for the devices. Raises UsageError if they differ, and the failure of the last if none can be had."""
        self._workers = workers
        self._say = say
        self._identities: dict[str, Identity] = {}
        """Of those that are there, in the order of asking."""
        self.lost: dict[str, Failure] = {}
        opening, until = list(names), time.monotonic() + SILENCE_S
        while opening:
            for name, message in self._heard(OTHERWISE_S):
                if isinstance(message, Opened):
                    self._identities[name] = message.identity
                if isinstance(message, (Opened, Gone)):
                    opening.remove(name)
            if time.monotonic() > until:
                for name in opening:
                    workers.kill(name)  # its death is heard like any other
        self._require_any()
        self._identities = {name: self._identities[name] for name in names if name in self._identities}
        require_alike(self._identities)

    @property
    def identity(self) -> Identity:
        """As `Devices` says."""
        return next(iter(self._identities.values()))

    @property
    def count(self) -> int:
        """As `Devices` says."""
        return len(self._identities)

    def on_one(self, act: Act[T], patience_s: float) -> T:
        """As `Devices` says."""
        while True:
            name = next(iter(self._identities))
            try:
                return self._ask(name, act, patience_s)
            except (DeviceFailure, LinkFailure) as failure:
                self._lose(name, failure)
                self._require_any()

    def _ask(self, name: str, act: Act[T], patience_s: float) -> T:
        self._workers.order(name, act)
        until = time.monotonic() + patience_s
        while True:
            for speaker, message in self._heard(OTHERWISE_S):
                if speaker != name:
                    continue
                until = time.monotonic() + patience_s
                if isinstance(message, Gone):
                    raise DeviceLost(message.failure.message, hint=_AGAIN)
                if isinstance(message, Failed):
                    raise message.failure
                if isinstance(message, Done):
                    result: T = message.result
                    return result
            if time.monotonic() > until:
                self._workers.kill(name)

    def search(self, limits: ThermalLimits, dispatcher: Dispatcher) -> dict[str, Spent]:
        """As `Devices` says."""
        return _Search(self, limits, dispatcher).run()

    def _heard(self, timeout_s: float) -> list[tuple[str, Any]]:
        """What the workers say, of which lines for people are passed on, and those that died are done with."""
        heard = []
        for name, message in self._workers.hear(timeout_s):
            if isinstance(message, Said):
                self._say(f"{name}: {message.text}")
            elif isinstance(message, Gone):
                self._lose(name, message.failure)
            heard.append((name, message))
        return heard

    def _lose(self, name: str, failure: Failure) -> None:
        self._workers.dismiss(name)
        self._identities.pop(name, None)
        if name not in self.lost:
            self.lost[name] = failure
            self._say(f"{name} is out: {failure.message}")

    def _require_any(self) -> None:
        if not self._identities:
            *_, last = self.lost.values()
            raise DeviceLost(f"no device is left: {last.message}", hint=_AGAIN)


class _Search:
    """One search: who waits for a candidate, and who has which."""

    def __init__(self, devices: SeveralDevices, limits: ThermalLimits, dispatcher: Dispatcher) -> None:
        self._devices = devices
        self._workers = devices._workers
        self._dispatcher = dispatcher
        self._patience_s = SILENCE_S + limits.wait_s
        self._limits = limits
        self._heard_at = dict.fromkeys(devices._identities, time.monotonic())
        """Of those that search."""
        self._waiting: list[str] = []
        self._at: dict[str, Ready] = {}
        self._spent: dict[str, Spent] = {}

    def run(self) -> dict[str, Spent]:
        """Until no device searches any more. Raises DeviceLost if all are lost."""
        for name in self._heard_at:
            self._workers.order(name, Searching(self._limits))
        while self._heard_at:
            for name, message in self._devices._heard(WHILE_BUILDING_S if self._waiting else OTHERWISE_S):
                if name in self._heard_at:
                    self._heard_at[name] = time.monotonic()
                    self._take(name, message)
            self._hand_out()
            self._give_up_the_silent()
        self._devices._require_any()
        return self._spent

    def _take(self, name: str, message: Any) -> None:
        if isinstance(message, Want):
            self._waiting.append(name)
        elif isinstance(message, Tried):
            self._at.pop(name, None)
            self._dispatcher.keep(message.trial)
        elif isinstance(message, Done):
            self._spent[name] = message.result
            del self._heard_at[name]
        elif isinstance(message, (Failed, Gone)):
            self._lost(name, message.failure)

    def _lost(self, name: str, failure: Failure) -> None:
        """A device ends in the middle of the search: the trial that it was at is a failed one, the others go on."""
        del self._heard_at[name]
        if name in self._waiting:
            self._waiting.remove(name)
        self._devices._lose(name, failure)
        if ready := self._at.pop(name, None):
            self._dispatcher.keep(ready.trial(failure.outcome, failure.message, name))

    def _hand_out(self) -> None:
        for name in list(self._waiting):
            if self._dispatcher.over:
                self._answer(name, None)
            elif ready := self._dispatcher.next(0):
                self._at[name] = ready
                self._answer(name, ready)

    def _answer(self, name: str, ready: Ready | None) -> None:
        self._waiting.remove(name)
        self._workers.order(name, ready)

    def _give_up_the_silent(self) -> None:
        now = time.monotonic()
        for name, heard in self._heard_at.items():
            if name in self._waiting:
                self._heard_at[name] = now  # it waits for us
            elif now - heard > self._patience_s:
                self._workers.kill(name)  # its death is heard like any other
