"""Where the sessions of benchmarks/detection.py come from: noise of known kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

SAMPLES = 10
BASE_MS = 20.0
WITHIN, BIAS = 0.02, 0.01
"""Standard deviations within a session and between sessions, unless a rig says otherwise."""

Array = NDArray[np.float64]


class Rig(Protocol):
    """A device that runs one case, session after session."""

    def session(self, step: float = 0.0) -> list[float]:
        """Return samples in ms of the next session, with the case made slower by `step` (a fraction)."""


RigMaker = Callable[[np.random.Generator], Rig]


class Synthetic:
    """Sessions of synthetic noise: `within` makes the samples' log noise, `between` that of the n-th session."""

    def __init__(
        self, generator: np.random.Generator, within: Callable[[int], Array], between: Callable[[int], float]
    ) -> None:
        self._generator, self._within, self._between, self._taken = generator, within, between, 0

    def session(self, step: float = 0.0) -> list[float]:
        """See Rig."""
        log = self._between(self._taken) + self._within(SAMPLES) + np.log1p(step)
        self._taken += 1
        return [float(value) for value in BASE_MS * np.exp(log)]


def gaussian(generator: np.random.Generator, scale: float = 1.0) -> Rig:
    """Return normal noise within and between sessions."""
    return Synthetic(
        generator,
        lambda count: scale * WITHIN * generator.normal(size=count),
        lambda taken: scale * BIAS * float(generator.normal()),
    )


def heavy_tailed(generator: np.random.Generator) -> Rig:
    """Student's t with 3 degrees of freedom within and between sessions, with the standard deviations of `gaussian`."""
    return Synthetic(
        generator,
        lambda count: WITHIN / np.sqrt(3) * generator.standard_t(3, size=count),
        lambda taken: BIAS / np.sqrt(3) * float(generator.standard_t(3)),
    )


def autocorrelated(generator: np.random.Generator) -> Rig:
    """Return samples that are 0.7 of the one before and 0.7 new noise."""

    def within(count: int) -> Array:
        values = generator.normal(size=count)
        for index in range(1, count):
            values[index] = 0.7 * values[index - 1] + np.sqrt(1 - 0.7**2) * values[index]
        return np.asarray(WITHIN * values)

    return Synthetic(generator, within, lambda taken: BIAS * float(generator.normal()))


def bimodal(generator: np.random.Generator) -> Rig:
    """Three samples in ten, and one session in ten, are 5 % slower."""
    return Synthetic(
        generator,
        lambda count: WITHIN / 2 * generator.normal(size=count) + 0.05 * (generator.random(count) < 0.3),
        lambda taken: BIAS * float(generator.normal()) + 0.05 * float(generator.random() < 0.1),
    )


def drifting(generator: np.random.Generator) -> Rig:
    """`gaussian`, and 0.2 % slower or faster with each session."""
    slope = 0.002 * float(generator.choice([-1, 1]))
    return Synthetic(
        generator,
        lambda count: WITHIN * generator.normal(size=count),
        lambda taken: BIAS * float(generator.normal()) + slope * taken,
    )


def biased(generator: np.random.Generator) -> Rig:
    """Sessions agree within themselves to 0.3 % and differ from each other by 3 %."""
    return Synthetic(
        generator,
        lambda count: 0.003 * generator.normal(size=count),
        lambda taken: 0.03 * float(generator.normal()),
    )


def mixed(generator: np.random.Generator) -> Rig:
    """Return a suite: each series is `gaussian` with its own noise, from a quarter to four times as much."""
    return gaussian(generator, float(4.0 ** generator.uniform(-1, 1)))


def phone(generator: np.random.Generator, bias: float = 0.015) -> Rig:
    """Return a phone that keeps its clocks: normal noise, sessions 1.5 % apart unless another `bias` is given."""
    return Synthetic(
        generator,
        lambda count: WITHIN * generator.normal(size=count),
        lambda taken: bias * float(generator.normal()),
    )


RIGS: dict[str, RigMaker] = {
    "gaussian": gaussian,
    "heavy-tailed": heavy_tailed,
    "autocorrelated": autocorrelated,
    "bimodal": bimodal,
    "slow drift": drifting,
    "session bias": biased,
    "mixed suite": mixed,
    "phone, 1.5 %": phone,
}
