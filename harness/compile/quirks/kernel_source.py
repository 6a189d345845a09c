"""What is wrong in the text of kernels: names, functions, integers that C widens, bytes, and places in tensors."""

from __future__ import annotations

from typing import Any

from device_runner.names import shorten
from harness.compile.compiler.compat import (
    dpl,
    kind_of,
    map_calls,
    map_parts,
    relax,
    rewrite_main,
    structurally_equal,
    tirx,
    tuple_fields,
    tvm,
    type_of,
    with_main,
)
from harness.compile.compiler.passes import Passes, before, last_pass, own_pass, replace_last
from harness.compile.compiler.tir import LONG_NAMES, NOTE_WORK, statement_pass
from harness.compile.paths.base import Edits
from harness.compile.quirks.base import Quirk

LONGEST_KERNEL = 120
"""Most characters of a kernel's name."""
_LONGEST_NAME = LONGEST_KERNEL - len("_kernel_99")
"""Most characters of a function's name, which its kernels' names begin with."""

_NARROW = {"int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort"}
"""Integers that C computes as int, by their names in OpenCL C."""
_BUILTINS = ("tan", "asin", "acos", "atan", "asinh", "acosh", "atanh")
"""Functions that OpenCL C has for numbers of every precision under these names."""

_HIDDEN = "adreno_bench_hidden"
"""The function that dividends are arguments of while TVM must not see them; no kernel calls it."""


def shorten_names(mod: Any) -> Any:
    """Give functions names that leave their kernels at most 120 characters, before anything is noted by name."""
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

    main = rewrite_main(mod, dpl.is_op("relax.call_tir")(varg_default_wildcard=True), replace)["main"]
    names = {str(new.name_hint): name for name, new in renamed.items()}
    return relax.transform.Normalize()(with_main(builder.get(), main)).with_attr(LONG_NAMES, names)


def call_builtins(body: Any) -> Any:
    """Call functions by the names that OpenCL C has for them, once loops are vectors."""

    def rewrite(call: Any) -> Any:
        name = str(getattr(call.op, "name", "")).removeprefix("tirx.")
        kind = kind_of(call)
        return tirx.call_pure_extern(kind, name, *call.args) if name in _BUILTINS else call

    return map_calls(body, rewrite)


def keep_integers_narrow(body: Any) -> Any:
    """Cut sums and products of narrow integers to their bits, once loops are vectors, which C does not widen."""

    def rewrite(part: Any) -> Any:
        kind = kind_of(part)
        return tirx.call_pure_extern(kind, f"convert_{_NARROW[kind]}", part) if kind in _NARROW else part

    def rewrite_call(call: Any) -> Any:  # what is a class of its own since 0.27
        return rewrite(call) if getattr(call.op, "name", "").endswith((".shift_left", ".bitwise_not")) else call

    def widen(part: Any) -> Any:  # what TVM makes of it has a `select` of char and int, which OpenCL has not
        wide = (tirx.Cast("int32", operand) for operand in (part.a, part.b))
        return tirx.Cast(kind_of(part), type(part)(*wide)) if kind_of(part) in _NARROW else part

    kinds = (getattr(tirx, name, None) for name in ("Add", "Sub", "Mul", "LShift", "BitwiseNot"))
    body = map_parts(body, (tirx.FloorMod, tirx.FloorDiv), widen)
    return map_parts(map_calls(body, rewrite_call), tuple(filter(None, kinds)), rewrite)


def keep_bytes_apart(body: Any) -> Any:
    """Take four loaded bytes for a vector, once loops are vectors: where they lie apart, they come as one int."""

    def rewrite(load: Any) -> Any:
        kind, four = kind_of(load).split("x")[0], kind_of(load).endswith("int8x4")
        return tirx.call_pure_extern(kind_of(load), f"as_{_NARROW[kind]}4", load) if four else load

    return map_parts(body, (getattr(tvm.ir, "TensorLoad", tirx.BufferLoad),), rewrite)  # its name since 0.27


