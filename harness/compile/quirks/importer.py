"""Models as TVM's importer leaves them, which its passes for Adreno cannot take. The imported model is changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import reduce
from typing import Any

from harness.base.case import Precision
from harness.compile.compiler.compat import (
    array_of,
    dpl,
    dtype_of,
    name_of,
    operator_name,
    rebind_main,
    relax,
    return_type,
    rewrite_main,
    type_of,
    with_main,
)
from harness.compile.paths.base import Edits
from harness.compile.paths.lowered_module import bindings
from harness.compile.quirks.base import Quirk

_NOT_IN_C = re.compile(r"[^0-9A-Za-z_]")


def rename_inputs(mod: Any) -> Any:
    """Give the parameters of `main` names that C takes. Callers pass them by position."""
    main = mod["main"]
    names = [name_of(parameter) for parameter in main.params]
    if not any(_NOT_IN_C.search(name) for name in names):
        return mod
    params = [relax.Var(name, type_of(old)) for name, old in zip(identifiers(names), main.params, strict=True)]
    bound = main.bind_params(dict(zip(main.params, params, strict=True)))
    renamed = relax.Function(params, bound.body, return_type(bound), bound.is_pure, bound.attrs)
    return with_main(mod, renamed)


def identifiers(names: Sequence[str]) -> list[str]:
    """Return the names with an underscore for each character that C does not take; they stay different."""
    unique: list[str] = []
    for name in names:
        wish = _NOT_IN_C.sub("_", name)
        while wish in unique or (wish != name and wish in names):
            wish += "_"
        unique.append(wish)
    return unique


def fold_functions_of_constants(mod: Any) -> Any:
    """Evaluate calls of the importer's own functions on constants, while these have no target."""
    if not _has_function_of_constants(mod):
        return mod
    folded = relax.transform.FoldConstant()(mod)
    return folded if _calls_of_functions(folded) < _calls_of_functions(mod) else mod


def _has_function_of_constants(mod: Any) -> bool:
    """Return whether a function is called on what no input changes. To try takes long: FoldConstant compiles calls."""
    variables = {*mod["main"].params}
    for binding in bindings(mod["main"]):
        name = operator_name(binding.value)
        if name != "relax.shape_of" and not variables.isdisjoint(relax.analysis.free_vars(binding.value)):
            variables.add(binding.var)
        elif name == "relax.call_tir":
            return True
    return False


def _calls_of_functions(mod: Any) -> int:
    return sum(operator_name(binding.value) == "relax.call_tir" for binding in bindings(mod["main"]))


def know_shapes(mod: Any) -> Any:
    """Write the shape of a tensor as a constant, where the importer asks for it as numbers and it is known."""
    data = dpl.wildcard()

    def replace(call: Any, matched: Any) -> Any:
        extents = [getattr(extent, "value", None) for extent in getattr(type_of(matched[data]).shape, "values", [None])]
        return call if None in extents else relax.const(extents, "int64")

    return rewrite_main(mod, dpl.is_op("relax.shape_to_tensor")(dpl.is_op("relax.shape_of")(data)), replace)


def give_squeezes_axes(network: Any) -> None:
    """Give each Squeeze its axes as an input as well, as operator sets from 13 on have them."""
    from harness.compile.models.outline import all_nodes, attribute_of, is_onnx
    from harness.compile.models.preparation.editing import NodeWriter

    write = NodeWriter(network, "axes")
    for node in all_nodes(network.graph):
        if is_onnx(node, "Squeeze") and len(node.input) == 1 and (axes := attribute_of(node, "axes", [])):
            node.input.append(write.integers(*axes))


def without_dropout(mod: Any) -> Any:
    """Replace dropouts as TVM legalises them for inference: the results are the input and a mask of ones."""
    data = dpl.wildcard()
    result = dpl.is_tuple_get_item(dpl.is_op("relax.nn.dropout")(data))

    def replace(item: Any, matched: Any) -> Any:
        return matched[data] if item.index == 0 else relax.op.ones_like(matched[data])

    return rewrite_main(mod, result, replace)


