"""A statement of power: what the gate that ships detects, how often it cries wolf, and what it costs; and other tools.

    python -m benchmarks.detection [--quick] [--plot FILE.png]

The gate is the product's own (`benchmarks.simulated_gate`); only the device is simulated. Peers get as many sessions as
the gate took on the average, and each the bar that lets through exactly 0.5 % of `PEER_TRIALS` comparisons of that very
rig: hindsight that no user has. Prints Markdown, which docs/data/power.md holds. Seeds are fixed.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tabulate import tabulate

from benchmarks.detection_peers import BAR, PEERS, Sessions, limit
from benchmarks.detection_rigs import RIGS, Rig, RigMaker
from benchmarks.simulated_gate import run_gate, sessions_of
from harness.judge.verdict import Verdict

STEPS = (0.03, 0.05)
PEER_TRIALS = 10_000
DRAWS = 100
"""Rigs that are drawn for a limit: a mixed suite has a limit for each of its series."""


@dataclass(frozen=True)
class Size:
    """How many gates of a rig without a change, and at each step."""

    null: int
    step: int
    peers: int


FULL, QUICK = Size(3000, 600, PEER_TRIALS), Size(50, 25, 500)


@dataclass(frozen=True)
class Found:
    """What gates of one rig and step came to: shares, and sessions on the average."""

    slower: float
    faster: float
    same: float
    sessions: float
    trials: int


@dataclass(frozen=True)
class Row:
    """One rig at one step."""

    ours: Found
    limit: float
    peers: dict[str, float]
    a_side: int
    """Sessions that the peers and the limit had, on each side."""


@dataclass(frozen=True)
class Study:
    """One rig."""

    still: Found
    rows: dict[float, Row]


def main() -> None:
    """Print the study."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few trials, to see that it runs")
    parser.add_argument("--plot", type=Path, help="write the picture here")
    options = parser.parse_args()
    size, began = QUICK if options.quick else FULL, time.monotonic()
    studies = {name: study(make, size, number) for number, (name, make) in enumerate(RIGS.items())}
    print_errors(studies)
    for step in STEPS:
        print_found(studies, step)
    if options.plot:
        plot(studies, options.plot)
    print(f"\n{size.null} gates without a change and {size.step} at each step, in {time.monotonic() - began:.0f} s.")


def study(make: RigMaker, size: Size, seed: int) -> Study:
    """Gates, peers and the limit on one rig."""
    still = gates(make, 0.0, size.null, seed)
    rows: dict[float, Row] = {}
    for step in STEPS:
        ours = gates(make, step, size.step, seed)
        a_side = max(2, math.ceil(ours.sessions / 2))
        chance = np.random.default_rng([seed, 2])
        most = float(np.mean([limit(make(chance), step, a_side) for _ in range(DRAWS)]))
        rows[step] = Row(ours, most, peers(make, step, a_side, size, seed), a_side)
    return Study(still, rows)


def gates(make: RigMaker, step: float, trials: int, seed: int) -> Found:
    """So many gates of one case each."""
    cases = [run_gate(make, step, 100_000 * seed + trial) for trial in range(trials)]
    verdicts = [case.verdict for case in cases]
    slower, faster, same = (verdicts.count(one) / trials for one in (Verdict.SLOWER, Verdict.FASTER, Verdict.SAME))
    return Found(slower, faster, same, float(np.mean([sessions_of(case) for case in cases])), trials)


def peers(make: RigMaker, step: float, a_side: int, size: Size, seed: int) -> dict[str, float]:
    """Return the share of steps that each peer finds at its own bar."""
    chance = np.random.default_rng([seed, 3])
    still = [sides(make(chance), 0.0, a_side) for _ in range(size.peers)]
    stepped = [sides(make(chance), step, a_side) for _ in range(size.step)]
    found = {}
    for name, score in PEERS.items():
        bar = float(np.sort([score(*trial) for trial in still])[-1 - int(BAR * size.peers)])
        found[name] = float(np.mean([score(*trial) > bar for trial in stepped]))
    return found


def sides(rig: Rig, step: float, a_side: int) -> tuple[Sessions, Sessions]:
    """Return base and head in turns, so that a drift of the rig is no fault of a peer."""
    taken: tuple[Sessions, Sessions] = [], []
    for place in range(2 * a_side):
        head = place % 4 in (1, 2)
        taken[head].append(rig.session(step if head else 0.0))
    return taken


def print_errors(studies: dict[str, Study]) -> None:
    """Print false alarms, and `same` where something changed."""
    rows = [
        [name, *(share(value, one.still.trials) for value in (one.still.slower, one.still.faster)),
         f"{one.still.same:.1%}", f"{one.still.sessions:.0f}",
         share(one.rows[STEPS[0]].ours.same, one.rows[STEPS[0]].ours.trials)]
        for name, one in studies.items()
    ]  # fmt: skip
    print("\n## Errors\n")
    headers = ["rig", "called slower, unchanged", "called faster, unchanged", "`same`, unchanged", "sessions"]
    print(tabulate(rows, [*headers, f"`same`, {STEPS[0]:.0%} slower"], "github"))


def print_found(studies: dict[str, Study], step: float) -> None:
    """Print how often a step is found."""
    rows = []
    for name, one in studies.items():
        row = one.rows[step]
        others = (f"{row.peers[peer]:.1%}" for peer in PEERS)
        found = share(row.ours.slower, row.ours.trials)
        rows.append([name, found, f"{row.ours.sessions:.0f}", f"{row.limit:.1%}", *others, row.a_side])
    print(f"\n## A step of {step:.0%}\n")
    print(tabulate(rows, ["rig", "gate: found", "sessions", "limit", *PEERS, "a side"], "github"))


def share(value: float, trials: int) -> str:
    """Return a share with its 95 % Wilson interval."""
    from scipy.stats import binomtest

    interval = binomtest(round(value * trials), trials).proportion_ci(method="wilson")
    return f"{value:.2%} ({interval.low:.2%} to {interval.high:.2%})"


def plot(studies: dict[str, Study], path: Path) -> None:
    """Plot how often each step is found, rig by rig: the gate, the best peer, the limit."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(STEPS), figsize=(11, 4), sharey=True)
    for panel, step in zip(axes, STEPS, strict=True):
        rows = [one.rows[step] for one in studies.values()]
        series: Sequence[tuple[str, list[float]]] = (
            ("gate", [row.ours.slower for row in rows]),
            ("best peer, bar by hindsight", [max(row.peers.values()) for row in rows]),
            ("limit, noise known", [row.limit for row in rows]),
        )
        for number, (label, values) in enumerate(series):
            panel.barh(np.arange(len(rows)) + 0.27 * (number - 1), values, 0.27, label=label)
        panel.set(title=f"share of {step:.0%} steps found", xlim=(0, 1))
        panel.set_yticks(range(len(rows)), list(studies))
        panel.invert_yaxis()
    axes[0].legend(fontsize=8, loc="lower left")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
