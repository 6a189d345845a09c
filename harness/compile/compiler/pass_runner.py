"""Runs TVM's passes one by one, and says which of them failed, and on which kernel or operator.

TVM's errors quote a check in its sources and seldom say what it was looking at. So a step that fails is given ever
smaller parts of the module, until the smallest that fails alike is left.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from harness.compile.compiler.compat import is_tensor, relax, tirx, tvm, type_of
from harness.compile.compiler.passes import Passes

LOG = logging.getLogger(__name__)
"""Told the name of each step before it runs, so that a process which dies of one has left its name behind."""


class StepFailed(Exception):
    """A step of TVM raised. `place` says which, by which of its schedules, and on which kernel or operator."""

    def __init__(self, name: str, on: str, error: Exception) -> None:
        super().__init__(str(error))
        self.place = " ".join(part for part in (name, _schedule(error), on and f"on {on}") if part)
        self.error = error


def run_passes(passes: Passes, mod: Any) -> Any:
    """Return the module after these passes, as TVM's `Sequential` would run them. Raises StepFailed."""
    for step in passes:
        # A sequence of one leaves out what the context disables, as the whole sequence would.
        mod = run_step(str(step.info.name), tvm.transform.Sequential([step]), mod)
    return mod


def run_step(name: str, step: Callable[[Any], Any], mod: Any) -> Any:
    """Return what a step makes of a module. Raises StepFailed, with the name of this step or of one inside it."""
    LOG.info(name)
    try:
        return step(mod)
    except StepFailed:
        raise
    except Exception as error:  # TVM raises errors of every kind
        raise StepFailed(name, culprit(step, mod, error), error) from error


def _schedule(error: Exception) -> str:
    """Which schedule of dlight's the error came through, as `(dlight/adreno/pool.py, schedule_max_pool2d)`, if any."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/dlight/" in frame.filename]
    if not frames:
        return ""
    return f"(dlight/{frames[-1].filename.rpartition('/dlight/')[2]}, {frames[-1].name})"


Step = Callable[[Any], Any]
"""Takes a module; raises the error in question for a module that has the culprit in it."""

LIMIT_S = 60.0
"""Time limit of the whole search. Only the deadline of the build ends a step that is running."""


def culprit(step: Step, mod: Any, error: Exception, limit_s: float = LIMIT_S) -> str:
    """Return the kernel (`fused_concat_12`) or operator (`relax.stack of (2, 1, 8)`) that makes a step fail.

    Empty if it fails on the whole module only, or the search takes too long.
    """
    deadline = time.monotonic() + limit_s

    def fails(part: Any) -> bool:
        if time.monotonic() > deadline:
            raise TimeoutError
        try:
            step(part)
        except Exception as raised:  # the step may raise anything, as it did before
            return _same(raised, error)
        return False

    try:
        return _kernel(fails, mod) or _operator(fails, mod)
    except Exception:  # a part that cannot be made, or no time: then there is no name, and the error itself stands
        return ""


def _same(error: Exception, other: Exception) -> bool:
    """Return whether two errors have the same type and first line."""
    lines = [str(each).strip().splitlines()[:1] for each in (error, other)]
    return type(error) is type(other) and lines[0] == lines[1]


def _kernel(fails: Callable[[Any], bool], mod: Any) -> str:
    """Return the first function of TIR that fails for itself."""
    functions = [(var, func) for var, func in mod.functions.items() if isinstance(func, tirx.PrimFunc)]

    def part(some: Sequence[Any]) -> Any:
        return tvm.IRModule(dict(some), attrs=mod.attrs, global_infos=mod.global_infos)

    if not functions or not fails(part(functions)):
        return ""
    while len(functions) > 1:
        half = functions[: len(functions) // 2]
        functions = half if fails(part(half)) else functions[len(half) :]
    return str(functions[0][0].name_hint)


def _operator(fails: Callable[[Any], bool], mod: Any) -> str:
    """Return the operator with which the shortest beginning of `main` that fails ends."""
    bindings = [binding for block in mod["main"].body.blocks for binding in block.bindings]
    low, high = 0, len(bindings)
    if not fails(_beginning(mod, high)):
        return ""
    while high - low > 1:  # a beginning of `low` is right, one of `high` fails
        middle = (low + high) // 2
        low, high = (low, middle) if fails(_beginning(mod, middle)) else (middle, high)
    return _describe(bindings[high - 1])


def _beginning(mod: Any, length: int) -> Any:
    """Return the module with the first bindings of `main` alone; the last of them is what it returns."""
    main = mod["main"]
    blocks, left = [], length
    for block in main.body.blocks:
        bindings = list(block.bindings)[:left]
        left -= len(bindings)
        if bindings:
            blocks.append((type(block), bindings))
    kind, bindings = blocks[-1]
    last = bindings[-1].var
    if isinstance(last, relax.DataflowVar):
        last = relax.Var("result", type_of(last))
        blocks[-1] = (kind, [*bindings, relax.VarBinding(last, bindings[-1].var)])
    body = relax.SeqExpr([kind(bindings) for kind, bindings in blocks], last)
    part = mod.clone()
    part.update_func(
        mod.get_global_var("main"), relax.Function(main.params, body, type_of(last), main.is_pure, main.attrs)
    )
    return part


def _describe(binding: Any) -> str:
    """Return an operator, or the kernel that is called, and the shape of its result."""
    op = getattr(binding.value, "op", None)
    called = getattr(op, "name", None) or type(binding.value).__name__
    if called == "relax.call_tir":
        called = binding.value.args[0].name_hint
    kind = type_of(binding.var)
    extents = getattr(kind.shape, "values", None) if is_tensor(kind) else None
    return (
        str(called)
        if extents is None
        else f"{called} of ({', '.join(str(getattr(extent, 'value', extent)) for extent in extents)})"
    )
