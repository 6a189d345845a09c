"""One queue of work for 1 to N devices, which keeps the work of lost devices.

A series belongs to an identity, so only devices of one identity share items. `WorkQueue` has no process, no clock and
no device, so tests can try any order of events. `DeviceQueue` is the loop between it and workers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from device_runner.device import Identity
from device_runner.failures import Failure
from device_runner.workers import SILENCE_S, Arrival, Loss, WorkerPool

T = TypeVar("T")
"""A piece of work, of any kind."""
R = TypeVar("R")
"""The result of a piece of work."""

MOST_LOSSES = 2
"""Number of devices that may die during an item. It is not tried on another: it may be the cause."""


@dataclass(frozen=True, eq=False)
class WorkItem(Generic[T]):
    """One piece of work on one identity. A work item is equal to itself alone."""

    work: T
    identity: str


class Lost(NamedTuple):
    """The last device that was lost under an item."""

    device: str
    why: Any


class WorkQueue(Generic[T]):
    """Hands out items to devices that have joined, and takes back those of devices that are lost.

    Every item ends once: by `finish`, by a `lose` that returns it, or by `strand`.
    """

    def __init__(self, most_losses: int = MOST_LOSSES) -> None:
        self._most_losses = most_losses
        self._waiting: dict[str, deque[WorkItem[T]]] = {}
        self._identity: dict[str, str] = {}
        self._running: dict[str, WorkItem[T]] = {}
        self._losses: dict[WorkItem[T], list[Lost]] = {}

    @property
    def done(self) -> bool:
        """Whether every item has ended."""
        return not self._running and not any(self._waiting.values())

    @property
    def devices(self) -> list[str]:
        """Devices that take items."""
        return list(self._identity)

    def join(self, device: str, identity: str, work: Callable[[], Sequence[T]]) -> None:
        """Add a device that takes items. If it is the first of its identity, `work` returns the items."""
        if identity not in self._waiting:
            self._waiting[identity] = deque(WorkItem(item, identity) for item in work())
        self._identity[device] = identity

    def add(self, device: str, work: T) -> None:
        """Add an item for the devices of this one's identity."""
        identity = self._identity[device]
        self._waiting[identity].append(WorkItem(work, identity))

    def running(self, device: str) -> WorkItem[T] | None:
        """Return the item that a device runs."""
        return self._running.get(device)

    def has_peer(self, device: str) -> bool:
        """Return whether another device could run this one's items."""
        identity = self._identity.get(device)
        return any(other != device and its == identity for other, its in self._identity.items())

    def assign(self, device: str, ready: Callable[[T], bool] = lambda _: True) -> WorkItem[T] | None:
        """Return the next item for an idle device, of those that are `ready`; None if there is none yet or any more."""
        waiting = self._waiting[self._identity[device]]
        item = next((item for item in waiting if ready(item.work)), None)
        if item:
            waiting.remove(item)
            self._running[device] = item
        return item

    def finish(self, device: str) -> WorkItem[T] | None:
        """Note that the device's item has its result. Returns it; None if the device was at nothing."""
        return self._running.pop(device, None)

    def lose(self, device: str, why: object = None) -> WorkItem[T] | None:
        """Remove a device. Its item goes to another of its identity, unless it has lost too many.

        Returns the item if that ended it.
        """
        self._identity.pop(device, None)
        if item := self._running.pop(device, None):
            losses = self._losses.setdefault(item, [])
            losses.append(Lost(device, why))
            if len(losses) >= self._most_losses:
                return item
            self._waiting[item.identity].appendleft(item)
        return None

    def strand(self) -> Iterator[tuple[WorkItem[T], Lost | None]]:
        """End and yield the items of identities whose devices are all lost, each with the device that it lost last."""
        left = set(self._identity.values())
        for identity, waiting in self._waiting.items():
            while identity not in left and waiting:
                item = waiting.popleft()
                yield item, self._losses[item][-1] if item in self._losses else None


class Order(NamedTuple):
    """An order for a worker, and the seconds of silence after which that hangs."""

    order: object
    patience_s: float = SILENCE_S


class DeviceQueue(ABC, Generic[T, R]):
    """Runs items on workers until all have ended, whatever happens to devices. Subclasses define the items."""

    WAIT_S = 1.0

    def __init__(self, workers: WorkerPool, most_losses: int = MOST_LOSSES) -> None:
        self.workers = workers
        self.items: WorkQueue[T] = WorkQueue(most_losses)

    def run(self) -> Iterator[R]:
        """Yield each result as it comes. Raises what the steps of a subclass raise."""
        while not self._over:
            self._hand_out()
            for name, message in self.workers.hear(self._wait_s):
                if isinstance(message, Arrival):
                    self._join(name, message.identity)
                elif isinstance(message, Loss):
                    yield from self._lose(name, message.failure)
                else:
                    yield from self._take(name, message)
            if not self.workers.opening:
                for item, lost in self.items.strand():
                    yield from self._end(item, lost)

    @property
    def _over(self) -> bool:
        return not self.workers.opening and self.items.done

    @property
    def _wait_s(self) -> float:
        """Seconds to wait for a message before it is looked whether an item is ready."""
        return self.WAIT_S

    @property
    def _idle(self) -> list[str]:
        return [name for name in self.workers.idle if name in self.items.devices]

    def _hand_out(self) -> None:
        """Give idle devices what is ready."""
        for name in self._idle:
            if order := self._next_order(name):
                self.workers.order(name, *order)

    def _lose(self, name: str, failure: Failure) -> Iterator[R]:
        """Go on without a device."""
        if ended := self.items.lose(name, failure):
            yield from self._end(ended, Lost(name, failure))

    @abstractmethod
    def _join(self, name: str, identity: Identity) -> None:
        """Let a device take part that was opened."""

    @abstractmethod
    def _next_order(self, name: str) -> Order | None:
        """Return what an idle device is to do; None if nothing is ready."""

    @abstractmethod
    def _take(self, name: str, message: Any) -> Iterator[R]:
        """Take a message of a worker."""

    @abstractmethod
    def _end(self, item: WorkItem[T], lost: Lost | None) -> Iterator[R]:
        """End an item for which no device is left; `lost` is None if none began it."""
