"""Relax modules of a program of one's own, compiled in its process, with the workarounds for TVM's known defects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from device_runner.names import suggestion
from harness.base.case import Precision
from harness.base.failures import UnsupportedOperator, UsageError
from harness.compile.artifacts.compile import export, stepping, with_precision
from harness.compile.artifacts.planner import CONTESTANTS
from harness.compile.compiler.compat import is_tensor, name_of, opencl_source, operator_name, relax, tvm, type_of
from harness.compile.compiler.releases import host_operators
from harness.compile.paths import PATHS
from harness.compile.paths.base import BuiltModule, ImageLimits, edit_model
from harness.compile.paths.effects import watch
from harness.compile.paths.lowered_module import ENTRY, bindings, vdevices, with_caller
from harness.compile.quirks import Quirk, quirks_for

IMPORTER_QUIRKS = ("roi-align-half-pixel",)
"""Quirks that correct what TVM's ONNX importer makes of a network: a module of another origin means what it says."""
_LOWERED_OPERATORS = ("relax.vm.", "relax.memory.", "relax.builtin.")
"""Begin the operators that TVM's passes for a target leave behind."""
_DEVICE_FUNCTIONS = "vm.builtin."
"""Begins the names of functions that TVM's runtime has on every device."""


@dataclass(frozen=True)
class CompiledModule:
    """A Relax module that `adreno_bench.compile` compiled.

    A TVM with OpenCL runs it: `relax.VirtualMachine(executable, [tvm.device("opencl")] * devices)`.
    """

    executable: Any
    """TVM's `VMExecutable`, as `relax.build` returns it."""
    devices: int
    """How often TVM's virtual machine wants the OpenCL device: once for each kind of its memory."""
    quirks: tuple[str, ...] = field(repr=False)
    """Defects of TVM that are worked around in it."""
    effective_quirks: tuple[str, ...]
    """Those of them whose workaround changed something in this module."""
    facts: dict[str, Any] = field(repr=False)
    """Number of kernels, of tensors in images, and on path `clml` of operators that CLML runs, among others."""
    host_triple: str | None
    """LLVM triple of the processor that it is for; None for that of this host."""

    def export_library(self, file: str | PathLike[str]) -> Path:
        """Link it into a shared library for its processor, and return the file.

        `executable.export_library` links with tools of your own.

        Raises:
            Failure: There is no such folder, the file is itself a folder, or a linker is missing: see the hint.
        """
        library = Path(file).absolute()
        if not library.parent.is_dir():
            raise UsageError(f"there is no folder {library.parent}", hint="make it first")
        if library.is_dir():
            raise UsageError(f"{library} is a folder", hint=f"name a file in it: {library / 'lib.so'}")
        export(self.executable, library, self.host_triple)
        return library


def compile_module(
    module: Any, path_name: str, limits: ImageLimits, host_triple: str | None, precision: Precision, *, as_shipped: bool
) -> CompiledModule:
    """Compile a module as `compile_model` compiles a file. Raises `UsageError`, `CompileFailure`, `RigFailure`."""
    if path_name not in CONTESTANTS:
        raise UsageError(f"there is no path {path_name!r}", hint=suggestion(path_name, CONTESTANTS))
    path = PATHS[path_name]
    table = [quirk for quirk in quirks_for(path_name, precision, as_shipped=as_shipped) if _acts_on_modules(quirk)]
    mod, name = _with_main(module)
    _require_fixed_shapes(mod)
    _require_operators(mod, precision)
    effective = {quirk.id for quirk in table if quirk.essential}
    quirks, target = watch(table, effective), path.target(limits, host_triple)
    with stepping("prepare"):
        mod = with_precision(edit_model(_in_dataflow(_own_copy(mod)), quirks), precision)
        mod = mod if as_shipped else _with_calls(mod, _layout_proof)
    with stepping("lower"):
        output = path.lower(mod, target, quirks)
    with stepping("build"):
        executable = path.build(output if name == ENTRY else with_caller(output, name), target, quirks)
        built = BuiltModule(output, executable, opencl_source(executable))
    path.check(built)
    return CompiledModule(
        executable=executable,
        devices=vdevices(output),
        quirks=tuple(quirk.id for quirk in table),
        effective_quirks=tuple(quirk.id for quirk in table if quirk.id in effective),
        facts=asdict(path.facts(built)),
        host_triple=host_triple,
    )


