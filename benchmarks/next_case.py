"""How long a device waits between two cases: from "device free" to the first sample of the next case, and for what.

    python -m benchmarks.next_case [CASE] [ROUNDS]

On the virtual device, with an artifact that was pushed before. Untuned, the first run compiles every kernel, which is
the device's own work. Goal: at most 1.5 s.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from unittest import mock

from device_runner.registry import open_device
from device_runner.session.rpc_session import RpcProgram
from device_runner.store import cache_root
from harness.base.case import Case
from harness.base.suite import Suite
from harness.compile.artifacts.planner import plan_case
from harness.compile.artifacts.pool import Builder
from harness.measure.case_worker import run_with_recovery
from harness.measure.context import Run
from harness.measure.progress import SilentProgress
from harness.measure.tuning import TuningStore

FREE, FIRST = "device free", "first sample"


class Clock(SilentProgress):
    """When the case came to its steps, and to its first sample."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, float]] = []

    def step(self, case_id: str, step: str) -> None:
        """Remember it."""
        self.mark(step)

    def mark(self, what: str) -> None:
        """Let it happen now."""
        self.seen.append((what, time.perf_counter()))


def main(name: str = "tiny-opencl-float32-tuned", rounds: str = "10") -> None:
    """Measure and print."""
    case, cache = Case.parse(name), cache_root()
    suite = Suite(models=[case.model], paths=[case.path], samples=10, budget_s=0.1)
    spent: dict[str, list[float]] = defaultdict(list)
    with open_device("virtual", cache) as device, Builder(cache, suite.limits) as builder:
        plan = plan_case(suite, case, device.identity, cache)
        built = builder.build(plan.jobs)
        run = Run(device, TuningStore(cache))
        run_with_recovery(plan, built, run, SilentProgress())  # pushes, and tunes if there is no tuning yet
        for _ in range(int(rounds)):
            clock = Clock()
            clock.mark(FREE)
            with _first_sample(clock):
                record = run_with_recovery(plan, built, run, clock)
            if record.sent_bytes or not record.wall_ms:
                raise SystemExit(f"{record.outcome.value}: {record.message}")
            until = [what for what, _ in clock.seen].index(FIRST) + 1
            for (step, began), (_, ended) in pairwise(clock.seen[:until]):
                spent[step].append(ended - began)
            spent["in all"].append(clock.seen[until - 1][1] - clock.seen[0][1])
    for what, seconds in spent.items():
        low, high = min(seconds), max(seconds)
        print(f"{what:12} median {statistics.median(seconds):.3f} s ({low:.3f} to {high:.3f})")


@contextmanager
def _first_sample(clock: Clock) -> Iterator[None]:
    """Have the clock told when a first sample has been taken."""
    original = RpcProgram.wall_ms

    def watched(program: RpcProgram, repeat: int, *, timeout_s: float) -> list[float]:
        asked = time.perf_counter()
        samples = original(program, repeat, timeout_s=timeout_s)
        clock.seen.append((FIRST, asked + samples[0] / 1e3))
        return samples

    with mock.patch.object(RpcProgram, "wall_ms", watched):
        yield


if __name__ == "__main__":
    main(*sys.argv[1:])
