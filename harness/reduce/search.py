"""Shrinking, as two searches that know nothing of networks' insides: over operators, then over a network's details."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from harness.reduce.network import Reduced
from harness.reduce.steps import steps

Item = TypeVar("Item")


class Budget:
    """How long it may go on."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds

    @property
    def spent(self) -> bool:
        """Whether the time is over: what is smallest so far is the answer."""
        return time.monotonic() >= self._ends


def minimal_subset(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool], budget: Budget) -> list[Item]:
    """A subset that still fails, from which no single item can be left out (delta debugging).

    Source: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002, with complements only.
    """
    kept, parts = list(items), 2
    while len(kept) > 1 and not budget.spent:
        size = -(-len(kept) // parts)
        complements = [kept[:start] + kept[start + size :] for start in range(0, len(kept), size)]
        smaller = next((rest for rest in complements if rest and not budget.spent and fails(rest)), None)
        if smaller is not None:
            kept, parts = smaller, max(parts - 1, 2)
        elif parts < len(kept):
            parts = min(len(kept), 2 * parts)
        else:
            break
    return kept


def shrunk(network: Reduced, fails: Callable[[Reduced], bool], say: Callable[[str], None], budget: Budget) -> Reduced:
    """A network of which no step makes a smaller one that still fails."""
    tried = {network.key}
    while True:
        for step in steps(network):
            if budget.spent:
                return network
            if step.network.key in tried:
                continue
            tried.add(step.network.key)
            if fails(step.network):
                say(f"{step.what}: still fails")
                network = step.network
                break
        else:
            return network
