"""Steps of a history: false alarms, power and time. Run: python -m benchmarks.history_steps [TRIALS] [SEED] [--peers].

Twenty series of a rig are looked at together, as a history does (`harness.judge.stats.history`), after every one of the
twelve commits that follow their step of 5 %, or no step at all. An alarm is any step in a series that has none; a step
is found if one is told within three commits of its place. The last column has how much neighbours were found to
resemble each other in the series of one rig, and how many points of others that is worth to each.

`--peers` does the same with apache-otava and asv's `step_detect` (`pip install -e '.[detection]'`), on the same series.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from harness.base.tables import table
from harness.judge.stats.history import resemblance, segment
from harness.judge.stats.step import common_resemblance

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
Detector = Callable[[Sequence[list[float]]], list[list[int]]]
"""Where the series of a rig, each a list of times, are said to step."""


def main() -> None:
    """Print the table of steps, and that of times or of peers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trials", type=int, nargs="?", default=1000)
    parser.add_argument("seed", type=int, nargs="?", default=7)
    parser.add_argument("--peers", action="store_true")
    chosen = parser.parse_args()
    if chosen.peers:
        rows = [(name, *_peers(noise, chosen.trials, chosen.seed)) for name, noise in NOISES.items()]
        print(table(rows, ("noise", *PEERS), right=tuple(PEERS)))
        costs = {name: f"{_peer_ms(detector):.1f} ms" for name, detector in PEERS.items()}
        print(f"\na series of {COUNT} commits: {costs}")
        return
    rows = [(name, *_study(noise, chosen.trials, chosen.seed)) for name, noise in NOISES.items()]
    right = ("false alarms", f"{STEP:.0%} found")
    print(table(rows, ("noise", *right, "resemblance"), right=right))
    print()
    times = [(count, *(f"{_ms(count, drift):.1f} ms" for drift in (0.0, 0.0002))) for count in (500, 1000, 2000, 4000)]
    print(table(times, ("commits", "a series, one in ten with a step", "drifting")))


def _study(noise: Noise, trials: int, seed: int) -> tuple[str, str, str]:
    rigs = _rigs(noise, trials, seed)
    shared = common_resemblance([resemblance(values.tolist()) for values in rigs[0]])
    return *_rates(rigs, _ours), f"{shared.alike:.2f} ({shared.points:.0f})"


def _peers(noise: Noise, trials: int, seed: int) -> list[str]:
    rigs = _rigs(noise, trials, seed)
    return [" / ".join(_rates(rigs, detector)) for detector in PEERS.values()]


def _rigs(noise: Noise, trials: int, seed: int) -> list[list[Array]]:
    generator = np.random.default_rng(seed)
    return [[20 * np.exp(noise(generator)) for _ in range(RIG)] for _ in range(-(-trials // RIG))]


def _rates(rigs: Sequence[Sequence[Array]], detector: Detector) -> tuple[str, str]:
    """Share of series with an alarm, and of a fifth of them, given a step, in which it was found."""
    alarms = sum(alarm for rig in rigs for alarm in _looks(rig, detector, lambda _: True))
    step = np.where(np.arange(COUNT) >= BEFORE, 1 + STEP, 1.0)
    stepped = [[values * step for values in rig] for rig in rigs[: -(-len(rigs) // 5)]]
    found = sum(one for rig in stepped for one in _looks(rig, detector, lambda place: abs(place - BEFORE) <= 3))
    return f"{alarms / (len(rigs) * RIG):.2%}", f"{found / (len(stepped) * RIG):.0%}"


def _looks(rig: Sequence[Array], detector: Detector, counts: Callable[[int], bool]) -> list[bool]:
    """Of each series, whether a step that counts is told after any of the commits."""
    told = [False] * len(rig)
    for end in range(BEFORE + 1, COUNT + 1):
        for number, places in enumerate(detector([values[:end].tolist() for values in rig])):
            told[number] |= any(map(counts, places))
    return told


def _ours(rig: Sequence[list[float]]) -> list[list[int]]:
    others = common_resemblance([resemblance(values) for values in rig])
    return [[step.index for step in segment(values, others=others)] for values in rig]


def _otava(rig: Sequence[list[float]], max_pvalue: float) -> list[list[int]]:
    from otava.analysis import compute_change_points

    return [[point.index for point in compute_change_points(values, max_pvalue=max_pvalue)[0]] for values in rig]


def _asv(rig: Sequence[list[float]], threshold: float) -> list[list[int]]:
    """Return what asv's pages call regressions: steps to slower alone, so that of its alarms only half are counted."""
    from asv.step_detect import detect_regressions, detect_steps

    found = [detect_regressions(detect_steps(values), threshold)[2] or [] for values in rig]
    return [[after for _, after, *_ in one if after is not None] for one in found]


def _ms(count: int, drift: float, series: int = 20) -> float:
    generator = np.random.default_rng(1)
    began = time.process_time()
    for number in range(series):
        step = 0.06 * (np.arange(count) > count * 0.6) * (number % 10 == 0)
        logs = SD * generator.normal(size=count) + step + drift * np.arange(count)
        segment((20 * np.exp(logs)).tolist())
    return (time.process_time() - began) / series * 1e3


def _peer_ms(detector: Detector) -> float:
    (rig,) = _rigs(NOISES["normal, 1.2 %"], RIG, 1)
    values = [one.tolist() for one in rig]
    began = time.process_time()
    detector(values)
    return (time.process_time() - began) / RIG * 1e3


def _resembling(share: float) -> Noise:
    def noise(generator: np.random.Generator) -> Array:
        values = generator.normal(size=COUNT)
        for index in range(1, COUNT):
            values[index] = share * values[index - 1] + np.sqrt(1 - share**2) * values[index]
        return np.asarray(SD * values)

    return noise


def _coarse(generator: np.random.Generator) -> Array:
    """Return a clock of 1 %, and noise of a third of a tick."""
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

PEERS: dict[str, Detector] = {
    "ours": _ours,
    "otava, p < 0.001": partial(_otava, max_pvalue=0.001),
    "otava, p < 0.00001": partial(_otava, max_pvalue=0.00001),
    "asv, any": partial(_asv, threshold=0.0),
    "asv, 5 %": partial(_asv, threshold=0.05),
}
"""As shipped, otava is as sure as 0.001, and asv leaves out what is below 5 %."""

if __name__ == "__main__":
    main()
