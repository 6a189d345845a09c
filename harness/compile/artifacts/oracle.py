"""The answers that every path is held to: the truth from outside TVM, and those of LLVM behind TVM's importer.

The truth (`harness.compile.oracle`) decides whether an answer is right. LLVM's answers are the second witness, asked
only where an answer is wrong: if they are wrong in the same way, the fault is in what LLVM and the path share. Where
nobody outside TVM can compute the network, LLVM's answers take the place of the truth.

Both are computed in a worker process and kept as plain arrays in the store: to the inputs of the case, and to other
inputs, by which it is known whether the network looks at its inputs at all (`harness.measure.correctness`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto

from device_runner.device import Array
from device_runner.names import load as load_named
from harness.base.failures import NoOutsideAnswer, OracleNotFinite
from harness.base.request import CompileRequest
from harness.compile.artifacts.artifact import (
    BRANCHES,
    INPUTS,
    JUDGE,
    LEEWAY,
    OTHER_INPUTS,
    OTHER_OUTPUTS,
    OUTPUTS,
    save_arrays,
    save_values,
)
from harness.compile.artifacts.compile import compile_model
from harness.compile.artifacts.values import count, first_not_finite, inputs_of, named_origin
from harness.compile.compiler.compat import relax, tvm
from harness.compile.compiler.releases import tvm_version
from harness.compile.models.number_formats import in_double, without_bfloats
from harness.compile.models.onnx_inputs import input_specs
from harness.compile.models.onnx_read import load, parse
from harness.compile.models.outline import tensor_types
from harness.compile.models.spec import InputSpec, Original
from harness.compile.oracle.branches import branches_taken
from harness.compile.oracle.judge import NoAnswer, Refusal
from harness.compile.oracle.leeway import save_leeway
from harness.compile.oracle.leeway_measurement import measure_leeway
from harness.compile.oracle.onnx_reference import OnnxReference
from harness.compile.oracle.onnx_runtime import FoldedOnnxRuntime, OnnxRuntime
from harness.compile.oracle.truth import judge_original, values_of, with_outputs
from harness.compile.paths.cpu import cpu_machine, run_on_cpu

Ask = Callable[[Mapping[str, Array]], list[Array]]


@dataclass(frozen=True)
class Question:
    """What a model is asked, as the worker is told it."""

    model: Path
    """The prepared file, which is compiled."""
    seed: int
    values: str | dict[str, str]
    """The file of its inputs, or how some of them are drawn."""
    labelled: str
    """A file of labelled data, if not empty."""
    inner: bool = False
    """Whether it is a piece of another network, inside which numbers may be infinite on purpose."""
    asker: str = ""
    """Place of what asks about labelled data and writes the answers (`harness.tools.labelled.truth.write_answers`)."""
    score: str = ""
    """Place of a function that scores the outputs for labelled data, if not empty."""

    @classmethod
    def of(cls, job: Mapping[str, Any]) -> Question:
        """Return the question that a job carries."""
        model = Path(job["request"]["model_file"])
        inner, asker, score = job.get("inner", False), job.get("asker", ""), job.get("score", "")
        return cls(model, job["seed"], job["inputs"], job["labelled"], inner, asker, score)

    def inputs(self, specs: Sequence[InputSpec]) -> dict[str, Array]:
        """Return what the case is run on, in the order in which a library takes it."""
        return inputs_of(self.values, specs, self.seed, finite=not self.inner)

    def other_inputs(self, specs: Sequence[InputSpec], inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Other inputs of the same kind. Integers of a file, which may be divisors, are other choices of the same."""
        if not isinstance(self.values, str):
            return inputs_of(self.values, specs, self.seed + 1)
        drawn = inputs_of({}, specs, self.seed + 1)
        return {
            name: _choose_again(inputs[name], self.seed) if drawn[name].dtype.kind in "iu" else drawn[name]
            for name in drawn
        }


def find_truth(original: Original, question: Question, out: Path) -> dict[str, Any]:
    """Ask outside TVM and write all arrays to `out`.

    Worker only. Raises NoOutsideAnswer, InputRefused, and OracleNotFinite if there is nothing to compare with.
    """
    specs = input_specs(parse(question.model))
    inputs = question.inputs(specs)
    began = time.monotonic()
    model, whole = without_bfloats(load(original.onnx)), original.with_fixed(inputs)
    ruling = judge_original(original, model, whole)
    run_s = time.monotonic() - began

    def ask(arrays: Mapping[str, Array]) -> list[Array]:
        return ruling.judge.ask(original.with_fixed(arrays))

    _write(out, question, specs, inputs, ruling.outputs, ask, ruling.judge.name)
    answer = model, whole, ruling.outputs
    if isinstance(ruling.judge, OnnxReference | FoldedOnnxRuntime):  # onnxruntime measures what it takes
        with suppress(NoAnswer, Refusal):
            answer = (prepared := load(question.model)), inputs, OnnxRuntime(prepared).ask(inputs)
    save_leeway(out / LEEWAY, measure_leeway(*answer))
    if branches := _branches(question.model, inputs):
        (out / BRANCHES).write_text(json.dumps(branches), encoding="utf-8")
    return {"run_s": run_s}


