"""Which case of which build is run when."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice, zip_longest

from harness.bundle.manifest import Build, PackedCase, Turn
from harness.judge.sides import SeriesKey
from harness.judge.stats.turns import Arm, order


def one_after_the_other(builds: Mapping[str, Build], sessions: int) -> list[Turn]:
    """Each case once, then each again; a case without a library, whose outcome is known, once."""
    (name, build), *_ = builds.items()
    return [Turn(name, one.case) for session in range(sessions) for one in build.cases if not session or runs(one)]


def turns_of(base: Build, head: Build, sessions: int) -> list[Turn]:
    """Base and head of each case in turns, as `harness.judge` would ask for them; a block of each case at a time.

    The first session of both sides screens the case; the rest are shuffled blocks of two of each, seeded by its name.
    """
    there = {one.case: one for one in base.cases}
    blocks = [_blocks(there.get(one.case), one, head.as_shipped, sessions) for one in head.cases]
    gone = [Turn(Arm.BASE.value, case) for case in there if case not in {one.case for one in head.cases}]
    return [turn for round_ in zip_longest(*blocks, fillvalue=[]) for block in round_ for turn in block] + gone


def name_of(case: str, as_shipped: bool) -> str:
    """What seeds the order of a case's sessions: its series, on whichever device it will be."""
    return str(SeriesKey("", case, as_shipped))


def runs(packed: PackedCase) -> bool:
    """Whether there is anything to run."""
    return not packed.artifact.failure and not packed.refused


def _blocks(base: PackedCase | None, head: PackedCase, as_shipped: bool, sessions: int) -> list[list[Turn]]:
    turn = {arm: Turn(arm.value, head.case) for arm in Arm}
    if base is None:
        return [[turn[Arm.HEAD]]]
    begun = [Arm.BASE, Arm.HEAD]
    if not runs(base) or not runs(head):
        return [[turn[arm] for arm in begun]]
    whole = max(1, -(-sessions // 2))  # blocks of four, two of each side
    arms = [*begun, *islice(order(name_of(head.case, as_shipped), begun), 4 * whole - len(begun))]
    return [[turn[arm] for arm in arms[start : start + 4]] for start in range(0, len(arms), 4)]
