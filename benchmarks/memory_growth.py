"""Whether samples accumulate events or buffers: memory of the device's server over many inferences.

    python -m benchmarks.memory_growth [MODEL] [PATH] [INFERENCES]

TVM's own OpenCL timer keeps every event (apache/tvm #11180: 5000 iterations cost about 800 MB); ours must not.
"""

from __future__ import annotations

import sys

import psutil

from benchmarks.common import LONG_S, bench

BATCH = 100


def servers_rss_bytes() -> int:
    """Resident memory of all RPC server processes below this one."""
    return sum(_rss_bytes(child) for child in psutil.Process().children(recursive=True))


def _rss_bytes(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss if any("tvm_rpc" in word for word in process.cmdline()) else 0
    except psutil.NoSuchProcess:  # it ended while we looked
        return 0


def main(model: str = "tiny", path: str = "opencl", inferences: str = "1000") -> None:
    """Print memory after each batch of either clock, and the growth per inference after the first batches."""
    with bench(model, path) as made:
        program = made.session.load(made.artifact.loadable, timeout_s=LONG_S)
        program.run(made.inputs, timeout_s=LONG_S)
        for name, sample in (("wall", program.wall_ms), ("device", program.device_ms)):
            sample(BATCH, timeout_s=LONG_S)
            first = servers_rss_bytes()
            for _ in range(int(inferences) // BATCH):
                sample(BATCH, timeout_s=LONG_S)
            last = servers_rss_bytes()
            print(
                f"{made.plan.case.id} {name}: {first / 1e6:.1f} MB -> {last / 1e6:.1f} MB over {inferences} inferences"
                f" ({(last - first) / int(inferences):.0f} bytes each)"
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