def ask_llvm(request: CompileRequest, question: Question, out: Path) -> dict[str, Any]:
    """Compile for `cpu`, run it, and write all arrays to `out`.

    Worker only: it imports TVM. Raises CompileFailure if even LLVM cannot compile the model, and OracleNotFinite.
    """
    compiled = compile_model(request, out)
    specs = [InputSpec(name, tuple(shape), dtype) for name, shape, dtype in compiled.inputs]
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(out / compiled.library)), tvm.cpu())

    def ask(arrays: Mapping[str, Array]) -> list[Array]:
        return run_on_cpu(machine, arrays.values())

    inputs = question.inputs(specs)
    began = time.monotonic()
    answers = ask(inputs)
    run_s = time.monotonic() - began
    _write(out, question, specs, inputs, answers, ask, f"TVM {tvm_version()} on LLVM")
    (out / compiled.library).unlink()  # only its answers are needed
    return {"run_s": run_s}


def write_values(job: Mapping[str, Any], out: Path) -> None:
    """Write every tensor inside the prepared network, from one run outside TVM.

    Worker only. Raises NoOutsideAnswer, InputRefused.
    """
    question = Question.of(job)
    model = load(question.model)
    save_values(out, values_of(model, question.inputs(input_specs(model))))


def ask_llvm_in_double(job: Mapping[str, Any], out: Path) -> None:
    """Write what TVM's importer and LLVM make of the prepared network in double precision: the same without rounding.

    Worker only: it imports TVM. Raises whatever that raises.
    """
    question = Question.of(job)
    model = load(question.model)
    inputs = question.inputs(input_specs(model)).values()
    wide = [array.astype("float64") if array.dtype == "float32" else array for array in inputs]
    save_arrays(out / OUTPUTS, run_on_cpu(_imported(in_double(model)), wide))


def write_llvm_values(job: Mapping[str, Any], out: Path) -> None:
    """Write every real tensor inside the prepared network as LLVM behind TVM's importer computes it.

    Worker only: it imports TVM. Raises whatever that raises.
    """
    question = Question.of(job)
    model = load(question.model)
    types, inputs = tensor_types(model), question.inputs(input_specs(model))
    results = [name for node in model.graph.node if node.op_type != "Constant" for name in node.output]
    names = [name for name in results if name in types and types[name].elem_type == TensorProto.FLOAT]
    answers = run_on_cpu(_imported(with_outputs(model, names)), inputs.values())
    save_values(out, dict(zip(names, answers, strict=True)))


def _imported(model: Any) -> Any:
    """Return what LLVM makes of a network as TVM imports it."""
    from tvm.relax.frontend.onnx import from_onnx

    return cpu_machine(from_onnx(model, shape_dict={spec.name: list(spec.shape) for spec in input_specs(model)}))


def _write(
    out: Path,
    question: Question,
    specs: Sequence[InputSpec],
    inputs: Mapping[str, Array],
    answers: list[Array],
    ask: Ask,
    judge: str,
) -> None:
    """Write the inputs and the answers to them; ask for the others and write those."""
    if not question.inner:
        _require_finite(answers, question, inputs)
    save_arrays(out / INPUTS, list(inputs.values()))
    save_arrays(out / OUTPUTS, answers)
    others = question.other_inputs(specs, inputs)
    save_arrays(out / OTHER_OUTPUTS, other_answers := _or_none(lambda: ask(others)))
    if other_answers and first_not_finite(other_answers) is None:
        save_arrays(out / OTHER_INPUTS, list(others.values()))
    if question.labelled:
        load_named(question.asker)(out, Path(question.labelled), question.score, specs, ask)
    (out / JUDGE).write_text(json.dumps(judge), encoding="utf-8")


def _branches(file: Path, inputs: Mapping[str, Array]) -> list[str]:
    """Return which branch each If of the prepared network takes; nothing where nobody can say."""
    try:
        return branches_taken(parse(file), inputs)
    except (NoAnswer, Refusal):
        return []


def _choose_again(array: Array, seed: int) -> Array:
    """Return an array of as many numbers of the same ones."""
    return np.random.default_rng(seed).choice(array.ravel(), array.shape) if array.size else array


def _or_none(ask: Callable[[], list[Array]]) -> list[Array]:
    """Return the answers; none if the network refuses such inputs, which is no fault of it."""
    try:
        return ask()
    except Exception:  # errors of every kind
        return []


def _require_finite(answers: Sequence[Array], question: Question, inputs: Mapping[str, Array]) -> None:
    """Raise OracleNotFinite, with the operator to blame, if an answer cannot be compared with."""
    index = first_not_finite(answers)
    if index is None:
        return
    source = question.values if isinstance(question.values, str) else ""
    blamed, evidence = "", ""
    try:
        model = load(question.model)
        blamed = named_origin(model, values_of(model, inputs), model.graph.output[index].name)
    except NoOutsideAnswer as failure:
        evidence = f"which operator it comes from could not be found out: {failure}"
    raise OracleNotFinite(
        f"output {index} of the model is not finite on the CPU either ({count(answers[index])})"
        + (f"; it begins with {blamed}" if blamed else ""),
        hint=f"correct the model, or its inputs in {source}"
        if source
        else "correct the model, or draw its inputs otherwise: --input 'NAME=uniform(0.1, 1)' (docs/how-to/models.md)",
        evidence=evidence,
    )
