"""The faults of a running phone, as its daemon sees them, and what chance lets strike an operation.

Faults stand in one file that the daemon looks at before each step they could spoil, so a test (or a person with an
editor) injects one in mid-run without a connection to the daemon. Others come and pass by themselves. Chance draws from
the seed, the kind of the operation and how many of its kind came before: the same seed gives the same strokes.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from device_runner.failures import RigFailure
from device_runner.stand_ins.virtual.faults import Chance, Faults, Mishap, read

POLL_S = 0.05

log = logging.getLogger(__name__)


class FaultFile:
    """The file, read again whenever it changed and kept as it was while it is unreadable, and what was added to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = (0, 0, 0)
        self._faults = Faults()
        self._struck: Counter[Mishap] = Counter()
        self._passing: list[tuple[float, dict[str, Any]]] = []

    @property
    def now(self) -> Faults:
        """The faults at this moment."""
        self._follow()
        if not self._passing:
            return self._faults
        time_s = time.monotonic()
        self._passing = [(end_s, changes) for end_s, changes in self._passing if end_s > time_s]
        return replace(self._faults, **{key: value for _, changes in self._passing for key, value in changes.items()})

    def for_a_while(self, seconds: float, **changes: Any) -> None:
        """Add faults that pass by themselves."""
        self._passing.append((time.monotonic() + seconds, changes))

    @contextmanager
    def during(self, **changes: Any) -> Iterator[None]:
        """Add faults for as long as something takes."""
        added = (math.inf, changes)
        self._passing.append(added)
        try:
            yield
        finally:
            self._passing.remove(added)

    def strikes(self, mishap: Mishap) -> bool:
        """Return whether the mishap still befalls a session. Counts it."""
        self._struck[mishap] += 1
        return self._struck[mishap] <= mishap.times

    def _follow(self) -> None:
        try:
            stat = self._path.stat()
        except OSError:
            return
        stamp = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._faults = read(self._path)
                self._struck.clear()
            except RigFailure as failure:
                log.error("faults left as they were: %s", failure)

    async def thawed(self) -> None:
        """Wait until the phone is not frozen."""
        while self.now.frozen:
            await asyncio.sleep(POLL_S)


STROKES = {
    "shell": ("drop", "refuse", "freeze"),
    "push": ("drop", "refuse", "freeze", "error", "full"),
    "session": ("drop", "refuse", "freeze", "crash"),
}
"""What can strike each kind of operation."""


@dataclass(frozen=True)
class Stroke:
    """What strikes one operation."""

    what: str
    when: float
    """How far into it, from 0 to 1."""


class Dice:
    """Draws for one operation after the other."""

    def __init__(self) -> None:
        self._chance: Chance | None = None
        self._counts: Counter[str] = Counter()

    def draw(self, operation: str, chance: Chance) -> Stroke | None:
        """Return what strikes the next operation of this kind; None if nothing does.

        Another chance begins from the start.
        """
        if chance != self._chance:
            self._chance = chance
            self._counts.clear()
        self._counts[operation] += 1
        random = Random(f"{chance.seed} {operation} {self._counts[operation]}")
        if random.random() >= chance.rate:
            return None
        return Stroke(random.choice(STROKES[operation]), random.random())
