"""One call of each kind: TVM legalises a call by its operator, attributes and types alone, and calls repeat.

An unrolled LSTM of 5,000 calls has some 120 kinds of them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tvm import relax

from harness.compile.compiler.compat import is_constant, return_type, structural_hash, type_of, with_main


def with_distinct_calls(mod: Any) -> Any:
    """Return the module with one call of each kind in each block of `main`; its result stands for those of the others.

    It computes nothing of use, and TVM legalises it exactly if it legalises the whole.
    """
    main = mod["main"]
    blocks = [type(block)(_distinct(block.bindings)) for block in main.body.blocks]
    body = relax.SeqExpr(blocks, main.body.body)
    return with_main(mod, relax.Function(main.params, body, return_type(main), main.is_pure, main.attrs))


def _distinct(bindings: Any) -> list[Any]:
    """Return the bindings, with the first result of its kind in place of each further call."""
    firsts: dict[Hashable, Any] = {}
    distinct = []
    for binding in bindings:
        is_call = isinstance(getattr(binding, "value", None), relax.Call)
        first = firsts.setdefault(_kind(binding.value), binding.var) if is_call else binding.var
        distinct.append(binding if first.same_as(binding.var) else relax.VarBinding(binding.var, first))
    return distinct


def _kind(call: Any) -> Hashable:
    types = call.ty_args if hasattr(call, "ty_args") else call.sinfo_args
    attributes = structural_hash(call.attrs) if call.attrs is not None else 0
    return call.op, attributes, tuple(map(structural_hash, types)), tuple(map(_argument, call.args))


def _argument(value: Any) -> Hashable:
    """Return what TVM legalises by: the type of a tensor, the fields of a tuple, and a number or a shape itself."""
    if isinstance(value, relax.Tuple):
        return tuple(map(_argument, value.fields))
    if isinstance(value, relax.Var) or (is_constant(value) and type_of(value).ndim):
        return isinstance(value, relax.Var), structural_hash(type_of(value))
    return structural_hash(value)
