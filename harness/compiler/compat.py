"""The one place that knows how TVM's releases differ, and how its own pass lists are read.

Everything here takes and returns TVM's objects, which carry no types of their own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from device_runner.failures import RigFailure

Passes = list[Any]


REVISION_MARK = "adreno-bench-revision"
"""File of an environment in which a commit of TVM was installed: many commits call themselves by the same version."""


def tvm_version() -> str:
    """Version of the installed TVM, without importing it. A checkout builds `tvm`, wheels are `apache-tvm`."""
    try:
        installed = version("apache-tvm")
    except PackageNotFoundError:
        installed = version("tvm")
    mark = Path(sys.prefix) / REVISION_MARK
    return f"{installed}+g{mark.read_text(encoding='utf-8')[:10]}" if mark.exists() else installed


def release(text: str) -> tuple[int, ...]:
    """`0.27.0.post1` as `(0, 27, 0)`, for comparing releases."""
    numbers = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(n) for n in numbers.group().split(".")) if numbers else ()


def onnx_operators() -> frozenset[str]:
    """Operators that TVM's ONNX importer knows."""
    frontend = import_module("tvm.relax.frontend.onnx.onnx_frontend")
    # `If` and `Constant` are handled beside the table.
    return frozenset(frontend._get_convert_map()) | {"If", "Constant"}


def adreno_relax_passes(target: Any) -> Passes:
    """The release's own ordered Relax passes for Adreno, from a fresh import to what the VM's code generator takes."""
    from tvm.relax.backend import adreno

    with target:
        return [
            *adreno.legalize_passes(target),
            *adreno.dataflow_lower_passes(target),
            *adreno.finalize_passes(target),
        ]


def clml_offload_passes(table: Sequence[Any], target: Any) -> Passes:
    """The release's own ordered passes that offload to CLML, with this pattern table instead of the release's.

    The list is local to a pass of TVM's, which is run once on an empty module to take note of it.
    """
    import tvm
    from tvm.relax.backend.adreno import clml

    original = clml.clml_pattern_table
    clml.clml_pattern_table = lambda: list(table)
    try:
        with _noted_sequential() as noted:
            clml.OpenCLMLOffLoad()(tvm.IRModule({}))
    finally:
        clml.clml_pattern_table = original
    return [clml.OpenCLMLOffLoadForLLM(target), *noted]


def adreno_tir_passes() -> Passes:
    """The release's own ordered TIR passes for Adreno.

    The list is local to TVM's pipeline function, so the pipeline is run once on an empty module while the `Sequential`
    that it ends in only takes note.
    """
    import tvm
    from tvm.s_tir.backend.adreno import pipeline

    with _noted_sequential() as noted:
        made = pipeline.default_tir_pipeline()
        run = made[0] if isinstance(made, tuple) else made
        run(tvm.IRModule({}))
    return noted


@contextmanager
def _noted_sequential() -> Iterator[Passes]:
    """The passes of the `Sequential` that TVM makes and runs meanwhile, none of which really runs."""
    import tvm

    noted: Passes = []

    def take_note(passes: Passes) -> Callable[[Any], Any]:
        noted.extend(passes)
        return lambda mod: mod

    original = tvm.ir.transform.Sequential
    tvm.ir.transform.Sequential = take_note
    try:
        yield noted
    finally:
        tvm.ir.transform.Sequential = original
    if not noted:
        raise RigFailure(f"TVM {tvm_version()} builds one of its Adreno pipelines in a way that is not known here")


@contextmanager
def tir_pipeline(passes: Passes) -> Iterator[str]:
    """A name under which `relax.build` finds these passes, with the finalising passes that every target shares."""
    import tvm
    from tvm.s_tir import pipeline
    from tvm.tirx import compilation_pipeline

    name = "adreno-bench"
    triple = (tvm.ir.transform.Sequential(passes), pipeline.finalize_host_passes, pipeline.finalize_device_passes)
    compilation_pipeline.register_tir_pipeline(name, lambda: triple)
    try:
        yield name
    finally:
        compilation_pipeline.PIPELINE_MAP.pop(name, None)


def replace_last(passes: Passes, name: str, new: Any) -> Passes:
    """`passes` with `new` instead of the last pass of that name."""
    index = _last(passes, name)
    return [*passes[:index], new, *passes[index + 1 :]]


