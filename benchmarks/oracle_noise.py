"""How far right answers lie apart: onnxruntime and TVM on LLVM, beside what the judge allows them.

    python -m benchmarks.oracle_noise [NETWORK or GROUP...] [--precisions float32 float16 float16_acc32]

Networks are those of `benchmarks.known_networks`, by name or by group (zoo, light, odd). TVM's answer is that of its
LLVM path in each precision. Prints a table in Markdown, each row as soon as it is known, and the smallest margins.

* `rounding`: how far onnxruntime's own answer moves if each number on the way moves by up to four units in the last
  place of float32, or one of float16 (`harness.compile.oracle.rounding`), relative to the output's scale, at the output
  that moves most.
* `peak`, `rms`: the largest error over the peak, and the errors' root mean square over the output's, of TVM's answer.
* `tolerance`: what the judge allows of both, with what its own sums are off by.
* `reserve`: by how much all errors may grow until the judge says that the answer is wrong, with parts of an output and
  ties; 64 stands for more.
* `margin`: by how much the tolerance is larger than the error, at the output where that is least.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from benchmarks.known_networks import KnownNetwork, known_networks
from harness.base.case import RELATIVE_TOLERANCE, ROUNDING_FACTOR, Precision
from harness.base.failures import CompileFailure
from harness.base.request import CompileRequest
from harness.compile.artifacts.compile import compile_model
from harness.compile.oracle.leeway import Measured
from harness.compile.oracle.leeway_measurement import measure_leeway
from harness.compile.oracle.onnx_runtime import OnnxRuntime
from harness.compile.paths.cpu import run_on_cpu
from harness.measure.correctness import compare_answers, relative_tolerances
from harness.measure.facts import Accuracy

if TYPE_CHECKING:
    from device_runner.device import Array

COLUMNS = ("network", "rounding", "precision", "peak", "rms", "1 - cosine", "tolerance", "reserve", "margin")
MOST_RESERVE = 64.0


def on_llvm(model: onnx.ModelProto, inputs: Mapping[str, Array], precision: str) -> list[Array]:
    """Return the answer of TVM's LLVM path. Raises CompileFailure."""
    import tvm
    from tvm import relax

    with TemporaryDirectory() as scratch:
        file = Path(scratch) / "model.onnx"
        onnx.save(model, file)
        compiled = compile_model(CompileRequest(str(file), "cpu", precision, [], None, 0, 0, 0), Path(scratch))
        machine = relax.VirtualMachine(tvm.runtime.load_module(f"{scratch}/{compiled.library}"), tvm.cpu())
        return run_on_cpu(machine, [inputs[name] for name, _, _ in compiled.inputs])


def rows(network: KnownNetwork, precisions: Sequence[str]) -> Iterator[list[Any]]:
    """One row for each precision; the last number is the margin."""
    model = network.make()
    inputs = network.inputs(model)
    truth = OnnxRuntime(model).ask(inputs)
    measured = measure_leeway(model, inputs, truth)
    for precision in precisions:
        leeway = [one.leeway(ROUNDING_FACTOR[precision], precision) for one in measured]
        rounding = [one.rounding for one in leeway]
        start = [network.name, f"{max(rounding, default=0.0) / ROUNDING_FACTOR[precision]:.1e}", precision]
        try:
            answer = on_llvm(model, inputs, precision)
        except CompileFailure as failure:
            yield [*start, str(failure)[:60], "", "", "", "", np.inf]
            continue
        allowed = relative_tolerances(len(truth), RELATIVE_TOLERANCE[precision], rounding)
        allowed = [may + _own(one, want) for may, one, want in zip(allowed, measured, truth, strict=True)]
        found = [compare_answers([a], [t], 1.0) for a, t in zip(answer, truth, strict=True)]
        errors = [max(each.max_rel_err, each.rel_rms_err or 0.0) for each in found]
        margin = min(may / error if error else np.inf for may, error in zip(allowed, errors, strict=True))
        worst = max(found, key=lambda each: max(each.max_rel_err, each.rel_rms_err or 0.0))
        judge = partial(compare_answers, oracle=truth, relative_tolerance=RELATIVE_TOLERANCE[precision])
        judge = partial(judge, rounding=rounding, leeway=leeway)
        judged, reserve = judge(answer), reserve_of(answer, truth, judge)
        if not judged.right:
            print(f"{network.name}: {judged.complaint}", file=sys.stderr)
            margin = min(margin, 0.0)
        shown = (worst.max_rel_err, worst.rel_rms_err, 1 - worst.cosine, max(allowed))
        yield [*start, *(f"{number:.1e}" for number in shown), f"{reserve:.3g}", margin]


def reserve_of(answer: Sequence[Array], truth: Sequence[Array], judge: Callable[[list[Array]], Accuracy]) -> float:
    """Return by how much the errors of real numbers may grow and be right: 0 if they are not now, 64 at most."""

    def grown(factor: float) -> list[Array]:
        return [_grown(mine, right, factor) for mine, right in zip(answer, truth, strict=True)]

    if not judge(list(answer)).right:
        return 0.0
    if judge(grown(MOST_RESERVE)).right:
        return MOST_RESERVE
    most, least = MOST_RESERVE, 1.0
    while most / least > 1.01:
        middle = math.sqrt(most * least)
        most, least = (most, middle) if judge(grown(middle)).right else (middle, least)
    return least


def _grown(answer: Array, right: Array, factor: float) -> Array:
    """Return an answer whose errors are a factor larger; as it is if it has integers."""
    if right.dtype.kind != "f":
        return answer
    mine, theirs = answer.astype(np.float64), right.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(mine == theirs, theirs, theirs + factor * (mine - theirs)))


def _own(measured: Measured, want: Array) -> float:
    """Return how far off the judge is itself in its sums, relative to the peak."""
    peak = float(np.abs(want).max(initial=0.0))
    return float(measured.own.max(initial=0.0)) / peak if measured.own is not None and peak else 0.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--precisions", nargs="+", default=["float32"], choices=[each.value for each in Precision])
    chosen = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    margins: dict[str, list[tuple[float, str]]] = {}
    for network in known_networks(chosen.networks):
        for *texts, margin in rows(network, chosen.precisions):
            print(f"| {' | '.join(texts)} | {margin:.3g} |", flush=True)
            margins.setdefault(texts[2], []).append((margin, network.name))
    for precision, found in margins.items():
        least = ", ".join(f"{name} {margin:.3g}" for margin, name in sorted(found)[:5])
        print(f"\n{precision}: {sum(margin < 1 for margin, _ in found)} of {len(found)} beyond; least margins: {least}")


if __name__ == "__main__":
    main()
