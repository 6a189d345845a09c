"""The process that takes part in searches with one device: takes candidates, and says what they came to."""

from __future__ import annotations

import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from device_runner.device import Device, ThermalLimits
from device_runner.failures import Failure
from harness.fleet.messages import Orders, Said
from harness.fleet.worker import Tell, live, run_on
from harness.tune.tuner import Tuner

if TYPE_CHECKING:
    from harness.tune.devices import Act
    from harness.tune.dispatcher import Ready
    from harness.tune.search import Trial


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
