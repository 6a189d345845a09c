"""How far float16 is off: each path against float64, beside what rounding alone would cost.

    ADRENO_BENCH_OPENCL_DEVICE=Intel python -m benchmarks.float16_error [MODEL...] [--paths PATH...]

Prints a table in Markdown; all errors are relative to the output's peak. `LLVM` is how far the oracle, by which the
suite judges, is from the network in numpy with every sum in float64. `stored` is how far that is from itself with each
tensor, input and weight rounded to float16: no path that stores float16 can be expected to do better, and one that sums
in float32 should do about as well. The paths' own errors are against the oracle. Nothing is timed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import numpy_helper, version_converter
from onnx.reference import ReferenceEvaluator

from device_runner.store import cache_root
from harness.base.case import Precision
from harness.base.suite import Limits, Suite, choose
from harness.compile.artifacts.artifact import INPUTS, OUTPUTS, Answers, load_arrays
from harness.measure.loop import run_case
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record
from harness.measure.workbench import Request, Workbench, open_workbench

if TYPE_CHECKING:
    from device_runner.device import Array

MODELS = ("tiny", "squeezenet1_1", "resnet18", "mobilenet_v1")
PATHS = ("opencl", "texture", "clml")


def in_numpy(model: onnx.ModelProto, inputs: Sequence[Array], rounded: Callable[[Any], Any]) -> tuple[list[Any], float]:
    """Return the outputs in float64, with `rounded` applied to each tensor, and the largest magnitude on the way."""
    graph = version_converter.convert_version(model, 15)  # before, `onnx` takes batch norm for that of training
    for tensor in graph.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32:
            tensor.CopyFrom(numpy_helper.from_array(rounded(array.astype(np.float64)), tensor.name))
    for value in (*graph.graph.input, *graph.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    session = ReferenceEvaluator(graph)
    values = dict(zip(session.input_names, (rounded(array.astype(np.float64)) for array in inputs), strict=True))
    values |= {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.graph.initializer} | {"": None}
    largest = 0.0
    for node in session.rt_nodes_:
        for name, made in zip(node.output, node.run(*(values[name] for name in node.input)), strict=True):
            values[name] = rounded(made) if made.dtype == np.float64 else made
            largest = max(largest, float(np.abs(made).max(initial=0.0)))
    return [values[name] for name in session.output_names], largest


def to_half(array: Any) -> Any:
    """Round to float16, and return float64."""
    return array.astype(np.float16).astype(np.float64)


def off(got: Sequence[Any], want: Sequence[Any]) -> float:
    """Largest error of any output over that output's peak."""
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(got, want, strict=True))


def table(bench: Workbench, models: Sequence[str], paths: Sequence[str]) -> Iterable[str]:
    """Yield the lines, each as soon as it is known."""
    columns = ["network", "peak", "largest value", "LLVM", "stored", "path", *(p.value for p in Precision)]
    yield f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"
    for name in models:
        mine = {(plan.case.path, plan.case.precision): plan for plan in bench.plans if plan.case.model == name}
        built = bench.builder.build(job for plan in mine.values() for job in (plan.compile, plan.oracle))
        first = next(iter(mine.values()))
        answers = built[first.oracle.key]
        assert isinstance(answers, Answers), answers
        inputs, oracle = (load_arrays(answers.folder / part) for part in (INPUTS, OUTPUTS))
        model = onnx.load(first.oracle.payload["request"]["model_file"])
        exact, largest = in_numpy(model, inputs, lambda array: array)
        stored, _ = in_numpy(model, inputs, to_half)
        peak = max(float(np.abs(output).max()) for output in exact)
        known = [name, f"{peak:.3g}", f"{largest:.3g}", f"{off(oracle, exact):.1e}", f"{off(stored, exact):.1e}"]
        for path in paths:
            cells = [
                cell(run_case(mine[path, precision], built, bench.run, SilentProgress()).record)
                for precision in Precision
            ]
            yield f"| {' | '.join([*known, path, *cells])} |"


def cell(record: Record) -> str:
    """Return the result of a case."""
    if record.accuracy is None:
        print(f"{record.case}: {record.message}", file=sys.stderr)
        return record.outcome.value
    return f"{'' if record.accuracy.right else '**wrong** '}{record.accuracy.max_rel_err:.1e}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--paths", nargs="+", default=PATHS)
    parser.add_argument("--device", default="virtual")
    told = parser.parse_args()
    limits = Limits(build_s=3600, run_s=1800)
    suite = Suite(models=list(told.models), paths=list(told.paths), precisions=list(Precision), limits=limits)
    request = Request(suite, choose(suite, None), cache_root())
    with open_workbench(request, told.device, SilentProgress(), timed=False) as bench:
        print(f"{bench.device.identity.gpu}, driver {bench.device.identity.driver}\n")
        for line in table(bench, told.models, told.paths):
            print(line, flush=True)


if __name__ == "__main__":
    main()
