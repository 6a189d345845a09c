"""The gate on sessions that a real GPU recorded: by the wall clock alone, by both, and after learning its noise.

    python -m benchmarks.recorded_clocks [benchmarks/sessions/h100.jsonl] [GATES] [SERIES]

Sessions are played back in random order; head is made slower by scaling the samples of both clocks. Prints Markdown.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from tabulate import tabulate

from benchmarks.simulated_gate import run_gate
from harness.judge.verdict import Verdict
from harness.measure.records.record import Record, RecordFile

TRIALS = 20
STEPS = (0.0, 0.015, 0.03)
LEARNED = 16
WAYS = {"wall": (False, 0), "both": (True, 0), "both, learned": (True, LEARNED)}
"""Whether there are kernels' times, and how many sessions of the series were kept before."""


class Playback:
    """Recorded sessions in random order, without repeats until all have been played."""

    def __init__(self, records: Sequence[Record], both: bool, generator: np.random.Generator) -> None:
        self._records, self._both, self._generator = records, both, generator
        self._deck: list[int] = []
        self.device_ms: list[float] = []
        """Of the last session; empty if the wall clock is to be the only one."""

    def session(self, step: float = 0.0) -> list[float]:
        """See `benchmarks.detection_rigs.Rig`."""
        self._deck = self._deck or list(self._generator.permutation(len(self._records)))
        record = self._records[self._deck.pop()]
        self.device_ms = [ms * (1 + step) for ms in record.device_ms] if self._both else []
        return [ms * (1 + step) for ms in record.wall_ms]


def found(records: Sequence[Record], both: bool, learned: int, step: float, trials: int) -> float:
    """Share of gates that call it slower, after so many sessions of the series were learned."""
    make = partial(Playback, records, both)
    cases = (run_gate(make, step, trial, day_sd=0.0, learned=learned) for trial in range(trials))
    return sum(case.verdict is Verdict.SLOWER for case in cases) / trials


def noise(sessions: Sequence[Sequence[float]]) -> float:
    """Return standard deviation between the sessions' median logarithms."""
    return float(np.std([np.median(np.log(samples)) for samples in sessions], ddof=1))


def main(path: str = "benchmarks/sessions/h100.jsonl", trials: str = str(TRIALS), only: str = "") -> None:
    """Print one line for each series, or for those whose name begins so."""
    series: dict[str, list[Record]] = defaultdict(list)
    for record in RecordFile(Path(path)).load().records:
        series[record.case.removesuffix("-float32-untuned")].append(record)
    rows = []
    for name, records in ((name, records) for name, records in series.items() if name.startswith(only)):
        clocks = [noise([record.wall_ms for record in records]), noise([record.device_ms for record in records])]
        shares = (f"{found(records, *way, step, int(trials)):.0%}" for step in STEPS for way in WAYS.values())
        rows.append([name, *(f"{one:.2%}" for one in clocks), *shares])
    steps = [f"{step:.1%}, {clock}" for step in STEPS for clock in WAYS]
    print(tabulate(rows, ["series", "wall noise", "kernels' noise", *steps], "github"))


if __name__ == "__main__":
    main(*sys.argv[1:])
