"""Every path computes the right answer on an OpenCL device, and without its workarounds the wrong one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from compile_once import SEED, truth, unless_large, zoo_compiled, zoo_truth
from compile_requests import request_for
from onnx import TensorProto, helper
from small_networks import network, values

from device_runner.runtimes import opencl as opencl_runtime
from harness.base.failures import CompileFailure
from harness.base.suite import load_suite
from harness.compile.artifacts.artifact import CompileResult
from harness.compile.artifacts.compile import compile_model
from harness.compile.models.preparation import prepare
from harness.compile.models.spec import InputSpec, seeded_inputs
from harness.compile.quirks import fusions
from harness.tools.zoo.graph import Value
from harness.tools.zoo.graph_layers import ImageGraph

pytestmark = pytest.mark.device

DEFAULT_SUITE = Path(__file__).parents[2] / "adreno-bench.toml"

Answers = list[np.ndarray[Any, Any]]
Answer = Callable[..., Answers]


def small() -> bytes:
    """Two convolutions with a max pool between them, all in images on the texture path."""
    net = ImageGraph("small", (1, 8, 8, 8))
    x = net.max_pool(net.relu(net.conv(net.input, 8, 3, pad=1)), 3, stride=2, pad=1)
    return net.finish((net.conv(x, 8, 3, pad=1), (1, 8, 4, 4))).to_bytes()


def averaged() -> bytes:
    """Two convolutions with an average pool between them, as DenseNet has them, all in images on the texture path."""
    net = ImageGraph("averaged", (1, 8, 8, 8))
    x = net.average_pool(net.conv(net.input, 8, 3, pad=1), 2, stride=2)
    return net.finish((net.conv(x, 8, 3, pad=1), (1, 8, 4, 4))).to_bytes()


def pooled_into_a_smaller_image() -> bytes:
    """Two convolutions with a max pool between them, after which TVM wants another layout of the image."""
    net = ImageGraph("pooled", (1, 8, 128, 128))
    x = net.max_pool(net.conv(net.input, 8, 3, pad=1), 2, stride=2)
    return net.finish((net.conv(x, 8, 3, pad=1), (1, 8, 64, 64))).to_bytes()


def convolved_with_a_sum() -> bytes:
    """Two convolutions that TVM makes one function of: its input is in a buffer here and in an image there."""
    net = ImageGraph("sums", (1, 8, 8, 8))
    first = net.conv(net.input, 8, 3, pad=1, bias=False)
    both = (first, net.add(net.input, first))
    return net.finish(*((net.conv(one, 8, 3, pad=1, bias=False), (1, 8, 8, 8)) for one in both)).to_bytes()


def grouped() -> bytes:
    """A 1x1 convolution in two groups and an activation: what makes ShuffleNet go wrong, as small as can be."""
    net = ImageGraph("grouped", (1, 8, 8, 8))
    return net.finish((net.relu(net.conv(net.input, 8, 1, groups=2)), (1, 8, 8, 8))).to_bytes()


class Layers(ImageGraph):
    """Operators that networks of the zoo lack."""

    def __init__(self, side: int = 8) -> None:
        super().__init__("layers", (1, 8, side, side))
        self.shape = (1, 8, side, side)

    def op(self, kind: str, *values: Value | Any, **attributes: Any) -> Value:
        """An operator of values and constants."""
        names = [value.name if isinstance(value, Value) else self._constant(value) for value in values]
        return self._add(kind, names, values[0].channels, **attributes)

    def silu(self, x: Value) -> Value:
        return self.multiply(x, self.op("Sigmoid", x))

    def gelu(self, x: Value) -> Value:
        erf = self.op("Erf", self.op("Mul", x, np.float32(0.5**0.5)))
        return self.op("Mul", self.multiply(x, self.op("Add", erf, np.float32(1))), np.float32(0.5))

    def ended(self, x: Value) -> bytes:
        return self.finish((self.conv(x, 8, 3, pad=1), self.shape)).to_bytes()


def activated(name: str) -> bytes:
    """A convolution with a bias, an activation that reads it twice, and another convolution."""
    net = Layers()
    conv = net.conv(net.input, 8, 3, pad=1)
    made: dict[str, Callable[[Value], Value]] = {
        "silu": net.silu,
        "silu of silu": lambda x: net.silu(net.op("Add", net.silu(x), np.float32(1))),
        "gelu": net.gelu,
        "elu": lambda x: net.op("Elu", x),
        "relu and sum": lambda x: net.add(net.relu(x), x),
    }
    return net.ended(made[name](conv))


def gelu_without_bias() -> bytes:
    net = Layers()
    return net.ended(net.gelu(net.conv(net.input, 8, 3, pad=1, bias=False)))


def pooled_and_activated() -> bytes:
    """A max pool that an activation reads twice."""
    net = Layers(16)
    net.shape = (1, 8, 8, 8)
    return net.ended(net.silu(net.max_pool(net.conv(net.input, 8, 3, pad=1), 2, stride=2)))


def squeezed() -> bytes:
    """Squeeze and excitation: the result of a convolution of one pixel is spread over an image."""
    net = Layers()
    conv = net.relu(net.conv(net.input, 8, 3, pad=1))
    gate = net.op("Sigmoid", net.conv(net.global_average_pool(conv), 8, 1))
    return net.ended(net.multiply(conv, gate))


def residual() -> bytes:
    """A 1x1 convolution and its own input, as exporters leave a residual block when they fold batch norms."""
    net = Layers()
    conv = net.conv(net.input, 8, 3, pad=1)
    return net.ended(net.add(net.conv(conv, 8, 1), conv))


def split(parts: tuple[int, ...]) -> bytes:
    """Channels of a convolution, split, each part convolved and all concatenated."""
    net = Layers()
    conv = net.conv(net.input, sum(parts), 3, pad=1)
    names = [f"part_{number}" for number in range(len(parts))]
    sizes = net._constant(np.array(parts))
    net._nodes.append(helper.make_node("Split", [conv.name, sizes], names, name="split", axis=1))
    convs = [net.conv(Value(name, size), 8, 3, pad=1) for name, size in zip(names, parts, strict=True)]
    return net.ended(net.concat(*convs))


def scattered() -> bytes:
    net = Layers()
    conv = net.conv(net.input, 8, 3, pad=1)
    where = np.tile(np.arange(8)[::-1].reshape(1, 8, 1, 1), (1, 1, 8, 8))
    return net.ended(net.op("ScatterElements", conv, where, net.conv(net.input, 8, 3, pad=1), axis=1))


def padded() -> bytes:
    """A convolution, and a padding as exporters write it for `SAME_UPPER`."""
    net = Layers(40)
    pads = np.array([0, 0, 0, 0, 0, 0, 1, 1])
    conv = net.op("Pad", net.relu(net.conv(net.input, 8, 3, pad=1)), pads)
    net.shape = (1, 8, 40, 40)
    return net.finish((net.conv(conv, 8, 2), net.shape)).to_bytes()


def padded_depthwise() -> bytes:
    """A depthwise convolution, and a padding at the end of the rows and columns."""
    net = Layers()
    conv = net.op("Pad", net.relu(net.conv(net.input, 8, 3, groups=8)), np.array([0, 0, 0, 0, 0, 0, 3, 3]))
    return net.finish((net.conv(conv, 8, 2), net.shape)).to_bytes()


def first_mean() -> bytes:
    """A convolution, and the mean of its rows, of which the first channel is taken."""
    net = Layers()
    mean = net.op("ReduceMean", net.conv(net.input, 8, 3, pad=1), axes=[3], keepdims=0)
    first = net.op("Slice", mean, np.array([0]), np.array([1]), np.array([1]))
    return net.finish((first, (1, 1, 8))).to_bytes()


def repeated() -> bytes:
    """Twelve SiLU, of which each reads the one before it twice."""
    names, nodes = ["x", *(f"m{step}" for step in range(11)), "y"], list[Any]()
    for step, (before, after) in enumerate(pairwise(names)):
        nodes.append(helper.make_node("Sigmoid", [before], [f"s{step}"]))
        nodes.append(helper.make_node("Mul", [before, f"s{step}"], [after]))
    return bytes(network(nodes, {"x": [1, 4, 8, 8]}).SerializeToString())


def chosen_by_choices() -> bytes:
    """Six choices, of which each reads the one before it three times, once in its condition."""
    names, nodes = ["x", *(f"y{step}" for step in range(5)), "y"], list[Any]()
    limits = {f"limit{step}": np.float32(step / 10) for step in range(6)}
    for step, (before, after) in enumerate(pairwise(names)):
        nodes.append(helper.make_node("Less", [before, f"limit{step}"], [f"less{step}"]))
        nodes.append(helper.make_node("Add", [before, f"limit{step}"], [f"more{step}"]))
        nodes.append(helper.make_node("Where", [f"less{step}", f"more{step}", before], [after]))
    return bytes(network(nodes, {"x": [1, 4, 8, 8]}, **limits).SerializeToString())


def boxes() -> bytes:
    """An input that is as large as a packed one."""
    nodes = [helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("Sigmoid", ["t"], ["y"])]
    return bytes(network(nodes, {"x": [1, 3, 2, 2, 4]}).SerializeToString())


def numbers_without_texels(kind: int) -> bytes:
    """An input and a constant that are as large as a packed one, of numbers of which no image has four in a texel."""
    operator = "Xor" if kind == TensorProto.BOOL else "Add"
    nodes = [
        helper.make_node(operator, ["x", "odd"], ["sum"]),
        helper.make_node("Cast", ["sum"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Sigmoid", ["real"], ["y"]),
    ]
    odd = (np.arange(48) % 2).reshape(1, 3, 2, 2, 4).astype(helper.tensor_dtype_to_np_dtype(kind))
    return bytes(network(nodes, {"x": [1, 3, 2, 2, 4]}, ["y", "sum"], dtype=kind, odd=odd).SerializeToString())


def of_zeros(*nodes: Any, outputs: Sequence[str] = ("y",)) -> bytes:
    """Operators of a tensor whose second channel is zeros alone, `some`, and of zeros alone, `none`."""
    products = [helper.make_node("Mul", ["x", "on"], ["some"]), helper.make_node("Mul", ["x", "zero"], ["none"])]
    on = np.array([1, 0, 1], np.float32).reshape(1, 3, 1, 1)
    model = network([*products, *nodes], {"x": [1, 3, 5, 4]}, outputs, on=on, zero=np.float32(0))
    prepare(model)
    return bytes(model.SerializeToString())


def ragged() -> bytes:
    """A padding whose rows end within a texel, which two operators read."""
    nodes = [
        helper.make_node("Pad", ["x", "pads"], ["wide"]),
        helper.make_node("Reshape", ["wide", "shape"], ["packed"]),
        helper.make_node("GlobalAveragePool", ["packed"], ["mean"]),
        helper.make_node("Sub", ["packed", "mean"], ["y"]),
    ]
    pads, shape = np.array([0, 0, 0, 0, 0, 0, 2, 3]), np.array([1, 8, 3, 5, 4])
    return bytes(network(nodes, {"x": [2, 4, 4, 7]}, pads=pads, shape=shape).SerializeToString())


def rearranged(kind: str, *names: str, width: int = 4, perm: Sequence[int] = (), **operands: Any) -> bytes:
    """An operator that takes the four numbers of a texel from elsewhere. Two operators read its result."""
    attributes = {"perm": perm} if perm else {"axis": 4} if kind == "ScatterElements" else {}
    nodes = [
        helper.make_node("Tanh", ["x"], ["tanh"]),
        helper.make_node(kind, names or ["x", *operands], ["other"], **attributes),
        helper.make_node("Relu", ["other"], ["y"]),
        helper.make_node("Sigmoid", ["other"], ["z"]),
    ]
    return bytes(network(nodes, {"x": [1, 3, 4, 4, width]}, ["y", "z"], **operands).SerializeToString())


REARRANGED = {
    "from the last": lambda: rearranged("Slice", begin=[-1], end=[-9], axis=[4], step=[-1]),
    "columns for rows": lambda: rearranged("Transpose", perm=[0, 1, 2, 4, 3]),
    "one in place of four": lambda: rearranged("Expand", width=1, shape=[1, 3, 4, 4, 4]),
    "in other rows": lambda: rearranged("Reshape", shape=[3, 1, 4, 4, 4]),
    "by a mask": lambda: rearranged("Where", "mask", "x", "one", mask=[True, False, True, True], one=np.float32(1)),
    "scattered": lambda: rearranged("ScatterElements", "tanh", "to", "x", to=np.full((1, 3, 4, 4, 4), [2, 0, 3, 1])),
}
"""Volumes four wide, which TVM takes for images."""


def behind_a_mean(axes: Sequence[int], *nodes: onnx.NodeProto, **operands: Any) -> bytes:
    """Operators that read `m`, the mean of a convolution over axes that go, and give `y`."""
    conv = helper.make_node("Conv", ["x", "weight"], ["image"], pads=[1, 1, 1, 1])
    mean = helper.make_node("ReduceMean", ["image"], ["m"], axes=axes, keepdims=0)
    model = network([conv, mean, *nodes], {"x": [1, 4, 5, 6]}, weight=values(8, 4, 3, 3), **operands)
    return bytes(model.SerializeToString())


LENGTH = helper.make_node("ReduceL2", ["m"], ["length"], axes=[1])
BEHIND_MEANS = {
    "1-D convolution": lambda: behind_a_mean([2], helper.make_node("Conv", ["m", "w"], ["y"]), w=values(5, 8, 3)),
    "1-D pool": lambda: behind_a_mean([3], helper.make_node("MaxPool", ["m"], ["y"], kernel_shape=[2])),
    "maximum over channels": lambda: behind_a_mean([2], helper.make_node("ReduceMax", ["m"], ["y"], axes=[1])),
    "embedding of length 1": lambda: behind_a_mean([2, 3], LENGTH, helper.make_node("Div", ["m", "length"], ["y"])),
}


def gated_volume() -> bytes:
    """A convolution in three directions, which is multiplied by its scaled input. Two operators read the product."""
    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["scaled"]),
        helper.make_node("Conv", ["x", "weight"], ["conv"], pads=[1, 1, 1, 1, 1, 1]),
        helper.make_node("Mul", ["conv", "scaled"], ["product"]),
        helper.make_node("GlobalAveragePool", ["product"], ["mean"]),
        helper.make_node("Sub", ["product", "mean"], ["y"]),
    ]
    scale, weight = values(4, 1, 1, 1), values(4, 4, 3, 3, 3)
    return bytes(network(nodes, {"x": [1, 4, 3, 2, 4]}, scale=scale, weight=weight).SerializeToString())


def normalised_volume() -> bytes:
    """An instance normalisation of five axes, the last of which is 4, and a mean of its channels, which is subtracted.

    Two operators read each result.
    """
    nodes = [
        helper.make_node("InstanceNormalization", ["x", "scale", "bias"], ["first"]),
        helper.make_node("InstanceNormalization", ["first", "scale", "bias"], ["second"]),
        helper.make_node("ReduceMean", ["second"], ["mean"], axes=[1]),
        helper.make_node("Sub", ["second", "mean"], ["centred"]),
        helper.make_node("GlobalMaxPool", ["centred"], ["largest"]),
        helper.make_node("Add", ["centred", "largest"], ["y"]),
    ]
    model = network(nodes, {"x": [1, 4, 3, 2, 4]}, scale=values(4), bias=values(4, seed=1))
    return bytes(model.SerializeToString())


def places_of_least() -> bytes:
    """Which channel of a volume four wide has the least number, which two operators read."""
    nodes = [
        helper.make_node("ArgMin", ["x"], ["place"], axis=1),
        helper.make_node("Cast", ["place"], ["number"], to=TensorProto.FLOAT),
        helper.make_node("GlobalAveragePool", ["number"], ["mean"]),
        helper.make_node("Sub", ["number", "mean"], ["y"]),
    ]
    return bytes(network(nodes, {"x": [1, 5, 3, 2, 4]}).SerializeToString())


def chosen_in_texels() -> bytes:
    """A choice by a comparison of four numbers in a row, which two operators read."""
    nodes = [
        helper.make_node("Less", ["x", "zero"], ["below"]),
        helper.make_node("Where", ["below", "on", "off"], ["chosen"]),
        helper.make_node("GlobalAveragePool", ["chosen"], ["mean"]),
        helper.make_node("Sub", ["chosen", "mean"], ["y"]),
    ]
    numbers = {"zero": np.float32(0), "on": np.float32(3), "off": np.float32(1)}
    return bytes(network(nodes, {"x": [1, 3, 2, 2, 4]}, **numbers).SerializeToString())


def one_number() -> bytes:
    """Texels of one number each, known once TVM has put `x - max(x)` together. Two operators read them."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["one"], axis=0),
        helper.make_node("Relu", ["one"], ["y"]),
        helper.make_node("Sigmoid", ["one"], ["z"]),
    ]
    return bytes(network(nodes, {"x": [1, 3, 4, 4, 4]}, ["y", "z"]).SerializeToString())