def without_stacks(mod: Any) -> Any:
    """Replace sums, means and extrema over a stack by those of pairs, and other stacks by a concatenation."""
    return _concatenate(_reduce_pairs(_drop_idle_broadcasts(mod)))


def _drop_idle_broadcasts(mod: Any) -> Any:
    """Return the importer stacks `broadcast_to(tensor, its own shape)`, which no layout but NCHW gets through."""
    data = dpl.wildcard()

    def replace(call: Any, matched: Any) -> Any:
        same = _shape(call) is not None and _shape(call) == _shape(matched[data])
        return matched[data] if same else call

    return rewrite_main(mod, dpl.is_op("relax.broadcast_to")(data, dpl.wildcard()), replace)


def _reduce_pairs(mod: Any) -> Any:
    tensors = dpl.wildcard()
    stack = dpl.is_op("relax.stack")(tensors)
    of_pairs = {"sum": relax.op.add, "mean": relax.op.add, "max": relax.op.maximum, "min": relax.op.minimum}

    def replace(call: Any, matched: Any) -> Any:
        stacked = int(matched[stack].attrs.axis or 0)
        if call.attrs.keepdims or [int(axis) for axis in call.attrs.axis or ()] != [stacked]:
            return call
        name = call.op.name.removeprefix("relax.")
        total = reduce(of_pairs[name], matched[tensors].fields)
        count = relax.const(len(matched[tensors].fields), dtype_of(type_of(call)))
        return relax.op.divide(total, count) if name == "mean" else total

    for name in of_pairs:
        mod = rewrite_main(mod, dpl.is_op(f"relax.{name}")(stack), replace)
    return mod


def _concatenate(mod: Any) -> Any:
    tensors = dpl.wildcard()

    def replace(call: Any, matched: Any) -> Any:
        axis = int(call.attrs.axis or 0)
        return relax.op.concat([relax.op.expand_dims(tensor, axis) for tensor in matched[tensors].fields], axis)

    return rewrite_main(mod, dpl.is_op("relax.stack")(tensors), replace)


def move_regions(mod: Any) -> Any:
    """Move the regions of RoiAlign by half a pixel of the features, where the importer takes half one of the image."""
    data, batches, regions, half = dpl.wildcard(), dpl.wildcard(), dpl.wildcard(), dpl.is_const()
    places = dpl.is_op("relax.concat")(dpl.is_tuple([batches, dpl.is_op("relax.add")(regions, half)]))

    def replace(call: Any, matched: Any) -> Any:
        offsets, scale = array_of(matched[half]), call.attrs.spatial_scale
        if not call.attrs.aligned or scale == 1 or (offsets != -0.5).any():
            return call
        moved = relax.op.subtract(matched[regions], relax.const(offsets / offsets.dtype.type(-scale)))
        places = relax.op.concat([matched[batches], moved], axis=1)
        return relax.Call(call.op, [matched[data], places], call.attrs)

    return rewrite_main(mod, dpl.is_op("relax.vision.roi_align")(data, places), replace)


def cast_for_functions(mod: Any) -> Any:
    """Cast operands of functions of the importer to float32, where mixed precision cannot, nor be chosen without."""
    with suppress(RuntimeError):
        relax.transform.ToMixedPrecision()(mod)
        return mod

    def single(tensor: Any) -> Any:
        return relax.op.astype(tensor, "float32") if dtype_of(type_of(tensor)) == "float32" else tensor

    def cast(binding: Any) -> Any:
        call, name = binding.value, operator_name(binding.value)
        if name == "relax.call_tir" and len(call.args) == 2:
            call = relax.call_tir(call.args[0], [single(each) for each in call.args[1].fields], type_of(call))
        elif name == "relax.clip":
            call = relax.Call(call.op, [single(call.args[0]), *call.args[1:]], call.attrs)
        return binding if call is binding.value else relax.VarBinding(binding.var, call)

    return rebind_main(mod, cast)


def _shape(tensor: Any) -> list[str] | None:
    """Return the extents; None of a tensor whose shape is computed."""
    extents = getattr(type_of(tensor).shape, "values", None)
    return None if extents is None else [str(extent) for extent in extents]


