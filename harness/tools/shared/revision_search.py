"""Bisection over a line of revisions some of which cannot be judged, names in, a name out; and how long it takes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from itertools import takewhile

from harness.measure.progress import Clock, duration


class RevisionState(str, Enum):
    """What a revision was found to be."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"
    """Cannot be judged: it does not build, or fails in another way than the one looked for."""


@dataclass(frozen=True)
class RevisionSearch:
    """A line of revisions, oldest first. The first is good and the last is bad; in between good turns bad once."""

    line: Sequence[str]
    states: Mapping[str, RevisionState] = field(default_factory=dict)
    """Verdicts on the revisions between, in the order in which they were judged."""

    @property
    def good(self) -> str:
        """The last revision that is known to be good."""
        return self.line[self._good]

    @property
    def bad(self) -> str:
        """The first revision that is known to be bad."""
        return self.line[self._bad]

    @property
    def candidates(self) -> list[str]:
        """All that may be the first bad revision: that one alone, if the search came so far."""
        return [*self.line[self._good + 1 : self._bad], self.bad]

    @property
    def next(self) -> str | None:
        """What to inspect next; None when nothing is left that could tell more.

        The middle of what is open. Neighbours of one that does not build mostly do not build either, so after each
        that was skipped the next goes elsewhere: to a quarter, to three quarters, to an eighth...
        """
        still_open = self._open
        return still_open[int(len(still_open) * _fraction(self._skipped_last))] if still_open else None

    @property
    def inspections_left(self) -> int:
        """How many more inspections it takes if all can be judged."""
        return len(self._open).bit_length()

    @property
    def _open(self) -> list[str]:
        return [name for name in self.line[self._good + 1 : self._bad] if name not in self.states]

    @property
    def _skipped_last(self) -> int:
        """How many inspections in a row, up to now, told nothing."""
        skips = takewhile(lambda state: state is RevisionState.SKIP, reversed(list(self.states.values())))
        return sum(1 for _ in skips)

    @property
    def _bad(self) -> int:
        states = [RevisionState.GOOD, *map(self.states.get, self.line[1:-1]), RevisionState.BAD]
        return states.index(RevisionState.BAD)

    @property
    def _good(self) -> int:
        states = [RevisionState.GOOD, *map(self.states.get, self.line[1 : self._bad])]
        return max(index for index, state in enumerate(states) if state is RevisionState.GOOD)


def _fraction(skipped: int) -> float:
    """Return the van der Corput sequence in base 2, from its second element on."""
    index, scale, value = skipped + 1, 0.5, 0.0
    while index:
        value += scale * (index % 2)
        index, scale = index // 2, scale / 2
    return value


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
