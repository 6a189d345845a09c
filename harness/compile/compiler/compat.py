"""Differences between the interfaces of TVM's releases: one function for each, which works with every release.

Everything here takes and returns TVM's objects, which carry no types of their own.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from math import prod
from typing import Any, TypeVar


class LateModule:
    """A module of TVM, imported when something of it is first asked for: each command loads us, and few need TVM."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


tvm: Any = LateModule("tvm")
relax: Any = LateModule("tvm.relax")
s_tir: Any = LateModule("tvm.s_tir")
tirx: Any = LateModule("tvm.tirx")
dpl: Any = LateModule("tvm.relax.dpl")
dlight: Any = LateModule("tvm.s_tir.dlight")

# Until 0.25 a type was a "struct info", and parameters of TIR functions had their buffers in a map beside them.


def tensor_type(shape: Any, dtype: str, vdevice: Any = None) -> Any:
    """Type of a tensor, on a virtual device if one is given."""
    make = getattr(relax, "TensorStructInfo", None) or relax.TensorType
    return make(shape, dtype, vdevice)


def type_of(expression: Any) -> Any:
    """Type of a Relax expression."""
    return expression.ty if hasattr(expression, "ty") else expression.struct_info


def dtype_of(tensor: Any) -> str:
    """Return number format of a tensor's type. Since 0.27 it is wrapped in a type of its own."""
    return str(getattr(tensor.dtype, "dtype", tensor.dtype))


def kind_of(expression: Any) -> str:
    """Return the number format of an expression of TIR."""
    return str(getattr(expression, "dtype", None) or expression.ty)


def is_constant(expression: Any) -> bool:
    """Return whether a Relax expression is a constant tensor. The class was renamed in 0.27."""
    return isinstance(expression, getattr(tvm.ir, "GenericConst", None) or relax.Constant)


def array_of(constant: Any) -> Any:
    """Return the numbers of a constant tensor as an array of numpy."""
    return (constant.value if hasattr(constant, "value") else constant.data).numpy()


def return_type(function: Any) -> Any:
    """Type of what a Relax function returns."""
    return function.ret_ty if hasattr(function, "ret_ty") else function.ret_struct_info


def tuple_fields(kind: Any) -> Any:
    """Types of a tuple's fields, None for the type of anything else."""
    return getattr(kind, "fields", None)


def is_tensor(kind: Any) -> bool:
    """Return whether this is the type of a tensor, and not of a tuple, a shape or a number."""
    return hasattr(kind, "dtype") and hasattr(kind, "shape")


def name_of(variable: Any) -> str:
    """Return the name of a Relax variable."""
    return str(variable.name if hasattr(variable, "name") else variable.name_hint)


def operator_name(value: Any) -> str:
    """Return the name of the operator that is called; empty for anything else, such as the call of a local function."""
    operator = getattr(value, "op", None)
    return str(operator.name) if isinstance(operator, tvm.ir.Op) else ""


def memory_scope(function: Any, parameter: Any) -> str:
    """Memory scope of a TIR function's parameter: `global`, `global.texture-nhwc`."""
    buffer = function.buffer_map[parameter] if hasattr(function, "buffer_map") else parameter
    return str(buffer.scope())


def structural_hash(function: Any) -> int:
    """TVM's hash of what a function does, whatever its variables are called."""
    return int(_structures().structural_hash(function))


def structurally_equal(first: Any, second: Any) -> bool:
    """Return whether two functions do the same, whatever their variables are called."""
    return bool(_structures().structural_equal(first, second, map_free_vars=True))


def _structures() -> Any:
    """Return the module that compares what functions do: `tvm_ffi` since 0.27."""
    import tvm_ffi

    return tvm.ir if hasattr(tvm.ir, "structural_hash") else tvm_ffi


def copy_function(function: Any) -> Any:
    """Return a TIR function that shares no loop and no variable with the one that it is a copy of."""
    return s_tir.renew_defs(function)


def map_calls(statement: Any, rewrite: Callable[[Any], Any]) -> Any:
    """Return a statement of TIR with each call rewritten, from the innermost out."""
    return map_parts(statement, (tvm.ir.Call if hasattr(tvm.ir, "Call") else tirx.Call,), rewrite)


def map_parts(statement: Any, kinds: tuple[type, ...], rewrite: Callable[[Any], Any]) -> Any:
    """Return a statement of TIR with each part of these kinds rewritten, from the innermost out. 0.27 has a new way."""
    import tvm_ffi

    if not hasattr(tirx, "stmt_functor"):
        return tvm_ffi.structural_map(statement, (kinds, rewrite))
    return tirx.stmt_functor.ir_transform(
        statement, None, lambda part: rewrite(part) if isinstance(part, kinds) else None
    )


def without_attributes(function: Any, names: Sequence[str]) -> Any:
    """Return a copy of the function without these attributes."""
    for name in names:
        if function.attrs and name in function.attrs:
            function = function.without_attr(name)
    return function


def buffers_of(function: Any) -> Iterator[tuple[list[Any], int]]:
    """Shape and bits per number of each tensor that a TIR function takes, those that it writes last."""
    for buffer in parameter_buffers(function):
        yield list(buffer.shape), tvm.DataType(dtype_of(buffer)).bits


