"""Draws what a schedule leaves open: how loops are split, and which of some numbers is taken.

TVM's rules draw each at random, and most of what comes out no device could run, or has hundreds of kilobytes of source.
So they are drawn here, within limits, before TVM is asked to apply anything.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

from harness.compile.schedules.database import ThreadLimits
from harness.compile.schedules.spaces import CHOICE, TILE, Decision, OpenDecision, ScheduleRules, TexelConv

ATTEMPTS, SEED_STEP = 4, 1_000_003
"""Schedules that are drawn for a seed until one is within the device's limits, and how far their own seeds are apart:
neighbours belong to the next trials, which would otherwise try the same again."""
LEVELS = 5
"""Into so many loops TVM's rules for GPUs split one that is not summed over: groups, virtual threads, work-items, and
two inside one. Those that are summed over are three."""
MOST_UNROLLED = 256
"""Steps of a loop that is unrolled. TVM's rules have up to 1024, at about 300 bytes of source each."""
MOST_ACCUMULATORS = 64
"""Numbers that one work-item of a tiled loop nest computes. No GPU for phones keeps more in registers."""
LEAST_ITEMS = 32
"""Work-items of a group, where the loops allow it: with fewer, a GPU is idle for the most part."""
DRAWS = 400
"""Most draws of one schedule's splits until they keep all limits."""


def schedule_of(space: ScheduleRules | TexelConv, seed: int) -> Any:
    """Return the schedule of a trial; None if no device could run those of its seed. Raises what TVM raises.

    A seed always draws the same.
    """
    draws = (_sample(space, seed + attempt * SEED_STEP) for attempt in range(ATTEMPTS))
    return next((schedule for schedule in draws if schedule is not None), None)


def _sample(space: ScheduleRules | TexelConv, seed: int) -> Any:
    """Draw one of the choices of a space, or the tile sizes of one of its designs."""
    if isinstance(space, TexelConv):
        return space.make(space.choices[seed % len(space.choices)])
    design = space.designs[seed % len(space.designs)]
    drawn = draw(design.opens, seed, space.limits)
    return None if drawn is None else space.make(design, drawn, seed)


def draw(opens: Sequence[OpenDecision], seed: int, limits: ThreadLimits) -> list[Decision | None] | None:
    """Return the decisions of a seed; None for each that is left to TVM, or for all if no draw kept the limits."""
    numbers = random.Random(seed)
    least = LEAST_ITEMS
    for count in range(DRAWS):
        drawn = [_drawn(decision, numbers) for decision in opens]
        if count == DRAWS // 2:
            least = 1  # loops that cannot be split into so many
        if _is_within(drawn, least, limits):
            return drawn
    return None


def _drawn(decision: OpenDecision, numbers: random.Random) -> Decision | None:
    if decision.kind == CHOICE:
        return numbers.choice(
            [index for index, number in enumerate(decision.numbers) if number <= MOST_UNROLLED] or [0]
        )
    return _split(decision, numbers) if decision.kind == TILE else None


def _split(decision: OpenDecision, numbers: random.Random) -> list[int]:
    """Split an extent by giving each of its prime factors to one of the parts."""
    parts = [1] * decision.parts
    for prime in _primes(decision.extent):
        at = numbers.randrange(decision.parts)
        if at == decision.parts - 1 and parts[at] * prime > decision.most_inner:
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


def _is_within(drawn: Sequence[Decision | None], least: int, limits: ThreadLimits) -> bool:
    """Return whether groups have an allowed number of work-items, and these no more sums than they can hold."""
    tiles = [parts for parts in drawn if isinstance(parts, list) and len(parts) == LEVELS]
    if not tiles:
        return True
    items = math.prod(parts[2] for parts in tiles)
    each = math.prod(parts[1] * parts[3] * parts[4] for parts in tiles)
    return least <= items <= limits.items and each <= MOST_ACCUMULATORS
