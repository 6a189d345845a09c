"""How long the steps of a search take, and what is left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from harness.measure.progress import Clock, duration


class Pace:
    """Times steps of a search, to say how long those that are left take."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._took_s: list[float] = []

    @contextmanager
    def step(self) -> Iterator[None]:
        """Time one."""
        began = self._clock()
        yield
        self._took_s.append(self._clock() - began)

    def left(self, steps: int) -> str:
        """Return `, about 2 min left`, by the mean of those before; empty before the first."""
        if not self._took_s:
            return ""
        return f", about {duration(sum(self._took_s) / len(self._took_s) * steps)} left"