def squares_both_ways() -> bytes:
    """The length of columns to which the reversed ones were added: a reduction that reads four texels at a time."""
    nodes = [
        *(helper.make_node("Tanh", ["x"], ["tanh"]), helper.make_node("Reshape", ["tanh", "last"], ["flat"])),
        helper.make_node("Slice", ["flat", "last", "beyond", "axis", "last"], ["reversed"]),
        *(
            helper.make_node("Reshape", ["reversed", "whole"], ["back"]),
            helper.make_node("Add", ["tanh", "back"], ["sum"]),
        ),
        helper.make_node("ReduceL2", ["sum"], ["y"], axes=[3]),
    ]
    shape = [1, 3, 4, 4, 4]
    net = network(nodes, {"x": shape}, last=[-1], beyond=[-193], axis=[0], whole=shape)
    return bytes(net.SerializeToString())


def classes_of_five() -> bytes:
    """One of four for each of five numbers, whose rows are no texels, and which two operators read."""
    nodes = [
        helper.make_node("Mul", ["x", "three"], ["number"]),
        helper.make_node("Cast", ["number"], ["whole"], to=TensorProto.INT64),
        helper.make_node("OneHot", ["whole", "depth", "values"], ["one"]),
        helper.make_node("Relu", ["one"], ["y"]),
        helper.make_node("Sigmoid", ["one"], ["z"]),
    ]
    operands = {"three": np.float32(3), "depth": np.array(4), "values": np.array([0.5, 1], np.float32)}
    model = network(nodes, {"x": [1, 1, 2, 5]}, ["y", "z"], **operands)
    prepare(model)
    return bytes(model.SerializeToString())


