"""Functions of TIR: their statements, which TVM offers no visitor for in Python, and what each function has to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from device_runner.failures import RigFailure
from harness.compile.compiler.compat import buffers_of, estimate_flops, s_tir, tirx
from harness.compile.compiler.passes import Passes, insert_before_first, own_pass
from harness.compile.compiler.releases import tvm_version

_INNER = ("a", "b", "value", "condition", "true_value", "false_value")
"""Names under which expressions of TIR hold others, beside their lists."""


def function_pass(name: str, rewrite: Callable[[Any], Any]) -> Any:
    """Return a pass of ours that rewrites every function of TIR."""
    return tirx.transform.prim_func_pass(lambda func, _mod, _ctx: rewrite(func), 0, name=f"adreno_bench.{name}")


def statement_pass(name: str, rewrite: Callable[[Any], Any]) -> Any:
    """Return a pass of ours that rewrites the body of every function of TIR."""
    return function_pass(name, lambda function: function.with_body(rewrite(function.body)))


def map_children(statement: Any, rewrite: Callable[[Any], Any]) -> Any:
    """Return the statement with each of its inner statements rewritten. TVM offers no statement visitor to Python."""
    if isinstance(statement, tirx.SeqStmt):
        return tirx.SeqStmt([rewrite(inner) for inner in statement.seq])
    if isinstance(statement, tirx.IfThenElse):
        otherwise = None if statement.else_case is None else rewrite(statement.else_case)
        return tirx.IfThenElse(statement.condition, rewrite(statement.then_case), otherwise)
    if is_block(statement):
        return with_block(statement, rewrite(statement.block.body), statement.block.alloc_buffers)
    body = getattr(statement, "body", None)
    return statement if body is None else with_body(statement, rewrite(body))


def walk(statement: Any) -> Iterator[Any]:
    """Yield the statement and all that it consists of, from the outermost in."""
    yield statement
    for inner in _children(statement):
        yield from walk(inner)


def _children(statement: Any) -> Iterator[Any]:
    """Yield the statements directly inside this one."""
    parts = [getattr(statement, name, None) for name in ("then_case", "else_case", "block", "init", "body")]
    yield from (inner for inner in [*getattr(statement, "seq", ()), *parts] if inner is not None)


def parts_of(expression: Any) -> Iterator[Any]:
    """Yield an expression and all that it consists of."""
    yield expression
    parts = [getattr(expression, name, None) for name in _INNER]
    lists = (*getattr(expression, "args", ()), *getattr(expression, "indices", ()))
    for inner in [*lists, *(part for part in parts if part is not None)]:
        yield from parts_of(inner)


def has_threads(function: Any) -> bool:
    """Return whether a function of TIR comes with threads of its own."""
    return any(getattr(part, "attr_key", "") == "thread_extent" for part in walk(function.body))


def unbound_blocks(function: Any) -> list[str]:
    """Return the names of a function's blocks that store numbers outside all threads, which no device runs."""
    return list(dict.fromkeys(name for name in _host_stores(function.body, "") if name))


def _host_stores(statement: Any, block: str) -> Iterator[str]:
    """Yield the name of the innermost block around each store that no thread runs; empty outside all blocks."""
    by_loop = isinstance(statement, tirx.For) and statement.kind == tirx.ForKind.THREAD_BINDING
    if by_loop or getattr(statement, "attr_key", "") == "thread_extent":
        return
    if isinstance(statement, tirx.BufferStore):
        yield block
    inside = str(statement.block.name_hint) if is_block(statement) else block
    for inner in _children(statement):
        yield from _host_stores(inner, inside)


def with_body(statement: Any, body: Any) -> Any:
    """Return a loop or an attribute with another body."""
    s = statement
    if isinstance(s, tirx.For):
        return tirx.For(s.loop_var, s.min, s.extent, s.kind, body, s.thread_binding, s.annotations, s.step)
    if isinstance(s, tirx.AttrStmt):
        return tirx.AttrStmt(s.node, s.attr_key, s.value, body)
    if isinstance(s, tirx.While):
        return tirx.While(s.condition, body)
    raise RigFailure(f"TVM {tvm_version()} has a statement {type(s).__name__} that is not known here")


def is_block(statement: Any) -> bool:
    """Return whether this is the realisation of a schedulable block."""
    return isinstance(statement, _blocks().SBlockRealize)


