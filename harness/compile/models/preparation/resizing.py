"""Resize as TVM reads it: of all axes, and to whole pixels. What is neither is written by index.

TVM's importer takes the ratio of the extents for the scale, which it is not where an image of 5 pixels is made half as
large, resizes no batch and no channels, and knows no policy and no antialias. Where a result is as near to one pixel as
to the next, the one that it takes may be another than onnxruntime's, which computes places in float32. Where
corners are aligned, it divides by the pixels of the result less one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from harness.compile.models.outline import NetworkView, attribute_of, is_onnx
from harness.compile.models.preparation.editing import NodeWriter, describe, rewrite, set_attribute

MODE, POLICY = "coordinate_transformation_mode", "keep_aspect_ratio_policy"
CROP, ALIGNED = "tf_crop_and_resize", "align_corners"


@dataclass(frozen=True)
class ResizedAxis:
    """What ONNX says of one axis of a Resize: its place, its extents before and after, and the scale."""

    axis: int
    before: int
    after: int
    scale: float
    region: tuple[float, float]
    read: int
    """The extent that TVM's importer makes."""

    @property
    def has_ties(self) -> bool:
        """Whether a result may be as near to one pixel as to the next: not if one extent is a multiple of the other."""
        extents = sorted((self.before, self.after))
        return bool(extents[0] and extents[1] % extents[0])


def resized_axes(node: Any, view: NetworkView) -> list[ResizedAxis]:
    """Return the axes that a Resize names; none where shapes or scales are computed."""
    shape = view.shape(node.input[0])
    region, scales, sizes = (view.constant(node, place) for place in (1, 2, 3))
    if not shape:
        return []
    axes = [axis % len(shape) for axis in attribute_of(node, "axes", range(len(shape)))]
    extents = np.take(shape, axes)
    if sizes is not None and sizes.size == len(axes):
        read, scales, choose = sizes, sizes / extents, choice_of(node)
        if choose:
            scales = np.full(len(axes), choose(scales))
            sizes = np.floor(scales * extents + 0.5)
    elif scales is not None and scales.size == len(axes):
        read = sizes = np.float32(extents) * scales  # in float32, as onnxruntime and TVM do: 5 pixels times 1.8 are 9
    else:
        return []
    given = region is not None and region.size == 2 * len(axes)
    regions: Any = region.reshape(2, -1) if region is not None and given else [[0] * len(axes), [1] * len(axes)]
    return [
        ResizedAxis(axis, shape[axis], int(size), float(scale), (begin, end), int(seen) if axis > 1 else shape[axis])
        for axis, size, scale, begin, end, seen in zip(axes, sizes, scales, *regions, read, strict=True)
    ]


def misread_axes(node: Any, view: NetworkView) -> Iterator[ResizedAxis]:
    """Yield the axes of a Resize whose scale is not the ratio of the extents that TVM's importer takes for it."""
    limit = 1 if attribute_of(node, MODE, "") == ALIGNED and not choice_of(node) else 1e-3
    for axis in resized_axes(node, view):
        if abs(axis.before * axis.scale - axis.read) >= limit:
            yield axis


def choice_of(node: Any) -> Callable[[Any], float] | None:
    """Return which of a Resize's ratios holds for all its axes; None if each has its own."""
    return {"not_larger": min, "not_smaller": max}.get(attribute_of(node, POLICY, ""))


def write_resizes(model: Any) -> str:
    """Write a Resize that TVM misreads by index, and the scales and sizes of the others for all axes."""
    by_index = rewrite(model, "resize", _write_by_index, "Resize")
    view, write = NetworkView(model), NodeWriter(model, "resize")
    resizes = [node for node in model.graph.node if is_onnx(node, "Resize")]
    named = [node for node in resizes if _resize_all_axes(node, view, write)]
    said = describe("wrote {} by index", by_index), describe("wrote {} as TVM reads it", named)
    return "; ".join(filter(None, said))


