"""What is left to do, and who does what: each case once on each identity, on whichever of its devices is free.

A series belongs to an identity, so devices of one identity share its cases and devices of two never do. No process, no
clock and no device in here: any order of events can be tried.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
"""A piece of work; what it is does not matter here."""

MOST_LOSSES = 2
"""A case under which so many devices died is not tried on another: it may be what kills them."""


@dataclass(frozen=True, eq=False)
class WorkItem(Generic[T]):
    """One piece of work on one identity. A work item is equal to itself alone."""

    work: T
    identity: str


class WorkQueue(Generic[T]):
    """Hands out tasks to devices that have joined, and takes back those of devices that are lost.

    Every task ends once: by `finish`, by a `lose` that returns it, or by `strand`.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[WorkItem[T]]] = {}
        self._identity: dict[str, str] = {}
        self._running: dict[str, WorkItem[T]] = {}
        self._losses: dict[WorkItem[T], int] = {}

    @property
    def done(self) -> bool:
        """Whether every task has ended."""
        return not self._running and not any(self._waiting.values())

    def join(self, device: str, identity: str, work: Callable[[], Sequence[T]]) -> None:
        """Add a device that takes tasks. `work` is asked what there is to do if it is the first of its identity."""
        if identity not in self._waiting:
            self._waiting[identity] = deque(WorkItem(one, identity) for one in work())
        self._identity[device] = identity

    def running(self, device: str) -> WorkItem[T] | None:
        """Return what a device is at."""
        return self._running.get(device)

    def has_peer(self, device: str) -> bool:
        """Return whether another device could do what this one does."""
        identity = self._identity.get(device)
        return any(other != device and its == identity for other, its in self._identity.items())

    @property
    def idle(self) -> list[str]:
        """Devices that have no task."""
        return [device for device in self._identity if device not in self._running]

    def assign(self, device: str, ready: Callable[[T], bool]) -> WorkItem[T] | None:
        """Return the next task for an idle device, of those that are `ready`; None if there is none yet or any more."""
        waiting = self._waiting[self._identity[device]]
        task = next((task for task in waiting if ready(task.work)), None)
        if task:
            waiting.remove(task)
            self._running[device] = task
        return task

    def finish(self, device: str) -> WorkItem[T]:
        """Note that the device's task has its record."""
        return self._running.pop(device)

    def lose(self, device: str) -> WorkItem[T] | None:
        """Remove a device. Its task goes to another of its identity, unless it has lost too many.

        Returns the task if that ended it.
        """
        self._identity.pop(device, None)
        task = self._running.pop(device, None)
        if task is None:
            return None
        self._losses[task] = self._losses.get(task, 0) + 1
        if self._losses[task] >= MOST_LOSSES:
            return task
        self._waiting[task.identity].appendleft(task)
        return None

    def strand(self) -> Iterator[WorkItem[T]]:
        """End and yield the tasks that wait for an identity none of whose devices is left."""
        left = set(self._identity.values())
        for identity, waiting in self._waiting.items():
            while identity not in left and waiting:
                yield waiting.popleft()
