"""Candidates that are built while the device runs others, so that neither waits for the other."""

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


def ahead() -> int:
    """How many are begun at most: one for each core, and some that are ready when the device is."""
    return cores() + 2


class Ahead:
    """What a search wants next, begun as far ahead as there are cores. A context manager: leaving it begins no more."""

    def __init__(self, search: Search, workshop: Workshop, left: Callable[[], int]) -> None:
        """`left` says how many more candidates may be begun now."""
        self._search = search
        self._workshop = workshop
        self._left = left
        self._begun: dict[Candidate, Future[Any]] = {}
        self.waited_s = 0.0
        """In which none was ready."""

    def __enter__(self) -> Ahead:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for future in self._begun.values():
            future.cancel()

    def next(self) -> Built | None:
        """A candidate that is ready; waits for one. None when no more may come, or there are none."""
        self._begin()
        if not self._begun or not self._left():
            return None
        began = time.monotonic()
        wait(self._begun.values(), return_when=FIRST_COMPLETED)
        self.waited_s += time.monotonic() - began
        candidate = next(one for one, future in self._begun.items() if future.done())
        return candidate, self._begun.pop(candidate).result()

    def _begin(self) -> None:
        count = min(ahead() - len(self._begun), self._left() - len(self._begun))
        for candidate in self._search.next(max(0, count), self._begun):
            self._begun[candidate] = self._workshop.begin(candidate)