def bytes_of(buffer: Any) -> int:
    """Return the size of a buffer of TIR whose extents are constants; 0 if one is not."""
    extents = [int(getattr(extent, "value", extent if isinstance(extent, int) else 0)) for extent in buffer.shape]
    return prod(extents) * int(tvm.DataType(dtype_of(buffer)).bits) // 8


def parameter_buffers(function: Any) -> Iterator[Any]:
    """Yield the buffers that a TIR function takes, those that it writes last."""
    for parameter in function.params:
        buffer = function.buffer_map.get(parameter) if hasattr(function, "buffer_map") else parameter
        if hasattr(buffer, "shape"):
            yield buffer


def estimate_flops(function: Any) -> int | None:
    """Arithmetic operations of a TIR function, by TVM's own count over its loops; None if it cannot count them."""
    try:
        analysis = import_module("tvm.s_tir.analysis")
    except ImportError:
        analysis = import_module("tvm.tir.analysis")
    try:
        return int(analysis.estimate_tir_flops(tvm.IRModule({"main": function})))
    except Exception:  # TVM raises errors of every kind, and a number for people is no reason to fail a build
        return None


def writes_texture(function: Any) -> bool:
    """Return whether a lowered operator's result, which is its last parameter, lives in an image."""
    return "texture" in memory_scope(function, function.params[-1])


def touches_texture(function: Any) -> bool:
    """Return whether a lowered operator reads or writes an image."""
    return any("texture" in str(buffer.scope()) for buffer in parameter_buffers(function))


def buffer_read(part: Any) -> Any:
    """Return the buffer of a region or a load of TIR; None of anything else. Until 0.26 they called it so."""
    return getattr(part, "source", getattr(part, "buffer", None))


def tir_function(source: str) -> Any:
    """Return the TIR function that a text in TVM's script defines, in which `T` is the dialect's name.

    `TypeVar` names its sizes before it where an offset depends on one, as 0.27 prints them.
    """
    from tvm import script
    from tvm.script import tirx

    return script.parser.parse(source, extra_vars={"T": tirx, "TypeVar": TypeVar})


def call_packed(name: str, *args: Any, result: Any) -> Any:
    """Return a Relax call of a runtime function, as it stands after lowering.

    `result` is the type of what it returns.
    """
    return relax.Call(relax.ExternFunc(name), [relax.utils.convert_to_expr(a) for a in args], None, [result])


def opencl_source(executable: Any) -> str:
    """OpenCL C of all kernels of a built executable; empty if it has none."""
    return "\n".join(module.inspect_source() for module in _modules(executable) if module.kind == "opencl")


def clml_symbols(executable: Any) -> list[str]:
    """Return the names of the CLML parts in a built executable."""
    return [str(module["get_symbol"]()) for module in _modules(executable) if module.kind == "clml"]


def _modules(executable: Any) -> Iterator[Any]:
    pending = [executable.mod]
    while pending:
        module = pending.pop()
        pending.extend(module.imports)
        yield module


def root_operator(pattern: Any) -> str:
    """Return the operator that a pattern of a pattern table ends in, empty if it ends in no operator."""
    inner = getattr(pattern, "pattern", pattern)  # what a pattern of attributes looks at
    return str(inner.op.expr.name) if hasattr(inner, "op") else ""


def with_main(mod: Any, function: Any) -> Any:
    """Return a copy of the module with another function `main`."""
    changed = mod.clone()
    changed.update_func(mod.get_global_var("main"), function)
    return changed


def rebind_main(mod: Any, change: Callable[[Any], Any]) -> Any:
    """Return a copy of the module with `change(binding)` in the place of each binding of `main`."""
    main = mod["main"]
    blocks = [type(block)([change(binding) for binding in block.bindings]) for block in main.body.blocks]
    body = relax.SeqExpr(blocks, main.body.body)
    changed = relax.Function(main.params, body, return_type(main), main.is_pure, main.attrs)
    return relax.transform.Normalize()(with_main(mod, changed))


def rewrite_main(mod: Any, pattern: Any, replace: Any) -> Any:
    """Return a copy of the module with `replace(expression, matched)` for each match of a pattern in `main`.

    It is left as it is where `replace` returns the expression itself. TVM matches other names of a result, too, such as
    an output's: they stay.
    """

    def replace_result(expression: Any, matched: Any) -> Any:
        return expression if isinstance(expression, relax.Var) else replace(expression, matched)

    return with_main(mod, dpl.rewrite_call(pattern, replace_result, mod["main"]))


INTRINSICS = "tvm.s_tir.tensor_intrin"
"""Importing it registers the tensor instructions of other processors, for 20 s of processor time. `TuneContext` does
so, and no rule for OpenCL uses any."""


@contextmanager
def without_intrinsics() -> Iterator[None]:
    """Meanwhile importing TVM's tensor instructions does nothing, unless that was done before."""
    absent = INTRINSICS not in sys.modules
    if absent:
        sys.modules[INTRINSICS] = types.ModuleType(INTRINSICS)
    try:
        yield
    finally:
        if absent:
            sys.modules.pop(INTRINSICS, None)
