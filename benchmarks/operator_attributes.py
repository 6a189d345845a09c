"""Small networks around one operator each, with attributes and shapes at random, with a suite file of them.

    python -m benchmarks.operator_attributes FOLDER [--seed N | --today] [--count N] [--chain N] [OPERATOR ...]
    adreno-bench run --quick --suite FOLDER/adreno-bench.toml --records FOLDER/records.jsonl --findings-are-fine
    python -m benchmarks.operator_attributes FOLDER --results

In half precision: `ADRENO_BENCH_OPENCL_DEVICE=Intel adreno-bench run --precision float16` and the other options.

The operators take turns. A network has a convolution, a rectifier or nothing before and behind its operator; with
`--chain` it has two operators and more, up to so many (`benchmarks.operator_chains`). The same seed writes the same
files: `--today` takes the number of the day. A network without a judge is drawn again. `--results` prints how many are
right, and exits with 1 if one is not, unless TVM lacks its operator or is known to misread it.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import onnx
from onnx import TensorProto

from benchmarks.operator_pairs import FLOAT, Chain, today, write_suite
from harness.base.failures import InputRefused, NoOutsideAnswer
from harness.base.outcome import Outcome
from harness.base.tables import markdown_table
from harness.compile.models.onnx_inputs import input_specs
from harness.compile.models.spec import seeded_inputs
from harness.compile.oracle.truth import first_answer, judges_of

RECORDS = "records.jsonl"
REFUSED, UNBUILT = "refused", "not built"
MISREADS = "TVM's ONNX importer misreads"
"""How the message of a network begins that is refused by name."""
OPSET = 18
COUNT = 150
"""Networks of one night."""
DRAWS = 20
"""How often a network is drawn until it is valid."""
UNITS = ("Relu", "Tanh", "Sigmoid", "Abs", "Neg", "Exp", "Softplus", "Softsign", "HardSwish", "Mish", "Erf", "Sin")
CURVES = ("Elu", "Celu", "LeakyRelu", "ThresholdedRelu")
OF_POSITIVE = ("Sqrt", "Log", "Reciprocal", "Tan", "Cos", "Atan", "Sinh", "Cosh", "Asinh", "Sign", "Selu")
ROUNDINGS = ("Floor", "Ceil", "Round", "Sign")
REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd"),
    *("ReduceSum", "ReduceSumSquare"),
)

T = TypeVar("T")


class Draw(Chain):
    """A chain whose choices are drawn."""

    def __init__(self, seed: int | Sequence[int]) -> None:
        super().__init__(seed)
        self.opset, self.inputs = OPSET, {}

    def pick(self, *choices: T) -> T:
        """Return one of these."""
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self) -> bool:
        """Return true or false."""
        return self.pick(True, False)

    def picks(self, count: int, *choices: T) -> list[T]:
        """Return so many of these, each drawn by itself."""
        return [self.pick(*choices) for _ in range(count)]

    def tensor(self, *shape: int) -> str:
        """Add an input of this shape and let what follows read it, behind a rectifier, a tanh or nothing."""
        self.x, self.shape = self._input(*shape), shape
        if before := self.pick("Relu", "Tanh", ""):
            self.go_on(self.add(before))
        return self.x

    def image(self, channels: int = 0) -> str:
        """Add an image as an input and let what follows read it, behind a convolution or what `tensor` has."""
        channels = channels or self.pick(1, 3, 4, 8)
        batch, rows, columns = self.pick(1, 1, 2), self.pick(5, 7, 8, 12), self.pick(5, 6, 9)
        if self.chance():
            return self.tensor(batch, channels, rows, columns)
        before = self.pick(channels, 4)
        self.x = self._input(batch, before, rows, columns)
        self.go_on(self.add("Conv", self.weight(channels, before, 3, 3), pads=[1, 1, 1, 1]))
        return self.x

    def grid(self, channels: int = 0) -> str:
        """Let what follows read a signal, an image or a volume, whose last axis is often four wide."""
        axes = self.pick(1, 2, 2, 3)
        if axes == 2:
            return self.image(channels)
        channels = channels or self.pick(1, 3, 4, 8)
        return self.tensor(self.pick(1, 1, 2), channels, *self.picks(axes - 1, 4, 5, 6), self.pick(4, 4, 5, 8))

    def _input(self, *shape: int) -> str:
        name = f"input_{len(self.inputs)}"
        self.inputs[name] = shape
        return name

    def second(self, *shape: int) -> str:
        """Return another tensor of this shape: an input, or a constant."""
        return self._input(*shape) if self.chance() else self.weight(*shape)

    def scalar(self, number: float) -> str:
        """Add a number; returns its name."""
        return self.constant(FLOAT(number))

    def indices(self, extent: int, *shape: int, negative: bool = True) -> str:
        """Add places along an axis of so many, also from its end; returns their name."""
        return self.constant(self.rng.integers(-extent if negative else 0, extent, shape))

    def small(self, dtype: str, *shape: int) -> str:
        """Add integers of 8 bits; returns their name."""
        limits = np.iinfo(dtype)
        return self.constant(self.rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype))

    def order(self, count: int) -> list[int]:
        """Return the numbers up to a count in any order."""
        return [int(place) for place in self.rng.permutation(count)]


def _unit(net: Draw) -> str:
    net.grid()
    return net.add(net.pick(*UNITS))


def _curve(net: Draw) -> str:
    net.grid()
    return net.add(net.pick(*CURVES), alpha=net.pick(0.1, 0.5, 1.5))


def _of_positive(net: Draw) -> str:
    net.grid()
    net.go_on(net.apply("Add", net.add("Abs"), net.scalar(0.5)))
    return net.add(net.pick(*OF_POSITIVE))


def _rounding(net: Draw) -> str:
    net.grid()
    return net.add(net.pick(*ROUNDINGS))


def _arithmetic(net: Draw) -> str:
    net.grid()
    shape = [extent if net.chance() else 1 for extent in net.shape][net.pick(0, 0, 1, 2) :]
    kind = net.pick("Add", "Sub", "Mul", "PRelu", "Div", "Pow")
    if kind == "Pow":
        net.go_on(net.add("Abs"))
        if net.chance():
            return net.add(
                kind, net.apply("Cast", net.second(*shape), to=net.pick(TensorProto.INT32, TensorProto.INT64))
            )
    return net.add(kind, net.positive(*shape) if kind in ("Div", "Pow") else net.second(*shape))


def _several(net: Draw) -> str:
    net.grid()
    others = [net.second(*net.shape[net.pick(0, 2) :]) for _ in range(net.pick(1, 2))]
    return net.add(net.pick("Sum", "Mean", "Min", "Max"), *others)


def _comparison(net: Draw) -> str:
    net.grid()
    decided = net.add(net.pick("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"), net.second(*net.shape[2:]))
    other = net.second(net.shape[1], *[1] * len(net.shape[2:]))
    return net.apply("Where", decided, net.x, other) if net.chance() else decided


def _logic(net: Draw) -> str:
    net.grid()
    first, second = net.add("Greater", net.scalar(0)), net.add("Less", net.second(net.shape[-1]))
    return net.apply("Not", net.apply(net.pick("And", "Or", "Xor"), first, second))


def _bits(net: Draw) -> str:
    net.grid()
    whole = net.apply("Cast", net.apply("Mul", net.add("Abs"), net.scalar(9)), to=TensorProto.UINT8)
    other = net.constant(np.array(net.picks(net.shape[-1], 1, 2, 3), np.uint8))
    if net.chance():
        return net.apply("BitShift", whole, other, direction=net.pick("LEFT", "RIGHT"))
    return net.apply(net.pick("BitwiseAnd", "BitwiseOr", "BitwiseXor"), whole, other)


def _cast(net: Draw) -> str:
    net.grid()
    kind = net.pick("INT32", "INT64", "UINT8", "INT8", "BOOL", "FLOAT16", "DOUBLE")
    numbers = net.apply("Mul", net.add("Abs") if kind == "UINT8" else net.x, net.scalar(9))
    return net.apply("Cast", numbers, to=TensorProto.DataType.Value(kind))


def _mod(net: Draw) -> str:
    net.grid()
    divisor = net.constant(np.array(net.picks(net.shape[-1], 1.5, -0.7, 3), FLOAT))
    return net.add("Mod", divisor, fmod=1)


def _clip(net: Draw) -> str:
    net.grid()
    low, high = net.pick(-0.5, 0.1), net.pick(0.4, 0.0)
    if net.chance():
        net.opset = 9
        return net.add("Clip", min=low, max=high)
    bounds = net.pick(("low", "high"), ("low",), ("", "high"))
    return net.add("Clip", *(bound and net.scalar({"low": low, "high": high}[bound]) for bound in bounds))


def _hard_sigmoid(net: Draw) -> str:
    net.grid()
    return net.add("HardSigmoid", alpha=net.pick(0.2, 0.5), beta=net.pick(0.5, 0.1))


def _gelu(net: Draw) -> str:
    net.opset = 20
    net.grid()
    return net.add("Gelu", approximate=net.pick("none", "tanh"))


def _swish(net: Draw) -> str:
    net.opset = net.pick(24, 28)
    net.grid()
    other = [net.second(*net.shape)] if net.opset == 28 else []
    return net.add("SwiGLU" if other else "Swish", *other, alpha=net.pick(1.0, 0.5))


def _shrink(net: Draw) -> str:
    net.grid()
    return net.add("Shrink", lambd=net.pick(0.3, 0.5), bias=net.pick(0.0, 0.2, 0.5))


def _softmax(net: Draw) -> str:
    net.opset = net.pick(11, 13)
    net.grid()
    return net.add(net.pick("Softmax", "LogSoftmax", "Hardmax"), axis=net.pick(0, 1, 2, -1))


def _dropout(net: Draw) -> str:
    net.grid()
    return net.add("Dropout", net.scalar(net.pick(0.0, 0.5)))


def _spatial(net: Draw) -> int:
    """Let what follows read a signal, an image or a volume; return how many axes of space it has."""
    net.grid(net.pick(0, 1, 3, 4, 8))
    return len(net.shape) - 2


def _dilations(net: Draw) -> list[int]:
    """Return how far the numbers of a window lie apart: a window of three, two apart, is five wide."""
    return [net.pick(1, 1, 2) if extent > 4 else 1 for extent in net.shape[2:]]


def _convolution(net: Draw) -> str:
    axes = _spatial(net)
    channels = net.shape[1]
    group, more = net.pick(1, channels), net.pick(1, 2, 4)
    how: dict[str, Any] = {"strides": net.picks(axes, 1, 2, 3)}
    if net.chance():
        how |= {"pads": net.picks(2 * axes, 0, 1, 2), "dilations": _dilations(net)}
    else:
        how["auto_pad"] = net.pick("SAME_UPPER", "SAME_LOWER", "VALID")
    weight = net.weight(channels * more, channels // group, *net.picks(axes, 1, 2, 3))
    return net.add("Conv", weight, *([net.weight(channels * more)] if net.chance() else []), group=group, **how)


def _transposed(net: Draw) -> str:
    axes = _spatial(net)
    channels, strides = net.shape[1], net.picks(axes, 1, 2, 3)
    group, more = net.pick(1, channels), net.pick(1, 2)
    how: dict[str, Any] = {"strides": strides, "dilations": net.picks(axes, 1, 2)}
    if net.pick(0, 1, 2):
        how |= {"pads": net.picks(2 * axes, 0, 1), "output_padding": [net.pick(0, stride - 1) for stride in strides]}
    else:
        how["auto_pad"] = net.pick("SAME_UPPER", "SAME_LOWER", "VALID")
    bias = [net.weight(group * more)] if net.chance() else []
    return net.add("ConvTranspose", net.weight(channels, more, *net.picks(axes, 2, 3)), *bias, group=group, **how)


def _deformed(net: Draw) -> str:
    net.opset = 19
    net.image(4)
    batch, _, rows, columns = net.shape
    offset = net.weight(batch, 18, rows, columns)
    more = ["", net.positive(batch, 9, rows, columns)] if net.chance() else []
    return net.add("DeformConv", net.weight(4, 4, 3, 3), offset, *more, pads=[1, 1, 1, 1])


def _pool_window(net: Draw, axes: int) -> dict[str, Any]:
    how: dict[str, Any] = {"kernel_shape": net.picks(axes, 2, 3), "strides": net.picks(axes, 1, 2, 3)}
    if net.chance():
        return how | {"pads": net.picks(2 * axes, 0, 1)}
    return how | {"auto_pad": net.pick("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET")}


def _max_pool(net: Draw) -> str:
    net.opset = net.pick(11, 12, 22)
    axes = _spatial(net)
    how = _pool_window(net, axes) | {"ceil_mode": net.pick(0, 1), "dilations": _dilations(net)}
    return net.add("MaxPool", **how)


def _average_pool(net: Draw) -> str:
    net.opset = net.pick(10, 11, 19, 22)
    axes = _spatial(net)
    how = _pool_window(net, axes) | {"ceil_mode": net.pick(0, 1), "count_include_pad": net.pick(0, 1)}
    if net.opset >= 19:
        how["dilations"] = _dilations(net)
    return net.add("AveragePool", **how)


def _norm_pool(net: Draw) -> str:
    net.opset = net.pick(11, 18, 22)
    how = _pool_window(net, _spatial(net)) | {"p": net.pick(1, 2, 3)}
    return net.add("LpPool", **(how | {"ceil_mode": net.pick(0, 1)} if net.opset >= 18 else how))


def _global_pool(net: Draw) -> str:
    _spatial(net)
    kind = net.pick("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
    return net.add(kind, **({"p": net.pick(1, 2, 3)} if kind == "GlobalLpPool" else {}))


def _unpool(net: Draw) -> str:
    net.tensor(net.pick(1, 2), 3, 6, 8)
    largest, places = net.results(2, "MaxPool", net.x, kernel_shape=[2, 2], strides=[2, 2])
    return net.apply("MaxUnpool", largest, places, kernel_shape=[2, 2], strides=[2, 2])


def _resize(net: Draw) -> str:
    net.opset = net.pick(11, 13, 18, 19)
    net.grid()
    axes = len(net.shape) - 2
    mode = net.pick("nearest", "linear", *["cubic"] * (axes == 2))
    places = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize")
    place = net.pick(*places, *(["half_pixel_symmetric"] if net.opset == 19 else []))
    how: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": place}
    if mode == "nearest":
        how["nearest_mode"] = net.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if mode == "cubic":
        how |= {"cubic_coeff_a": net.pick(-0.75, -0.5), "exclude_outside": net.pick(0, 1)}
    if net.opset >= 18 and mode != "nearest" and axes == 2 and net.pick(0, 0, 1):
        how["antialias"] = 1
    empty = net.constant(np.array([], FLOAT)) if net.opset < 13 else ""
    roi = empty
    if place == "tf_crop_and_resize":
        begin, end = ([0.1, 0.2, 0.0], [0.9, 0.7, 0.8]) if net.chance() else ([0.0] * 3, [1.0] * 3)
        roi = net.constant(np.array([0, 0, *begin[:axes], 1, 1, *end[:axes]], FLOAT))
        how["extrapolation_value"] = net.pick(0.0, 1.5)
    some = net.opset >= 18 and place != "tf_crop_and_resize" and net.chance()
    batch, how = ((), how | {"axes": [*range(2, axes + 2)]}) if some else (net.shape[:2], how)
    if net.chance():
        scales = [*[1] * len(batch), *net.picks(axes - 1, 2, 0.5, 3), net.pick(2, 3, 1)]
        return net.add("Resize", roi, net.constant(np.array(scales, FLOAT)), **how)
    if some:
        how |= net.pick({}, {"keep_aspect_ratio_policy": net.pick("not_larger", "not_smaller")})
    sizes = net.integers(*batch, *(net.pick(4, 10, 2 * extent) for extent in net.shape[2:]))
    return net.add("Resize", roi, empty, sizes, **how)


def _upsample(net: Draw) -> str:
    net.opset = 9
    net.image()
    return net.add(
        "Upsample", net.constant(np.array([1, 1, net.pick(1, 2), 2], FLOAT)), mode=net.pick("nearest", "linear")
    )


def _grid_sample(net: Draw) -> str:
    net.opset = net.pick(16, 20)
    volume = net.opset == 20 and net.chance()
    if volume:
        net.tensor(1, net.pick(1, 3), 4, 5, 6)
    else:
        net.image()
    linear, cubic = ("bilinear", "bicubic") if net.opset == 16 else ("linear", "cubic")
    axes = len(net.shape) - 2
    places = net.rng.random((net.shape[0], *net.picks(axes, 3, 4, 5), axes)) * 2.4 - 1.2
    return net.add(
        "GridSample",
        net.constant(places.astype(FLOAT)),
        mode=net.pick(linear, "nearest", *([] if volume else [cubic])),
        padding_mode=net.pick("zeros", "border", "reflection"),
        align_corners=net.pick(0, 1),
    )


def _affine_grid(net: Draw) -> str:
    net.opset = 20
    axes = net.pick(2, 3)
    net.tensor(2, axes, axes + 1)
    return net.add("AffineGrid", net.integers(2, 3, *net.picks(axes, 4, 5)), align_corners=net.pick(0, 1))


def _regions(net: Draw, count: int) -> str:
    """Add places of regions in an image: left, top, right and bottom."""
    begin = net.rng.random((count, 2)) * 3
    return net.constant(np.concatenate([begin, begin + 1 + 3 * net.rng.random((count, 2))], 1).astype(FLOAT))


def _roi_align(net: Draw) -> str:
    net.opset = net.pick(10, 16)
    net.image()
    how: dict[str, Any] = {"output_height": net.pick(2, 3), "output_width": net.pick(2, 4)}
    how |= {"sampling_ratio": net.pick(1, 2, 3), "spatial_scale": net.pick(1.0, 0.5)}
    if net.opset == 16:
        how["coordinate_transformation_mode"] = net.pick("half_pixel", "output_half_pixel")
    return net.add("RoiAlign", _regions(net, 3), net.indices(net.shape[0], 3, negative=False), **how)


def _max_roi_pool(net: Draw) -> str:
    net.image()
    corners = np.sort(net.rng.integers(0, 5, (3, 2, 2)), axis=1).reshape(3, 4)
    regions = np.concatenate([net.rng.integers(0, net.shape[0], (3, 1)), corners], 1).astype(FLOAT)
    return net.add(
        "MaxRoiPool", net.constant(regions), pooled_shape=[2, net.pick(2, 3)], spatial_scale=net.pick(1.0, 0.5)
    )


def _suppression(net: Draw) -> str:
    boxes = np.concatenate([net.rng.random((1, 6, 2)), 1 + net.rng.random((1, 6, 2))], 2).astype(FLOAT)
    net.tensor(1, 2, 6)
    limits = [net.integers(net.pick(2, 4)), net.constant(np.array([net.pick(0.3, 0.6)], FLOAT))]
    limits += [net.constant(np.array([net.pick(0.0, 0.1)], FLOAT))] if net.chance() else []
    return net.apply("NonMaxSuppression", net.constant(boxes), net.x, *limits, center_point_box=net.pick(0, 1))


def _batch_norm(net: Draw) -> str:
    _spatial(net)
    scale, bias, mean, variance = (net.positive(net.shape[1]) for _ in range(4))
    return net.add("BatchNormalization", scale, bias, mean, variance, epsilon=net.pick(1e-5, 0.1))


def _instance_norm(net: Draw) -> str:
    _spatial(net)
    scale, bias = net.positive(net.shape[1]), net.weight(net.shape[1])
    return net.add("InstanceNormalization", scale, bias, epsilon=net.pick(1e-5, 0.1))


def _group_norm(net: Draw) -> str:
    net.opset = 21
    net.grid(8)
    how = {"num_groups": net.pick(1, 2, 4, 8), "epsilon": net.pick(1e-5, 0.01)}
    return net.add("GroupNormalization", net.positive(8), net.weight(8), **how)


def _layer_norm(net: Draw) -> Sequence[str]:
    net.grid()
    axis = net.pick(-1, -2, 1, 2)
    shape = net.shape[axis:]
    bias = [net.weight(*shape)] if net.chance() else []
    how = {"axis": axis, "epsilon": net.pick(1e-5, 0.1)}
    return net.results(net.pick(1, 1, 1, 3), "LayerNormalization", net.x, net.positive(*shape), *bias, **how)


def _root_mean_square_norm(net: Draw) -> str:
    net.opset = 23
    if net.chance():
        net.image()
    else:
        net.tensor(*net.picks(net.pick(2, 3), 3, 4, 8))
    axis = net.pick(-1, -2, 1, 0)
    return net.add("RMSNormalization", net.positive(*net.shape[axis:]), axis=axis, epsilon=net.pick(1e-5, 0.1))


def _mean_variance_norm(net: Draw) -> str:
    net.grid(net.pick(3, 8))
    space = [*range(2, len(net.shape))]
    return net.add("MeanVarianceNormalization", axes=net.pick([0, *space], [1], space, [1, *space]))


def _vector_norm(net: Draw) -> str:
    net.grid()
    return net.add("LpNormalization", axis=net.pick(1, 2, -1), p=net.pick(1, 2))


def _local_norm(net: Draw) -> str:
    net.image()
    how = {"alpha": net.pick(1e-4, 0.5), "beta": net.pick(0.75, 0.5), "bias": net.pick(1.0, 2.0)}
    return net.add("LRN", size=net.pick(1, 3, 5), **how)


def _running_sum(net: Draw) -> str:
    net.grid()
    axis = net.constant(np.array(net.pick(0, 1, 2, -1), np.int64))
    net.opset, kind = net.pick((OPSET, "CumSum"), (26, "CumProd"))
    return net.add(kind, axis, exclusive=net.pick(0, 1), reverse=net.pick(0, 1))


def _depth(net: Draw) -> str:
    net.image(16)
    if net.chance():
        return net.add("DepthToSpace", blocksize=net.pick(2, 4), mode=net.pick("DCR", "CRD"))
    rows, columns = (2 * (extent // 2) for extent in net.shape[2:])
    net.go_on(net.add("Slice", net.integers(0, 0), net.integers(rows, columns), net.integers(2, 3)))
    return net.add("SpaceToDepth", blocksize=2)


def _pad(net: Draw) -> str:
    net.opset = net.pick(11, 19)
    mode = net.pick("constant", "reflect", "edge", *(["wrap"] if net.opset == 19 else []))
    _spatial(net)
    rank = len(net.shape)
    if net.opset == 19 and net.chance():
        pads, axes = net.picks(2, 0, 1, 2), [net.integers(net.pick(2, -1))]
    else:
        pads, axes = [0 if place % rank < 2 else net.pick(0, 1, 2, -1) for place in range(2 * rank)], []
    value = net.scalar(net.pick(0.0, 1.5)) if mode == "constant" else ""
    return net.add("Pad", net.integers(*pads), *([value, *axes] if axes or value else []), mode=mode)


def _slice(net: Draw) -> str:
    net.grid()
    step = net.pick(1, 2, -1, -2)
    begin, end = (
        (net.pick(0, 1, -3), net.pick(3, 100, -1)) if step > 0 else (net.pick(-1, 100, 3), net.pick(-100, 0, -4))
    )
    bounds = [[begin], [end], [net.pick(0, 1, 2, -1, -1)], [step]]
    if net.chance():
        bounds = [[0, *bounds[0]], [1, *bounds[1]], [0, net.pick(1, 2, -1)], [1, step]]
    return net.add("Slice", *(net.integers(*each) for each in bounds))


def _split(net: Draw) -> Sequence[str]:
    net.opset = net.pick(13, 18)
    net.grid(8)
    axis = net.pick(1, 2, -1)
    extent, count = net.shape[axis], net.pick(2, 3)
    if net.opset == 18 and net.chance():
        return net.results(count, "Split", net.x, axis=axis, num_outputs=count)
    sizes = [1, *[2] * (count - 2), extent - 1 - 2 * (count - 2)]
    return net.results(count, "Split", net.x, net.integers(*sizes), axis=axis)


def _concat(net: Draw) -> str:
    net.grid()
    axis = net.pick(0, 1, 2, -1)
    shape = list(net.shape)
    shape[axis] = net.pick(1, 3)
    return net.apply("Concat", *[net.x, net.second(*shape)][:: net.pick(1, -1)], axis=axis)


def _transpose(net: Draw) -> str:
    net.grid()
    return net.add("Transpose", perm=net.order(len(net.shape))) if net.pick(0, 1, 2) else net.add("Transpose")


def _reshape(net: Draw) -> str:
    net.image()
    batch, channels, rows, columns = net.shape
    shapes = ((0, 0, -1), (batch, -1), (-1,), (0, channels * rows, columns, 1), (rows, columns, batch, channels))
    if net.chance():
        return net.add("Flatten", axis=net.pick(0, 1, 2, -1, 4))
    return net.add("Reshape", net.integers(*net.pick(*shapes)))


def _axes_of_one(net: Draw) -> str:
    net.image()
    axes = net.pick([0], [2, -1], [1, 3], [-3])
    wide = net.add("Unsqueeze", net.integers(*axes))
    if net.chance():
        return wide
    net.go_on(wide)
    if net.chance():
        return net.add("Squeeze")
    return net.add("Squeeze", net.integers(*axes))


def _gather(net: Draw) -> str:
    net.grid()
    axis = net.pick(0, 1, 2, -1)
    return net.add("Gather", net.indices(net.shape[axis], *net.pick((), (3,), (2, 2))), axis=axis)


def _gather_elements(net: Draw) -> str:
    net.image()
    axis, (batch, channels, rows, columns) = net.pick(0, 1, 2, 3, -1), net.shape
    shape = (batch, channels, rows - 2, columns - 1)
    return net.add("GatherElements", net.indices(net.shape[axis], *shape), axis=axis)


def _gather_places(net: Draw) -> str:
    net.image()
    batch, channels, rows, _ = net.shape
    if net.chance():
        return net.add("GatherND", net.indices(channels, batch, 3, 1), batch_dims=1)
    return net.add("GatherND", net.indices(min(batch, channels, rows), 4, net.pick(1, 2, 3)))


def _scatter_elements(net: Draw) -> str:
    net.opset = net.pick(13, 18)
    net.image()
    axis = net.pick(1, 2, -1)
    extents = [2 if place == axis % 4 else 1 for place in range(4)]
    extents[axis] = min(2, net.shape[axis])
    places = net.constant(np.array(net.order(net.shape[axis])[: extents[axis]], np.int64).reshape(extents))
    how = {"reduction": net.pick("none", "add", "mul", "max", "min")} if net.opset == 18 else {}
    return net.add("ScatterElements", places, net.second(*extents), axis=axis, **how)


def _scatter_places(net: Draw) -> str:
    net.opset = net.pick(13, 18)
    net.image(4)
    places = net.constant(np.array([[0, 0], [0, 3], [net.shape[0] - 1, 2]], np.int64))
    how = {"reduction": net.pick("none", "add", "mul", "max", "min")} if net.opset == 18 else {}
    return net.add("ScatterND", places, net.second(3, *net.shape[2:]), **how)


def _scatter_tensor(net: Draw) -> str:
    net.opset = 24
    net.tensor(2, 3, 6, 4)
    places = [net.constant(np.array([net.pick(0, 2), net.pick(1, 4)], np.int64))] if net.chance() else []
    return net.add("TensorScatter", net.second(2, 3, 2, 4), *places, mode=net.pick("linear", "circular"), axis=-2)


def _top_k(net: Draw) -> Sequence[str]:
    net.grid(net.pick(3, 8))
    return net.results(2, "TopK", net.x, net.integers(net.pick(1, 2)), axis=net.pick(-1, 2, 1), largest=net.pick(0, 1))


def _largest(net: Draw) -> str:
    net.grid()
    how = {"keepdims": net.pick(0, 1), "select_last_index": net.pick(0, 1)}
    return net.add(net.pick("ArgMax", "ArgMin"), axis=net.pick(0, 1, 2, -1), **how)


def _reduction(net: Draw) -> str:
    net.opset = net.pick(13, 18)
    net.grid()
    kind = net.pick(*REDUCTIONS)
    if kind == "ReduceLogSum":
        net.go_on(net.apply("Add", net.add("Abs"), net.scalar(0.1)))
    axes, keep = net.pick([], [1, -1], [2], [0], [*range(2, len(net.shape))]), net.pick(0, 1)
    if net.opset >= 18 or kind == "ReduceSum":
        named = [net.integers(*axes)] if axes or net.chance() else []
        return net.add(kind, *named, keepdims=keep, noop_with_empty_axes=net.pick(0, 1))
    return net.add(kind, keepdims=keep, **({"axes": axes} if axes else {}))


def _einsum(net: Draw) -> str:
    net.image()
    batch, channels, _, columns = net.shape
    second = {"nchw->nhwc": (), "nchw->nc": (), "nchw->h": (), "nchw,nchw->nc": net.shape}
    second |= {"nchw,ncwk->nchk": (batch, channels, columns, 3), "nchw,dc->ndhw": (6, channels), "nchw,w": (columns,)}
    equation = net.pick(*second)
    return net.add("Einsum", *([net.second(*second[equation])] if second[equation] else []), equation=equation)


def _matrices(net: Draw) -> str:
    net.image()
    batch, channels, _, columns = net.shape
    shapes = ((columns, 6), (columns,), (1, channels, columns, 5), (channels, columns, 2), (batch, 1, columns, 3))
    return net.add("MatMul", net.second(*net.pick(*shapes)))


def _gemm(net: Draw) -> str:
    rows, inner, columns = 3, net.pick(4, 8), net.pick(5, 6)
    first, second = net.pick(0, 1), net.pick(0, 1)
    net.tensor(*((inner, rows) if first else (rows, inner)))
    weight = net.second(*((columns, inner) if second else (inner, columns)))
    bias = [net.weight(*net.pick((columns,), (1, columns), (rows, 1), ()))] if net.chance() else []
    return net.add(
        "Gemm", weight, *bias, transA=first, transB=second, alpha=net.pick(1.0, 0.5), beta=net.pick(1.0, 2.0)
    )


def _one_hot(net: Draw) -> str:
    net.image()
    whole = net.apply("Cast", net.apply("Mul", net.x, net.scalar(3)), to=TensorProto.INT64)
    values = net.constant(np.array([net.pick(0, 0.5), net.pick(1, 3)], FLOAT))
    return net.apply("OneHot", whole, net.integers(net.pick(4, 6)), values, axis=net.pick(-1, 1, 0))


def _triangle(net: Draw) -> str:
    net.image()
    return net.add("Trilu", net.constant(np.array(net.pick(0, 1, -2, 9), np.int64)), upper=net.pick(0, 1))


def _eye(net: Draw) -> str:
    net.tensor(*net.picks(2, 4, 6))
    return net.add("Add", net.add("EyeLike", k=net.pick(0, 1, -2, 9)))


def _tile(net: Draw) -> str:
    net.grid()
    return net.add("Tile", net.integers(net.pick(1, 2), 1, *net.picks(len(net.shape) - 3, 1, 3), 2))


def _roll(net: Draw) -> str:
    net.grid()
    axis = net.pick(-1, -2)
    begin, cut, end = net.integers(0), net.integers(net.pick(1, 2, 3)), net.integers(9999)
    before, behind = (net.apply("Slice", net.x, *ends, net.integers(axis)) for ends in ((begin, cut), (cut, end)))
    return net.apply("Concat", behind, before, axis=axis)


def _repeat(net: Draw) -> str:
    """Repeat each number of an axis, as `repeat_interleave` is exported."""
    net.grid()
    axis, times = net.pick(*range(1, len(net.shape))), net.pick(2, 3)
    before, behind = net.shape[: axis + 1], net.shape[axis + 1 :]
    spread = net.apply("Expand", net.add("Unsqueeze", net.integers(axis + 1)), net.integers(*before, times, *behind))
    return net.apply("Reshape", spread, net.integers(*before[:-1], before[-1] * times, *behind))


def _shuffle(net: Draw) -> str:
    """Let the channels of groups take turns, as ShuffleNet does."""
    net.grid(net.pick(4, 8, 12))
    batch, channels, *others = net.shape
    groups = net.pick(2, 4)
    apart = net.add("Reshape", net.integers(batch, groups, channels // groups, *others))
    turned = net.apply("Transpose", apart, perm=[0, 2, 1, *range(3, 3 + len(others))])
    return net.apply("Reshape", turned, net.integers(*net.shape))


def _beside_itself(net: Draw) -> str:
    """Combine a tensor with its own numbers at other places, and reduce that: TVM makes one kernel of it."""
    net.grid()
    net.go_on(net.add(net.pick(*UNITS)))
    size, moved = math.prod(net.shape), net.add("Reshape", net.integers(-1))
    for move in net.picks(net.pick(1, 2, 3), "reverse", "turn", "repeat"):
        parts = net.pick(*(count for count in (1, 2, 3, 4, 5, 6) if size % count == 0))
        if move == "reverse":
            moved = net.apply(
                "Slice", moved, net.integers(-1), net.integers(-size - 1), net.integers(0), net.integers(-1)
            )
        elif move == "turn":
            rows = net.apply("Reshape", moved, net.integers(parts, size // parts))
            moved = net.apply("Reshape", net.apply("Transpose", rows, perm=[1, 0]), net.integers(-1))
        else:
            begin = int(net.rng.integers(size - size // parts + 1))
            part = net.apply("Slice", moved, net.integers(begin), net.integers(begin + size // parts))
            moved = net.apply("Tile", part, net.integers(parts))
    net.go_on(net.add(net.pick("Add", "Mul", "Max"), net.apply("Reshape", moved, net.integers(*net.shape))))
    if net.chance():
        net.go_on(net.add("Mul", net.add("Sigmoid")))
    axes = sorted(net.order(len(net.shape))[: net.pick(0, 1, 2)])
    return net.add(net.pick("ReduceSum", "ReduceMax", "ReduceL2"), net.integers(*axes)) if axes else net.x


def _expand(net: Draw) -> str:
    net.tensor(net.pick(1, 2), net.pick(1, 3), 1, 5)
    shapes = ((1, 1, 4, 1), (2, *net.shape), (4, 5), (net.shape[0], 1, 6, 5))
    return net.add("Expand", net.integers(*net.pick(*shapes)))


def _crop(net: Draw) -> str:
    net.image()
    axes = net.pick([2, 3], [-1, -2], [3])
    return net.add("CenterCropPad", net.integers(*net.picks(len(axes), 3, 4, 9, 14)), axes=axes)


def _columns_to_image(net: Draw) -> str:
    rows, columns, pad, step = net.pick(5, 6), net.pick(6, 7), net.pick(0, 1), net.pick(1, 2)
    places = [(extent + 2 * pad - 2) // step + 1 for extent in (rows, columns)]
    net.tensor(net.pick(1, 2), 3 * 4, places[0] * places[1])
    how = {"pads": [pad] * 4, "strides": [step, step]}
    return net.add("Col2Im", net.integers(rows, columns), net.integers(2, 2), **how)


def _backwards(net: Draw) -> str:
    time = net.pick(0, 1)
    net.tensor(4, 3, 5)
    lengths = net.picks(net.shape[1 - time], *range(1, net.shape[time] + 1))
    return net.add("ReverseSequence", net.integers(*lengths), time_axis=time, batch_axis=1 - time)


def _compress(net: Draw) -> str:
    net.image(4)
    axis = net.pick(1, 2, -1)
    return net.add("Compress", net.constant(np.array([True, *net.picks(2, True, False)])), axis=axis)


def _places(net: Draw) -> Sequence[str]:
    net.tensor(3, 5)
    if net.chance():
        return [net.add("NonZero")]
    return net.results(net.pick(1, 4), "Unique", net.x, sorted=net.pick(0, 1), **net.pick({}, {"axis": 1}))


def _loss(net: Draw) -> Sequence[str]:
    net.image(net.pick(3, 4))
    batch, channels, rows, columns = net.shape
    classes = net.indices(channels, batch, rows, columns, negative=False)
    weight = [net.positive(channels)] if net.chance() else []
    how = {"reduction": net.pick("none", "sum", "mean"), **net.pick({}, {"ignore_index": 1})}
    if net.chance():
        return net.results(net.pick(1, 2), "SoftmaxCrossEntropyLoss", net.x, classes, *weight, **how)
    return [net.add("NegativeLogLikelihoodLoss", classes, *weight, **how)]


def _scales(net: Draw, dtype: str, *shape: int) -> list[str]:
    """Return scales and zero points: one of each, or so many."""
    points = net.rng.integers(0, 5, shape).astype(dtype)
    return [net.constant((net.rng.random(shape) * 0.1 + 0.01).astype(FLOAT)), net.constant(points)]


def _quantise(net: Draw) -> str:
    net.opset = net.pick(13, 19, 21)
    net.grid()
    axis = net.pick(0, 1, -1)
    scales = _scales(net, net.pick("int8", "uint8"), *([net.shape[axis]] if axis else []))
    how = {"axis": axis} if axis else {}
    small = net.add("QuantizeLinear", *scales, **how)
    return net.apply("DequantizeLinear", small, *scales, **how) if net.chance() else small


def _dequantise(net: Draw) -> str:
    net.image(4)
    dtype = net.pick("int8", "uint8")
    axis, shape = net.pick((1, ()), (0, (6,)), (1, (4,)))
    weight = net.apply("DequantizeLinear", net.small(dtype, 6, 4, 1, 1), *_scales(net, dtype, *shape), axis=axis)
    return net.add("Conv", weight)


def _quantised(net: Draw) -> tuple[list[str], str]:
    """Return an image in 8 bits, with its scale and zero point, and its number format."""
    dtype = net.pick("int8", "uint8")
    scales = _scales(net, dtype)
    return [net.add("QuantizeLinear", *scales), *scales], dtype


def _quantised_convolution(net: Draw) -> str:
    net.image()
    (x, scale, point), _ = _quantised(net)
    channels, dtype = net.shape[1], "int8"
    group = net.pick(1, channels)
    weight = net.small(dtype, 2 * channels, channels // group, 3, 3)
    how = {"group": group, "strides": net.picks(2, 1, 2), "pads": net.picks(4, 0, 1)}
    if net.chance():
        whole = net.apply("ConvInteger", x, weight, *([point] if net.chance() else []), **how)
        return net.apply("Cast", whole, to=TensorProto.FLOAT)
    count = (2 * channels,) if net.chance() else ()
    scales = net.constant((net.rng.random(count) * 0.01 + 0.001).astype(FLOAT))
    zeros = net.constant(np.zeros(count, dtype))
    end = [net.constant(FLOAT(0.1)), point]
    return net.apply("QLinearConv", x, scale, point, weight, scales, zeros, *end, **how)


def _quantised_matrices(net: Draw) -> str:
    net.image()
    (x, scale, point), dtype = _quantised(net)
    weight = net.small(dtype, net.shape[3], 4)
    if net.chance():
        points = [point, *([net.constant(np.array(2, dtype))] if net.chance() else [])]
        return net.apply("Cast", net.apply("MatMulInteger", x, weight, *points), to=TensorProto.FLOAT)
    other = [net.constant(FLOAT(0.02)), net.constant(np.array(1, dtype))]
    return net.apply("QLinearMatMul", x, scale, point, weight, *other, net.constant(FLOAT(0.1)), point)


def _quantise_by_itself(net: Draw) -> Sequence[str]:
    net.image()
    return net.results(3, "DynamicQuantizeLinear", net.x)


def _recurrent(net: Draw) -> Sequence[str]:
    kind = net.pick("LSTM", "GRU", "RNN")
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    direction, hidden, steps, batch = net.pick("forward", "reverse", "bidirectional"), net.pick(3, 4), 3, net.pick(1, 2)
    ways = 2 if direction == "bidirectional" else 1
    net.tensor(steps, batch, 5)
    weights = [net.weight(ways, gates * hidden, 5), net.weight(ways, gates * hidden, hidden)]
    bias = net.weight(ways, 2 * gates * hidden) if net.chance() else ""
    lengths = net.constant(np.array(net.picks(batch, 1, 2, 3), np.int32)) if net.chance() else ""
    first = net.weight(ways, batch, hidden) if net.chance() else ""
    how: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if net.chance():
        gate, state = net.pick("Sigmoid", "HardSigmoid"), net.pick("Tanh", "Relu", "Softsign")
        how["activations"] = {"LSTM": [gate, "Tanh", state], "GRU": [gate, state], "RNN": [state]}[kind] * ways
    if net.pick(0, 0, 1):
        how["clip"] = 0.4
    if kind == "GRU":
        how["linear_before_reset"] = net.pick(0, 1)
    if kind == "LSTM" and net.chance():
        how["input_forget"] = 1
    return net.results(2, kind, net.x, *weights, bias, lengths, first, **how)


def _spectrum(net: Draw) -> str:
    net.opset = net.pick(17, 20)
    length = net.pick(6, 8)
    if net.chance():
        signal = net.tensor(1, 20, 1)
        window = net.apply(net.pick("HannWindow", "HammingWindow", "BlackmanWindow"), net.constant(np.int64(8)))
        return net.apply("STFT", signal, net.constant(np.int64(net.pick(3, 4))), window, onesided=net.pick(0, 1))
    complex_ = net.chance()
    net.tensor(2, length, 3, 2 if complex_ else 1)
    how: dict[str, Any] = {"inverse": net.pick(0, 1) if complex_ else 0, "onesided": 0 if complex_ else net.pick(0, 1)}
    more = [net.constant(np.int64(net.pick(4, length, 10)))] if net.chance() else [""]
    if net.opset == 17:
        return net.add("DFT", *(more if more[0] else []), axis=1, **how)
    return net.add("DFT", *more, net.constant(np.int64(net.pick(1, -3))), **how)


def _attention(net: Draw) -> Sequence[str]:
    net.opset = net.pick(23, 24)
    batch, heads, of_keys, queries, keys, size = net.pick(1, 2), 4, net.pick(4, 2, 1), net.pick(1, 6), net.pick(5, 6), 8
    how: dict[str, Any] = {"is_causal": net.pick(0, 1), "softcap": net.pick(0.0, 2.0)}
    how |= net.pick({}, {"scale": 0.5})
    if net.chance():
        net.tensor(batch, queries, heads * size)
        others = [net.second(batch, keys, of_keys * size) for _ in range(2)]
        how |= {"q_num_heads": heads, "kv_num_heads": of_keys}
    else:
        net.tensor(batch, heads, queries, size)
        others = [net.second(batch, of_keys, keys, size) for _ in range(2)]
    past = net.pick(0, 0, 3)
    mask = ""
    if net.chance():
        shape = net.pick((), (1, 1), (batch, 1), (batch, heads))
        mask = net.weight(*shape, queries, past + keys)
        if net.chance():
            mask = net.constant(net.rng.random((*shape, queries, past + keys)) < net.pick(0.8, 0.3))
    caches = [net.second(batch, of_keys, past, size) for _ in range(2)] if past else []
    results = 3 if past else 1
    return net.results(results, "Attention", net.x, *others, mask, *caches, **how)


def _linear_attention(net: Draw) -> Sequence[str]:
    net.opset = 27
    batch, steps, heads, of_queries, size = net.pick(1, 2), net.pick(1, 4), 2, net.pick(2, 4), 4
    net.tensor(batch, steps, of_queries * size)
    kind = net.pick("linear", "gated", "delta", "gated_delta")
    others = [net.second(batch, steps, heads * size) for _ in range(2)]
    state = net.second(batch, heads, size, size) if net.chance() else ""
    decay = net.apply("Neg", net.positive(batch, steps, net.pick(heads, heads * size))) if "gated" in kind else ""
    rate = [net.positive(batch, steps, net.pick(1, heads))] if "delta" in kind else []
    how = {"update_rule": kind, "q_num_heads": of_queries, "kv_num_heads": heads}
    return net.results(2, "LinearAttention", net.x, *others, state, decay, *rate, **how)


def _causal_convolution(net: Draw) -> Sequence[str]:
    net.opset = 27
    batch, channels, width = net.pick(1, 2), net.pick(3, 4), net.pick(2, 4)
    net.tensor(batch, channels, net.pick(1, 6))
    bias = net.weight(channels) if net.chance() else ""
    state = [net.second(batch, channels, width - 1)] if net.chance() else []
    weight, how = net.weight(channels, 1, width), {"activation": net.pick("none", "silu", "swish")}
    return net.results(2, "CausalConvWithState", net.x, weight, bias, *state, **how)


def _rotary(net: Draw) -> str:
    net.opset = 23
    batch, heads, steps, size = net.pick(1, 2), net.pick(2, 4), 6, 8
    rotated = net.pick(0, 4)
    how: dict[str, Any] = {"interleaved": net.pick(0, 1), "rotary_embedding_dim": rotated}
    if net.chance():
        net.tensor(batch, steps, heads * size)
        how["num_heads"] = heads
    else:
        net.tensor(batch, heads, steps, size)
    half = (rotated or size) // 2
    if net.chance():
        return net.add("RotaryEmbedding", net.weight(batch, steps, half), net.weight(batch, steps, half), **how)
    places = net.indices(10, batch, steps, negative=False)
    return net.add("RotaryEmbedding", net.weight(10, half), net.weight(10, half), places, **how)


def _window(net: Draw) -> str:
    net.opset = 17
    net.tensor(8)
    window = net.apply(
        net.pick("HannWindow", "HammingWindow", "BlackmanWindow"), net.constant(np.int64(8)), periodic=net.pick(0, 1)
    )
    return net.add("Mul", window)


def _determinant(net: Draw) -> str:
    size = net.pick(2, 3)
    net.tensor(2, size, size)
    return net.add("Det")


Operator = Callable[[Draw], str | Sequence[str]]
OPERATORS: dict[str, Operator] = {
    "unit": _unit,
    "curve": _curve,
    "positive": _of_positive,
    "rounding": _rounding,
    "arithmetic": _arithmetic,
    "several": _several,
    "comparison": _comparison,
    "logic": _logic,
    "bits": _bits,
    "cast": _cast,
    "mod": _mod,
    "clip": _clip,
    "hard_sigmoid": _hard_sigmoid,
    "gelu": _gelu,
    "swish": _swish,
    "shrink": _shrink,
    "softmax": _softmax,
    "dropout": _dropout,
    "conv": _convolution,
    "conv_transpose": _transposed,
    "deform_conv": _deformed,
    "max_pool": _max_pool,
    "average_pool": _average_pool,
    "lp_pool": _norm_pool,
    "global_pool": _global_pool,
    "max_unpool": _unpool,
    "resize": _resize,
    "upsample": _upsample,
    "grid_sample": _grid_sample,
    "affine_grid": _affine_grid,
    "roi_align": _roi_align,
    "max_roi_pool": _max_roi_pool,
    "non_max_suppression": _suppression,
    "batch_norm": _batch_norm,
    "instance_norm": _instance_norm,
    "group_norm": _group_norm,
    "layer_norm": _layer_norm,
    "rms_norm": _root_mean_square_norm,
    "mean_variance_norm": _mean_variance_norm,
    "lp_norm": _vector_norm,
    "lrn": _local_norm,
    "running_sum": _running_sum,
    "depth": _depth,
    "pad": _pad,
    "slice": _slice,
    "split": _split,
    "concat": _concat,
    "transpose": _transpose,
    "reshape": _reshape,
    "squeeze": _axes_of_one,
    "gather": _gather,
    "gather_elements": _gather_elements,
    "gather_nd": _gather_places,
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_places,
    "tensor_scatter": _scatter_tensor,
    "top_k": _top_k,
    "arg_max": _largest,
    "reduce": _reduction,
    "einsum": _einsum,
    "matmul": _matrices,
    "gemm": _gemm,
    "one_hot": _one_hot,
    "trilu": _triangle,
    "eye_like": _eye,
    "tile": _tile,
    "roll": _roll,
    "repeat": _repeat,
    "shuffle": _shuffle,
    "beside_itself": _beside_itself,
    "expand": _expand,
    "center_crop_pad": _crop,
    "col2im": _columns_to_image,
    "reverse_sequence": _backwards,
    "compress": _compress,
    "places": _places,
    "loss": _loss,
    "quantise": _quantise,
    "dequantise": _dequantise,
    "quantised_conv": _quantised_convolution,
    "quantised_matmul": _quantised_matrices,
    "dynamic_quantise": _quantise_by_itself,
    "recurrent": _recurrent,
    "spectrum": _spectrum,
    "attention": _attention,
    "linear_attention": _linear_attention,
    "causal_conv": _causal_convolution,
    "rotary": _rotary,
    "window": _window,
    "det": _determinant,
}
"""What draws a network around an operator, or around one of several that are alike."""

LACKING = (
    *("col2im", "deform_conv", "det", "max_unpool", "tensor_scatter"),  # TVM's importer has none of these
    *("compress", "non_max_suppression", "places"),  # the size of their results is computed
)
"""Operators whose networks TVM (0.27) does not build."""


def network(name: str, *seed: int) -> onnx.ModelProto:
    """Return a network around this operator, the same for the same seed. Raises ValueError if none of many is valid."""
    for draw in range(DRAWS):
        net = Draw([*seed, draw])
        results = OPERATORS[name](net)
        try:
            model = _finish(net, [results] if isinstance(results, str) else results)
            answers = first_answer(judges_of(model), seeded_inputs(input_specs(model), 0)).outputs
            note_shapes(model, answers)
            onnx.checker.check_model(model, full_check=True)
            if not all(answer.size for answer in answers):
                continue
        except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, NoOutsideAnswer, InputRefused):
            continue
        return model
    raise ValueError(f"{name}: none of {DRAWS} networks is valid")


def _finish(net: Draw, results: Sequence[str]) -> onnx.ModelProto:
    """Return the network with a convolution, a rectifier or nothing behind each result of real numbers."""
    return net.typed_model(*(_end(net, result) for result in results))


def note_shapes(model: onnx.ModelProto, answers: Sequence[Any]) -> None:
    """Give results the shapes that ONNX does not infer."""
    for value, answer in zip(model.graph.output, answers, strict=True):
        if not value.type.tensor_type.HasField("shape"):
            kind = onnx.helper.np_dtype_to_tensor_dtype(answer.dtype)
            value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, kind, answer.shape))


def _end(net: Draw, result: str) -> str:
    kind = net.kind(result)
    sizes = [size.dim_value for size in kind.shape.dim]
    if kind.elem_type != TensorProto.FLOAT or net.chance():
        return result
    if len(sizes) == 4 and all(sizes) and net.chance():
        return net.apply("Conv", result, net.weight(4, sizes[1], 1, 1))
    return net.apply("Relu", result)


def networks(seed: int, count: int, names: Sequence[str] = ()) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yield networks by name; the operators, or those that are named, take turns."""
    names = names or list(OPERATORS)
    for number in range(count):
        name = names[(seed * count + number) % len(names)]
        yield f"{name}_{seed}_{number}", network(name, seed, number)


