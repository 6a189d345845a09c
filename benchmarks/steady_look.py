"""What the evidence of steadiness costs a case: one look at the device before its samples and one after.

    python -m benchmarks.steady_look [DEVICE]

Goal: at most 50 ms per case.
"""

from __future__ import annotations

import statistics
import sys
import time

from device_runner.device import ThermalLimits
from device_runner.registry import open_device
from device_runner.store import cache_root

CASES = 30


def main(name: str = "virtual") -> None:
    """Print the cost of the two looks around nothing, and of a command that does nothing."""
    with open_device(name, cache_root(), runtime=False) as device:
        # The first sets the knobs, and finds out what there is to look at.
        device.steadily(lambda: None, ThermalLimits())
        took_ms = []
        for _ in range(CASES):
            began = time.perf_counter()
            device.steadily(lambda: None, ThermalLimits())
            took_ms.append((time.perf_counter() - began) * 1e3)
    print(f"two looks: median {statistics.median(took_ms):.1f} ms, longest {max(took_ms):.1f} ms (goal: at most 50 ms)")


if __name__ == "__main__":
    main(*sys.argv[1:])