def running_sum() -> bytes:
    """A running sum, whose terms are five axes, the last of which is 4."""
    return prepared(helper.make_node("CumSum", ["x", "axis"], ["y"]), [2, 3, 4, 4], axis=np.array(2))


def ranks() -> bytes:
    """The three largest of six, by ranks in 64 bits of five axes, the last of which is 4."""
    return prepared(helper.make_node("TopK", ["x", "k"], ["y", "places"], axis=1), [2, 6, 5, 4], k=np.array([3]))


def prepared(node: Any, shape: list[int], **operands: Any) -> bytes:
    model = network([node], {"x": shape}, **operands)
    prepare(model)
    return bytes(model.SerializeToString())


def chosen() -> bytes:
    """A choice by a comparison of a convolution's result, between two convolutions."""
    net = Layers()
    conv = net.conv(net.input, 8, 3, pad=1)
    choice = net.op("Where", net.op("Greater", conv, np.float32(0)), conv, net.op("Mul", conv, conv))
    return net.finish((net.conv(choice, 8, 3, pad=1), net.shape)).to_bytes()


def masked() -> bytes:
    """A comparison of a convolution's result as numbers, between two convolutions."""
    net = Layers()
    above = net.op("Greater", net.conv(net.input, 8, 3, pad=1), np.float32(0))
    return net.finish((net.conv(net.op("Cast", above, to=1), 8, 3, pad=1), net.shape)).to_bytes()


