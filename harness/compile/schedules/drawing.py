"""Draws what a schedule leaves open: how loops are split, and which of some numbers is taken.

TVM's rules draw each at random, and most of what comes out no device could run, or has hundreds of kilobytes of source.
So they are drawn here, within limits, before TVM is asked to apply anything.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from device_runner.device import Identity

TILE, CHOICE = "SamplePerfectTile", "SampleCategorical"
"""TVM's instructions that draw: how a loop is split into so many, and one of some numbers."""
LEVELS = 5
"""Into so many loops TVM's rules for GPUs split one that is not summed over: groups, virtual threads, work-items, and
two inside one. Those that are summed over are three."""
MOST_UNROLLED = 256
"""Steps of a loop that is unrolled. TVM's rules have up to 1024, at about 300 bytes of source each."""
MOST_ACCUMULATORS = 64
"""Numbers that one work-item of a tiled loop nest computes. No GPU for phones keeps more in registers."""
LEAST_ITEMS = 32
"""Work-items of a group, where the loops allow it: with fewer, a GPU is idle for the most part."""
MOST_ITEMS, MOST_LOCAL_BYTES = 1024, 65_536
"""Most work-items and local memory of a work-group on any device."""
DRAWS = 400
"""Most draws of one schedule's splits until they keep all limits."""

Decision = int | list[int]
"""For a loop, the extents of its parts, outermost first; else the number of the choice."""


@dataclass(frozen=True)
class ThreadLimits:
    """What a work-group may have. The defaults are those of TVM's target for Adreno, for a device that does not say."""

    items: int = 256
    local_bytes: int = 16_384

    @classmethod
    def of(cls, identity: Identity) -> ThreadLimits:
        """Return the limits of a device, and no more than any GPU has: OpenCL on CPUs reports thousands of items."""
        items, local_bytes = identity.work_group_items, identity.local_memory_bytes
        return cls(min(items, MOST_ITEMS) or cls.items, min(local_bytes, MOST_LOCAL_BYTES) or cls.local_bytes)


MOST = ThreadLimits(MOST_ITEMS, MOST_LOCAL_BYTES)
"""Limits of a schedule that was right on some device."""


@dataclass(frozen=True)
class OpenDecision:
    """One thing that a schedule leaves open."""

    kind: str
    extent: int = 1
    """Extent of the loop that is split."""
    parts: int = 1
    most_inner: int = 1
    numbers: tuple[float, ...] = ()
    """What one is chosen of."""

    def fits(self, decision: Any) -> bool:
        """Return whether a decision is one of this."""
        if self.kind == TILE:
            parts = decision if isinstance(decision, list) else []
            return len(parts) == self.parts and math.prod(parts) == self.extent and min(parts) > 0
        return type(decision) is int and (self.kind != CHOICE or 0 <= decision < len(self.numbers))


def draw(opens: Sequence[OpenDecision], seed: int, limits: ThreadLimits) -> list[Decision | None] | None:
    """Decisions that belong to a seed; None for each that is left to TVM, or for all if no draw kept the limits."""
    numbers = random.Random(seed)
    wanted = LEAST_ITEMS
    for count in range(DRAWS):
        drawn = [_drawn(one, numbers) for one in opens]
        if count == DRAWS // 2:
            wanted = 1  # loops that cannot be split into so many
        if _is_within(drawn, wanted, limits):
            return drawn
    return None


def _drawn(one: OpenDecision, numbers: random.Random) -> Decision | None:
    if one.kind == CHOICE:
        return numbers.choice([index for index, number in enumerate(one.numbers) if number <= MOST_UNROLLED] or [0])
    return _split(one, numbers) if one.kind == TILE else None


def _split(one: OpenDecision, numbers: random.Random) -> list[int]:
    """Split an extent by giving each of its prime factors to one of the parts."""
    parts = [1] * one.parts
    for prime in _primes(one.extent):
        at = numbers.randrange(one.parts)
        if at == one.parts - 1 and parts[at] * prime > one.most_inner:
            at = 0
        parts[at] *= prime
    return parts


def _primes(number: int) -> Iterator[int]:
    prime = 2
    while number > 1:
        while number % prime == 0:
            yield prime
            number //= prime
        prime += 1


def _is_within(drawn: Sequence[Decision | None], wanted: int, limits: ThreadLimits) -> bool:
    """Return whether groups have an allowed number of work-items, and these no more sums than they can hold."""
    tiles = [parts for parts in drawn if isinstance(parts, list) and len(parts) == LEVELS]
    if not tiles:
        return True
    items = math.prod(parts[2] for parts in tiles)
    each = math.prod(parts[1] * parts[3] * parts[4] for parts in tiles)
    return wanted <= items <= limits.items and each <= MOST_ACCUMULATORS