def with_block(realize: Any, body: Any, buffers: Any) -> Any:
    """Return the realisation of a block with another body and other allocated buffers."""
    b = realize.block
    block = _blocks().SBlock(
        b.iter_vars, b.reads, b.writes, b.name_hint, body, b.init, buffers, b.match_buffers, b.annotations
    )
    return _blocks().SBlockRealize(realize.iter_values, realize.predicate, block)


def spatial_block(realize: Any, value: Any) -> Any:
    """Return the realisation of a block that stores `value` where it reduced, with no axis of a reduction."""
    b, s = realize.block, realize.block.body
    axes = [tirx.IterVar(axis.dom, axis.var, tirx.IterVar.DataPar) for axis in b.iter_vars]
    store = tirx.BufferStore(s.buffer, value, s.indices)
    block = _blocks().SBlock(
        axes, b.reads, b.writes, b.name_hint, store, None, b.alloc_buffers, b.match_buffers, b.annotations
    )
    return _blocks().SBlockRealize(realize.iter_values, realize.predicate, block)


def new_block(body: Any, buffers: Any) -> Any:
    """Return a block that does nothing but allocate buffers around a statement."""
    return _blocks().SBlockRealize([], True, _blocks().SBlock([], [], [], "", body, None, buffers))


def _blocks() -> Any:
    """Return the module that holds schedulable blocks: `tirx` until 0.26, `s_tir` since."""
    return s_tir if hasattr(s_tir, "SBlockRealize") else tirx


SCHEDULE = "ApplyDefaultSchedule"
"""The pass that makes GPU code of operators."""
SCHEDULED_MARKS = ("tirx.is_scheduled", "tir.is_scheduled")
"""Attributes that mark a function with a schedule: the first since TVM 0.26, the second before."""
NOTE_WORK = "NoteWork"
"""The pass of ours that comes right before the schedules, and sees functions by name."""
_NOTE = "adreno_bench.flops"
LONG_NAMES = "adreno_bench.long_names"
"""Attribute of a module: names of functions that were shortened, by the short one."""


@dataclass(frozen=True)
class OperatorWork:
    """One operator, which is one compiled function."""

    function: str
    shapes: list[list[int]]
    """Shapes of the tensors that it reads, then of those that it writes."""
    bytes: int
    """Size of the tensors that it reads and writes, each counted once: no kernel moves less."""
    flops: int | None
    """Arithmetic operations that the operator needs, a multiplication and an addition being two; None: not known."""
    scheduled_flops: int | None
    """Operations in its scheduled loops: more, where blocks reach over the edge of a tensor or work is redone.
    Whether a thread outside the tensor really computes is for the kernel's conditions to decide."""


def mark_scheduled(function: Any) -> Any:
    """Return a function that TVM's default schedules will leave alone."""
    for mark in SCHEDULED_MARKS:
        function = function.with_attr(mark, True)
    return function


def with_work(passes: Passes) -> Passes:
    """Adreno's passes, with one before the schedules that notes how many operations each operator is."""
    return insert_before_first(passes, SCHEDULE, own_pass(NOTE_WORK, _note))


def long_names(module: Any) -> dict[str, str]:
    """Return the whole names of functions that were shortened, by the short one."""
    return {str(short): str(name) for short, name in (module.attrs or {}).get(LONG_NAMES, {}).items()}


def _note(mod: Any) -> Any:
    counted = {name: estimate_flops(function) for name, function in _operators(mod)}
    return mod.with_attr(_NOTE, {name: count for name, count in counted.items() if count is not None})


def work_of(module: Any) -> list[OperatorWork]:
    """Return all operators of a module that went through `with_work`, in the order of the module.

    Those are left out whose tensors have sizes that are computed on the way.
    """
    flops = (module.attrs or {}).get(_NOTE, {})
    return [_work(name, function, flops) for name, function in _operators(module) if _sized(function)]


def _sized(function: Any) -> bool:
    return all(
        isinstance(extent, int) or hasattr(extent, "value") for shape, _ in buffers_of(function) for extent in shape
    )


def _work(name: str, function: Any, flops: Any) -> OperatorWork:
    buffers = list(buffers_of(function))
    shapes = [[int(extent) for extent in shape] for shape, _ in buffers]
    sizes = (prod(shape) * bits // 8 for shape, (_, bits) in zip(shapes, buffers, strict=True))
    needed = flops.get(name)
    return OperatorWork(name, shapes, sum(sizes), None if needed is None else int(needed), estimate_flops(function))


def _operators(mod: Any) -> Iterator[tuple[str, Any]]:
    for variable, function in mod.functions.items():
        if isinstance(function, tirx.PrimFunc):
            yield str(variable.name_hint), function