def present() -> bytes:
    """Which numbers of a convolution's result are not 0, between two convolutions."""
    net = Layers()
    there = net.op("Cast", net.op("Relu", net.conv(net.input, 8, 3, pad=1)), to=9)
    return net.finish((net.conv(net.op("Cast", there, to=1), 8, 3, pad=1), net.shape)).to_bytes()


def tangents() -> bytes:
    """Inverse tangents of a convolution's result, then tangents, between two convolutions."""
    net = Layers()
    angles = net.op("Mul", net.op("Atan", net.conv(net.input, 8, 3, pad=1)), np.float32(0.5))
    return net.finish((net.conv(net.op("Tan", angles), 8, 3, pad=1), net.shape)).to_bytes()


def bytes_beyond(operator: str, *operands: int, **attributes: Any) -> bytes:
    """Bytes of a convolution's result that an operator takes beyond a byte, as numbers, between two convolutions."""
    net = Layers()
    taken = net.op("Cast", net.op("Mul", net.op("Abs", net.conv(net.input, 8, 3, pad=1)), np.float32(90)), to=2)
    beyond = net.op(operator, taken, *(np.uint8(operand) for operand in operands), **attributes)
    return net.ended(net.op("Mul", net.op("Cast", beyond, to=1), np.float32(0.01)))


def remainder() -> bytes:
    """What is left of bytes of both signs by a negative one."""
    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["large"]),
        helper.make_node("Cast", ["large"], ["whole"], to=TensorProto.INT8),
        helper.make_node("Mod", ["whole", "by"], ["left"]),
        helper.make_node("Cast", ["left"], ["y"], to=TensorProto.FLOAT),
    ]
    return bytes(network(nodes, {"x": [4, 8]}, scale=np.float32(30), by=np.int8(-7)).SerializeToString())


def integers_apart(kind: int) -> bytes:
    """Transposed integers as numbers that two operators read: an image, whose texels lie apart among the integers."""
    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["large"]),
        helper.make_node("Cast", ["large"], ["whole"], to=kind),
        helper.make_node("Cast", ["whole"], ["number"], to=TensorProto.FLOAT),
        helper.make_node("Transpose", ["number"], ["turned"], perm=[0, 1, 2, 4, 3]),
        helper.make_node("ReduceMax", ["turned"], ["largest"], axes=[2], keepdims=1),
        helper.make_node("Add", ["turned", "largest"], ["sum"]),
        helper.make_node("Cast", ["whole"], ["again"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["sum", "again"], ["y"]),
    ]
    return bytes(network(nodes, {"x": [1, 1, 4, 4, 4]}, scale=np.float32(30)).SerializeToString())


def tiled_backwards() -> bytes:
    """Four numbers, three times over, from the last to the first."""
    nodes = [
        helper.make_node("Tile", ["x", "times"], ["tiled"]),
        helper.make_node("Slice", ["tiled", "last", "beyond", "axis", "last"], ["y"]),
    ]
    return bytes(network(nodes, {"x": [4]}, times=[3], last=[-1], beyond=[-13], axis=[0]).SerializeToString())


def packed_beside_a_reversed_tile(*, reduced: bool) -> bytes:
    """A tensor that is taken for an image, beside eight copies of its first numbers, from the last to the first."""
    end = helper.make_node("ReduceMax", ["product"], ["y"], axes=[3])
    nodes = [
        *(helper.make_node("Tanh", ["x"], ["image"]), helper.make_node("Reshape", ["image", "last"], ["flat"])),
        *(
            helper.make_node("Slice", ["flat", "axis", "size"], ["some"]),
            helper.make_node("Tile", ["some", "times"], ["tiled"]),
        ),
        helper.make_node("Slice", ["tiled", "last", "beyond", "axis", "last"], ["reversed"]),
        *(
            helper.make_node("Reshape", ["reversed", "packed"], ["beside"]),
            helper.make_node("Add", ["image", "beside"], ["sum"]),
        ),
        *(helper.make_node("Sigmoid", ["sum"], ["gate"]), helper.make_node("Mul", ["sum", "gate"], ["product"])),
        end if reduced else helper.make_node("Reshape", ["product", "last"], ["y"]),
    ]
    shape = [1, 1, 1, 24, 4]
    sizes: dict[str, Any] = {"size": [12], "times": [8], "last": [-1], "beyond": [-97], "axis": [0]}
    return bytes(network(nodes, {"x": shape}, **sizes, packed=shape).SerializeToString())


