"""What a gate says of code that did not change, if its noise profile is that of a quieter rig.

    python -m benchmarks.wrong_noise_profile [COMPARISONS]

Each comparison is one session against a baseline of four, judged and confirmed as `adreno-bench gate` does it, on
synthetic rigs. The profile says 1 %, learnt from 16 sessions. Seeds are fixed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

from harness.judge.compare import compare_sides
from harness.judge.confirm import judge
from harness.judge.sides import SeriesKey, Side
from harness.judge.stats.pair import Rules
from harness.judge.stats.session import Noise
from harness.judge.stats.turns import Arm
from harness.judge.verdict import Verdict
from harness.run.outcome import Outcome
from harness.run.record import Record

Rig = Callable[[random.Random], float]
"""Draws the bias of a session, 1 for none."""

KEY = SeriesKey("rig", "tiny-opencl-float32-untuned")
CALIBRATED = Noise(0.01, 15)
RULES = Rules()


def normal(sd: float) -> Rig:
    """Sessions apart by a normal factor."""
    return lambda chance: chance.gauss(1, sd)


def two_groups(chance: random.Random) -> float:
    """Sessions in two groups, 8 % apart."""
    return chance.choice((1.0, 1.08)) * chance.gauss(1, 0.005)


RIGS: dict[str, Rig] = {f"{sd:.0%} apart": normal(sd) for sd in (0.01, 0.02, 0.04, 0.08)} | {"two groups": two_groups}


def alarms(rig: Rig, noise: Noise | None, comparisons: int, step: float = 0.0) -> float:
    """Share of comparisons that end `slower` or `faster`; head is slower by `step`."""
    chance = random.Random(3)

    def samples(factor: float) -> tuple[float, ...]:
        middle = 10 * factor * rig(chance)
        return tuple(middle * chance.gauss(1, 0.02) for _ in range(10))

    def one() -> Verdict:
        base = Side(KEY, Outcome.OK, sessions=tuple(samples(1) for _ in range(4)), artifact="base")
        head = Side(KEY, Outcome.OK, sessions=(samples(1 + step),), artifact="head")
        noises = {KEY: noise} if noise else {}
        result = compare_sides({KEY: base}, {KEY: head}, RULES, noises=noises)

        def measure(side: Arm) -> Record:
            ms = list(samples(1 + step if side is Arm.HEAD else 1))
            facts: dict[str, Any] = {"outcome": Outcome.OK, "wall_ms": ms}
            return Record.model_construct(**facts)

        (case,) = judge(result, RULES, lambda _: measure, noises=noises).cases
        return case.verdict

    return sum(one() in (Verdict.SLOWER, Verdict.FASTER) for _ in range(comparisons)) / comparisons


def main(comparisons: int) -> None:
    """Print one line for each rig."""
    print(f"{comparisons} comparisons each; share that ends slower or faster")
    for name, rig in RIGS.items():
        without, known = (alarms(rig, noise, comparisons) for noise in (None, CALIBRATED))
        print(f"{name}: without a noise profile {without:.2%}, with one of 1 % {known:.2%}", flush=True)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:] or ["400"]))