def insert_before(passes: Passes, name: str, new: Any) -> Passes:
    """`passes` with `new` before the last pass of that name."""
    index = _last(passes, name)
    return [*passes[:index], new, *passes[index:]]


def passes_before(passes: Passes, name: str) -> Passes:
    """Those before the last pass of that name."""
    return passes[: _last(passes, name)]


def _last(passes: Passes, name: str) -> int:
    """Names are compared without their name space, which moved between releases."""
    names = [str(p.info.name).rpartition(".")[2] for p in passes]
    if name not in names:
        raise RigFailure(
            f"TVM {tvm_version()} has no pass {name} where a workaround of ours belongs",
            hint="use --as-shipped, or mend the quirk for this release",
            evidence=" ".join(names),
        )
    return len(names) - 1 - names[::-1].index(name)


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


# Until 0.25 a type was a "struct info", and parameters of TIR functions had their buffers in a map beside them.


def tensor_type(shape: Any, dtype: str) -> Any:
    """Type of a tensor."""
    from tvm import relax

    make = getattr(relax, "TensorStructInfo", None) or relax.TensorType
    return make(shape, dtype)


def type_of(expression: Any) -> Any:
    """Type of a Relax expression."""
    return expression.ty if hasattr(expression, "ty") else expression.struct_info


def dtype_of(tensor: Any) -> str:
    """Number format of a tensor's type. Since 0.27 it is wrapped in a type of its own."""
    return str(getattr(tensor.dtype, "dtype", tensor.dtype))


def is_constant(expression: Any) -> bool:
    """Whether a Relax expression is a constant tensor. The class was renamed in 0.27."""
    import tvm
    from tvm import relax

    return isinstance(expression, getattr(tvm.ir, "GenericConst", None) or relax.Constant)


def return_type(function: Any) -> Any:
    """Type of what a Relax function returns."""
    return function.ret_ty if hasattr(function, "ret_ty") else function.ret_struct_info


def tuple_fields(kind: Any) -> Any:
    """Types of a tuple's fields, None for the type of anything else."""
    return getattr(kind, "fields", None)


def is_tensor(kind: Any) -> bool:
    """Whether this is the type of a tensor, and not of a tuple, a shape or a number."""
    return hasattr(kind, "dtype") and hasattr(kind, "shape")


def name_of(variable: Any) -> str:
    """Name of a Relax variable."""
    return str(variable.name if hasattr(variable, "name") else variable.name_hint)


def memory_scope(function: Any, parameter: Any) -> str:
    """Where the tensor of a TIR function's parameter lives: `global`, `global.texture-nhwc`."""
    buffer = function.buffer_map[parameter] if hasattr(function, "buffer_map") else parameter
    return str(buffer.scope())


def tir_function(source: str) -> Any:
    """The TIR function that a text in TVM's script defines, in which `T` is the dialect's name."""
    from tvm import script
    from tvm.script import tirx

    return script.parser.parse(source, extra_vars={"T": tirx})


def call_packed(name: str, *args: Any, result: Any) -> Any:
    """A Relax call of a runtime function, as it stands after lowering. `result` is the type of what it returns."""
    from tvm import relax

    return relax.Call(relax.ExternFunc(name), [relax.utils.convert_to_expr(a) for a in args], None, [result])


def opencl_source(executable: Any) -> str:
    """OpenCL C of all kernels of a built executable; empty if it has none."""
    return "\n".join(module.inspect_source() for module in _modules(executable) if module.kind == "opencl")


def clml_symbols(executable: Any) -> list[str]:
    """Names of the CLML parts in a built executable."""
    return [str(module["get_symbol"]()) for module in _modules(executable) if module.kind == "clml"]


def _modules(executable: Any) -> Iterator[Any]:
    pending = [executable.mod]
    while pending:
        module = pending.pop()
        pending.extend(module.imports)
        yield module


def root_operator(pattern: Any) -> str:
    """The operator that a pattern of a pattern table ends in, empty if it ends in no operator."""
    inner = getattr(pattern, "pattern", pattern)  # what a pattern of attributes looks at
    return str(inner.op.expr.name) if hasattr(inner, "op") else ""
