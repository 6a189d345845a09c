"""The golden cases of CLML: small Relax networks, and what TVM's own code generator made of each.

`CASES` says how each network is built; fixtures/clml/golden.json says, by the same names, what TVM emitted for it, and
fixtures/clml/README.md where that comes from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from places import FIXTURES

FILE = FIXTURES / "clml" / "golden.json"
IMAGE = (1, 4, 8, 8)
AROUND = [0, 0, 0, 0, 1, 1, 1, 1]
"""Pads an image by one on each side."""

Shape = tuple["int | str", ...]


@dataclass(frozen=True)
class GoldenCase:
    """One network. `seed` is that of its constants, which are drawn in the order in which the body needs them."""

    what: str
    body: Callable[..., Any]
    seed: int | None = None
    dtype: str = "float32"
    inputs: Mapping[str, Shape] = field(default_factory=lambda: {"x": IMAGE})


class Operators:
    """TVM's operators, loaded when the first one is used."""

    def __getattr__(self, name: str) -> Any:
        from tvm.relax import op as operators

        return getattr(operators, name)


op = Operators()


class Network:
    """The network under construction. Calling it emits one expression."""

    def __init__(self, case: GoldenCase) -> None:
        from tvm import relax

        self.builder = relax.BlockBuilder()
        self._dtype = case.dtype
        self._random = np.random.default_rng(case.seed)

    def __call__(self, expression: Any) -> Any:
        return self.builder.emit(expression)

    def const(self, *shape: int, low: float = -0.5, high: float = 0.5) -> Any:
        """A constant of random values."""
        return self.value(self._random.uniform(low, high, shape))

    def value(self, values: Any) -> Any:
        """A constant of these values."""
        from tvm import relax

        return relax.const(np.asarray(values).astype(self._dtype), self._dtype)

    def conv(self, x: Any, *weight: int, **attributes: Any) -> Any:
        """A convolution with a constant weight of this shape: outputs, inputs, height, width."""
        return self(op.nn.conv2d(x, self.const(*weight), **attributes))

    def bias(self, x: Any, channels: int) -> Any:
        """One constant added to each channel."""
        return self(op.add(x, self.const(1, channels, 1, 1)))

    def norm(self, x: Any, channels: int, **attributes: Any) -> Any:
        """Batch normalisation: its first result."""
        from tvm import relax

        gamma, beta = self.const(channels, low=0.5, high=1.5), self.const(channels)
        mean, variance = self.const(channels), self.const(channels, low=0.5, high=1.5)
        normalised = self(op.nn.batch_norm(x, gamma, beta, mean, variance, axis=1, **attributes))
        return self(relax.TupleGetItem(normalised, 0))

    def relu(self, x: Any) -> Any:
        """What is below zero becomes zero."""
        return self(op.nn.relu(x))

    def both(self, *results: Any) -> Any:
        """Several results in a tuple."""
        from tvm import relax

        return relax.Tuple(results)


def build(name: str) -> Any:
    """The case's module, new at each call, with the one function `main`."""
    from tvm import relax, tirx

    case = CASES[name]

    def variable(name: str, shape: Shape) -> Any:
        sizes = [tirx.Var(size, "int64") if isinstance(size, str) else size for size in shape]
        return relax.Var(name, relax.TensorType(sizes, case.dtype))

    network = Network(case)
    inputs = [variable(name, shape) for name, shape in case.inputs.items()]
    with network.builder.function("main", inputs):
        with network.builder.dataflow():
            result = network.builder.emit_output(case.body(network, *inputs))
        network.builder.emit_func_output(result)
    return network.builder.get()


def modules(name: str) -> list[dict[str, Any]]:
    """The modules that TVM made of the case: each with `symbol`, `graph`, `const_names` and `bytes_hex`."""
    found: list[dict[str, Any]] = _golden()[name]["modules"]
    return found


def facts(name: str) -> dict[str, Any]:
    """What TVM offloaded, and `error` where it failed; README.md lists the keys."""
    found: dict[str, Any] = _golden()[name]["facts"]
    return found


@cache
def _golden() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(FILE.read_text())
    return content


# Bodies of more than one line.


def args_reversed(n: Network, x: Any, z: Any) -> Any:
    a = n.relu(z)
    b = n(op.nn.max_pool2d(x, pool_size=3, strides=1, padding=1))
    return n(op.subtract(b, a))