def cut_repetition() -> bytes:
    """Two of twelve numbers that each stand twice in a row, twice over, from the middle of a pair on."""
    nodes = [
        helper.make_node("Reshape", ["x", "column"], ["upright"]),
        helper.make_node("Expand", ["upright", "twice"], ["pairs"]),
        helper.make_node("Reshape", ["pairs", "row"], ["repeated"]),
        helper.make_node("Slice", ["repeated", "start", "end"], ["cut"]),
        helper.make_node("Tile", ["cut", "times"], ["y"]),
    ]
    sizes: dict[str, Any] = {"column": [12, 1], "twice": [12, 2], "row": [24], "start": [19], "end": [21], "times": [2]}
    return bytes(network(nodes, {"x": [12]}, **sizes).SerializeToString())


def long_name() -> bytes:
    """A kernel whose name has 60 operators."""
    net = Layers()
    x = net.input
    for _ in range(30):
        x = net.op("Sigmoid", net.op("Tanh", x))
    return net.finish((x, net.shape)).to_bytes()


def as_caffe2_exports_it() -> bytes:
    """An input with a slash in its name, a dropout, and operators that take any number of tensors."""
    net = ImageGraph("caffe2", (1, 8, 8, 8))
    conv = net.conv(net.input, 8, 3, pad=1)
    model = onnx.load_model_from_string(net.finish((conv, (1, 8, 8, 8))).to_bytes())
    graph = model.graph
    graph.input[0].name = graph.node[0].input[0] = "gpu_0/data:0"
    graph.node.append(helper.make_node("Dropout", [conv.name], ["dropped"]))
    for kind in ("Sum", "Mean", "Max", "Min"):
        graph.node.append(helper.make_node(kind, ["dropped", "gpu_0/data:0", "dropped"], [kind]))
        graph.output.append(helper.make_tensor_value_info(kind, TensorProto.FLOAT, [1, 8, 8, 8]))
    return bytes(model.SerializeToString())


