"""What the truth costs: seconds of processor time for the oracle of each network, and for LLVM's answer in its place.

    python -m benchmarks.oracle_cost [MODEL...]

Models are those of the default suite, or names of the zoo. Each job runs in this process, which has loaded the
compiler, as a worker has. *LLVM* is the second witness: it was the oracle before, and is now asked only where an answer
is wrong. *Rounding* is the share of the oracle in which onnxruntime computes the network with its numbers moved.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tvm  # noqa: F401  the time that it takes is no part of a job

from harness.base.model import model_name
from harness.base.plan import Job
from harness.base.suite import Suite, load_suite
from harness.base.tables import markdown_table
from harness.compile.artifacts.artifact import INPUTS, OUTPUTS, load_arrays
from harness.compile.artifacts.jobs import ask_llvm, find_truth
from harness.compile.artifacts.planner import plan_oracle
from harness.compile.models.onnx_inputs import input_specs
from harness.compile.models.onnx_read import load
from harness.compile.oracle.leeway_measurement import measure_leeway

HEADERS = ("network", "oracle", "of it, rounding", "LLVM", "oracle / LLVM")


def cost(run: Callable[[dict[str, Any], Path], object], job: Job, out: Path) -> float:
    """Return the processor time of a job in this process, and make its answers in a folder."""
    out.mkdir()
    began = time.process_time()
    run(job.payload, out)
    return time.process_time() - began


def rounding_cost(model: Path, answers: Path) -> float:
    """Processor time of measuring what rounding does, in this process."""
    network = load(model)
    names = [spec.name for spec in input_specs(network)]
    inputs = dict(zip(names, load_arrays(answers / INPUTS), strict=True))
    began = time.process_time()
    measure_leeway(network, inputs, load_arrays(answers / OUTPUTS))
    return time.process_time() - began


def main(names: Sequence[str]) -> None:
    """Print the table."""
    chosen = names or [model_name(model) for model in load_suite(Path("adreno-bench.toml")).models]
    rows: list[tuple[str, float, float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(models=list(chosen), paths=["opencl"])
        for name in chosen:
            job, out = plan_oracle(suite, name, Path(folder)), Path(folder) / name
            assert job.otherwise
            oracle_s = cost(find_truth, job, out)
            llvm_s = cost(ask_llvm, job.otherwise, Path(folder) / f"{name}-llvm")
            rows.append((name, oracle_s, rounding_cost(Path(job.payload["original"]["onnx"]), out), llvm_s))
    oracles, moved, llvm = (sum(column) for column in zip(*(row[1:] for row in rows), strict=True))
    rows.append(("all", oracles, moved, llvm))
    shown = [(name, f"{a:.1f} s", f"{b:.1f} s", f"{c:.1f} s", f"{a / c:.2f}") for name, a, b, c in rows]
    print(markdown_table(shown, HEADERS))


if __name__ == "__main__":
    main(sys.argv[1:])
