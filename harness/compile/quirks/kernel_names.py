"""Names of kernels, and of functions in them, that files and drivers cannot take."""

from __future__ import annotations

from typing import Any

from device_runner.names import shorten
from harness.compile.compiler.compat import map_calls, rewrite_main, tuple_fields, type_of, with_main
from harness.compile.compiler.passes import Passes, insert_before, own_pass
from harness.compile.compiler.tir import LONG_NAMES, NOTE_WORK, statement_pass
from harness.compile.paths.base import Edits
from harness.compile.quirks.base import Quirk

LONGEST_KERNEL = 120
"""Most characters of a kernel's name."""
_LONGEST_NAME = LONGEST_KERNEL - len("_kernel_99")
"""Most characters of a function's name, which its kernels' names begin with."""

_BUILTINS = ("tan", "asin", "acos", "atan", "asinh", "acosh", "atanh")
"""Functions that OpenCL C has for numbers of every precision under these names."""


def shorten_names(passes: Passes) -> Passes:
    """Before anything is noted by name, give functions names that leave their kernels at most 120 characters."""
    return insert_before(passes, NOTE_WORK, own_pass("ShortenNames", _with_short_names))


def _with_short_names(mod: Any) -> Any:
    import tvm
    from tvm import relax
    from tvm.relax.dpl import is_op

    functions = {str(variable.name_hint): function for variable, function in mod.functions.items()}
    long = {name: shorten(name, _LONGEST_NAME) for name in functions if len(name) > _LONGEST_NAME}
    if not long:
        return mod
    others = {variable: function for variable, function in mod.functions.items() if str(variable.name_hint) not in long}
    builder = relax.BlockBuilder(tvm.IRModule(others, attrs=mod.attrs, global_infos=mod.global_infos))
    renamed = {name: builder.add_func(functions[name], short) for name, short in long.items()}

    def replace(call: Any, _matched: Any) -> Any:
        called, arguments, *sizes = call.args
        new, kind = renamed.get(str(called.name_hint)), type_of(call)
        return call if new is None else relax.call_tir(new, arguments, list(tuple_fields(kind) or ()) or kind, *sizes)

    main = rewrite_main(mod, is_op("relax.call_tir")(varg_default_wildcard=True), replace)["main"]
    names = {str(new.name_hint): name for name, new in renamed.items()}
    return relax.transform.Normalize()(with_main(builder.get(), main)).with_attr(LONG_NAMES, names)


def call_builtins(passes: Passes) -> Passes:
    """Once loops are vectors, call functions by the names that OpenCL C has for them."""
    return insert_before(passes, "InjectVirtualThread", statement_pass("CallBuiltins", _with_builtins))


def _with_builtins(body: Any) -> Any:
    from tvm import tirx

    def rewrite(call: Any) -> Any:
        name = str(getattr(call.op, "name", "")).removeprefix("tirx.")
        kind = str(getattr(call, "dtype", None) or call.ty)
        return tirx.call_pure_extern(kind, name, *call.args) if name in _BUILTINS else call

    return map_calls(body, rewrite)


QUIRKS = (
    Quirk(
        "long-kernel-name",
        "the name of a fused kernel has those of all its operators: files and drivers' caches end at 255 characters",
        upstream="src/relax/transform/fuse_ops.cc: the name of a group has no limit",
        workaround="names beyond 120 characters end in a hash; the manifest of the artifact has the whole ones",
        paths=("opencl", "texture", "clml"),
        edits=Edits(relax=shorten_names),
    ),
    Quirk(
        "builtin-suffix",
        "tangents and the inverse functions (`atan`, `asinh`) are called as in C, `atanf`, which OpenCL does not know: "
        "no kernel of the network is built",
        upstream="src/target/source/intrin_rule_opencl.cc: no rule for them, so the default one adds the suffix",
        workaround="they are called by the names of OpenCL's own functions",
        paths=("opencl", "texture", "clml"),
        edits=Edits(tir=call_builtins),
    ),
)