def flatten_as_written(passes: Passes) -> Passes:
    """Hide dividends from `FlattenBuffer`, but leave functions to it where its own places come to the same."""
    flatten, simplify = last_pass(passes, "FlattenBuffer"), last_pass(passes, "StmtSimplify")
    hide, show = statement_pass("HideDividends", hide_dividends), statement_pass("ShowDividends", show_dividends)

    def run(mod: Any) -> Any:
        result, as_written = flatten(mod.clone()), show(flatten(hide(mod)))
        simplified, expected = simplify(result.clone()), simplify(as_written.clone())  # as passes behind it do
        for variable, function in as_written.functions.items():
            if not structurally_equal(simplified[variable], expected[variable]):
                result.update_func(result.get_global_var(variable.name_hint), function)
        return result

    return replace_last(passes, "FlattenBuffer", own_pass("FlattenBuffer", run))


def hide_dividends(body: Any) -> Any:
    """Make each dividend an argument of a function that TVM does not know, so that it simplifies no division."""

    def rewrite(division: Any) -> Any:
        return type(division)(tirx.call_pure_extern(kind_of(division), _HIDDEN, division.a), division.b)

    return map_parts(body, (tirx.FloorDiv, tirx.FloorMod), rewrite)


def show_dividends(body: Any) -> Any:
    """Undo `hide_dividends`."""

    def rewrite(call: Any) -> Any:
        hidden = len(call.args) == 2 and getattr(call.args[0], "value", None) == _HIDDEN
        return call.args[1] if hidden else call

    return map_calls(body, rewrite)


QUIRKS = (
    Quirk(
        "long-kernel-name",
        "the name of a fused kernel has those of all its operators: files and drivers' caches end at 255 characters",
        upstream="src/relax/transform/fuse_ops.cc: the name of a group has no limit",
        workaround="names beyond 120 characters end in a hash; the manifest of the artifact has the whole ones",
        edits=Edits(relax=before(NOTE_WORK, "ShortenNames", shorten_names)),
    ),
    Quirk(
        "builtin-suffix",
        "tangents and the inverse functions (`atan`, `asinh`) are called as in C, `atanf`, which OpenCL does not know: "
        "no kernel of the network is built",
        upstream="src/target/source/intrin_rule_opencl.cc: no rule for them, so the default one adds the suffix",
        workaround="they are called by the names of OpenCL's own functions",
        edits=Edits(tir=before("InjectVirtualThread", "CallBuiltins", call_builtins, make=statement_pass)),
    ),
    Quirk(
        "narrow-integers",
        "a sum, product or left shift of 8 or 16 bits that does not fit them keeps more bits, where it is cast or "
        "compared in the same kernel: wrong numbers",
        upstream="src/target/source/codegen_c.cc: PrintBinaryExpr writes C's operators, which compute in int",
        workaround="such results are converted back to their bits",
        edits=Edits(tir=before("InjectVirtualThread", "KeepIntegersNarrow", keep_integers_narrow, make=statement_pass)),
    ),
    Quirk(
        "bytes-apart",
        "four bytes of a tensor that do not lie side by side are loaded as one int, which becomes each number of a "
        "texel where the driver takes it at all: wrong numbers, or kernels that do not compile",
        upstream="src/backend/opencl/codegen/codegen_opencl.cc: PrintVecElemLoadExpr packs them as CUDA does",
        workaround="the int is taken for the vector of bytes that it is",
        edits=Edits(tir=before("InjectVirtualThread", "KeepBytesApart", keep_bytes_apart, make=statement_pass)),
    ),
    Quirk(
        "flattened-index",
        "a tensor that was tiled and reversed, or repeated, cut and tiled, is read at other places: wrong numbers, or "
        "some from beyond the tensor",
        upstream="src/arith/iter_affine_map.cc: SplitFloorModConst takes falling and shifted iterators for others",
        workaround="`FlattenBuffer` does not see dividends where it would make other places of them",
        edits=Edits(tir=flatten_as_written),
    ),
)
