"""The tasks of a network: its functions as they stand before TVM gives any of them a schedule."""

from __future__ import annotations

from typing import Any

from harness.compile.compiler.compat import (
    copy_function,
    dtype_of,
    memory_scope,
    structural_hash,
    tirx,
    tvm,
    without_attributes,
)
from harness.compile.compiler.tir import SCHEDULED_MARKS, mark_scheduled

_IRRELEVANT = ("global_symbol", "target")
"""Attributes that say where a function stands and for whom. The whole target is in the second, host and all, and would
make the same pool another task on each machine."""


def task_of(function: Any) -> str:
    """Return what tells a function from every other: 16 hexadecimal digits of TVM's structural hash, names left out."""
    return f"{structural_hash(without_attributes(function, _IRRELEVANT)) & (2**64 - 1):016x}"


def unscheduled_functions(mod: Any) -> dict[str, Any]:
    """Return the functions of a module that have no schedule yet, by name."""
    functions = {str(variable.name_hint): function for variable, function in mod.functions.items()}
    return {
        name: each for name, each in functions.items() if isinstance(each, tirx.PrimFunc) and not is_scheduled(each)
    }


def is_scheduled(function: Any) -> bool:
    """Return whether TVM's default schedules will leave it alone."""
    attributes = dict(function.attrs or {})
    return any(int(attributes.get(mark, 0)) for mark in SCHEDULED_MARKS)


def shapes_of(function: Any) -> list[str]:
    """Describe the parameters of a function: `float32[1,16,55,55,4] texture-nhwc`."""

    def text(parameter: Any) -> str:
        buffer = function.buffer_map[parameter] if hasattr(function, "buffer_map") else parameter
        scope = memory_scope(function, parameter).partition(".")[2]
        return f"{dtype_of(buffer)}[{','.join(str(int(extent)) for extent in buffer.shape)}] {scope}".strip()

    return [text(parameter) for parameter in function.params]


def module_of(function: Any) -> Any:
    """Return a module of a copy of this function, called `main`, as traces call it.

    TVM's schedules edit what they are given in place, a function that others hold as well.
    """
    return tvm.IRModule({"main": copy_function(function).with_attr("global_symbol", "main")})


def put_back(result: Any, function: Any) -> Any:
    """Return a function that was scheduled in a module of its own, as it stands in the network again."""
    if not (function.attrs and "global_symbol" in function.attrs):
        result = result.without_attr("global_symbol")
    return mark_scheduled(result)
