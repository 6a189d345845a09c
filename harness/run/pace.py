"""How far a run has come, how long the rest may take, and when a silence has lasted long enough."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds from some beginning on, such as `time.monotonic`."""

STILL = "still: "
"""How a line begins that says what goes on, where nothing was said for long."""


class Tally:
    """Counts what is done of what is to be done."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._began = 0.0
        self._total = self._done = 0

    def expect(self, count: int) -> None:
        """So many more are to be done. After a pause the clock starts anew."""
        if self._done == self._total:
            self._began, self._total, self._done = self._clock(), 0, 0
        self._total += count

    def did(self) -> None:
        """One more is done; one that nobody expected counts for nothing."""
        self._done = min(self._total, self._done + 1)

    def __str__(self) -> str:
        """`3 of 9, about 2 min left`: how many are done; empty when there is nothing to do."""
        if self._done == self._total:
            return ""
        left = f", about {_duration(self._left_s)} left" if self._done else ""
        return f"{self._done} of {self._total}{left}"

    @property
    def _left_s(self) -> float:
        """If the rest goes as what is done did."""
        return (self._clock() - self._began) / self._done * (self._total - self._done)


class Silence:
    """Says when to speak up in a silence: after 5 s, then ever more rarely, yet once a minute; anew after any word."""

    FIRST_S, LONGEST_S = 5.0, 60.0

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self.broken()

    def broken(self) -> None:
        """Something was said."""
        self._since, self._gap_s = self._clock(), self.FIRST_S

    @property
    def too_long(self) -> bool:
        """Whether to speak up now; if so, the next time is farther away."""
        if self._clock() - self._since < self._gap_s:
            return False
        self._since, self._gap_s = self._clock(), min(2 * self._gap_s, self.LONGEST_S)
        return True


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
