"""What the reference kernel costs a session: loading it, and all its inferences.

    python -m benchmarks.reference_cost SUITE DEVICE [SESSIONS]

Goal: at most 0.3 s. Once for a device and a release, another session compiles the kernel; that is not counted.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

from harness.measure.preparation import prepare_reference
from harness.measure.progress import SilentProgress
from harness.measure.workbench import Request, open_workbench

TIMEOUT_S = 60.0


def costs_ms(suite: Path, device: str, sessions: int) -> list[float]:
    """One number a session."""
    request = Request.read(suite, None)
    with open_workbench(request, request.one_device(device, SilentProgress()), SilentProgress()) as bench:
        plan = bench.plans[0]
        kernel = prepare_reference(plan, bench.builder.build(plan.jobs), bench.run)
        if kernel is None:
            sys.exit(f"{device} cannot time the reference kernel")
        costs = []
        for _ in range(sessions):
            with bench.device.session({}, timeout_s=TIMEOUT_S) as session:
                began = time.perf_counter()
                kernel.measure(session)
                costs.append((time.perf_counter() - began) * 1e3)
        return costs


def main(suite: str, device: str, sessions: str = "8") -> None:
    """Print the median and the worst."""
    costs = costs_ms(Path(suite), device, int(sessions))
    print(f"{device}: median {statistics.median(costs):.0f} ms, at most {max(costs):.0f} ms of {len(costs)} sessions")


if __name__ == "__main__":
    main(*sys.argv[1:])
