"""Candidates that are built while devices run others, so that neither waits for the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from types import TracebackType
from typing import TYPE_CHECKING, Any

from harness.process import cores

if TYPE_CHECKING:
    from device_runner.failures import Failure
    from harness.build.artifact import Artifact
    from harness.tune.search import Search
    from harness.tune.workshop import Candidate, Workshop

Built = tuple["Candidate", "Artifact | Failure"]
"""A candidate, and what came of building it."""


def ahead(devices: int = 1) -> int:
    """How many are begun at most: one for each core, and some that are ready when a device is."""
    return cores() + 1 + devices


class Ahead:
    """What a search wants next, begun as far ahead as there are cores. A context manager: leaving it begins no more."""

    def __init__(self, search: Search, workshop: Workshop, left: Callable[[], int], devices: int = 1) -> None:
        """`left` says how many more candidates may come, those included that are begun or with a device."""
        self._search = search
        self._workshop = workshop
        self._left = left
        self._most = ahead(devices)
        self._begun: dict[Candidate, Future[Any]] = {}
        self._with_devices: set[Candidate] = set()
        self.waited_s = 0.0
        """In which none was ready."""

    def __enter__(self) -> Ahead:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for future in self._begun.values():
            future.cancel()

    @property
    def over(self) -> bool:
        """Whether no more may come, or there are none."""
        self._begin()
        return not self._begun or self._free <= 0

    def next(self, timeout_s: float | None = None) -> Built | None:
        """A candidate for a device, which has it until `done`; waits for one. None if none comes, or not in time."""
        if self.over:
            return None
        began = time.monotonic()
        ready, _ = wait(self._begun.values(), timeout_s, return_when=FIRST_COMPLETED)
        self.waited_s += time.monotonic() - began
        if not ready:
            return None
        candidate = next(one for one, future in self._begun.items() if future in ready)
        self._with_devices.add(candidate)
        return candidate, self._begun.pop(candidate).result()

    def done(self, candidate: Candidate) -> None:
        """A device is done with a candidate; what it came to counts from now on."""
        self._with_devices.discard(candidate)

    @property
    def _free(self) -> int:
        return self._left() - len(self._with_devices)

    def _begin(self) -> None:
        count = min(self._most, self._free) - len(self._begun)
        for candidate in self._search.next(max(0, count), [*self._begun, *self._with_devices]):
            self._begun[candidate] = self._workshop.begin(candidate)