def count_results(records: Sequence[Mapping[str, Any]]) -> dict[str, Counter[str]]:
    """Return for each operator how many cases came to what, of the fields of `adreno-bench run`'s records."""
    counts: dict[str, Counter[str]] = {}
    for record in {record["case"]: record for record in records}.values():
        operator = record["model"].rpartition("_")[0].rpartition("_")[0]
        counts.setdefault(operator, Counter())[_result(record)] += 1
    return dict(sorted(counts.items()))


def _result(record: Mapping[str, Any]) -> str:
    outcome = str(record["outcome"])
    if outcome != Outcome.COMPILE_ERROR.value:
        return outcome
    return REFUSED if record["message"].startswith(MISREADS) else UNBUILT


def is_expected(operator: str, result: str) -> bool:
    """Return whether a result of an operator's network is no news. Numbers may be beyond half precision."""
    no_news = (Outcome.OK.value, Outcome.UNSUPPORTED.value, Outcome.OUT_OF_RANGE.value, REFUSED)
    return result in no_news or (result == UNBUILT and operator in LACKING)


def print_results(folder: Path) -> int:
    """Print a table of the results; returns how many are news."""
    lines = (folder / RECORDS).read_text(encoding="utf-8").splitlines()
    counts = count_results([record for record in map(json.loads, lines) if "outcome" in record])
    columns = sorted({result for count in counts.values() for result in count})
    rows = [[operator, *(count[column] or "" for column in columns)] for operator, count in counts.items()]
    rows.append(["all", *(sum(count[column] for count in counts.values()) for column in columns)])
    print(markdown_table(rows, ["operator", *columns]))
    return sum(
        number
        for operator, count in counts.items()
        for result, number in count.items()
        if not is_expected(operator, result)
    )


def main(*arguments: str) -> int:
    """Write the networks and the suite file, or print what they came to; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operator_attributes")
    parser.add_argument("folder", type=Path)
    parser.add_argument("operators", nargs="*", choices=[[], *OPERATORS], metavar="OPERATOR")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--today", action="store_const", dest="seed", const=today())
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--chain", type=int, default=1, help="most operators of a network")
    parser.add_argument("--results", action="store_true")
    chosen = parser.parse_intermixed_args(arguments)
    if chosen.results:
        return int(print_results(chosen.folder) > 0)
    if chosen.chain > 1:
        from benchmarks.operator_chains import chains

        write_suite(chosen.folder, dict(chains(chosen.seed, chosen.count, chosen.chain, chosen.operators)))
    else:
        write_suite(chosen.folder, dict(networks(chosen.seed, chosen.count, chosen.operators)))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