QUIRKS = (
    Quirk(
        "input-name-in-kernel",
        "the name of a model's input becomes the name of a kernel's parameter as it is, with `/` or `:` in it",
        upstream="python/tvm/relax/frontend/onnx/onnx_frontend.py: _sanitize_name replaces dots alone; "
        "src/target/source/codegen_c.cc: a name's hint is taken as an identifier",
        workaround="such inputs get names of letters, digits and underscores; they are passed by position",
        edits=Edits(model=rename_inputs),
    ),
    Quirk(
        "function-of-constants",
        "what the importer writes as a function of constants (Clip, Pad, Tile, Einsum) is compiled for the GPU and "
        "called with tensors of the host: `Mismatched A.device_type`",
        upstream="python/tvm/relax/backend/adreno/pipeline.py: BindTarget comes before FoldConstant; "
        "src/relax/transform/fold_constant.cc keeps the target of a function",
        workaround="such functions are evaluated before they get a target",
        since="0.26",
        edits=Edits(model=fold_functions_of_constants),
    ),
    Quirk(
        "shape-to-tensor",
        "a shape as numbers, which the importer asks for to count the places of a Gather from 0, is left to a function "
        "that no device has: `Cannot find relax.run.shape_to_tensor`",
        upstream="python/tvm/relax/transform/legalize_ops: nothing for relax.shape_to_tensor; 0.26 has it",
        until="0.26",
        workaround="a shape that is known becomes a constant",
        edits=Edits(model=know_shapes),
    ),
    Quirk(
        "squeeze-axes",
        "a Squeeze of an operator set before 13 drops every axis of one element, also the batch: wrong shapes",
        upstream="python/tvm/relax/frontend/onnx/onnx_frontend.py: Squeeze reads its axes as an input alone",
        until="0.26",
        workaround="such a Squeeze gets its axes as an input, too",
        edits=Edits(network=give_squeezes_axes),
    ),
    Quirk(
        "dropout-layout",
        "a dropout has two results, the layout pass expects one: `Expected nested to match tuple`",
        upstream="src/relax/op/nn/nn.cc: relax.nn.dropout has InferLayoutUnaryEwise, which is of operators with one "
        "result",
        workaround="dropouts, which do nothing in inference, are taken out of the model",
        paths=("texture", "clml"),
        edits=Edits(model=without_dropout),
    ),
    Quirk(
        "stack-layout",
        "the result of a stack, which ONNX's Sum, Mean, Min and Max are imported as, gets a layout with an axis that "
        "no other operator knows: `can't find S in source layout ABCDE`",
        upstream="src/relax/op/tensor/manipulate.cc: InferLayoutStack inserts S into NCHW; operators take a layout's "
        "letters from ABCDE",
        workaround="sums, means and extrema of stacked tensors are taken in pairs; other stacks are concatenations",
        paths=("texture", "clml"),
        edits=Edits(model=without_stacks),
    ),
    Quirk(
        "roi-align-half-pixel",
        "half_pixel of RoiAlign is half a pixel of the image, and ONNX's is one of the features: wrong numbers, unless "
        "spatial_scale is 1",
        upstream="python/tvm/relax/frontend/onnx/onnx_frontend.py: RoiAlign adds -0.5 before the scale",
        workaround="regions are moved by 0.5 / spatial_scale",
        edits=Edits(model=move_regions),
    ),
)
FUNCTION_IN_HALF = Quirk(
    "function-in-half",
    "in half precision, what the importer writes as a function (Clip, Pad, Tile, Einsum, HardSwish) does not "
    "compile behind a convolution: `Expected TensorType`",
    upstream="src/relax/transform/to_mixed_precision.cc: each argument of a call is cast, also functions and numbers",
    workaround="in networks that have one, such functions take their operands by way of a cast to float32",
    precisions=(Precision.FLOAT16, Precision.FLOAT16_ACC32),
    edits=Edits(model=cast_for_functions),
)
"""Comes last: batch norms are folded before, and then a function may be behind a convolution."""
