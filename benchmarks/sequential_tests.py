"""Which sequential test is the strongest at the same error: ways of spending it, and the anytime-valid t-test.

    python -m benchmarks.sequential_tests [TRIALS]

Normal sessions in turns, 2 of each side from look to look; the change is sought at 0.5 % and 3 % is relevant, excluded
at 5 %. docs/explanation/verdicts.md has some of its rows.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit
from scipy.stats import norm
from tabulate import tabulate

from harness.judge.stats.spending import solve

LOOKS, MARGIN = 8, 3.0
ALPHA, BETA = 0.005, 0.05
NOISES = (1.2, 1.6, 3.1)
"""Standard deviations between sessions, in percent."""
STEPS = (0.0, 3.0, 5.0)
EFFECT = 3.0
"""Of the anytime-valid test: the size of change, in standard deviations, for which it is sharpest."""

Array = NDArray[np.float64]
Test = Callable[[int, Array, Array, float], tuple[NDArray[np.bool_], NDArray[np.bool_]]]
"""Of the look, the changes, their standard errors and the degrees of freedom: what is changed, and what is the same."""


def spending(spent: Callable[[float, float], float]) -> Test:
    """Return the two tests that spend their errors so: `spent` of the error and of the share of the sessions."""
    bounds = [solve([spent(error, (k + 1) / LOOKS) for k in range(LOOKS)], LOOKS) for error in (ALPHA, BETA)]

    def test(look: int, shift: Array, error: Array, df: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        change, same = (-stdtrit(df, ndtr(-bound[look])) for bound in bounds)
        return np.abs(shift) > change * error, np.abs(shift) + same * error < MARGIN

    return test


def anytime(look: int, shift: Array, error: Array, df: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the mixture over normal effects (Rouder et al. 2009), by Ville's inequality."""
    scale = 1 + (look + 1) * EFFECT**2

    def evidence(change: float) -> Array:
        t2 = ((shift - change) / error) ** 2
        found: Array = (df + 1) / 2 * (np.log1p(t2 / df) - np.log1p(t2 / (scale * df))) - math.log(scale) / 2
        return found

    excluded = np.minimum(evidence(MARGIN), evidence(-MARGIN)) > math.log(1 / BETA)
    return evidence(0.0) > math.log(1 / (2 * ALPHA)), (np.abs(shift) < MARGIN) & excluded


TESTS: dict[str, Test] = {
    "evenly": spending(lambda error, share: error * share),
    "with the square of the share (ours)": spending(lambda error, share: error * share**2),
    "with its cube": spending(lambda error, share: error * share**3),
    "as Pocock": spending(lambda error, share: error * math.log(1 + (math.e - 1) * share)),
    "as O'Brien and Fleming": spending(lambda error, share: 2 * float(norm.sf(norm.isf(error / 2) / math.sqrt(share)))),
    "anytime-valid": anytime,
}


def follow(test: Test, noise: float, step: float, trials: int) -> tuple[float, float, float]:
    """Share that is called slower, and the same; sessions on the average."""
    chance = np.random.default_rng(1)
    base, head = noise * chance.normal(size=(2, trials, 2 * LOOKS))
    slower, same, taken = np.zeros(trials, bool), np.zeros(trials, bool), np.full(trials, 4.0 * LOOKS)
    still = np.ones(trials, bool)
    for look in range(LOOKS):
        sides = base[:, : 2 * look + 2], head[:, : 2 * look + 2] + step
        shift = sides[1].mean(1) - sides[0].mean(1)
        variance = sum(side.var(1, ddof=1) for side in sides) / 2
        changed, alike = test(look, shift, np.sqrt(variance / (look + 1)), 4 * look + 2)
        same |= still & alike
        slower |= still & ~alike & changed & (shift > 0)
        taken[still & (changed | alike)] = 4 * look + 4
        still &= ~(changed | alike)
    return float(slower.mean()), float(same.mean()), float(taken.mean())


def main(trials: int) -> None:
    """Print the table."""
    rows = []
    for noise in NOISES:
        for name, test in TESTS.items():
            cells = (follow(test, noise, step, trials) for step in STEPS)
            told = [f"{slower:.1%} / {same:.1%} / {taken:.0f}" for slower, same, taken in cells]
            rows.append([f"{noise} %", name, *told])
    headers = ["noise", "error spent", "unchanged: slower / same / sessions"]
    print(tabulate(rows, [*headers, *(f"{step:.0f} % slower" for step in STEPS[1:])], "github"))


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:] or ["20000"]))