def _acts_on_modules(quirk: Quirk) -> bool:
    """Return whether the workaround needs no ONNX network."""
    return quirk.edits.network is None and quirk.id not in IMPORTER_QUIRKS


def _with_main(module: Any) -> tuple[Any, str]:
    """Return the module with its one function as `main`, and the function's name.

    What the function calls becomes part of it. Raises UsageError for anything else than such a module.
    """
    _require_module(module)
    mod = module if len(_functions(module)) == 1 else relax.transform.InlinePrivateFunctions()(module)
    names = _functions(mod)
    if not names:
        hint = "tvm.relax.frontend imports networks; a function of your own needs a `global_symbol`"
        raise UsageError("the module has no Relax function to call", hint=hint)
    if len(names) > 1:
        raise UsageError(
            f"the module has {len(names)} functions to call, and the workarounds are for one: {', '.join(names)}",
            hint="compile a module for each, and give `private=True` to those that others call",
        )
    if sign := _sign_of_lowering(mod, names[0]):
        hint = "compile it as it was imported, before TVM's passes for a target"
        raise UsageError(f"the module is lowered already: it has {sign}", hint=hint)
    attrs = mod[names[0]].attrs or {}
    return _renamed(mod, names[0]), str(attrs.get("global_symbol", names[0]))  # the name in the library


def _require_module(module: Any) -> None:
    """Raise UsageError for anything but an IRModule."""
    if isinstance(module, tvm.IRModule):
        return
    what, hint = f"a {type(module).__name__}", "tvm.relax.frontend makes one of a network"
    if isinstance(module, str | PathLike):
        what, hint = repr(fspath(module)), "adreno_bench.build compiles files"
    elif isinstance(module, tuple):
        hint = "it comes first in what `export_tvm` and `detach_params` return"
    raise UsageError(f"a module is a tvm.IRModule, not {what:.60}", hint=hint)


def _functions(mod: Any) -> list[str]:
    """Return the names of the Relax functions of a module."""
    return [str(name.name_hint) for name, function in mod.functions_items() if isinstance(function, relax.Function)]


def _sign_of_lowering(mod: Any, name: str) -> str:
    """Return what only TVM's passes for a target put into a module; empty if there is nothing of it."""
    if "vdevice" in mod.global_infos:
        return "tensors with a place on a device (`vdevice`)"
    called = (operator_name(binding.value) for binding in bindings(mod[name]))
    return next((operator for operator in called if operator.startswith(_LOWERED_OPERATORS)), "")


def _require_fixed_shapes(mod: Any) -> None:
    """Raise UsageError for a shape that is no number: TVM compiles none for images or CLML, nor do the workarounds."""
    params = [(name_of(param), kind) for param in mod[ENTRY].params for kind in _parts(type_of(param))]
    if unknown := [name for name, kind in params if is_tensor(kind) and kind.shape is None]:
        hint = 'write it into the type: R.Tensor((1, 3, 224, 224), "float32")'
        raise UsageError(f"the shape of an input is unknown: {', '.join(unknown)}", hint=hint)
    names = sorted({str(variable.name) for variable in relax.analysis.defined_symbolic_vars(mod[ENTRY])})
    if names:
        numbers = ", ".join(f'"{name}": 1' for name in names)
        bind = f"mod = relax.transform.BindSymbolicVars({{{numbers}}})(mod)"
        if set(names) <= {name for name, _ in params}:
            text = f"an input is a number, and not a tensor: {', '.join(names)}"
            raise UsageError(text, hint=f"write R.Tensor((), ...) for its type, or set it with {bind}")
        raise UsageError(f"the shape of an input is not fixed: {', '.join(names)}", hint=f"set it with {bind}")


def _parts(kind: Any) -> list[Any]:
    """Return the types in a tuple's type, also in tuples of it; of another type, the type itself."""
    return [part for field in kind.fields for part in _parts(field)] if hasattr(kind, "fields") else [kind]


