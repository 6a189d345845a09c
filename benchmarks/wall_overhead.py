"""What our way to a sample costs: `wall_ms` of a case against a bare in-process loop of the same artifact.

    python -m benchmarks.wall_overhead [MODEL] [PATH] [ROUNDS]

Both run on the same OpenCL device, interleaved in one run, so the ratio of their medians holds where absolute times do
not. Goal: at most 1.03.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

from benchmarks.common import LONG_S, Bench, bench, opencl_library

SAMPLES = 5


def in_process(made: Bench) -> Any:
    """Return the artifact's VM in this process, its inputs set."""
    import tvm
    from tvm import relax

    from device_runner.runtimes import opencl as opencl_runtime

    if library := opencl_library():
        opencl_runtime.load(library)
    device = tvm.device("opencl", 0)
    loadable = made.artifact.loadable
    machine = relax.VirtualMachine(
        tvm.runtime.load_module(str(loadable.library)), [device] * loadable.vdevices + [tvm.cpu()]
    )
    machine.set_input(loadable.host_entry, *(tvm.runtime.tensor(array) for array in made.inputs))
    return machine


def bare_loop(machine: Any, entry: str) -> list[float]:
    """Return samples in ms of the plainest loop one can write."""
    samples = []
    for _ in range(SAMPLES):
        began = time.perf_counter()
        machine.invoke_stateful(entry)
        samples.append((time.perf_counter() - began) * 1e3)
    return samples


def main(model: str = "tiny", path: str = "opencl", rounds: str = "8") -> None:
    """Print both medians and their ratio."""
    with bench(model, path) as made:
        program = made.session.load(made.artifact.loadable, timeout_s=LONG_S)
        program.run(made.inputs, timeout_s=LONG_S)
        machine = in_process(made)
        entry = made.artifact.loadable.host_entry
        bare_loop(machine, entry)
        ours: list[float] = []
        bare: list[float] = []
        for _ in range(int(rounds)):
            ours += program.wall_ms(SAMPLES, timeout_s=LONG_S)
            bare += bare_loop(machine, entry)
        ratio = statistics.median(ours) / statistics.median(bare)
        print(f"{made.plan.case.id}: {len(ours)} samples each, interleaved")
        print(f"  wall_ms  median {statistics.median(ours):.4g} ms")
        print(f"  bare     median {statistics.median(bare):.4g} ms")
        print(f"  ratio    {ratio:.3f} (goal: at most 1.03)")


if __name__ == "__main__":
    main(*sys.argv[1:])
