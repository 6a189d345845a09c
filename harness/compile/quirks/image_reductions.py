"""Reductions of images, each in a kernel of its own: there is a schedule into an image for one reduction alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.compile.compiler.compat import rewrite_main, type_of

_REDUCTIONS = ("max", "mean", "min", "prod", "sum")


def reductions_apart(mod: Any) -> Any:
    """Write variances of four axes as means of squares, and put a reshape between a reduction and what reads it.

    So TVM fuses a reduction neither with another one nor with what follows it over the whole image. A reduction over
    channels gives no image.
    """
    for name in ("variance", "std"):
        mod = _replace_reductions(mod, name, _as_means)
    for name in _REDUCTIONS:
        mod = _replace_reductions(mod, name, _reshaped)
    return mod


def _replace_reductions(mod: Any, name: str, replacement: Any) -> Any:
    from tvm.relax.dpl import is_op, wildcard

    data = wildcard()

    def replace(call: Any, matched: Any) -> Any:
        extents = getattr(type_of(matched[data]).shape, "values", ())
        gives_image = len(extents) == 4 and 1 not in _axes(call)
        return replacement(call, matched[data], extents) if gives_image else call

    return rewrite_main(mod, is_op(f"relax.{name}")(data), replace)


def _as_means(call: Any, data: Any, extents: Sequence[Any]) -> Any:
    from tvm import relax

    axes = _axes(call)
    distance = relax.op.subtract(data, _kept(relax.op.mean, data, axes, extents))
    squares = relax.op.multiply(distance, distance)
    kept = call.attrs.keepdims
    variance = _kept(relax.op.mean, squares, axes, extents) if kept else relax.op.mean(squares, axes)
    return variance if call.op.name == "relax.variance" else relax.op.sqrt(variance)


def _reshaped(call: Any, data: Any, extents: Sequence[Any]) -> Any:
    from tvm import relax

    reduce = getattr(relax.op, call.op.name.removeprefix("relax."))
    return _kept(reduce, data, _axes(call), extents) if call.attrs.keepdims else call


def _kept(reduce: Any, data: Any, axes: Sequence[int], extents: Sequence[Any]) -> Any:
    """Return a reduction whose axes stay, by a reshape."""
    from tvm import relax

    kept = [1 if axis in axes else extent for axis, extent in enumerate(extents)]
    return relax.op.reshape(reduce(data, axes, keepdims=False), kept)


def _axes(call: Any) -> list[int]:
    """Return the axes that a reduction of four axes goes over, counted from 0."""
    return list(range(4)) if call.attrs.axis is None else [int(axis) % 4 for axis in call.attrs.axis]
