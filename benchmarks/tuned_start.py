"""What tuning buys at the start: from loading to the first output, untuned against tuned.

    python -m benchmarks.tuned_start [MODEL] [PATH] [ROUNDS]

A fresh session each time, interleaved in one run, with the driver's own kernel cache off. Goal: at least 3.
"""

from __future__ import annotations

import statistics
import sys

from benchmarks.common import LONG_S, Bench, bench
from device_runner.store import cache_root
from harness.measure.tuning import TUNERS, TuningStore


def start_ms(made: Bench, tuned: bool) -> float:
    """Return the initialisation and first inference of a fresh session, in ms."""
    path, loadable = made.plan.case.path, made.artifact.loadable
    with made.device.session({}, timeout_s=LONG_S) as session:
        program = session.load(loadable, timeout_s=LONG_S)
        store = TuningStore(cache_root())
        blob = store.find_or_tune(path, made.artifact, made.device, made.inputs, LONG_S) if tuned else None
        if blob:
            TUNERS[path].use(program, blob, LONG_S)
        _, first_run_ms = program.run(made.inputs, timeout_s=LONG_S)
        if complaint := TUNERS[path].proof(session, blob, LONG_S).complaint:
            raise SystemExit(f"not tuned: {complaint}")
    return program.init_ms + first_run_ms


def main(model: str = "squeezenet1_1", path: str = "opencl", rounds: str = "3") -> None:
    """Print both medians and their ratio."""
    with bench(model, path) as made:
        start_ms(made, tuned=True)  # makes the tuning, if it is not kept yet
        pairs = [(start_ms(made, tuned=False), start_ms(made, tuned=True)) for _ in range(int(rounds))]
        untuned, tuned = (statistics.median(side) for side in zip(*pairs, strict=True))
        print(f"{made.plan.case.id}: {rounds} sessions each, interleaved")
        print(f"  untuned start  {untuned:8.1f} ms")
        print(f"  tuned start    {tuned:8.1f} ms")
        print(f"  ratio          {untuned / tuned:8.2f} (goal: at least 3)")


if __name__ == "__main__":
    main(*sys.argv[1:])