def two_outputs() -> bytes:
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Mul", ["a", "b"], ["product"])]
    infos = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "ab"}
    outs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("sum", "product")]
    graph = helper.make_graph(nodes, "g", list(infos.values()), outs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


@pytest.fixture(scope="session")
def runtime(sidecar_cache: Path) -> Any:
    if stock := os.environ.get("ADRENO_BENCH_TEST_STOCK"):
        opencl_runtime.load(Path(stock) / "libtvm_runtime_opencl.so")
    elif opencl_runtime.needed():
        opencl_runtime.load(opencl_runtime.sidecar(sidecar_cache))
    import tvm

    return tvm


@pytest.fixture
def zoo_answer(runtime: Any, common: Path) -> Answer:
    """Run a network of the zoo on a path, on the same inputs every time. It is compiled once."""

    def run(name: str, path: str, *, entry: str = "main_to_host") -> Answers:
        return call(runtime, *zoo_compiled(common, name, path), entry)

    return run


@pytest.fixture
def answer(runtime: Any, tmp_path: Path) -> Answer:
    """Compile a model for a path and run it once, on the same inputs every time."""

    def run(
        model: bytes, path: str, *, as_shipped: bool = False, but_for: str = "", entry: str = "main_to_host"
    ) -> Answers:
        out = tmp_path / f"{path}-{len(list(tmp_path.iterdir()))}"
        out.mkdir()
        (out / "model.onnx").write_bytes(model)
        request = request_for(out / "model.onnx", path, as_shipped=as_shipped)
        request = replace(request, quirks=[quirk for quirk in request.quirks if quirk != but_for])
        return call(runtime, out, compile_model(request, out), entry)

    return run


def call(tvm: Any, folder: Path, made: CompileResult, entry: str) -> Answers:
    device = tvm.device("opencl")
    machine = tvm.relax.VirtualMachine(tvm.runtime.load_module(str(folder / made.library)), [device] * made.vdevices)
    inputs = seeded_inputs([InputSpec(name, tuple(shape), dtype) for name, shape, dtype in made.inputs], SEED)
    machine.set_input(entry, *(tvm.runtime.tensor(array) for array in inputs.values()))
    machine.invoke_stateful(entry)
    got = machine.get_outputs(entry)
    tensors = [got] if hasattr(got, "numpy") else list(got)
    assert len(tensors) == made.outputs
    where = tvm.cpu() if entry == "main_to_host" else device
    assert all(tensor.device == where for tensor in tensors)
    return [tensor.numpy() for tensor in tensors]


@pytest.mark.parametrize("path", ["opencl", "texture"])
@pytest.mark.parametrize("entry", ["main", "main_to_host"])
def test_tiny_is_right(zoo_answer: Answer, tmp_path: Path, path: str, entry: str) -> None:
    np.testing.assert_allclose(zoo_answer("tiny", path, entry=entry)[0], zoo_truth(tmp_path, "tiny"), rtol=0, atol=1e-5)


@pytest.mark.parametrize("path", ["opencl", "texture"])
@pytest.mark.parametrize("entry", ["main", "main_to_host"])
def test_several_outputs_keep_their_order(answer: Answer, path: str, entry: str) -> None:
    a, b = seeded_inputs([InputSpec("a", (2, 3)), InputSpec("b", (2, 3))], seed=7).values()
    got = answer(two_outputs(), path, entry=entry)
    np.testing.assert_allclose(np.stack(got), np.stack([np.add(a, b), np.multiply(a, b)]), rtol=1e-6)


def test_stores_and_pools_in_images_are_right_only_when_worked_around(answer: Answer) -> None:
    (right,) = truth(small())
    (worked_around,) = answer(small(), "texture")
    (as_shipped,) = answer(small(), "texture", as_shipped=True)
    np.testing.assert_allclose(worked_around, right, rtol=0, atol=1e-5)
    assert np.abs(as_shipped - right).max() > 0.1 * np.abs(right).max()


@pytest.mark.long
def test_a_copy_between_images_of_different_layouts_is_made_only_when_worked_around(answer: Answer) -> None:
    right = truth(pooled_into_a_smaller_image())
    np.testing.assert_allclose(answer(pooled_into_a_smaller_image(), "texture"), right, rtol=0, atol=1e-5)
    with pytest.raises(RuntimeError, match="OpenCL Error, code=-30: CL_INVALID_VALUE"):
        answer(pooled_into_a_smaller_image(), "texture", but_for="image-to-image-copy")


@pytest.mark.long
def test_calls_of_one_function_on_an_image_and_on_a_buffer_are_right(answer: Answer) -> None:
    right = truth(convolved_with_a_sum())  # without the workaround this process dies of SIGSEGV
    np.testing.assert_allclose(answer(convolved_with_a_sum(), "texture"), right, rtol=0, atol=1e-4)


@pytest.mark.long
def test_average_pool_into_an_image_is_right(answer: Answer) -> None:
    np.testing.assert_allclose(answer(averaged(), "texture"), truth(averaged()), rtol=0, atol=1e-5)


@pytest.mark.long
def test_epilogue_of_a_grouped_convolution_is_right_only_when_worked_around(answer: Answer) -> None:
    (right,) = truth(grouped())
    for path in ("opencl", "texture"):
        (worked_around,) = answer(grouped(), path)
        np.testing.assert_allclose(worked_around, right, rtol=0, atol=1e-5, err_msg=path)
    (as_shipped,) = answer(grouped(), "opencl", as_shipped=True)
    assert np.abs(as_shipped - right).max() > 0.1 * np.abs(right).max()


@pytest.mark.long
@pytest.mark.parametrize("name", ["silu", "silu of silu", "gelu", "elu", "relu and sum"])
def test_an_activation_that_reads_a_convolution_twice_is_right(answer: Answer, name: str) -> None:
    np.testing.assert_allclose(answer(activated(name), "texture"), truth(activated(name)), rtol=0, atol=1e-4)


@pytest.mark.long
def test_a_fused_kernel_without_a_schedule_is_named_by_its_operators(answer: Answer) -> None:
    words = r"the texture path has no schedule for this fused kernel \(Conv, Add, Sigmoid, Mul\)"
    with pytest.raises(CompileFailure, match=words):
        answer(activated("silu"), "texture", as_shipped=True)


@pytest.mark.long
def test_gelu_in_an_image_is_right_only_when_worked_around(answer: Answer) -> None:
    (right,) = truth(gelu_without_bias())
    (worked_around,) = answer(gelu_without_bias(), "texture")
    (defect,) = answer(gelu_without_bias(), "texture", but_for="texture-scalar-call")
    np.testing.assert_allclose(worked_around, right, rtol=0, atol=1e-4)
    assert np.abs(defect - right).max() > 0.1 * np.abs(right).max()


@pytest.mark.long
@pytest.mark.parametrize("make", [pooled_and_activated, squeezed])
def test_what_reads_a_pool_twice_or_spreads_a_pixel_is_right(answer: Answer, make: Callable[[], bytes]) -> None:
    np.testing.assert_allclose(answer(make(), "texture"), truth(make()), rtol=0, atol=1e-4)


@pytest.mark.long
def test_a_1x1_convolution_and_its_own_input_are_right_only_when_worked_around(answer: Answer) -> None:
    np.testing.assert_allclose(answer(residual(), "texture"), truth(residual()), rtol=0, atol=1e-4)
    with pytest.raises(CompileFailure, match=r"requires all the consumer\(s\)"):
        answer(residual(), "texture", but_for="texture-shared-input")


@pytest.mark.long
@pytest.mark.parametrize("parts", [(8, 8), (4, 12), (16, 32, 16)])
def test_a_split_of_channels_is_right_only_when_worked_around(answer: Answer, parts: tuple[int, ...]) -> None:
    np.testing.assert_allclose(answer(split(parts), "texture"), truth(split(parts)), rtol=0, atol=1e-4)
    with pytest.raises(CompileFailure, match="channel size"):
        answer(split(parts), "texture", but_for="split-channels-layout")


@pytest.mark.parametrize("make", [masked, present, chosen_in_texels])
def test_a_comparison_as_numbers_is_right_only_when_worked_around(answer: Answer, make: Callable[[], bytes]) -> None:
    (right,) = truth(make())
    (made,) = answer(make(), "texture")
    np.testing.assert_allclose(made, right, rtol=0, atol=1e-4)
    (wrong,) = answer(make(), "texture", but_for="vector-bool-cast")
    assert np.abs(wrong - right).max() > 0.1


@pytest.mark.parametrize("path", ["opencl", "texture"])
def test_tangents_are_right_only_when_worked_around(answer: Answer, path: str) -> None:
    np.testing.assert_allclose(answer(tangents(), path), truth(tangents()), rtol=0, atol=1e-4)
    with pytest.raises((RuntimeError, CompileFailure), match=r"OpenCL build error|Unresolved call tirx.tan"):
        answer(tangents(), path, but_for="builtin-suffix")


@pytest.mark.parametrize("make", [running_sum, ranks])
def test_operators_in_more_axes_are_right(answer: Answer, make: Callable[[], bytes]) -> None:
    np.testing.assert_allclose(answer(make(), "texture")[0], truth(make())[0], rtol=0, atol=1e-5)


def test_an_input_as_large_as_a_packed_one_is_right(answer: Answer) -> None:
    """As shipped, the process dies."""
    np.testing.assert_allclose(answer(boxes(), "texture"), truth(boxes()), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.BOOL, TensorProto.UINT8])
def test_an_input_that_no_image_can_hold_is_right(answer: Answer, kind: int) -> None:
    net = numbers_without_texels(kind)
    for got, right in zip(answer(net, "texture"), truth(net), strict=True):
        np.testing.assert_allclose(got, right, rtol=0, atol=1e-5)
    with pytest.raises(CompileFailure, match="Unsupported Channel Size"):
        answer(net, "texture", but_for="texture-of-bytes")


