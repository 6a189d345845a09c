"""Several devices of one identity that share the trials of a search: each has a process, which holds it.

A process for each, as in a fleet (`harness.fleet`): TVM holds Python's interpreter lock in its calls, and whatever
takes such a process down is the loss of one device. The search, its log and what builds for it stay here; what the
processes do is in `harness.tune.worker`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from device_runner.device import Identity, ThermalLimits
from device_runner.failures import DeviceFailure, DeviceLost, Failure, LinkFailure
from harness.failures import UsageError
from harness.fleet.messages import Gone, Opened, Said
from harness.fleet.run import SILENCE_S
from harness.tune.devices import Act, T, require_alike
from harness.tune.dispatcher import Dispatcher, Ready
from harness.tune.tuner import Say, Spent
from harness.tune.worker import Done, Failed, Searching, Tried, Want

if TYPE_CHECKING:
    from harness.fleet.worker_pool import WorkerPool

WHILE_BUILDING_S = 0.02
"""How often it is looked whether a candidate was built that a device waits for."""
OTHERWISE_S = 1.0
BACK_AFTER_S = 60.0
"""So long after a device was lost it is opened once more while others search: a cable is put back, a phone booted."""
_AGAIN = "what was tried is kept: the same command goes on"


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

    def _take_back(self, name: str, identity: Identity) -> bool:
        """Whether a device that was lost and is open again may search with the others."""
        try:
            require_alike({**self._identities, name: identity})
        except UsageError as error:
            self._say(error.message)
            self._workers.dismiss(name)
            return False
        self._identities[name] = identity
        del self.lost[name]
        self._say(f"{name} is back")
        return True

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
        self._back_at = dict.fromkeys(devices.lost, time.monotonic() + BACK_AFTER_S)
        """Of those that are lost: when they are opened again."""
        self._opened_at: dict[str, float] = {}
        """Of those that are being opened again: when they were last heard."""

    def run(self) -> dict[str, Spent]:
        """Until no device searches any more. Raises DeviceLost if all are lost."""
        for name in self._heard_at:
            self._workers.order(name, Searching(self._limits))
        while self._heard_at:
            for name, message in self._devices._heard(WHILE_BUILDING_S if self._waiting else OTHERWISE_S):
                if name in self._heard_at:
                    self._heard_at[name] = time.monotonic()
                    self._take(name, message)
                elif name in self._opened_at:
                    self._opened_at[name] = time.monotonic()
                    self._reopened(name, message)
            self._hand_out()
            self._give_up_the_silent()
            self._reopen()
        for name in self._opened_at:
            self._workers.dismiss(name)
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
        self._back_at[name] = time.monotonic() + BACK_AFTER_S
        if ready := self._at.pop(name, None):
            self._dispatcher.keep(ready.trial(failure.outcome, failure.message, name))

    def _reopen(self) -> None:
        """Open once more what was lost some time ago, as long as there is something to try."""
        if self._dispatcher.over:
            return
        now = time.monotonic()
        for name, at in self._back_at.items():
            if name not in self._opened_at and now >= at and self._workers.revive(name):
                self._opened_at[name] = now

    def _reopened(self, name: str, message: Any) -> None:
        if isinstance(message, Gone):
            del self._opened_at[name]
            self._back_at[name] = time.monotonic() + BACK_AFTER_S
        elif isinstance(message, Opened):
            del self._opened_at[name], self._back_at[name]
            if self._devices._take_back(name, message.identity):
                self._heard_at[name] = time.monotonic()
                self._workers.order(name, Searching(self._limits))

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
        for name, heard in self._opened_at.items():
            if now - heard > SILENCE_S:
                self._workers.kill(name)
