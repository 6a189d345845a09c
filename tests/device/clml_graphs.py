"""CLML graphs for tests: written by hand, read from TVM's own golden output, and computed with numpy."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import clml_golden
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
SYMBOL = "fused_openclml"


@dataclass
class Graph:
    """A graph in the making; every method returns the id of the node it adds."""

    dtype: str = "float32"
    nodes: list[dict[str, Any]] = field(default_factory=list)
    constants: list[Array] = field(default_factory=list)
    heads: list[list[int]] = field(default_factory=list)

    def input(self, *shape: int, dtype: str = "") -> int:
        return self._add("input", f"x{len(self.nodes)}", shape=[list(shape)], dtype=[dtype or self.dtype])

    def const(self, values: Array) -> int:
        self.constants.append(values)
        name = f"{SYMBOL}_const_{len(self.constants) - 1}"
        return self._add("const", name, shape=[list(values.shape)], dtype=[str(values.dtype)])

    def random(self, *shape: int) -> int:
        """A constant between 0.5 and 1.5, with alternating signs along the first side unless there is one side."""
        rng = np.random.default_rng(len(self.nodes))
        values = rng.uniform(0.5, 1.5, shape)
        if len(shape) > 1:
            values *= np.where(rng.random(shape) < 0.5, -1, 1)
        return self.const(values.astype(self.dtype))

    def kernel(self, name: str, inputs: Sequence[int], shape: Sequence[int], **attrs: Any) -> int:
        """A kernel without its `openclml.` prefix; its only output."""
        dtype = attrs.pop("dtype", self.dtype)
        entries = [[node, 0, 0] for node in inputs]
        return self._add("kernel", f"openclml.{name}", inputs=entries, **attrs, shape=[list(shape)], dtype=[dtype])

    def conv(self, name: str, inputs: Sequence[int], shape: Sequence[int], **attrs: Any) -> int:
        usual = {"strides": [1, 1], "padding": [1, 1, 1, 1], "dilation": [1, 1], "groups": 1}
        return self.kernel(name, inputs, shape, **{**usual, **attrs})

    def pool(self, name: str, inputs: Sequence[int], shape: Sequence[int], **attrs: Any) -> int:
        usual = {"pool_size": [2, 2], "strides": [2, 2], "dilation": [1, 1], "padding": [0, 0, 0, 0]}
        return self.kernel(name, inputs, shape, **{**usual, **attrs})

    def out(self, *nodes: int) -> Graph:
        self.heads = [[node, 0, 0] for node in nodes]
        return self

    def json(self) -> str:
        rows = np.cumsum([0, *(len(node["attrs"]["shape"]) for node in self.nodes)]).tolist()
        leaves = [i for i, node in enumerate(self.nodes) if node["op"] != "kernel"]
        return json.dumps({"nodes": self.nodes, "arg_nodes": leaves, "heads": self.heads, "node_row_ptr": rows})

    def const_names(self) -> list[str]:
        return [node["name"] for node in self.nodes if node["op"] == "const"]

    def _add(self, op: str, name: str, *, inputs: list[list[int]] | None = None, **attrs: Any) -> int:
        self.nodes.append({"op": op, "name": name, **({"inputs": inputs} if inputs else {}), "attrs": attrs})
        return len(self.nodes) - 1


def golden() -> dict[str, list[dict[str, Any]]]:
    """TVM's modules by fixture: each with `symbol`, `graph`, `const_names` and `bytes_hex`; empty lists left out."""
    return {case: modules for case in sorted(clml_golden.CASES) if (modules := clml_golden.modules(case))}


def random_tensors(graph: dict[str, Any], op: str, seed: int = 0) -> list[Array]:
    """One tensor for each input or constant of a graph. Vectors are positive: a variance may be among them."""
    rng = np.random.default_rng(seed)
    tensors = []
    for node in (graph["nodes"][i] for i in graph["arg_nodes"]):
        if node["op"] == op:
            shape, dtype = node["attrs"]["shape"][0], node["attrs"]["dtype"][0]
            values = rng.uniform(0.5, 1.5, shape)
            if len(shape) != 1:
                values = values * np.where(rng.random(shape) < 0.5, -1, 1)
            tensors.append(np.asarray(values).astype(dtype))
    return tensors


def compute(graph: dict[str, Any], inputs: Sequence[Array], constants: Sequence[Array]) -> list[Array]:
    """A graph with the geometry that TVM's runtime reads in it, in float64 but for the tensors' own type."""
    given = {"input": iter(inputs), "const": iter(constants)}
    values: list[Array] = []
    for node in graph["nodes"]:
        if node["op"] != "kernel":
            values.append(next(given[node["op"]]))
            continue
        read = [values[entry[0]].astype("float64") for entry in node["inputs"]]
        made = _kernel(node["name"])(node["attrs"], *read)
        values.append(made.reshape(node["attrs"]["shape"][0]).astype(node["attrs"]["dtype"][0]))
    return [values[head[0]] for head in graph["heads"]]


