"""The layout pass gives the result of a stack a layout that does not exist."""

from __future__ import annotations

from functools import reduce
from typing import Any

from harness.compiler.compat import dtype_of, rewrite_main, type_of
from harness.paths.workaround import Edits
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.sample import lowers, sum_of_stack


def probe(*applied: Quirk) -> ProbeAnswer:
    """Lower the sum of two stacked convolutions, which is what the importer makes of ONNX's `Sum`."""
    return lowers(sum_of_stack(), applied, "a stack")


def without_stacks(mod: Any) -> Any:
    """Sums, means and extrema over a stack become those of pairs, and what is stacked for itself a concatenation."""
    return _concatenate(_reduce_pairs(_drop_idle_broadcasts(mod)))


def _drop_idle_broadcasts(mod: Any) -> Any:
    """The importer stacks `broadcast_to(tensor, its own shape)`, which no layout but NCHW gets through."""
    from tvm.relax.dpl import is_op, wildcard

    data = wildcard()

    def replace(call: Any, matched: Any) -> Any:
        same = _shape(call) is not None and _shape(call) == _shape(matched[data])
        return matched[data] if same else call

    return rewrite_main(mod, is_op("relax.broadcast_to")(data, wildcard()), replace)


def _reduce_pairs(mod: Any) -> Any:
    from tvm import relax
    from tvm.relax.dpl import is_op, wildcard

    tensors = wildcard()
    stack = is_op("relax.stack")(tensors)
    of_pairs = {"sum": relax.op.add, "mean": relax.op.add, "max": relax.op.maximum, "min": relax.op.minimum}

    def replace(call: Any, matched: Any) -> Any:
        if call.attrs.keepdims or [int(axis) for axis in call.attrs.axis or ()] != [_axis(matched[stack])]:
            return call
        name = call.op.name.removeprefix("relax.")
        total = reduce(of_pairs[name], matched[tensors].fields)
        count = relax.const(len(matched[tensors].fields), dtype_of(type_of(call)))
        return relax.op.divide(total, count) if name == "mean" else total

    for name in of_pairs:
        mod = rewrite_main(mod, is_op(f"relax.{name}")(stack), replace)
    return mod


def _concatenate(mod: Any) -> Any:
    from tvm import relax
    from tvm.relax.dpl import is_op, wildcard

    tensors = wildcard()

    def replace(call: Any, matched: Any) -> Any:
        axis = _axis(call)
        return relax.op.concat([relax.op.expand_dims(one, axis) for one in matched[tensors].fields], axis)

    return rewrite_main(mod, is_op("relax.stack")(tensors), replace)


def _shape(tensor: Any) -> list[str] | None:
    """The extents; None of a tensor whose shape is computed."""
    extents = getattr(type_of(tensor).shape, "values", None)
    return None if extents is None else [str(extent) for extent in extents]


def _axis(stack: Any) -> int:
    return int(stack.attrs.axis or 0)


QUIRK = Quirk(
    id="stack-layout",
    title="the result of a stack, which ONNX's Sum, Mean, Min and Max are imported as, gets a layout with an axis that "
    "no other operator knows: `can't find S in source layout ABCDE`",
    upstream="src/relax/op/tensor/manipulate.cc: InferLayoutStack inserts S into NCHW; operators take a layout's "
    "letters from ABCDE",
    since="0.25",
    paths=("texture", "clml"),
    probe=probe,
    workaround="sums, means and extrema of stacked tensors are taken in pairs; other stacks are concatenations",
    edits=Edits(model=without_stacks),
)
