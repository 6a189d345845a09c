"""What strikes which operation by chance, and again with the same seed.

It depends on the seed, on the kind of the operation and on how many of its kind came before, not on what else goes on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

from device_runner.virtual.faults import Chance

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
        self._seen: Counter[str] = Counter()

    def draw(self, operation: str, chance: Chance) -> Stroke | None:
        """What strikes the next operation of this kind; None if nothing does. Another chance begins from the start."""
        if chance != self._chance:
            self._chance = chance
            self._seen.clear()
        self._seen[operation] += 1
        random = Random(f"{chance.seed} {operation} {self._seen[operation]}")
        if random.random() >= chance.rate:
            return None
        return Stroke(random.choice(STROKES[operation]), random.random())
