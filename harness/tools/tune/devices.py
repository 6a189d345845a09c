"""The devices of a search: one, or several of one identity, each held by a process of its own.

The search, its log and what builds for it stay in this process; what the others do is in
`harness.tools.tune.search_worker`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from device_runner.device import Identity, ThermalLimits
from device_runner.failures import DeviceFailure, DeviceLost, Failure, LinkFailure
from device_runner.workers import SILENCE_S, DeviceSource, Processes, Say, WorkerPool
from harness.base.failures import UsageError
from harness.compile.artifacts.pool import Builder
from harness.measure.device_queue import DeviceQueue, Lost, Order, WorkItem
from harness.measure.progress import Progress
from harness.measure.workbench import Request, make_ready, opening
from harness.tools.tune.dispatcher import Dispatcher, TrialOrder
from harness.tools.tune.search_worker import (
    Act,
    ActFailure,
    ActResult,
    SearchOrder,
    T,
    TimeUse,
    TrialResult,
    obey,
)

WHILE_BUILDING_S = 0.02
"""How often it is looked whether a candidate was built that a device waits for."""
OTHERWISE_S = 1.0
BACK_AFTER_S = 60.0
"""Seconds until a lost device is opened again while others search: by then its cable is back, or it has booted."""
_AGAIN = "finished trials are kept; the same command continues"

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

        A device that is silent for `patience_s` hangs. Raises what `act` raises, and DeviceLost if no device is left.
        """
        return next(_Errand(self, act, patience_s).run())

    def search(self, limits: ThermalLimits, dispatcher: Dispatcher) -> dict[str, TimeUse]:
        """Try what is handed out, on any idle device; where the time of each went, by its name.

        A device that is lost costs the trial that it was at; the last one does not, as the search will go on with it.
        Raises DeviceLost if none is left.
        """
        search = _SharedSearch(self, limits, dispatcher)
        for _ in search.run():
            pass
        for name in self.pool.opening:
            self.pool.give_up(name, self.pool.lost[name])
        self.require_any()
        return search.spent

    def take_back(self, name: str) -> bool:
        """Return whether a device that was lost, and is open again, may search with the others."""
        try:
            self._require_alike(name)
        except UsageError as error:
            self.pool.give_up(name, error, for_good=True)
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


class _Errand(DeviceQueue[Act[T], T]):
    """One act, on whichever device can do it."""

    def __init__(self, devices: Devices, act: Act[T], patience_s: float) -> None:
        super().__init__(devices.pool, most_losses=len(devices.pool.identities) + 1)
        self._devices, self._act, self._patience_s = devices, act, patience_s
        for name, identity in devices.pool.identities.items():
            self._join(name, identity)

    def _join(self, name: str, identity: Identity) -> None:
        self.items.join(name, "", lambda: [self._act])

    def _next_order(self, name: str) -> Order | None:
        item = self.items.assign(name)
        return Order(item.work, self._patience_s) if item else None

    def _take(self, name: str, message: Any) -> Iterator[T]:
        if isinstance(message, ActResult) and self.items.finish(name):
            yield message.result
        elif isinstance(message, ActFailure) and self.items.running(name):
            if not isinstance(message.failure, (DeviceFailure, LinkFailure)):
                raise message.failure
            self.workers.give_up(name, message.failure)
            yield from self._lose(name, message.failure)

    def _end(self, item: WorkItem[Act[T]], lost: Lost | None) -> Iterator[T]:
        self._devices.require_any()
        yield from ()


class _SharedSearch(DeviceQueue[TrialOrder, None]):
    """One search: each idle device gets the next candidate, and a lost one is opened again."""

    def __init__(self, devices: Devices, limits: ThermalLimits, dispatcher: Dispatcher) -> None:
        super().__init__(devices.pool, most_losses=1)
        self._devices, self._dispatcher = devices, dispatcher
        self._patience_s = SILENCE_S + limits.wait_s
        self._limits = limits
        self.spent: dict[str, TimeUse] = {}
        """Use of each device's time, by its name."""
        for name in devices.pool.identities:
            self._begin(name)

    @property
    def _over(self) -> bool:
        return not self.items.devices

    @property
    def _wait_s(self) -> float:
        return WHILE_BUILDING_S if self._idle else self.WAIT_S

    def _begin(self, name: str) -> None:
        self.items.join(name, "", list)
        self.workers.order(name, SearchOrder(self._limits), self._patience_s)

    def _join(self, name: str, identity: Identity) -> None:
        if self._devices.take_back(name):
            self._begin(name)

    def _hand_out(self) -> None:
        super()._hand_out()
        if not self._dispatcher.over:
            self.workers.reopen(BACK_AFTER_S)

    def _next_order(self, name: str) -> Order | None:
        """Return the next candidate; the order to stop if no more come."""
        if candidate := self._dispatcher.next():
            self.items.add(name, candidate)
            self.items.assign(name)
        return Order(candidate, self._patience_s) if candidate or self._dispatcher.over else None

    def _take(self, name: str, message: Any) -> Iterator[None]:
        if isinstance(message, TrialResult):
            self.items.finish(name)
            self._dispatcher.keep(message.trial)
        elif isinstance(message, ActResult):
            self.spent[self.workers.display_name(name)] = message.result
            self.items.lose(name)
        elif isinstance(message, ActFailure):
            self.workers.give_up(name, message.failure)
            yield from self._lose(name, message.failure)

    def _end(self, item: WorkItem[TrialOrder], lost: Lost | None) -> Iterator[None]:
        """Count the trial of a lost device as failed; that of the last one is tried when the search goes on."""
        if lost and self.workers.identities:
            name = self.workers.display_name(lost.device)
            self._dispatcher.keep(item.work.trial(lost.why.outcome, lost.why.message, name))
        yield from ()


@contextmanager
def open_devices(
    request: Request, names: Sequence[str], progress: Progress, source: DeviceSource | None = None
) -> Iterator[tuple[Builder, Devices]]:
    """Hold the devices of these names, with what builds for them; of this host, or of `source`.

    Raises what opening a device raises, UsageError.
    """
    progress.say(opening(names, request.cache))
    make_ready(request.paths, request.cache)
    work = partial(obey, request.cache, request.quirks.as_shipped)
    processes = Processes(request.cache, work, source.open if source else None)
    with request.builder(progress) as builder, WorkerPool(names, processes, progress.say) as pool:
        yield builder, Devices(pool, progress.say)


def require_alike(identities: Mapping[str, Identity]) -> None:
    """Raise UsageError, with the device and what differs, if these cannot share the trials of one search."""
    (first, reference), *others = identities.items()
    for name, identity in others:
        for what, value in asdict(identity).items():
            if what not in OF_EACH and value != (there := getattr(reference, what)):
                raise UsageError(
                    f"{name} cannot share trials with {first}: its {what} is {value or 'unknown'!r}, not "
                    f"{there or 'unknown'!r}",
                    hint="a search takes devices of one identity: tune on each kind by itself",
                )


def kind_key(identity: Identity) -> str:
    """Short stable text of what devices that share trials have in common: their identity less the handset."""
    return replace(identity, serial="").key