def test_a_channel_of_zeros_stays_zero_where_channels_are_normalised(answer: Answer) -> None:
    """TVM divides 0 by 0, without what ONNX adds to the deviation."""
    (y,) = answer(of_zeros(helper.make_node("MeanVarianceNormalization", ["some"], ["y"])), "opencl")
    np.testing.assert_array_equal(y[:, 1], 0)
    np.testing.assert_allclose([y[:, 0].std(), y[:, 2].std()], 1, atol=1e-3)


@pytest.mark.parametrize(("result", "number"), [("q", 0), ("scale", 1), ("zero_point", 0)])
def test_zeros_alone_are_so_behind_a_reshape(answer: Answer, result: str, number: int) -> None:
    node = helper.make_node("DynamicQuantizeLinear", ["none"], ["q", "scale", "zero_point"])
    net = of_zeros(node, helper.make_node("Flatten", [result], ["y"], axis=0))
    np.testing.assert_array_equal(answer(net, "opencl")[0], number)


@pytest.mark.parametrize("tensor", ["none", "some"])
def test_zeros_alone_are_quantised_as_onnxruntime_does(answer: Answer, tensor: str) -> None:
    names = ["q", "scale", "zero_point"]
    net = of_zeros(helper.make_node("DynamicQuantizeLinear", [tensor], names), outputs=names)
    q, scale, zero_point = answer(net, "opencl")
    if tensor == "none":
        assert not q.any()
        assert (float(scale), int(zero_point)) == (1, 0)
    else:
        assert (q[:, 1] == zero_point).all()
        assert 0 < scale < 1
        assert len(np.unique(q)) > 9


