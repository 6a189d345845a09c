"""What the sweep has of each operator. A new case is a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Shape = tuple[int, ...]


@dataclass(frozen=True)
class OperatorEntry:
    """One operator with what decides how it is compiled."""

    name: str
    operator: str
    inputs: tuple[Shape, ...]
    """The first tensor that it reads is the first of these."""
    weights: tuple[Any, ...] = ()
    """Read after the inputs: a shape is filled with random numbers, an array is taken as it is, None is left out."""
    outputs: int = 1
    attributes: Mapping[str, Any] = field(default_factory=dict)
    positive: bool = False
    """Whether it takes numbers above 0 only (a logarithm, a root, a variance)."""


IMAGE: Shape = (1, 16, 14, 14)
"""Channels fill four texels."""
ODD: Shape = (1, 6, 13, 15)
"""Channels do not fill their texels, and no size is a power of two."""


def _ints(*values: int) -> Any:
    return np.array(values, np.int64)


def _conv(
    name: str, x: Shape, out: int, kernel: Sequence[int], *, bias: bool = False, **attributes: Any
) -> OperatorEntry:
    weight = (out, x[1] // attributes.get("group", 1), *kernel)
    return OperatorEntry(f"conv_{name}", "Conv", (x,), (weight, (out,)) if bias else (weight,), attributes=attributes)


def _pool(kind: str, name: str, x: Shape, kernel: int, **attributes: Any) -> OperatorEntry:
    side = [kernel, kernel]
    return OperatorEntry(f"{kind.lower()}_{name}", kind, (x,), attributes={"kernel_shape": side, **attributes})


def _unary(operator: str, x: Shape = IMAGE, *, positive: bool = False, **attributes: Any) -> OperatorEntry:
    return OperatorEntry(operator.lower(), operator, (x,), attributes=attributes, positive=positive)


def _reduction(operator: str, x: Shape, *axes: int, keep: int = 1) -> OperatorEntry:
    name = f"{operator.lower()}_{'_'.join(map(str, axes))}" + ("" if keep else "_flat")
    return OperatorEntry(name, operator, (x,), (_ints(*axes),), attributes={"keepdims": keep})


def _scales(*values: float) -> Any:
    return np.array(values, np.float32)


def _scalar(value: float) -> Any:
    return np.array(value, np.float32)


SAME = [1, 1, 1, 1]

ENTRIES: tuple[OperatorEntry, ...] = (
    _conv("1x1", IMAGE, 32, (1, 1)),
    _conv("1x1_bias", IMAGE, 32, (1, 1), bias=True),
    _conv("3x3", IMAGE, 32, (3, 3), pads=SAME),
    _conv("3x3_valid", IMAGE, 32, (3, 3)),
    _conv("3x3_stride2", IMAGE, 32, (3, 3), pads=SAME, strides=[2, 2]),
    _conv("3x3_dilation2", IMAGE, 32, (3, 3), pads=[2, 2, 2, 2], dilations=[2, 2]),
    _conv("3x3_one_sided_pads", IMAGE, 32, (3, 3), pads=[0, 0, 1, 1], strides=[2, 2]),
    _conv("5x5", IMAGE, 16, (5, 5), pads=[2, 2, 2, 2]),
    _conv("7x7_stride2", (1, 3, 32, 32), 32, (7, 7), pads=[3, 3, 3, 3], strides=[2, 2]),
    _conv("1x7", IMAGE, 16, (1, 7), pads=[0, 3, 0, 3]),
    _conv("7x1", IMAGE, 16, (7, 1), pads=[3, 0, 3, 0]),
    _conv("3_channels", (1, 3, 16, 16), 16, (3, 3), pads=SAME),
    _conv("odd_channels", ODD, 10, (3, 3), pads=SAME),
    _conv("odd_to_even", ODD, 16, (1, 1)),
    _conv("even_to_odd", IMAGE, 5, (1, 1)),
    _conv("one_channel_out", IMAGE, 1, (3, 3), pads=SAME),
    _conv("depthwise", IMAGE, 16, (3, 3), pads=SAME, group=16),
    _conv("depthwise_stride2", IMAGE, 16, (3, 3), pads=SAME, strides=[2, 2], group=16),
    _conv("depthwise_5x5", IMAGE, 16, (5, 5), pads=[2, 2, 2, 2], group=16),
    _conv("depthwise_odd", ODD, 6, (3, 3), pads=SAME, group=6),
    _conv("grouped_1x1", IMAGE, 32, (1, 1), group=4),
    _conv("grouped_3x3", IMAGE, 32, (3, 3), pads=SAME, group=4),
    _conv("batch_2", (2, 16, 14, 14), 16, (3, 3), pads=SAME),
    _conv("one_pixel", (1, 64, 1, 1), 32, (1, 1)),
    _conv("large", (1, 64, 56, 56), 64, (3, 3), pads=SAME),
    _conv("many_channels", (1, 256, 7, 7), 512, (1, 1)),
    OperatorEntry("conv_1d", "Conv", ((1, 16, 32),), ((16, 16, 3),), attributes={"pads": [1, 1]}),
    OperatorEntry("conv_transpose_2x2", "ConvTranspose", (IMAGE,), ((16, 8, 2, 2),), attributes={"strides": [2, 2]}),
    OperatorEntry(
        "conv_transpose_3x3", "ConvTranspose", (IMAGE,), ((16, 8, 3, 3),), attributes={"strides": [2, 2], "pads": SAME}
    ),
    _pool("MaxPool", "3x3_stride2", IMAGE, 3, strides=[2, 2], pads=SAME),
    _pool("MaxPool", "2x2", IMAGE, 2, strides=[2, 2]),
    _pool("MaxPool", "odd", ODD, 3, strides=[2, 2]),
    _pool("MaxPool", "ceil", ODD, 3, strides=[2, 2], ceil_mode=1),
    _pool("AveragePool", "2x2", IMAGE, 2, strides=[2, 2]),
    _pool("AveragePool", "3x3_pads", IMAGE, 3, pads=SAME),
    _pool("AveragePool", "3x3_counts_pads", IMAGE, 3, pads=SAME, count_include_pad=1),
    _pool("AveragePool", "odd", ODD, 3, strides=[2, 2]),
    _unary("GlobalAveragePool"),
    _unary("GlobalMaxPool"),
    OperatorEntry("globalaveragepool_odd", "GlobalAveragePool", (ODD,)),
    *(_unary(name) for name in ("Relu", "Sigmoid", "Tanh", "Exp", "Abs", "Neg", "Erf", "Softplus", "HardSwish")),
    _unary("LeakyRelu", alpha=0.1),
    _unary("Elu"),
    _unary("HardSigmoid"),
    _unary("Gelu"),
    _unary("Sqrt", positive=True),
    _unary("Log", positive=True),
    OperatorEntry("relu_odd", "Relu", (ODD,)),
    OperatorEntry("prelu", "PRelu", (IMAGE,), ((16, 1, 1),)),
    OperatorEntry("clip_6", "Clip", (IMAGE,), (_scalar(0), _scalar(6))),
    *(OperatorEntry(name.lower(), name, (IMAGE, IMAGE)) for name in ("Add", "Sub", "Mul", "Max", "Min")),
    OperatorEntry("div", "Div", (IMAGE, IMAGE), positive=True),  # near 0 it would be so large that any answer was right
    OperatorEntry("add_odd", "Add", (ODD, ODD)),
    OperatorEntry("add_channel", "Add", (IMAGE,), ((1, 16, 1, 1),)),
    OperatorEntry("mul_channel", "Mul", (IMAGE, (1, 16, 1, 1))),
    OperatorEntry("add_scalar", "Add", (IMAGE,), (_scalar(2),)),
    OperatorEntry("pow_2", "Pow", (IMAGE,), (_scalar(2),)),
    _unary("Softmax", (1, 1000), axis=1),
    OperatorEntry("softmax_rows", "Softmax", ((1, 4, 16, 16),), attributes={"axis": -1}),
    OperatorEntry("softmax_channels", "Softmax", (IMAGE,), attributes={"axis": 1}),
    _unary("LogSoftmax", (4, 100), axis=-1),
    OperatorEntry(
        "batchnormalization",
        "BatchNormalization",
        (IMAGE,),
        ((16,), (16,), (16,), np.linspace(0.5, 2.0, 16, dtype=np.float32)),
    ),
    OperatorEntry("layernormalization", "LayerNormalization", ((1, 16, 64),), ((64,), (64,)), attributes={"axis": -1}),
    OperatorEntry("layernormalization_image", "LayerNormalization", (IMAGE,), ((14,), (14,)), attributes={"axis": -1}),
    OperatorEntry("instancenormalization", "InstanceNormalization", (IMAGE,), ((16,), (16,))),
    OperatorEntry("lrn", "LRN", (IMAGE,), attributes={"size": 5}),
    _reduction("ReduceMean", IMAGE, 2, 3),
    _reduction("ReduceMean", IMAGE, 2, 3, keep=0),
    _reduction("ReduceMean", (1, 16, 64), 2),
    _reduction("ReduceSum", IMAGE, 1),
    _reduction("ReduceMax", IMAGE, 1),
    _reduction("ReduceMin", IMAGE, 3),
    _reduction("ReduceL2", IMAGE, 1),
    OperatorEntry("argmax_channels", "ArgMax", (IMAGE,), attributes={"axis": 1}),
    OperatorEntry("concat_channels", "Concat", (IMAGE, IMAGE), attributes={"axis": 1}),
    OperatorEntry("concat_odd_channels", "Concat", (ODD, ODD), attributes={"axis": 1}),
    OperatorEntry("concat_rows", "Concat", (IMAGE, IMAGE), attributes={"axis": 2}),
    OperatorEntry("split_channels", "Split", (IMAGE,), outputs=2, attributes={"axis": 1, "num_outputs": 2}),
    OperatorEntry("split_odd_channels", "Split", (ODD,), outputs=2, attributes={"axis": 1, "num_outputs": 2}),
    OperatorEntry("slice_channels", "Slice", (IMAGE,), (_ints(3), _ints(11), _ints(1))),
    OperatorEntry("slice_rows", "Slice", (IMAGE,), (_ints(1), _ints(9), _ints(2))),
    OperatorEntry("transpose_nhwc", "Transpose", (IMAGE,), attributes={"perm": [0, 2, 3, 1]}),
    OperatorEntry("transpose_rows", "Transpose", (IMAGE,), attributes={"perm": [0, 1, 3, 2]}),
    OperatorEntry("reshape_flat", "Reshape", (IMAGE,), (_ints(1, -1),)),
    OperatorEntry("reshape_shuffle", "Reshape", (IMAGE,), (_ints(1, 4, 4, 14, 14),)),
    OperatorEntry("flatten", "Flatten", (IMAGE,)),
    OperatorEntry("squeeze", "Squeeze", ((1, 16, 1, 1),), (_ints(2, 3),)),
    OperatorEntry("unsqueeze", "Unsqueeze", ((16, 14),), (_ints(0, 3),)),
    OperatorEntry("pad_zero", "Pad", (IMAGE,), (_ints(0, 0, 1, 1, 0, 0, 1, 1),)),
    OperatorEntry("pad_reflect", "Pad", (IMAGE,), (_ints(0, 0, 1, 1, 0, 0, 1, 1),), attributes={"mode": "reflect"}),
    OperatorEntry("expand", "Expand", ((1, 16, 1, 1),), (_ints(1, 16, 14, 14),)),
    OperatorEntry("tile", "Tile", ((1, 4, 3, 3),), (_ints(1, 2, 2, 1),)),
    OperatorEntry("gather_rows", "Gather", ((20, 16),), (_ints(3, 0, 19),), attributes={"axis": 0}),
    OperatorEntry("depthtospace", "DepthToSpace", (IMAGE,), attributes={"blocksize": 2}),
    OperatorEntry("spacetodepth", "SpaceToDepth", (IMAGE,), attributes={"blocksize": 2}),
    OperatorEntry("resize_nearest", "Resize", (IMAGE,), (None, _scales(1, 1, 2, 2)), attributes={"mode": "nearest"}),
    OperatorEntry("resize_linear", "Resize", (IMAGE,), (None, _scales(1, 1, 2, 2)), attributes={"mode": "linear"}),
    OperatorEntry(
        "resize_corners",
        "Resize",
        (IMAGE,),
        (None, None, _ints(1, 16, 27, 27)),
        attributes={"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    ),
    OperatorEntry("matmul_square", "MatMul", ((32, 32), (32, 32))),
    OperatorEntry("matmul_weight", "MatMul", ((1, 16, 64),), ((64, 48),)),
    OperatorEntry("matmul_vector", "MatMul", ((1, 256),), ((256, 100),)),
    OperatorEntry("matmul_batched", "MatMul", ((1, 4, 16, 8), (1, 4, 8, 16))),
    OperatorEntry("matmul_odd", "MatMul", ((7, 13), (13, 5))),
    OperatorEntry("gemm", "Gemm", ((1, 64),), ((64, 10), (10,))),
    OperatorEntry("gemm_transposed", "Gemm", ((4, 64),), ((10, 64), (10,)), attributes={"transB": 1}),
    OperatorEntry("gemm_large", "Gemm", ((1, 1024),), ((1000, 1024), (1000,)), attributes={"transB": 1}),
    OperatorEntry(
        "einsum_attention", "Einsum", ((1, 4, 16, 8), (1, 4, 16, 8)), attributes={"equation": "bhid,bhjd->bhij"}
    ),
)
