"""What sampling costs: each inference by its own two looks at the clock, against a bare loop of the same inferences.

    python -m benchmarks.bare_loop BUNDLE [CASE...]          here, of an unpacked bundle
    PYTHONPATH=BUNDLE/run.pyz python3 bare_loop.py BUNDLE    on its target

Both run `main_to_host` of the same program in the same process, in turns: TVM's evaluator with one inference a sample,
as records have them, and with all inferences in one sample. Prints the ratio of the two for each case of the bundle.
"""

from __future__ import annotations

import statistics
import struct
import sys
from pathlib import Path
from typing import Any

from device_runner.direct.ffi import CPU
from device_runner.direct.worker import Worker
from harness.build.artifact import INPUTS
from harness.build.oracle import load_arrays
from harness.bundle.manifest import MANIFEST, Manifest, PackedCase, manifest_of

ROUNDS, ROUND_S = 11, 0.4


def ratio(worker: Worker, machine: Any, each_s: float) -> tuple[float, float]:
    """Median of the sampled times over that of the bare loops, and ms of one inference."""
    count = max(3, int(ROUND_S / each_s))
    evaluate = worker._ffi.function("runtime.RPCTimeEvaluator")

    def mean(number: int, repeat: int) -> float:
        took = evaluate(machine, "invoke_stateful", CPU, 0, number, repeat, 0, 100, 0, 1, 0, "")("main_to_host")
        return statistics.fmean(struct.unpack(f"={repeat}d", took))

    rounds = [(mean(1, count), mean(count, 1)) for _ in range(ROUNDS)]
    return statistics.median(sampled / bare for sampled, bare in rounds), 1e3 * statistics.median(b for _, b in rounds)


def measure(folder: Path, manifest: Manifest, packed: PackedCase) -> None:
    """Print one case's ratio."""
    build = manifest.builds["head"]
    worker = Worker([folder / path for path in build.libraries])
    number = worker.do_module(str(folder / packed.artifact.library))
    worker.do_machine(number, "opencl", int(packed.artifact.compiled["vdevices"]))
    inputs = load_arrays(folder / "answers" / packed.answers / INPUTS)
    worker.do_run(0, "main", ["main", "main_to_host"], inputs)
    worker.do_run(0, "main", ["main", "main_to_host"], inputs)
    warm_ms = worker.do_samples(0, "main_to_host", "cpu", 5)
    found, each_ms = ratio(worker, worker._machines[0], statistics.median(warm_ms) / 1e3)
    sys.stdout.write(f"{packed.case}: sampled / bare loop {found:.4f} at {each_ms:.4g} ms an inference\n")
    sys.stdout.flush()


def main() -> None:
    """Measure the cases that are named, or all."""
    folder, wanted = Path(sys.argv[1]).resolve(), sys.argv[2:]
    manifest = manifest_of((folder / MANIFEST).read_bytes())
    for packed in manifest.builds["head"].cases:
        if packed.artifact.library and (not wanted or packed.case in wanted):
            measure(folder, manifest, packed)


if __name__ == "__main__":
    main()
