"""Networks of two operators between two convolutions, where the texture path breaks first, with a suite file of them.

    python -m benchmarks.operator_pairs FOLDER [OPERATOR ...]
    python -m benchmarks.operator_pairs FOLDER --today
    adreno-bench run --suite FOLDER/adreno-bench.toml

All pairs of the 60 operators here, those that begin with the operators that are named, or with those of this day: all
pairs within 20 days.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

A_DAY = 3
"""Operators of one day."""
CHANNELS, SIDE = 8, 10
OPSET = 17
FLOAT = np.float32
PADS = [1, 1, 1, 1]


class Chain:
    """A network that grows operator by operator. `x` is the name of the last result, `shape` its shape (NCHW)."""

    def __init__(self, seed: int | Sequence[int] = 5) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.opset = OPSET
        self.x = "input"
        self.shape: tuple[int, ...] = (1, CHANNELS, SIDE, SIDE)
        self.inputs: dict[str, tuple[int, ...]] = {self.x: self.shape}
        self.rng = np.random.default_rng(seed)

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator on `x` and further inputs; returns its result's name."""
        return self.apply(operator, self.x, *inputs, **attributes)

    def apply(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator on these inputs alone; returns its result's name."""
        return self.results(1, operator, *inputs, **attributes)[0]

    def results(self, count: int, operator: str, *inputs: str, **attributes: Any) -> list[str]:
        """Add an operator on these inputs alone; returns the names of its first results."""
        names = [f"value_{len(self.nodes)}" + f"_{place}" * (count > 1) for place in range(count)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names

    def constant(self, value: Any) -> str:
        """Add a constant; returns its name."""
        name = f"constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def integers(self, *numbers: int) -> str:
        """Add a list of integers; returns its name."""
        return self.constant(np.array(numbers, np.int64))

    def weight(self, *shape: int) -> str:
        """Add normal numbers; returns their name."""
        return self.constant((self.rng.standard_normal(shape) * 0.3).astype(FLOAT))

    def positive(self, *shape: int) -> str:
        """Add numbers from 0.5 to 1.5; returns their name."""
        return self.constant((self.rng.random(shape) + 0.5).astype(FLOAT))

    def go_on(self, result: str) -> None:
        """Let what follows read this result."""
        kind = self.kind(result)
        self.shape = tuple(size.dim_value for size in kind.shape.dim)
        self.x = result

    def kind(self, result: str) -> Any:
        """Return the type of a result, as ONNX infers it."""
        model = shape_inference.infer_shapes(self.model(result), strict_mode=True, data_prop=True)
        return model.graph.output[0].type.tensor_type

    def model(self, *outputs: str) -> onnx.ModelProto:
        """Return the network up to these results, whose types are open."""
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in self.inputs.items()]
        ends = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph(self.nodes, "network", inputs, ends, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)

    def typed_model(self, *outputs: str) -> onnx.ModelProto:
        """Return the network up to these results, with their types."""
        model = shape_inference.infer_shapes(self.model(*outputs), strict_mode=True, data_prop=True)
        del model.graph.value_info[:]
        return model


def _gelu(net: Chain) -> str:
    scaled = net.apply("Erf", net.add("Div", net.constant(FLOAT(1.414))))
    return net.apply("Mul", net.add("Mul", net.constant(FLOAT(0.5))), net.apply("Add", scaled, net.constant(FLOAT(1))))


def _halves(net: Chain) -> str:
    if net.shape[1] % 2:
        return net.add("Relu")
    first, second = net.results(2, "Split", net.x, axis=1)
    return net.apply("Mul", first, net.apply("Sigmoid", second))


def _shuffle(net: Chain) -> str:
    batch, channels, rows, columns = net.shape
    if channels % 2:
        return net.add("Relu")
    groups = net.add("Reshape", net.integers(batch, 2, channels // 2, rows, columns))
    return net.apply(
        "Reshape", net.apply("Transpose", groups, perm=[0, 2, 1, 3, 4]), net.integers(batch, channels, rows, columns)
    )


def _attend(net: Chain) -> str:
    batch, channels, rows, columns = net.shape
    query = net.add("Reshape", net.integers(batch, channels, rows * columns))
    scores = net.apply("MatMul", query, net.apply("Transpose", query, perm=[0, 2, 1]))
    attended = net.apply("MatMul", net.apply("Softmax", scores, axis=-1), query)
    return net.apply("Reshape", attended, net.integers(batch, channels, rows, columns))


def _normalize_channels(net: Chain) -> str:
    last = net.add("Transpose", perm=[0, 2, 3, 1])
    scale, shift = net.positive(net.shape[1]), net.weight(net.shape[1])
    normalized = net.apply("LayerNormalization", last, scale, shift, axis=-1)
    return net.apply("Transpose", normalized, perm=[0, 3, 1, 2])


def _resize(net: Chain, **how: str) -> str:
    return net.add("Resize", "", net.constant(np.array([1, 1, 2, 2], FLOAT)), **how)


def _if(fits: bool, net: Chain, operator: str, *inputs: str, **attributes: Any) -> str:
    """Add an operator where it fits the shape, a rectifier elsewhere."""
    return net.add(operator, *inputs, **attributes) if fits else net.add("Relu")


Operator = Callable[[Chain], str]
OPERATORS: dict[str, Operator] = {
    **{
        kind.lower(): partial(Chain.add, operator=kind)
        for kind in ("Relu", "Sigmoid", "HardSwish", "LeakyRelu", "Elu", "Atan", "GlobalAveragePool")
    },
    "silu": lambda net: net.add("Mul", net.add("Sigmoid")),
    "gelu": _gelu,
    "prelu": lambda net: net.add("PRelu", net.weight(net.shape[1], 1, 1)),
    "clip": lambda net: net.add("Clip", net.constant(FLOAT(-0.5)), net.constant(FLOAT(0.6))),
    "exp": lambda net: net.apply("Exp", net.add("Tanh")),
    "sqrt": lambda net: net.apply("Sqrt", net.add("Abs")),
    "pow": lambda net: net.apply("Pow", net.add("Abs"), net.constant(FLOAT(1.5))),
    "add_channel": lambda net: net.add("Add", net.weight(1, net.shape[1], 1, 1)),
    "multiply_column": lambda net: net.add("Mul", net.weight(1, 1, 1, net.shape[3])),
    "mask": lambda net: net.add("Mul", net.weight(1, 1, *net.shape[2:])),
    "where": lambda net: net.apply(
        "Where", net.add("Greater", net.constant(FLOAT(0))), net.x, net.constant(FLOAT(0.1))
    ),
    "max_pool": lambda net: net.add("MaxPool", kernel_shape=[3, 3], strides=[1, 1], pads=PADS),
    "halving_max_pool": lambda net: _if(min(net.shape[2:]) > 2, net, "MaxPool", kernel_shape=[2, 2], strides=[2, 2]),
    "average_pool": lambda net: net.add("AveragePool", kernel_shape=[3, 3], strides=[1, 1], pads=PADS),
    "squeeze_and_excite": lambda net: net.add("Mul", net.apply("Sigmoid", net.add("GlobalAveragePool"))),
    "spatial_attention": lambda net: net.add("Mul", net.apply("Sigmoid", net.add("ReduceMean", axes=[1], keepdims=1))),
    "mean_of_rows": lambda net: net.add("ReduceMean", axes=[2], keepdims=1),
    "less_largest": lambda net: net.add("Sub", net.add("ReduceMax", axes=[1], keepdims=1)),
    "instance_norm": lambda net: net.add("InstanceNormalization", net.positive(net.shape[1]), net.weight(net.shape[1])),
    "batch_norm": lambda net: net.add("BatchNormalization", *(net.positive(net.shape[1]) for _ in range(4))),
    "lrn": lambda net: net.add("LRN", size=3),
    "softmax_of_channels": lambda net: net.add("Softmax", axis=1),
    "softmax_of_columns": lambda net: net.add("Softmax", axis=3),
    "layer_norm": lambda net: net.add("LayerNormalization", net.positive(net.shape[3]), net.weight(net.shape[3])),
    "layer_norm_of_channels": _normalize_channels,
    "pad": lambda net: net.add("Pad", net.integers(0, 0, 0, 0, 0, 0, 1, 2)),  # TVM takes it for elementwise
    "reflect": lambda net: _if(
        min(net.shape[2:]) > 1, net, "Pad", net.integers(0, 0, 1, 1, 0, 0, 1, 1), mode="reflect"
    ),
    "half_of_channels": lambda net: net.add(
        "Slice", net.integers(0), net.integers(max(1, net.shape[1] // 2)), net.integers(1)
    ),
    "every_second_column": lambda net: net.add("Slice", *map(net.integers, (0, 2**31, 3, 2))),
    "rows_backwards": lambda net: net.add("Slice", *map(net.integers, (-1, -(2**31), 2, -1))),
    "concat": lambda net: net.add("Concat", net.add("Relu"), axis=1),
    "concat_rows": lambda net: net.add("Concat", net.add("Neg"), axis=2),
    "gate": _halves,
    "shuffle": _shuffle,
    "transpose": lambda net: net.add("Transpose", perm=[0, 1, 3, 2]),
    "transpose_channels": lambda net: net.add("Transpose", perm=[0, 2, 1, 3]),
    "reshape": lambda net: net.add("Reshape", net.integers(1, net.shape[1] * net.shape[2], net.shape[3], 1)),
    "depth_to_space": lambda net: _if(net.shape[1] % 4 == 0, net, "DepthToSpace", blocksize=2),
    "space_to_depth": lambda net: _if(net.shape[2] % 2 == net.shape[3] % 2 == 0, net, "SpaceToDepth", blocksize=2),
    "nearest": lambda net: _resize(net, coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    "linear": lambda net: _resize(net, mode="linear"),
    "tile": lambda net: net.add("Tile", net.integers(1, 2, 1, 1)),
    "expand": lambda net: net.add("Mul", net.apply("Expand", net.add("GlobalMaxPool"), net.integers(*net.shape))),
    "gather": lambda net: net.add("Gather", net.integers(*(3 * i % net.shape[1] for i in range(net.shape[1]))), axis=1),
    "depthwise": lambda net: net.add("Conv", net.weight(net.shape[1], 1, 3, 3), group=net.shape[1], pads=PADS),
    "grouped": lambda net: _if(
        net.shape[1] % 2 == 0, net, "Conv", net.weight(net.shape[1], max(1, net.shape[1] // 2), 1, 1), group=2
    ),
    "transposed": lambda net: net.add("ConvTranspose", net.weight(net.shape[1], 4, 2, 2), strides=[2, 2]),
    "attention": _attend,
    "dense": lambda net: net.add("MatMul", net.weight(net.shape[3], 6)),
    "residual": lambda net: net.add(
        "Add", net.apply("Conv", net.add("Relu"), net.weight(net.shape[1], net.shape[1], 3, 3), pads=PADS)
    ),
    "einsum": lambda net: net.add("Einsum", net.weight(net.shape[1], net.shape[1]), equation="nchw,dc->ndhw"),
    "arg_max": lambda net: net.add(
        "Add", net.apply("Cast", net.add("ArgMax", axis=1, keepdims=1), to=TensorProto.FLOAT)
    ),
    "running_sum": lambda net: net.add("CumSum", net.constant(np.array(3, np.int64))),
}


def network(names: Iterable[str]) -> onnx.ModelProto:
    """Return these operators in a row, between two convolutions."""
    net = Chain()
    net.go_on(net.add("Conv", net.weight(CHANNELS, CHANNELS, 3, 3), pads=PADS))
    for name in names:
        net.go_on(OPERATORS[name](net))
    net.go_on(net.add("Conv", net.weight(CHANNELS, net.shape[1], 1, 1)))
    return net.typed_model(net.x)


def operators_of(day: int) -> list[str]:
    """Return the operators with which the pairs of a day begin. Days are counted from any start."""
    names = list(OPERATORS)
    start = day * A_DAY % len(names)
    return names[start : start + A_DAY]


def main(folder: str, *first: str) -> None:
    """Write the networks and the suite file."""
    if first == ("--today",):
        first = tuple(operators_of(today()))
    pairs = [(name, other) for name in first or OPERATORS for other in OPERATORS]
    write_suite(Path(folder), {"-".join(pair): network(pair) for pair in pairs})


def today() -> int:
    """Return the number of this day."""
    return datetime.datetime.now(datetime.timezone.utc).toordinal()


def write_suite(folder: Path, networks: Mapping[str, onnx.ModelProto]) -> None:
    """Write networks, and the suite file that runs them on opencl and texture."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in networks.items():
        onnx.save(model, folder / f"{name}.onnx")
    models = ", ".join(f'"{name}.onnx"' for name in networks)
    suite = f'models = [{models}]\npaths = ["opencl", "texture"]\nprecisions = ["float32"]\nbudget_s = 0.2\n'
    (folder / "adreno-bench.toml").write_text(suite, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