def conv2d_bias_swapped(n: Network, x: Any) -> Any:
    y = n.conv(x, 6, 4, 3, 3, padding=1)
    return n(op.add(n.const(1, 6, 1, 1), y))


def conv2d_shared_weight(n: Network, x: Any) -> Any:
    w = n.const(4, 4, 3, 3)
    y = n(op.nn.conv2d(x, w, padding=1))
    return n(op.nn.conv2d(y, w, padding=1))


def diamond_outside(n: Network, x: Any) -> Any:
    a = n.relu(x)
    b = n(op.sigmoid(a))
    c = n(op.nn.max_pool2d(a, pool_size=3, strides=1, padding=1))
    return n(op.add(b, c))


def fire_module(n: Network, x: Any) -> Any:
    s = n.conv(x, 4, 16, 1, 1)
    s = n.bias(s, 4)
    s = n.relu(s)
    a = n.conv(s, 8, 4, 1, 1)
    a = n.bias(a, 8)
    a = n.relu(a)
    b = n.conv(s, 8, 4, 3, 3, padding=1)
    b = n.bias(b, 8)
    b = n.relu(b)
    y = n(op.concat([a, b], axis=1))
    return n(op.nn.max_pool2d(y, pool_size=3, strides=2))


def mobilenet_blocks_relu(n: Network, x: Any) -> Any:
    y = n.conv(x, 8, 1, 3, 3, padding=1, groups=8)
    y = n.norm(y, 8)
    y = n.relu(y)
    y = n.conv(y, 16, 8, 1, 1)
    y = n.norm(y, 16)
    y = n.relu(y)
    y = n.conv(y, 16, 1, 3, 3, padding=1, strides=2, groups=16)
    y = n.norm(y, 16)
    y = n.relu(y)
    y = n.conv(y, 24, 16, 1, 1)
    y = n.norm(y, 24)
    return n.relu(y)


def pad_conv2d_bias_bn_relu(n: Network, x: Any) -> Any:
    y = n(op.nn.pad(x, AROUND))
    y = n.conv(y, 6, 4, 3, 3)
    y = n.bias(y, 6)
    y = n.norm(y, 6)
    return n.relu(y)


def relu_chain(n: Network, x: Any, z: Any) -> Any:
    a = n.relu(x)
    b = n(op.add(a, z))
    return n(op.multiply(b, a))


def residual_block(n: Network, x: Any) -> Any:
    y = n.conv(x, 4, 4, 3, 3, padding=1)
    y = n.norm(y, 4)
    y = n.relu(y)
    y = n.conv(y, 4, 4, 3, 3, padding=1)
    y = n.norm(y, 4)
    y = n(op.add(y, x))
    return n.relu(y)


def residual_block_bias_f16(n: Network, x: Any) -> Any:
    y = n.conv(x, 4, 4, 3, 3, padding=1)
    y = n.bias(y, 4)
    y = n.relu(y)
    y = n.conv(y, 4, 4, 3, 3, padding=1)
    y = n.bias(y, 4)
    y = n(op.add(y, x))
    return n.relu(y)


def residual_downsample(n: Network, x: Any) -> Any:
    y = n.conv(x, 8, 4, 3, 3, padding=1, strides=2)
    y = n.norm(y, 8)
    y = n.relu(y)
    y = n.conv(y, 8, 8, 3, 3, padding=1)
    y = n.norm(y, 8)
    s = n.conv(x, 8, 4, 1, 1, strides=2)
    s = n.norm(s, 8)
    y = n(op.add(y, s))
    return n.relu(y)


def same_const_twice(n: Network, x: Any) -> Any:
    k = n.const(1, 4, 8, 8)
    a = n(op.multiply(x, k))
    return n(op.add(a, k))


def small_net(n: Network, x: Any) -> Any:
    y = n.conv(x, 8, 3, 3, 3, padding=1, strides=2)
    y = n.norm(y, 8)
    y = n.relu(y)
    y = n.conv(y, 8, 8, 3, 3, padding=1)
    y = n.norm(y, 8)
    a = n.relu(y)
    y = n.conv(a, 8, 8, 3, 3, padding=1)
    y = n.norm(y, 8)
    y = n.relu(y)
    y = n(op.add(y, a))
    y = n(op.mean(y, axis=[2, 3], keepdims=True))
    y = n(op.reshape(y, (1, 8)))
    y = n(op.matmul(y, n.const(8, 10)))
    y = n(op.add(y, n.const(1, 10)))
    return n(op.nn.softmax(y, axis=-1))