def _write_by_index(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Write it along one axis after another, if TVM misreads it."""
    axes, mode = resized_axes(node, view), attribute_of(node, "mode", "nearest")
    crops = attribute_of(node, MODE, "") == CROP
    tied = mode == "nearest" and (crops or any(axis.has_ties for axis in axes))
    extents = dict(enumerate(view.shape(node.input[0]) or ())) | {axis.axis: axis.after for axis in axes}
    single = attribute_of(node, MODE, "") == ALIGNED and axes and 1 in [extents[axis] for axis in extents if axis > 1]
    if not is_smoothed(node, axes) and not tied and not single and not any(misread_axes(node, view)):
        return False
    kind = view.number_format(node.input[0])
    if mode != "nearest" and kind not in (TensorProto.FLOAT, TensorProto.FLOAT16):
        return False
    rank, smooth = len(view.shape(node.input[0]) or ()), is_smoothed(node, axes)
    result = node.input[0]
    for axis in axes:
        result = _along(node, axis, result, write, rank=rank, kind=kind, smooth=smooth)
    write.add("Identity", result, output=node.output[0])
    return True


def _along(node: Any, axis: ResizedAxis, tensor: str, write: NodeWriter, *, rank: int, kind: int, smooth: bool) -> str:
    """Write the results along one axis as sums of weighted places; returns their name."""
    where = _places_before(node, axis)
    if np.array_equal(where, np.arange(axis.before)):
        return tensor
    column, dtype = [-1] + [1] * (rank - 1 - axis.axis), helper.tensor_dtype_to_np_dtype(kind)
    nearest = attribute_of(node, "mode", "nearest") == "nearest"
    places, weights = _nearest(node, axis, where) if nearest else _weighted(node, axis, where, smooth)
    parts = [write.add("Gather", tensor, write.integers(*row), axis=axis.axis) for row in places.tolist()]
    if not nearest:
        factors = (write.constant(row.astype(dtype).reshape(column)) for row in weights)
        parts = [write.add("Mul", part, factor) for part, factor in zip(parts, factors, strict=True)]
    result = reduce(lambda total, part: write.add("Add", total, part), parts)
    outside = (where < 0) | (where > axis.before - 1)
    if attribute_of(node, MODE, "") == CROP and outside.any():
        beyond = write.constant(np.array(attribute_of(node, "extrapolation_value", 0.0), dtype))
        result = write.add("Where", write.constant(outside.reshape(column)), beyond, result)
    return result


def is_smoothed(node: Any, axes: Iterable[ResizedAxis]) -> bool:
    """Return whether a Resize takes the mean of pixels, as `antialias` does where an image is made smaller."""
    return bool(attribute_of(node, "antialias", 0)) and any(axis.scale < 1 for axis in axes)


def _places_before(node: Any, axis: ResizedAxis) -> Any:
    """Return which place of the image each result is at, in float32 as onnxruntime computes it."""
    mode, one = attribute_of(node, MODE, "half_pixel"), np.float32(1)
    results, scale = np.arange(axis.after, dtype=np.float32), np.float32(axis.scale)
    last, last_result = one * (axis.before - 1), one * (axis.after - 1)
    centres = (results + one / 2) / scale - one / 2
    if mode == "asymmetric":
        return results / scale
    if mode == ALIGNED:
        return results * last / last_result if last_result else results
    if mode == "pytorch_half_pixel":
        return centres if last_result else results
    if mode == "half_pixel_symmetric":
        return centres + one * axis.before / 2 * (1 - axis.after / (scale * axis.before))
    if mode != CROP:
        return centres
    begin, end = axis.region
    return (
        begin * last + results * (end - begin) * last / last_result
        if last_result
        else results + (begin + end) * last / 2
    )


def _nearest(node: Any, axis: ResizedAxis, where: Any) -> tuple[Any, Any]:
    """Return the nearest place of the image for each result, as one row, and 1 for each."""
    half, kind = np.float32(0.5), attribute_of(node, "nearest_mode", "round_prefer_floor")
    shift = {"round_prefer_floor": -half, "round_prefer_ceil": half}.get(kind, np.float32(0))
    places = (np.ceil if kind in ("round_prefer_floor", "ceil") else np.floor)(where + shift)
    return np.clip(places, 0, axis.before - 1).astype(np.int64)[None], np.ones((1, axis.after))


def _weighted(node: Any, axis: ResizedAxis, where: Any, smooth: bool) -> tuple[Any, Any]:
    """Return places of the image and their weights for each result, a row for each place that it takes."""
    last, linear = axis.before - 1, attribute_of(node, "mode", "") == "linear"
    shrink = min(axis.scale, 1) if smooth else 1
    reach = math.ceil((1 if linear else 2) / shrink)
    places = np.floor(where) + np.arange(1 - reach, reach + 1)[:, None]
    far = np.abs(where - places) * shrink
    a = attribute_of(node, "cubic_coeff_a", -0.75)
    inner, outer = ((a + 2) * far - (a + 3)) * far**2 + 1, a * (((far - 5) * far + 8) * far - 4)
    weights = np.maximum(1 - far, 0) if linear else np.where(far < 1, inner, np.where(far < 2, outer, 0))
    if attribute_of(node, "exclude_outside", 0):
        weights = np.where((places < 0) | (places > last), 0, weights)
    return np.clip(places, 0, last).astype(np.int64), weights / weights.sum(0)


def _resize_all_axes(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    if symmetric := str(attribute_of(node, MODE, "")) == "half_pixel_symmetric":
        set_attribute(node, MODE, "half_pixel")  # the same where pixels are whole
    shape, axes, policy = view.shape(node.input[0]), attribute_of(node, "axes", []), attribute_of(node, POLICY, "")
    arrays = {place: view.constant(node, place) for place in range(1, len(node.input))}
    given = {place: array for place, array in arrays.items() if array is not None}
    if not shape or not (axes or policy) or len(given) < sum(map(bool, node.input[1:])):
        return symmetric
    rank, axes = len(shape), axes or [*range(len(shape))]
    for place, array in given.items():
        if array.size:
            whole = np.array(([0] * rank + [1] * rank, [1] * rank, shape)[place - 1], array.dtype)
            whole.reshape(-1, rank)[:, axes] = array.reshape(-1, len(axes))
            node.input[place] = write.constant(whole)
    for name in ("axes", POLICY):
        set_attribute(node, name, None)
    return True
