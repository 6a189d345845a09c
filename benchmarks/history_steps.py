"""Steps of a history: false alarms, power and time. Run: python -m benchmarks.history_steps [TRIALS] [SEED]

Twenty series of a rig are looked at together, as a history does (`harness.judge.stats.history`), after every one of the
twelve commits that follow their step of 5 %, or no step at all. An alarm is any step in a series that has none; a step
is found if one is told within three commits of its place. The last column has how much neighbours were found to
resemble each other in the series of one rig, and how many points of others that is worth to each.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from harness.judge.stats.history import resemblance, segment
from harness.judge.stats.resemblance import in_common
from harness.tables import table

BEFORE, AFTER = 45, 12
STEP = 0.05
RIG = 20
"""Series of one rig."""
SD = 0.012
"""Of a session, unless a kind of noise says otherwise."""

Array = NDArray[np.float64]
Noise = Callable[[np.random.Generator], Array]
"""Draws the logarithms of one series."""
COUNT = BEFORE + AFTER


def main() -> None:
    """Print both tables."""
    trials, seed = (int(word) for word in (*sys.argv[1:], *("1000", "7")[len(sys.argv) - 1 :]))
    rows = [(name, *_study(noise, trials, seed)) for name, noise in NOISES.items()]
    right = ("false alarms", f"{STEP:.0%} found")
    print(table(rows, ("noise", *right, "resemblance"), right=right))
    print()
    times = [(count, *(f"{_ms(count, drift):.1f} ms" for drift in (0.0, 0.0002))) for count in (500, 1000, 2000, 4000)]
    print(table(times, ("commits", "a series, one in ten with a step", "drifting")))


def _study(noise: Noise, trials: int, seed: int) -> tuple[str, str, str]:
    generator = np.random.default_rng(seed)
    rigs = [[20 * np.exp(noise(generator)) for _ in range(RIG)] for _ in range(-(-trials // RIG))]
    alarms = sum(alarm for rig in rigs for alarm in _looks(rig, lambda _: True))
    step = np.where(np.arange(COUNT) >= BEFORE, 1 + STEP, 1.0)
    stepped = [[values * step for values in rig] for rig in rigs[: -(-len(rigs) // 5)]]
    found = sum(one for rig in stepped for one in _looks(rig, lambda place: abs(place - BEFORE) <= 3))
    shared = in_common([resemblance(values.tolist()) for values in rigs[0]])
    counts = len(rigs) * RIG, len(stepped) * RIG
    return f"{alarms / counts[0]:.2%}", f"{found / counts[1]:.0%}", f"{shared.alike:.2f} ({shared.points:.0f})"


def _looks(rig: Sequence[Array], counts: Callable[[int], bool]) -> list[bool]:
    """Of each series, whether a step that counts is told after any of the commits."""
    told = [False] * len(rig)
    for end in range(BEFORE + 1, COUNT + 1):
        seen = [values[:end].tolist() for values in rig]
        others = in_common([resemblance(values) for values in seen])
        for number, values in enumerate(seen):
            told[number] |= any(counts(step.index) for step in segment(values, others=others).steps)
    return told


def _ms(count: int, drift: float, series: int = 20) -> float:
    generator = np.random.default_rng(1)
    began = time.process_time()
    for number in range(series):
        step = 0.06 * (np.arange(count) > count * 0.6) * (number % 10 == 0)
        logs = SD * generator.normal(size=count) + step + drift * np.arange(count)
        segment((20 * np.exp(logs)).tolist())
    return (time.process_time() - began) / series * 1e3


def _resembling(share: float) -> Noise:
    def noise(generator: np.random.Generator) -> Array:
        values = generator.normal(size=COUNT)
        for index in range(1, COUNT):
            values[index] = share * values[index - 1] + np.sqrt(1 - share**2) * values[index]
        return np.asarray(SD * values)

    return noise


def _coarse(generator: np.random.Generator) -> Array:
    """A clock of 1 %, and noise of a third of a tick."""
    exact = 1 + 0.003 * generator.normal(size=COUNT) + 0.01 * generator.uniform(-0.5, 0.5)
    return np.asarray(np.log(np.round(exact / 0.01) * 0.01))


def _drifting(generator: np.random.Generator) -> Array:
    return np.asarray(SD * generator.normal(size=COUNT) + 0.002 * generator.choice([-1, 1]) * np.arange(COUNT))


NOISES: dict[str, Noise] = {
    "normal, 1.2 %": lambda generator: SD * generator.normal(size=COUNT),
    "normal, 3 %": lambda generator: 0.03 * generator.normal(size=COUNT),
    "mixed suite, 0.3 to 4.8 %": lambda generator: SD * 4 ** generator.uniform(-1, 1) * generator.normal(size=COUNT),
    "Student's t, 3 degrees of freedom": lambda generator: SD / np.sqrt(3) * generator.standard_t(3, size=COUNT),
    "one session in ten 5 % slower": lambda generator: (
        SD * generator.normal(size=COUNT) + 0.05 * (generator.random(COUNT) < 0.1)
    ),
    "drift of 0.2 % a commit": _drifting,
    "neighbours resemble, 0.5": _resembling(0.5),
    "neighbours resemble, 0.8": _resembling(0.8),
    "neighbours resemble, each series by 0 to 0.8": lambda generator: _resembling(generator.uniform(0, 0.8))(generator),
    "clock of 1 %": _coarse,
}

if __name__ == "__main__":
    main()