def two_outputs_independent(n: Network, x: Any, z: Any) -> Any:
    a = n.relu(x)
    b = n(op.nn.max_pool2d(z, pool_size=2, strides=2))
    return n.both(a, b)


def two_outputs_used_outside(n: Network, x: Any) -> Any:
    a = n.relu(x)
    b = n(op.nn.max_pool2d(a, pool_size=3, strides=1, padding=1))
    s = n(op.sigmoid(a))
    t = n(op.tanh(b))
    return n.both(s, t)


CASES: dict[str, GoldenCase] = {
    "adaptive_avg_pool2d": GoldenCase(
        "adaptive_avg_pool2d to 1x1", lambda n, x: n(op.nn.adaptive_avg_pool2d(x, (1, 1)))
    ),
    "add_1d": GoldenCase(
        "add of two 1-D arguments (1,)", lambda n, x, z: n(op.add(x, z)), inputs={"x": (1,), "z": (1,)}
    ),
    "add_batch2": GoldenCase(
        "add, batch 2", lambda n, x, z: n(op.add(x, z)), inputs={"x": (2, 4, 8, 8), "z": (2, 4, 8, 8)}
    ),
    "add_broadcast": GoldenCase("add that broadcasts (1,C,1,1)", lambda n, x: n.bias(x, 4), seed=1107),
    "add_f16": GoldenCase(
        "add of two 4-D arguments", lambda n, x, z: n(op.add(x, z)), dtype="float16", inputs={"x": IMAGE, "z": IMAGE}
    ),
    "add_self": GoldenCase("x + x", lambda n, x: n(op.add(x, x))),
    "args_reversed": GoldenCase("second argument is used first", args_reversed, inputs={"x": IMAGE, "z": IMAGE}),
    "avg_pool2d_f16": GoldenCase(
        "avg_pool2d 2x2 stride 2", lambda n, x: n(op.nn.avg_pool2d(x, pool_size=2, strides=2)), dtype="float16"
    ),
    "batch_norm": GoldenCase("batch_norm alone", lambda n, x: n.norm(x, 4), seed=1086),
    "batch_norm_batch2": GoldenCase(
        "batch_norm alone, batch 2", lambda n, x: n.norm(x, 4), seed=1090, inputs={"x": (2, 4, 8, 8)}
    ),
    "batch_norm_eval": GoldenCase(
        "batch_norm(training=False) alone", lambda n, x: n.norm(x, 4, training=False), seed=1130
    ),
    "batch_norm_relu": GoldenCase("batch_norm + relu", lambda n, x: n.relu(n.norm(x, 4)), seed=1089),
    "clip": GoldenCase("clip(0, 6)", lambda n, x: n(op.clip(x, 0, 6))),
    "const_add": GoldenCase("constant on the left", lambda n, x: n(op.subtract(n.const(1, 4, 8, 8), x)), seed=1106),
    "conv2d": GoldenCase("plain 3x3 convolution, padding 1", lambda n, x: n.conv(x, 6, 4, 3, 3, padding=1), seed=1000),
    "conv2d_add_fullconst": GoldenCase(
        "convolution + constant of the full output shape",
        lambda n, x: n(op.add(n.conv(x, 6, 4, 3, 3, padding=1), n.const(1, 6, 8, 8))),
        seed=1010,
    ),
    "conv2d_add_scalar": GoldenCase(
        "convolution + scalar constant",
        lambda n, x: n(op.add(n.conv(x, 6, 4, 3, 3, padding=1), n.value(0.25))),
        seed=1009,
    ),
    "conv2d_asym_pad": GoldenCase(
        "padding (0,1,2,3) = top, left, bottom, right",
        lambda n, x: n.conv(x, 6, 4, 3, 3, padding=(0, 1, 2, 3)),
        seed=1033,
    ),
    "conv2d_batch2": GoldenCase(
        "batch 2", lambda n, x: n.relu(n.conv(x, 6, 4, 3, 3, padding=1)), seed=1038, inputs={"x": (2, 4, 8, 8)}
    ),
    "conv2d_bias_bn_eps_noscale": GoldenCase(
        "convolution + bias + batch_norm(epsilon 2e-4, scale=False, momentum 0.3)",
        lambda n, x: n.norm(n.bias(n.conv(x, 6, 4, 3, 3, padding=1), 6), 6, epsilon=0.0002, scale=False, momentum=0.3),
        seed=1021,
    ),
    "conv2d_bias_c11": GoldenCase(
        "bias of shape (C,1,1)", lambda n, x: n(op.add(n.conv(x, 6, 4, 3, 3, padding=1), n.const(6, 1, 1))), seed=1128
    ),
    "conv2d_bias_f16": GoldenCase(
        "convolution + (1,C,1,1) bias",
        lambda n, x: n.bias(n.conv(x, 6, 4, 3, 3, padding=1), 6),
        seed=1004,
        dtype="float16",
    ),
    "conv2d_bias_relu_f16": GoldenCase(
        "convolution + bias + relu",
        lambda n, x: n.relu(n.bias(n.conv(x, 6, 4, 3, 3, padding=1), 6)),
        seed=1006,
        dtype="float16",
    ),
    "conv2d_bias_swapped": GoldenCase("bias on the left of the add", conv2d_bias_swapped, seed=1007),
    "conv2d_bn": GoldenCase(
        "convolution + batch_norm", lambda n, x: n.norm(n.conv(x, 6, 4, 3, 3, padding=1), 6), seed=1015
    ),
    "conv2d_bn_eval": GoldenCase(
        "convolution + batch_norm(training=False)",
        lambda n, x: n.norm(n.conv(x, 6, 4, 3, 3, padding=1), 6, training=False),
        seed=1129,
    ),
    "conv2d_bn_relu": GoldenCase(
        "convolution + batch_norm + relu", lambda n, x: n.relu(n.norm(n.conv(x, 6, 4, 3, 3, padding=1), 6)), seed=1017
    ),
    "conv2d_bn_relu_f16": GoldenCase(
        "convolution + batch_norm + relu",
        lambda n, x: n.relu(n.norm(n.conv(x, 6, 4, 3, 3, padding=1), 6)),
        seed=1018,
        dtype="float16",
    ),
    "conv2d_clip": GoldenCase(
        "convolution + clip(0, 6)", lambda n, x: n(op.clip(n.conv(x, 6, 4, 3, 3, padding=1), 0, 6)), seed=1014
    ),
    "conv2d_depthwise_bn_relu6": GoldenCase(
        "depthwise + batch_norm + clip(0,6)",
        lambda n, x: n(op.clip(n.norm(n.conv(x, 4, 1, 3, 3, padding=1, groups=4), 4), 0, 6)),
        seed=1037,
    ),
    "conv2d_depthwise_f16": GoldenCase(
        "depthwise (groups = channels)",
        lambda n, x: n.conv(x, 4, 1, 3, 3, padding=1, groups=4),
        seed=1036,
        dtype="float16",
    ),
    "conv2d_dynamic_batch": GoldenCase(
        "symbolic batch", lambda n, x: n.relu(n.conv(x, 6, 4, 3, 3, padding=1)), seed=1132, inputs={"x": ("n", 4, 8, 8)}
    ),
    "conv2d_f16": GoldenCase(
        "plain 3x3 convolution, padding 1", lambda n, x: n.conv(x, 6, 4, 3, 3, padding=1), seed=1001, dtype="float16"
    ),
    "conv2d_grouped": GoldenCase("groups=2", lambda n, x: n.conv(x, 6, 2, 3, 3, padding=1, groups=2), seed=1034),
    "conv2d_nopad_1x1": GoldenCase("1x1 convolution without padding", lambda n, x: n.conv(x, 6, 4, 1, 1), seed=1002),
    "conv2d_relu": GoldenCase("convolution + relu", lambda n, x: n.relu(n.conv(x, 6, 4, 3, 3, padding=1)), seed=1012),
    "conv2d_relu_f16": GoldenCase(
        "convolution + relu", lambda n, x: n.relu(n.conv(x, 6, 4, 3, 3, padding=1)), seed=1013, dtype="float16"
    ),
    "conv2d_shared_weight": GoldenCase("two convolutions share one weight constant", conv2d_shared_weight, seed=1042),
    "conv2d_stride_hw": GoldenCase(
        "strides (2,1), kernel 3x5", lambda n, x: n.conv(x, 6, 4, 3, 5, padding=(1, 2), strides=(2, 1)), seed=1031
    ),
    "conv2d_transpose": GoldenCase(
        "transposed convolution, stride 2 (weight declared IOHW)",
        lambda n, x: n(op.nn.conv2d_transpose(x, n.const(4, 6, 3, 3), strides=2, padding=1)),
        seed=1045,
    ),
    "conv2d_transpose_bn_relu": GoldenCase(
        "transposed convolution OIHW + batch_norm + relu",
        lambda n, x: n.relu(
            n.norm(n(op.nn.conv2d_transpose(x, n.const(6, 4, 3, 3), strides=2, padding=1, kernel_layout="OIHW")), 6)
        ),
        seed=1049,
    ),
    "conv2d_transpose_oihw": GoldenCase(
        "transposed convolution, weight declared OIHW",
        lambda n, x: n(op.nn.conv2d_transpose(x, n.const(6, 4, 3, 3), strides=2, padding=1, kernel_layout="OIHW")),
        seed=1047,
    ),
    "conv2d_weight_input": GoldenCase(
        "weight is a function argument, not a constant",
        lambda n, x, w: n.relu(n(op.nn.conv2d(x, w, padding=1))),
        inputs={"x": IMAGE, "w": (6, 4, 3, 3)},
    ),
    "diamond_outside": GoldenCase(
        "a diamond with one arm outside (sigmoid): the partition must split", diamond_outside
    ),
    "divide_f16": GoldenCase(
        "divide of two 4-D arguments",
        lambda n, x, z: n(op.divide(x, z)),
        dtype="float16",
        inputs={"x": IMAGE, "z": IMAGE},
    ),
    "fire_module": GoldenCase("SqueezeNet fire module (concat)", fire_module, seed=1127, inputs={"x": (1, 16, 8, 8)}),
    "matmul": GoldenCase(
        "matmul of two arguments", lambda n, x, z: n(op.matmul(x, z)), inputs={"x": (1, 4, 8), "z": (1, 8, 5)}
    ),
    "max_pool2d_batch2": GoldenCase(
        "max_pool2d, batch 2", lambda n, x: n(op.nn.max_pool2d(x, pool_size=2, strides=2)), inputs={"x": (2, 4, 8, 8)}
    ),
    "max_pool2d_dilation": GoldenCase(
        "max_pool2d with dilation 2", lambda n, x: n(op.nn.max_pool2d(x, pool_size=2, strides=1, dilation=2))
    ),
    "max_pool2d_nhwc": GoldenCase(
        "max_pool2d with layout NHWC",
        lambda n, x: n(op.nn.max_pool2d(x, pool_size=2, strides=2, layout="NHWC")),
        inputs={"x": (1, 8, 8, 4)},
    ),
    "maximum": GoldenCase(
        "maximum of two 4-D arguments", lambda n, x, z: n(op.maximum(x, z)), inputs={"x": IMAGE, "z": IMAGE}
    ),
    "maximum_f16": GoldenCase(
        "maximum of two 4-D arguments",
        lambda n, x, z: n(op.maximum(x, z)),
        dtype="float16",
        inputs={"x": IMAGE, "z": IMAGE},
    ),
    "mean_keepdims": GoldenCase("mean over (2,3), keepdims", lambda n, x: n(op.mean(x, axis=[2, 3], keepdims=True))),
    "mean_negaxis": GoldenCase("mean over (-2,-1)", lambda n, x: n(op.mean(x, axis=[-2, -1], keepdims=True))),
    "mean_nokeepdims": GoldenCase(
        "mean over (2,3), no keepdims", lambda n, x: n(op.mean(x, axis=[2, 3], keepdims=False))
    ),
    "minimum_f16": GoldenCase(
        "minimum of two 4-D arguments",
        lambda n, x, z: n(op.minimum(x, z)),
        dtype="float16",
        inputs={"x": IMAGE, "z": IMAGE},
    ),
    "mobilenet_blocks_relu": GoldenCase(
        "two MobileNet blocks with relu", mobilenet_blocks_relu, seed=1126, inputs={"x": (1, 8, 16, 16)}
    ),
    "multiply": GoldenCase(
        "multiply of two 4-D arguments", lambda n, x, z: n(op.multiply(x, z)), inputs={"x": IMAGE, "z": IMAGE}
    ),
    "multiply_scalar": GoldenCase("multiply by a scalar constant", lambda n, x: n(op.multiply(x, n.value(2.0)))),
    "pad_conv2d": GoldenCase(
        "nn.pad (top 1, bottom 2, left 3, right 0) + convolution",
        lambda n, x: n.conv(n(op.nn.pad(x, [0, 0, 0, 0, 1, 2, 3, 0])), 6, 4, 3, 3),
        seed=1022,
    ),
    "pad_conv2d_bias_bn_relu": GoldenCase(
        "nn.pad + convolution + bias + batch_norm + relu", pad_conv2d_bias_bn_relu, seed=1028
    ),
    "pad_conv2d_both": GoldenCase(
        "nn.pad + convolution that has padding of its own",
        lambda n, x: n.conv(n(op.nn.pad(x, AROUND)), 6, 4, 3, 3, padding=1),
        seed=1024,
    ),
    "pad_conv2d_reflect": GoldenCase(
        "nn.pad reflect + convolution",
        lambda n, x: n.conv(n(op.nn.pad(x, AROUND, pad_mode="reflect")), 6, 4, 3, 3),
        seed=1026,
    ),
    "pad_conv2d_transpose": GoldenCase(
        "nn.pad + transposed convolution OIHW",
        lambda n, x: n(
            op.nn.conv2d_transpose(n(op.nn.pad(x, AROUND)), n.const(6, 4, 3, 3), strides=2, kernel_layout="OIHW")
        ),
        seed=1050,
    ),
    "relu": GoldenCase("relu on 4-D", lambda n, x: n.relu(x)),
    "relu_batch2": GoldenCase("relu, batch 2", lambda n, x: n.relu(x), inputs={"x": (2, 4, 8, 8)}),
    "relu_chain": GoldenCase("relu, add, multiply in one partition", relu_chain, inputs={"x": IMAGE, "z": IMAGE}),
    "relu_f16": GoldenCase("relu on 4-D", lambda n, x: n.relu(x), dtype="float16"),
    "reshape_batch2": GoldenCase(
        "reshape with batch 2", lambda n, x: n(op.reshape(x, (2, 256))), inputs={"x": (2, 4, 8, 8)}
    ),
    "reshape_f16": GoldenCase("reshape to 2-D", lambda n, x: n(op.reshape(x, (1, 256))), dtype="float16"),
    "reshape_minus1": GoldenCase("reshape (1, -1)", lambda n, x: n(op.reshape(x, (1, -1)))),
    "residual_block": GoldenCase("conv-bn-relu, conv-bn, + x, relu", residual_block, seed=1115),
    "residual_block_bias_f16": GoldenCase(
        "residual block with biases instead of batch_norm", residual_block_bias_f16, seed=1136, dtype="float16"
    ),
    "residual_downsample": GoldenCase(
        "two-branch residual block with a 1x1 stride-2 shortcut", residual_downsample, seed=1117
    ),
    "same_const_twice": GoldenCase(
        "one constant in two binary operators of one partition", same_const_twice, seed=1139
    ),
    "small_net": GoldenCase(
        "conv-bn-relu x3, residual, global pool, reshape, matmul, add, softmax",
        small_net,
        seed=1123,
        inputs={"x": (1, 3, 16, 16)},
    ),
    "softmax_2d": GoldenCase(
        "softmax over the last axis of (1, 10)", lambda n, x: n(op.nn.softmax(x, axis=-1)), inputs={"x": (1, 10)}
    ),
    "softmax_2d_f16": GoldenCase(
        "softmax over the last axis of (1, 10)",
        lambda n, x: n(op.nn.softmax(x, axis=-1)),
        dtype="float16",
        inputs={"x": (1, 10)},
    ),
    "softmax_4d_c": GoldenCase("softmax on 4-D, axis=1", lambda n, x: n(op.nn.softmax(x, axis=1))),
    "softmax_4d_last": GoldenCase("softmax on 4-D, axis=-1", lambda n, x: n(op.nn.softmax(x, axis=-1))),
    "split_partition": GoldenCase(
        "offloaded, not offloaded (sigmoid), offloaded", lambda n, x: n.relu(n(op.sigmoid(n.relu(x))))
    ),
    "subtract": GoldenCase(
        "subtract of two 4-D arguments", lambda n, x, z: n(op.subtract(x, z)), inputs={"x": IMAGE, "z": IMAGE}
    ),
    "two_consts": GoldenCase(
        "two same-shape constants in one partition",
        lambda n, x: n(op.add(n(op.multiply(x, n.const(1, 4, 8, 8))), n.const(1, 4, 8, 8))),
        seed=1138,
    ),
    "two_outputs_independent": GoldenCase(
        "two outputs of independent branches", two_outputs_independent, inputs={"x": IMAGE, "z": IMAGE}
    ),
    "two_outputs_used_outside": GoldenCase(
        "inner value also used by an op that is not offloaded", two_outputs_used_outside
    ),
}
