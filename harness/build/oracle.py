"""The oracle: the `cpu` path's answers, against which every other path is judged.

The answers are computed once in a worker process and kept as plain arrays in the store: to the inputs of the case, and
to other inputs, by which it is known whether the network looks at its inputs at all (`harness.run.correctness`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.build.values import count, first_not_finite, inputs_of, origin, tensors
from harness.failures import OracleNotFinite

if TYPE_CHECKING:
    from device_runner.device import Array
    from harness.cases.request import CompileRequest


def answer(request: CompileRequest, seed: int, given: str | dict[str, str], labelled: str, out: Path) -> dict[str, Any]:
    """Compile for `cpu`, run it, write all arrays to `out`.

    `given` is the file of its inputs, or how some of them are drawn; `labelled` a file of labelled data, if not empty.

    Worker only: it imports TVM. Raises CompileFailure if even LLVM cannot compile the model, and OracleNotFinite if
    there is nothing to compare with.
    """
    import tvm
    from tvm import relax

    from harness.build.artifact import INPUTS, LABELLED, OTHER_OUTPUTS, OUTPUTS, save_arrays
    from harness.build.compile import compile_model
    from harness.models.input_files import load_labelled, top_classes
    from harness.models.spec import InputSpec

    compiled = compile_model(request, out)
    specs = [InputSpec(name, tuple(shape), dtype) for name, shape, dtype in compiled.inputs]
    inputs = inputs_of(given, specs, seed)
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(out / compiled.library)), tvm.cpu())

    def ask(arrays: Mapping[str, Array]) -> list[Array]:
        made = machine["main"](*(tvm.runtime.tensor(array) for array in arrays.values()))
        return [tensor.numpy() for tensor in tensors(made)]

    began = time.monotonic()
    answers = ask(inputs)
    run_s = time.monotonic() - began
    _require_finite(answers, Path(request.model_file), inputs, Path(given) if isinstance(given, str) else None)
    save_arrays(out / INPUTS, list(inputs.values()))
    save_arrays(out / OUTPUTS, answers)
    drawn = {} if isinstance(given, str) else given
    save_arrays(out / OTHER_OUTPUTS, _or_none(lambda: ask(inputs_of(drawn, specs, seed + 1))))
    if labelled:
        data = load_labelled(Path(labelled), specs)
        classes = top_classes(lambda batch: ask({specs[0].name: batch}), data.inputs, specs[0].shape[0])
        save_arrays(out / LABELLED, [data.inputs, data.labels, classes])
    (out / compiled.library).unlink()  # only its answers are needed
    return {"run_s": run_s}


def _or_none(ask: Callable[[], list[Array]]) -> list[Array]:
    """The answers; none if the network refuses such inputs, which is no fault of it."""
    try:
        return ask()
    except Exception:  # TVM raises errors of every kind
        return []


def _require_finite(answers: Sequence[Array], model: Path, inputs: Mapping[str, Array], given: Path | None) -> None:
    """Raise OracleNotFinite, with the operator to blame, if an answer cannot be compared with."""
    index = first_not_finite(answers)
    if index is None:
        return
    evidence = ""
    try:
        blamed = origin(model, inputs, index)
    except Exception as error:  # TVM raises errors of every kind, and the finding stands without it
        blamed, evidence = "", f"which operator it comes from could not be found out: {error}"
    raise OracleNotFinite(
        f"output {index} of the model is not finite on the CPU either ({count(answers[index])})"
        + (f"; it begins with {blamed}" if blamed else ""),
        hint=f"correct the model, or its inputs in {given}"
        if given
        else 'correct the model, or set `inputs = "FILE.npz"` in the suite (docs/reference/settings.md)',
        evidence=evidence,
    )
