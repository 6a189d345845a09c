"""The devices of a search: one, or several of one identity, each held by a process of its own.

The search, its log and what builds for it stay in this process; what the others do is in
`harness.tools.tune.search_worker`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from device_runner.device import Identity, ThermalLimits
from device_runner.failures import DeviceFailure, DeviceLost, Failure, LinkFailure
from device_runner.workers import SILENCE_S, Access, Arrival, Loss, Processes, Say, WorkerPool
from harness.base.failures import UsageError
from harness.measure.workbench import make_ready, opening
from harness.tools.tune.dispatcher import Dispatcher, TrialOrder
from harness.tools.tune.search_worker import (
    Act,
    ActFailure,
    ActResult,
    CandidateRequest,
    SearchOrder,
    T,
    TimeUse,
    TrialResult,
    obey,
)

if TYPE_CHECKING:
    from harness.compile.artifacts.pool import Builder
    from harness.measure.progress import Progress
    from harness.measure.workbench import Request

WHILE_BUILDING_S = 0.02
"""How often it is looked whether a candidate was built that a device waits for."""
OTHERWISE_S = 1.0
BACK_AFTER_S = 60.0
"""Seconds until a lost device is opened again while others search: by then its cable is back, or it has booted."""
_AGAIN = "what was tried is kept: the same command goes on"

OF_EACH = ("serial", "memory_bytes", "opencl_told_by", "runtime")
"""What of an identity may differ between devices that share the trials of one search."""


class Devices:
    """Devices of one identity that share the trials of a search, each with a worker."""

    def __init__(self, pool: WorkerPool, say: Say) -> None:
        """Wait for the devices. Raises UsageError if they differ, and the failure of the last if none can be had."""
        self.pool = pool
        self._say = say
        while pool.opening:
            pool.hear(OTHERWISE_S)
        if not pool.identities:
            raise [*pool.lost.values()][-1]
        self._require_alike()

    @property
    def identity(self) -> Identity:
        """Identity of the first device; the others are equal in all that counts."""
        return next(iter(self.pool.identities.values()))

    @property
    def count(self) -> int:
        """How many there still are."""
        return len(self.pool.identities)

    @property
    def lost(self) -> Mapping[str, Failure]:
        """Lost devices, and why."""
        return {self.pool.display_name(name): failure for name, failure in self.pool.lost.items()}

    def on_one(self, act: Act[T], patience_s: float) -> T:
        """Do this on one device, from beginning to end; with another one from the beginning if it is lost.

        Whoever says nothing for `patience_s` hangs. Raises what `act` raises, and DeviceLost if no device is left.
        """
        while True:
            name = next(iter(self.pool.identities))
            try:
                return self._ask(name, act, patience_s)
            except (DeviceFailure, LinkFailure) as failure:
                self.pool.give_up(name, failure)
                self.require_any()

    def _ask(self, name: str, act: Act[T], patience_s: float) -> T:
        self.pool.order(name, act, patience_s)
        while True:
            for speaker, message in self.pool.hear(OTHERWISE_S):
                if speaker != name:
                    continue
                if isinstance(message, Loss):
                    raise DeviceLost(message.failure.message, hint=_AGAIN)
                if isinstance(message, ActFailure):
                    raise message.failure
                if isinstance(message, ActResult):
                    result: T = message.result
                    return result

    def search(self, limits: ThermalLimits, dispatcher: Dispatcher) -> dict[str, TimeUse]:
        """Try what is handed out, on any idle device; where the time of each went, by its name.

        A device that is lost costs the trial that it was at; the last one does not, as the search will go on with it.
        Raises DeviceLost if none is left.
        """
        return _SharedSearch(self, limits, dispatcher).run()

    def take_back(self, name: str) -> bool:
        """Return whether a device that was lost, and is open again, may search with the others."""
        try:
            self._require_alike(name)
        except UsageError as error:
            self.pool.give_up(name, error)
            return False
        self._say(f"{self.pool.display_name(name)} is back")
        return True

    def require_any(self) -> None:
        """Raise DeviceLost if no device is left."""
        if not self.pool.identities:
            *_, last = self.pool.lost.values()
            raise DeviceLost(f"no device is left: {last.message}", hint=last.hint or _AGAIN, evidence=last.evidence)

    def _require_alike(self, last: str = "") -> None:
        """Raise UsageError if the devices differ; if `last` is one of two, it is the one to blame."""
        identities = sorted(self.pool.identities.items(), key=lambda item: item[0] == last)
        require_alike({self.pool.display_name(name): identity for name, identity in identities})


class _SharedSearch:
    """One search: who waits for a candidate, and who has which."""

    def __init__(self, devices: Devices, limits: ThermalLimits, dispatcher: Dispatcher) -> None:
        self._devices = devices
        self._pool = devices.pool
        self._dispatcher = dispatcher
        self._limits = limits
        self._searching: set[str] = set()
        self._waiting: list[str] = []
        self._running: dict[str, TrialOrder] = {}
        self._spent: dict[str, TimeUse] = {}
        self._reopen_at = dict.fromkeys(self._pool.lost, time.monotonic() + BACK_AFTER_S)
        """Time at which lost devices are opened again."""

    def run(self) -> dict[str, TimeUse]:
        """Search until no device is left that searches. Raises DeviceLost if all are lost."""
        for name in self._pool.identities:
            self._begin(name)
        while self._searching:
            for name, message in self._pool.hear(WHILE_BUILDING_S if self._waiting else OTHERWISE_S):
                self._take(name, message)
            self._hand_out()
            self._reopen()
        for name in self._pool.opening:
            self._pool.give_up(name, self._pool.lost[name])
        self._devices.require_any()
        return self._spent

    def _begin(self, name: str) -> None:
        self._searching.add(name)
        self._order(name, SearchOrder(self._limits))

    def _order(self, name: str, order: SearchOrder | TrialOrder | None) -> None:
        self._pool.order(name, order, SILENCE_S + self._limits.wait_s)

    def _take(self, name: str, message: Any) -> None:
        if isinstance(message, CandidateRequest):
            self._waiting.append(name)
        elif isinstance(message, TrialResult):
            self._running.pop(name, None)
            self._dispatcher.keep(message.trial)
        elif isinstance(message, ActResult):
            self._spent[self._pool.display_name(name)] = message.result
            self._searching.discard(name)
        elif isinstance(message, ActFailure):
            self._pool.give_up(name, message.failure)
            self._lose(name, message.failure)
        elif isinstance(message, Loss):
            self._lose(name, message.failure)
        elif isinstance(message, Arrival):
            del self._reopen_at[name]
            if self._devices.take_back(name):
                self._begin(name)

    def _lose(self, name: str, failure: Failure) -> None:
        """Drop a device in the middle of the search: its trial counts as failed, the other devices go on."""
        self._reopen_at[name] = time.monotonic() + BACK_AFTER_S
        self._searching.discard(name)
        if name in self._waiting:
            self._waiting.remove(name)
        ready = self._running.pop(name, None)
        if ready and self._pool.identities:
            self._dispatcher.keep(ready.trial(failure.outcome, failure.message, self._pool.display_name(name)))

    def _reopen(self) -> None:
        """Open once more what was lost some time ago, as long as there is something to try."""
        if not self._dispatcher.over:
            for name, at in self._reopen_at.items():
                if time.monotonic() >= at:
                    self._pool.reopen(name)

    def _hand_out(self) -> None:
        for name in list(self._waiting):
            ready = self._dispatcher.next()
            if ready or self._dispatcher.over:
                self._waiting.remove(name)
                self._order(name, ready)
            if ready:
                self._running[name] = ready


@contextmanager
def open_devices(
    request: Request, names: Sequence[str], progress: Progress, tracker: tuple[str, int] | None = None
) -> Iterator[tuple[Builder, Devices]]:
    """Hold the devices of these names, with what builds for them; those of other hosts through a tracker.

    Raises what opening a device raises, UsageError.
    """
    progress.say(opening(", ".join(names)))
    make_ready(request.paths, request.cache)
    processes = Processes(Access(request.cache, tracker), partial(obey, request.cache, request.quirks.as_shipped))
    with request.builder(progress) as builder, WorkerPool(names, processes, progress.say) as pool:
        yield builder, Devices(pool, progress.say)


def require_alike(identities: Mapping[str, Identity]) -> None:
    """Raise UsageError, with the device and what differs, if these cannot share the trials of one search."""
    (first, known), *others = identities.items()
    for name, identity in others:
        for what, value in asdict(identity).items():
            if what not in OF_EACH and value != (there := getattr(known, what)):
                raise UsageError(
                    f"{name} cannot share trials with {first}: its {what} is {value or 'unknown'!r}, not "
                    f"{there or 'unknown'!r}",
                    hint="a search takes devices of one identity: tune on each kind by itself",
                )


def kind_key(identity: Identity) -> str:
    """Short stable text of what devices that share trials have in common: their identity less the handset."""
    return replace(identity, serial="").key
