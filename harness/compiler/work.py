"""What each operator of a network has to do, whatever its schedule: operations and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.compiler.compat import buffers_of, estimate_flops
from harness.compiler.passes import Passes, insert_before_first

SCHEDULE = "ApplyDefaultSchedule"
"""The pass that makes GPU code of operators."""
_NOTE = "adreno_bench.flops"


@dataclass(frozen=True)
class Work:
    """One operator, which is one compiled function."""

    function: str
    shapes: list[list[int]]
    """Of what it reads, then of what it writes."""
    bytes: int
    """Of what it reads and writes, each counted once: no kernel moves less."""
    flops: int | None
    """Arithmetic operations that the operator needs, a multiplication and an addition being two; None: not known."""
    scheduled_flops: int | None
    """Those of the loops that its schedule made: more, where blocks reach over the edge of a tensor or work is redone.
    Whether a thread outside the tensor really computes is for the kernel's conditions to decide."""


def with_work(passes: Passes) -> Passes:
    """Adreno's passes, with one before the schedules that notes how many operations each operator is."""
    from tvm import transform

    noted = transform.module_pass(_note, opt_level=0, name="NoteWork")
    return insert_before_first(passes, SCHEDULE, noted)


def _note(mod: Any, _context: Any) -> Any:
    counted = {name: estimate_flops(function) for name, function in _operators(mod)}
    return mod.with_attr(_NOTE, {name: count for name, count in counted.items() if count is not None})


def work_of(lowered: Any) -> list[Work]:
    """All operators of a module that went through `with_work`, in the order of the module.

    Those are left out whose tensors have sizes that are computed on the way.
    """
    noted = (lowered.attrs or {}).get(_NOTE, {})
    return [_work(name, function, noted) for name, function in _operators(lowered) if _sized(function)]


def _sized(function: Any) -> bool:
    return all(
        isinstance(extent, int) or hasattr(extent, "value") for shape, _ in buffers_of(function) for extent in shape
    )


def _work(name: str, function: Any, noted: Any) -> Work:
    buffers = list(buffers_of(function))
    shapes = [[int(extent) for extent in shape] for shape, _ in buffers]
    sizes = (size_of(shape) * bits // 8 for shape, (_, bits) in zip(shapes, buffers, strict=True))
    needed = noted.get(name)
    return Work(name, shapes, sum(sizes), None if needed is None else int(needed), estimate_flops(function))


def size_of(shape: list[int]) -> int:
    """How many numbers a tensor has."""
    size = 1
    for extent in shape:
        size *= extent
    return size


def _operators(mod: Any) -> Iterator[tuple[str, Any]]:
    from tvm import tirx

    for variable, function in mod.functions.items():
        if isinstance(function, tirx.PrimFunc):
            yield str(variable.name_hint), function
