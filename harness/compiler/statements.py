"""Statements of TIR, which TVM offers no visitor for in Python: walked, and taken apart and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from device_runner.failures import RigFailure
from harness.compiler.installed import tvm_version


def statement_pass(name: str, rewrite: Callable[[Any], Any]) -> Any:
    """A TIR pass that rewrites the body of every function."""
    from tvm import tirx

    return tirx.transform.prim_func_pass(lambda func, _mod, _ctx: func.with_body(rewrite(func.body)), 0, name=name)


def map_children(statement: Any, rewrite: Callable[[Any], Any]) -> Any:
    """The statement with each of its inner statements rewritten. TVM offers no statement visitor to Python."""
    from tvm import tirx

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
    """The statement and all that it consists of, from the outermost in."""
    yield statement
    parts = [getattr(statement, name, None) for name in ("then_case", "else_case", "body")]
    for inner in [*getattr(statement, "seq", ()), *parts]:
        if inner is not None:
            yield from walk(inner)


def with_body(statement: Any, body: Any) -> Any:
    """A loop or an attribute with another body."""
    from tvm import tirx

    s = statement
    if isinstance(s, tirx.For):
        return tirx.For(s.loop_var, s.min, s.extent, s.kind, body, s.thread_binding, s.annotations, s.step)
    if isinstance(s, tirx.AttrStmt):
        return tirx.AttrStmt(s.node, s.attr_key, s.value, body)
    if isinstance(s, tirx.While):
        return tirx.While(s.condition, body)
    raise RigFailure(f"TVM {tvm_version()} has a statement {type(s).__name__} that is not known here")


def is_block(statement: Any) -> bool:
    """Whether this is the realisation of a schedulable block."""
    return isinstance(statement, _blocks().SBlockRealize)


def with_block(realize: Any, body: Any, buffers: Any) -> Any:
    """The realisation of a block with another body and other allocated buffers."""
    b = realize.block
    block = _blocks().SBlock(
        b.iter_vars, b.reads, b.writes, b.name_hint, body, b.init, buffers, b.match_buffers, b.annotations
    )
    return _blocks().SBlockRealize(realize.iter_values, realize.predicate, block)


def new_block(body: Any, buffers: Any) -> Any:
    """A block that does nothing but allocate buffers around a statement."""
    return _blocks().SBlockRealize([], True, _blocks().SBlock([], [], [], "", body, None, buffers))


def _blocks() -> Any:
    """The module that holds schedulable blocks: `tirx` until 0.26, `s_tir` since."""
    from tvm import s_tir, tirx

    return s_tir if hasattr(s_tir, "SBlockRealize") else tirx
