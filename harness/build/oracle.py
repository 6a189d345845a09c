"""The oracle: the `cpu` path's answers, against which every other path is judged.

The answers are computed once in a worker process and kept as plain arrays in the store.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from device_runner.device import Array


def answer(request: dict[str, Any], seed: int, out: Path) -> dict[str, Any]:
    """Compile for `cpu`, run on seeded inputs, write both arrays to `out`. Worker only: it imports TVM.

    Raises CompileFailure if even LLVM cannot compile the model.
    """
    import tvm
    from tvm import relax

    from harness.build.artifact import INPUTS, OUTPUTS
    from harness.build.compile import compile_model
    from harness.cases.request import CompileRequest
    from harness.models.spec import InputSpec, seeded_inputs

    compiled = compile_model(CompileRequest(**request), out)
    inputs = seeded_inputs([InputSpec(name, tuple(shape), dtype) for name, shape, dtype in compiled.inputs], seed)
    began = time.monotonic()
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(out / compiled.library)), tvm.cpu())
    answers = machine["main"](*(tvm.runtime.tensor(array) for array in inputs.values()))
    tensors = [answers] if hasattr(answers, "numpy") else list(answers)
    save_arrays(out / INPUTS, list(inputs.values()))
    save_arrays(out / OUTPUTS, [tensor.numpy() for tensor in tensors])
    (out / compiled.library).unlink()  # only its answers are needed
    return {"run_s": time.monotonic() - began}


def load_arrays(file: Path) -> list[Array]:
    """Arrays in the order saved. Never unpickles."""
    import numpy as np

    with np.load(file, allow_pickle=False) as arrays:
        return [arrays[name] for name in sorted(arrays.files)]


def save_arrays(file: Path, arrays: list[Array]) -> None:
    """Keep arrays in their order."""
    import numpy as np

    savez: Any = np.savez  # its stub takes no unpacked mapping
    savez(file, **{f"{index:03d}": array for index, array in enumerate(arrays)})