def _kernel(name: str) -> Callable[..., Array]:
    kernels: dict[str, Callable[..., Array]] = {
        "nn.conv2d": _conv2d,
        "nn.conv2d_transpose": _conv2d_transpose,
        "nn.batch_norm": lambda attrs, x, *norm: _normalise(x, norm, attrs["epsilon"]),
        "nn.max_pool2d": lambda attrs, x: _pool(attrs, x, np.nanmax),
        "nn.avg_pool2d": lambda attrs, x: _pool(attrs, x, np.nanmean),
        "nn.global_avg_pool2d": lambda attrs, x: x.mean(axis=(2, 3)),
        "nn.softmax": lambda attrs, x: _softmax(x, attrs["axis"]),
        "nn.relu": lambda attrs, x: np.maximum(x, 0),
        "reshape": lambda attrs, x: x,
        "relax.add": lambda attrs, a, b: a + b,
        "relax.subtract": lambda attrs, a, b: a - b,
        "relax.multiply": lambda attrs, a, b: a * b,
        "relax.divide": lambda attrs, a, b: a / b,
        "relax.maximum": lambda attrs, a, b: np.maximum(a, b),
        "relax.minimum": lambda attrs, a, b: np.minimum(a, b),
    }
    return next(kernel for ending, kernel in kernels.items() if name.endswith(ending))


def _conv2d(attrs: dict[str, Any], x: Array, weight: Array, *rest: Array) -> Array:
    top, left, bottom, right = attrs["padding"]
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    (sy, sx), (dy, dx), (ky, kx) = attrs["strides"], attrs["dilation"], weight.shape[2:]
    height = (padded.shape[2] - (ky - 1) * dy - 1) // sy + 1
    width = (padded.shape[3] - (kx - 1) * dx - 1) // sx + 1
    y = np.zeros((x.shape[0], weight.shape[0], height, width))
    for i, j in np.ndindex(ky, kx):
        part = padded[:, :, i * dy : i * dy + (height - 1) * sy + 1 : sy, j * dx : j * dx + (width - 1) * sx + 1 : sx]
        y += np.einsum("nihw,oi->nohw", part, weight[:, :, i, j])
    return _finish(attrs, y, rest)


def _conv2d_transpose(attrs: dict[str, Any], x: Array, weight: Array, *rest: Array) -> Array:
    (sy, sx), (dy, dx), (ky, kx) = attrs["strides"], attrs["dilation"], weight.shape[2:]
    top, left = attrs["padding"][:2]
    _, _, height, width = attrs["shape"][0]
    # Room on every side for what the padding cuts off and the output padding adds.
    y = np.zeros((x.shape[0], weight.shape[0], top + height + ky * dy, left + width + kx * dx))
    for i, j in np.ndindex(ky, kx):
        part = y[:, :, i * dy :: sy, j * dx :: sx][:, :, : x.shape[2], : x.shape[3]]
        part += np.einsum("nihw,oi->nohw", x, weight[:, :, i, j])[:, :, : part.shape[2], : part.shape[3]]
    return _finish(attrs, y[:, :, top : top + height, left : left + width], rest)


def _finish(attrs: dict[str, Any], y: Array, rest: Sequence[Array]) -> Array:
    if len(rest) in {1, 5}:
        y = y + rest[0].reshape(1, -1, 1, 1)
    if len(rest) >= 4:
        y = _normalise(y, rest[-4:], float(attrs["batchnorm"][1]))
    return np.maximum(y, 0) if attrs.get("activation_type") == "relu" else y


def _normalise(x: Array, norm: Sequence[Array], epsilon: float) -> Array:
    gamma, beta, mean, variance = (vector.reshape(1, -1, 1, 1) for vector in norm)
    return np.asarray((x - mean) / np.sqrt(variance + epsilon) * gamma + beta)


def _pool(attrs: dict[str, Any], x: Array, reduce: Callable[..., Array]) -> Array:
    top, left, bottom, right = attrs["padding"]
    (ky, kx), (sy, sx) = attrs["pool_size"], attrs["strides"]
    _, _, height, width = attrs["shape"][0]
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom + ky), (left, right + kx)), constant_values=np.nan)
    windows = [
        reduce(padded[:, :, i * sy : i * sy + ky, j * sx : j * sx + kx], axis=(2, 3))
        for i, j in np.ndindex(height, width)
    ]
    return np.stack(windows, axis=-1)


def _softmax(x: Array, axis: int) -> Array:
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis=axis, keepdims=True))