@pytest.mark.parametrize("path", ["opencl", "texture"])
def test_a_chain_that_doubles_with_each_step_is_right(
    answer: Answer, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its kernels end early, as those of longer chains do."""
    x: Any = seeded_inputs([InputSpec("x", (1, 4, 8, 8))], SEED)["x"]
    monkeypatch.setattr(fusions, "LONGEST", 1000)
    for _ in range(12):
        x = x / (1 + np.exp(np.negative(x)))
    assert np.max(np.abs(answer(repeated(), path)[0] - x)) < 1e-5


@pytest.mark.parametrize("path", ["opencl", "texture"])
def test_choices_in_the_conditions_of_others_are_right_and_soon_built(answer: Answer, path: str) -> None:
    """In one kernel TVM's passes take minutes for them, longer than this test may."""
    x: Any = seeded_inputs([InputSpec("x", (1, 4, 8, 8))], SEED)["x"]
    for step in range(6):
        x = np.where(x < np.float32(step / 10), x + np.float32(step / 10), x)
    np.testing.assert_allclose(answer(chosen_by_choices(), path)[0], x, rtol=0, atol=1e-6)


def test_a_padding_whose_rows_end_within_a_texel_is_right(answer: Answer) -> None:
    np.testing.assert_allclose(answer(ragged(), "texture"), truth(ragged()), rtol=0, atol=1e-5)
    with pytest.raises((RuntimeError, CompileFailure)):
        answer(ragged(), "texture", but_for="texture-scalar-schedule")


@pytest.mark.parametrize(
    "make",
    [*REARRANGED.values(), one_number, classes_of_five, squares_both_ways],
    ids=[*REARRANGED, "one number", "rows of five", "squares"],
)
def test_a_texel_of_numbers_from_elsewhere_is_right(answer: Answer, make: Callable[[], bytes]) -> None:
    for made, right in zip(answer(make(), "texture"), truth(make()), strict=True):
        np.testing.assert_allclose(made, right, rtol=0, atol=1e-5)


@pytest.mark.parametrize("make", BEHIND_MEANS.values(), ids=BEHIND_MEANS)
def test_what_reads_the_mean_of_an_image_is_right(answer: Answer, make: Callable[[], bytes]) -> None:
    np.testing.assert_allclose(answer(make(), "texture"), truth(make()), rtol=0, atol=1e-5)


@pytest.mark.parametrize("make", [gated_volume, normalised_volume, places_of_least])
def test_a_volume_that_is_taken_for_an_image_is_right(answer: Answer, make: Callable[[], bytes]) -> None:
    np.testing.assert_allclose(answer(make(), "texture"), truth(make()), rtol=0, atol=1e-4)


def test_a_volume_is_convolved_and_multiplied_in_one_kernel(tmp_path: Path) -> None:
    (tmp_path / "gated.onnx").write_bytes(gated_volume())
    made = compile_model(request_for(tmp_path / "gated.onnx", "texture"), tmp_path)
    (name,) = (name for name in made.launches or {} if "conv3d" in name)
    assert "multiply" in name


@pytest.mark.parametrize("path", ["opencl", "texture"])
@pytest.mark.parametrize(
    "net",
    [
        bytes_beyond("Sub", 3),
        pytest.param(bytes_beyond("Mul", 7), marks=pytest.mark.long),
        bytes_beyond("BitShift", 3, direction="LEFT"),
    ],
    ids=["difference", "product", "shift"],
)
def test_bytes_that_are_cast_are_right_only_when_worked_around(answer: Answer, path: str, net: bytes) -> None:
    (right,) = truth(net)
    np.testing.assert_allclose(answer(net, path)[0], right, rtol=0, atol=1e-3)
    (as_shipped,) = answer(net, path, but_for="narrow-integers")
    assert np.abs(as_shipped - right).max() > 1


@pytest.mark.parametrize("kind", [TensorProto.INT8, TensorProto.UINT8], ids=["signed", "unsigned"])
def test_texels_of_bytes_that_lie_apart_are_right_only_when_worked_around(answer: Answer, kind: int) -> None:
    np.testing.assert_array_equal(answer(integers_apart(kind), "texture"), truth(integers_apart(kind)))
    with pytest.raises(RuntimeError, match="OpenCL build error"):
        answer(integers_apart(kind), "texture", but_for="bytes-apart")


@pytest.mark.parametrize("path", ["opencl", "texture"])
@pytest.mark.parametrize(
    ("net", "size", "places"), [(tiled_backwards(), 4, [3, 2, 1, 0] * 3), (cut_repetition(), 12, [9, 10] * 2)]
)
def test_places_are_right_only_when_worked_around(
    answer: Answer, path: str, net: bytes, size: int, places: Sequence[int]
) -> None:
    right = seeded_inputs([InputSpec("x", (size,), "float32")], SEED)["x"][places]
    np.testing.assert_array_equal(answer(net, path)[0], right)
    assert (answer(net, path, but_for="flattened-index")[0] != right).any()


@pytest.mark.parametrize("reduced", [False, True])
def test_places_are_right_where_a_kernel_of_images_was_inlined_before_its_schedule(
    answer: Answer, *, reduced: bool
) -> None:
    net = packed_beside_a_reversed_tile(reduced=reduced)
    np.testing.assert_allclose(answer(net, "texture"), truth(net), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", [TensorProto.INT16, TensorProto.INT32], ids=["int16", "int32"])
def test_integers_are_in_no_image(answer: Answer, tmp_path: Path, kind: int) -> None:
    """As floats, small ones are denormal numbers, which a device may read as zeros."""
    np.testing.assert_array_equal(answer(integers_apart(kind), "texture"), truth(integers_apart(kind)))
    (tmp_path / "net.onnx").write_bytes(integers_apart(kind))
    compile_model(request_for(tmp_path / "net.onnx", "texture"), tmp_path)
    texels = re.findall(r"as_(\w+)4\(READ_IMAGE", (tmp_path / "kernels.cl").read_text())
    assert set(texels) == {"float"}


def test_a_remainder_of_bytes_is_right_only_when_worked_around(answer: Answer) -> None:
    np.testing.assert_array_equal(answer(remainder(), "opencl"), truth(remainder()))
    with pytest.raises(RuntimeError, match="OpenCL build error"):
        answer(remainder(), "opencl", but_for="narrow-integers")


def test_a_choice_by_a_comparison_is_right_only_when_worked_around(answer: Answer) -> None:
    np.testing.assert_allclose(answer(chosen(), "texture"), truth(chosen()), rtol=0, atol=1e-4)
    with pytest.raises(CompileFailure, match=r"elements of type T\.bool"):
        answer(chosen(), "texture", but_for="bool-layout-transform")


@pytest.mark.long
@pytest.mark.parametrize("path", ["opencl", "texture"])
def test_a_scatter_is_right_only_when_worked_around(answer: Answer, path: str) -> None:
    np.testing.assert_allclose(answer(scattered(), path), truth(scattered()), rtol=0, atol=1e-4)
    with pytest.raises(CompileFailure, match="Cannot find a block with the name: root"):
        answer(scattered(), path, but_for="opaque-kernel-schedule")


@pytest.mark.long
def test_a_padding_behind_a_convolution_stays_within_local_memory(tmp_path: Path, answer: Answer) -> None:
    np.testing.assert_allclose(answer(padded(), "opencl"), truth(padded()), rtol=0, atol=1e-4)
    (tmp_path / "padded.onnx").write_bytes(padded())
    for as_shipped in (False, True):
        made = compile_model(request_for(tmp_path / "padded.onnx", "opencl", as_shipped=as_shipped), tmp_path)
        most = max(launch["local_bytes"] for launch in (made.launches or {}).values())
        assert (most > 32 << 10) is as_shipped


@pytest.mark.parametrize("path", ["opencl", "texture"])
def test_a_padding_behind_a_depthwise_convolution_is_right_only_when_worked_around(answer: Answer, path: str) -> None:
    (right,) = truth(padded_depthwise())
    np.testing.assert_allclose(answer(padded_depthwise(), path)[0], right, rtol=0, atol=1e-4)
    (as_shipped,) = answer(padded_depthwise(), path, but_for="reduction-extents")
    assert not np.abs(as_shipped - right).max() < 0.1 * np.abs(right).max()  # what is not written may be NaN


def test_the_first_channel_of_a_mean_is_right_only_when_worked_around(answer: Answer) -> None:
    (right,) = truth(first_mean())
    np.testing.assert_allclose(answer(first_mean(), "opencl")[0], right, rtol=0, atol=1e-4)
    (as_shipped,) = answer(first_mean(), "opencl", but_for="reduction-extents")
    assert not np.abs(as_shipped - right).max() < 0.1 * np.abs(right).max()


@pytest.mark.parametrize("path", ["opencl", "texture"])
def test_a_kernel_with_a_shortened_name_is_right(answer: Answer, path: str) -> None:
    np.testing.assert_allclose(answer(long_name(), path), truth(long_name()), rtol=0, atol=1e-5)


@pytest.mark.parametrize("path", ["opencl", "texture", "clml"])
def test_a_long_name_of_a_kernel_is_shortened_and_kept(tmp_path: Path, path: str) -> None:
    (tmp_path / "long.onnx").write_bytes(long_name())
    made = compile_model(request_for(tmp_path / "long.onnx", path), tmp_path)
    assert max(map(len, made.launches or {})) <= 120
    ((short, whole),) = (made.long_names or {}).items()
    assert len(whole) > 300
    assert whole.startswith(short[:100])


@pytest.mark.long
@pytest.mark.parametrize("path", ["opencl", "texture"])
def test_names_and_operators_of_caffe2_are_right(answer: Answer, path: str) -> None:
    right = truth(as_caffe2_exports_it())
    np.testing.assert_allclose(answer(as_caffe2_exports_it(), path), right, rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", unless_large(load_suite(DEFAULT_SUITE).models))
def test_the_default_suite_is_right_on_every_path(zoo_answer: Answer, tmp_path: Path, name: str) -> None:
    right = zoo_truth(tmp_path, name)
    for path in ("opencl", "texture"):
        (got,) = zoo_answer(name, path)
        np.testing.assert_allclose(got, right, rtol=0, atol=1e-4 * np.abs(right).max(), err_msg=path)