def _require_operators(mod: Any, precision: Precision) -> None:
    """Raise UsageError if half precision is asked for, and LegalizeOps has left nothing that TVM could convert.

    Raises UnsupportedOperator for what a program computes itself: TVM would compile a call of it.
    """
    values = [binding.value for binding in bindings(mod[ENTRY])]
    names = {operator_name(value) for value in values} - {""}
    host = names & {f"relax.{name.lower()}" for name in host_operators()}
    if "external_mods" not in (mod.attrs or {}):  # which brings functions of its own into the library
        host |= {name for name in map(_function_outside, values) if name and not name.startswith(_DEVICE_FUNCTIONS)}
    if host:
        text = f"no device runs what TVM, or your program, computes in Python: {', '.join(sorted(host))}"
        raise UnsupportedOperator(text, hint="compile the module up to it, and call it with what the module returns")
    if precision is not Precision.FLOAT32 and names == {"relax.call_tir"}:
        text = f"the module is legalised already, and {precision.value} converts operators"
        raise UsageError(text, hint="compile it as it was before relax.transform.LegalizeOps")


def _function_outside(value: Any) -> str:
    """Return the name of the function outside the module that is called; empty for anything else."""
    parts = (getattr(value, "op", None), *getattr(value, "args", ())[:1])
    return next((str(part.global_symbol) for part in parts if hasattr(part, "global_symbol")), "")


def _renamed(mod: Any, name: str) -> Any:
    """Return a module whose one Relax function, of this name, is `main`."""
    others = dict(mod.functions_items())
    function = others.pop(mod.get_global_var(name)).with_attr("global_symbol", ENTRY)
    builder = relax.BlockBuilder(tvm.IRModule(others, attrs=mod.attrs, global_infos=mod.global_infos))
    builder.add_func(function, ENTRY)
    return builder.get()


def _in_dataflow(mod: Any) -> Any:
    """Put operators into blocks of data flow, outside of which TVM fuses none and chooses no layout."""
    return tvm.transform.Sequential([relax.transform.Normalize(), relax.transform.ConvertToDataflow()])(mod)


def _layout_proof(call: Any) -> Any:
    """Return a call whose axes count from 0, as TVM's ConvertLayout reads them."""
    from tvm.relax import op

    name, attrs = operator_name(call), call.attrs

    def place(axis: Any) -> int:
        return int(axis) % int(_parts(type_of(call.args[0]))[0].ndim)

    if name == "relax.squeeze" and attrs.axis is not None:
        return op.squeeze(call.args[0], [*map(place, attrs.axis)])
    if name == "relax.permute_dims" and attrs.axes is not None:
        return op.permute_dims(call.args[0], [*map(place, attrs.axes)])
    if name == "relax.concat" and attrs.axis is not None:
        return op.concat(call.args[0], place(attrs.axis))
    if name == "relax.split":
        return op.split(call.args[0], attrs.indices_or_sections, place(attrs.axis))
    return call


def _with_calls(mod: Any, change: Callable[[Any], Any]) -> Any:
    """Return the module with `change(call)` in the place of each call in `main`."""
    from tvm.relax.expr_functor import PyExprMutator, mutator

    class ChangeCalls(PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            return change(self.visit_expr_post_order(call))

    changing = mutator(ChangeCalls)(mod)
    main = changing.visit_expr(mod[ENTRY])
    changing.builder_.update_func(mod.get_global_var(ENTRY), main)
    return changing.builder_.get()


def _own_copy(mod: Any) -> Any:
    """Return a copy that shares no expression of a constant with the caller's module, which is left as it is.

    TVM's AnnotateCustomMemoryScope writes the place of a constant into the constant itself. A module that was compiled
    for path `texture` once does not compile another time.
    """
    from tvm.relax.expr_functor import PyExprMutator, mutator

    class CopyConstants(PyExprMutator):  # type: ignore[misc]
        """Copies the expression of a constant, and not its numbers."""

        def visit_constant_(self, constant: Any) -> Any:
            return relax.const(constant.value if hasattr(constant, "value") else constant.data)

        visit_generic_const_ = visit_constant_  # its name from 0.27 on

    copy = mod.clone()
    copy.update_func(mod.get_global_var(ENTRY), mutator(CopyConstants)(copy).visit_expr(mod[ENTRY]))
    return copy
