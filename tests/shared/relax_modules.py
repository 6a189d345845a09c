"""One small network as each of TVM's front ends makes it, and numpy's answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from harness.compile.compiler.compat import tensor_type

Array = NDArray[Any]

_RNG = np.random.default_rng(7)
INPUT: Array = _RNG.standard_normal((1, 4, 8, 8), np.float32)
FIRST: Array = _RNG.standard_normal((8, 4, 3, 3), np.float32)
SECOND: Array = _RNG.standard_normal((8, 8, 3, 3), np.float32)


def answer() -> Array:
    """Two convolutions, each with a rectifier."""
    return _rectified(_rectified(INPUT, FIRST), SECOND)


def _rectified(data: Array, weight: Array) -> Array:
    padded = np.pad(data, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.asarray(np.maximum(np.einsum("nchwij,ocij->nohw", windows, weight), 0))


def by_hand(name: str = "main", *, batch: Any = 1, dataflow: bool = True, shift: float = 0.0) -> Any:
    """Return a module with a function of one's own, which adds `shift` at the end."""
    from contextlib import nullcontext

    from tvm import relax

    data = relax.Var("data", tensor_type((batch, *INPUT.shape[1:]), "float32"))
    builder = relax.BlockBuilder()
    with builder.function(name, [data]):
        with builder.dataflow() if dataflow else nullcontext():
            value = data
            for weight in (FIRST, SECOND):
                value = builder.emit(relax.op.nn.conv2d(value, relax.const(weight), padding=1))
                value = builder.emit(relax.op.nn.relu(value))
            if shift:
                value = builder.emit(relax.op.add(value, relax.const(np.full((8, 1, 1), shift, np.float32))))
            result = builder.emit_output(value) if dataflow else value
        builder.emit_func_output(result)
    return builder.get()


def _norm_params(*shape: int) -> Any:
    from tvm import relax

    return [relax.const(np.full(shape, number, np.float32)) for number in (2, 1)]


LAYOUT_TRAPS: dict[str, Callable[[Any, Any], Any]] = {
    "squeeze": lambda op, x: op.squeeze(op.mean(x, [-1], keepdims=True), [-1]),
    "concat": lambda op, x: op.concat([x, x], -3),
    "split": lambda op, x: op.split(x, 2, -3)[1],
    "permute": lambda op, x: op.permute_dims(x, [0, -2, -1, 1]),
    "group norm": lambda op, x: op.nn.group_norm(x, *_norm_params(8), 2, 1, [2, 3]),
    "instance norm": lambda op, x: op.nn.instance_norm(x, *_norm_params(8), 1, [2, 3]),
    "layer norm": lambda op, x: op.nn.layer_norm(x, *_norm_params(8, 8, 8), [1, 2, 3]),
    "rms norm": lambda op, x: op.nn.rms_norm(x, _norm_params(8)[0], [3]),
}
"""What TVM's ConvertLayout refuses behind a convolution in images."""


def followed(then: Callable[[Any, Any], Any]) -> Any:
    """Return a module with a convolution, its rectifier, and what `then` makes of it."""
    from tvm import relax

    data = relax.Var("data", tensor_type(INPUT.shape, "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [data]):
        with builder.dataflow():
            value = builder.emit(relax.op.nn.relu(relax.op.nn.conv2d(data, relax.const(FIRST), padding=1)))
            result = builder.emit_output(then(relax.op, value))
        builder.emit_func_output(result)
    return builder.get()


def regions() -> Any:
    """Return a module with the operators that TVM's importer makes of ONNX's RoiAlign, on features of half the size."""
    from tvm import relax

    params = [relax.Var("data", tensor_type((1, 2, 8, 8), "float32")), relax.Var("at", tensor_type((3, 4), "float32"))]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            moved = builder.emit(relax.op.add(params[1], relax.const(np.float32(-0.5))))
            places = builder.emit(relax.op.concat([relax.const(np.zeros((3, 1), np.float32)), moved], axis=1))
            result = builder.emit_output(relax.op.vision.roi_align(params[0], places, (2, 2), 0.5, 2, aligned=True))
        builder.emit_func_output(result)
    return builder.get()


def onnx_file() -> onnx.ModelProto:
    """Return the network as ONNX."""
    nodes = [
        helper.make_node("Conv", ["data", "first"], ["a"], pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "second"], ["c"], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["d"]),
    ]
    data, result = (helper.make_tensor_value_info(*each) for each in (("data", 1, INPUT.shape), ("d", 1, (1, 8, 8, 8))))
    weights = [numpy_helper.from_array(FIRST, "first"), numpy_helper.from_array(SECOND, "second")]
    graph = helper.make_graph(nodes, "net", [data], [result], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def by_onnx() -> Any:
    """Return the module of TVM's ONNX importer."""
    from tvm.relax.frontend.onnx import from_onnx

    return from_onnx(onnx_file())


def by_nn(*, bound: bool = True) -> Any:
    """Return the module of `relax.frontend.nn`, whose function is `forward`; unless `bound`, the weights are inputs."""
    import tvm
    from tvm import relax
    from tvm.relax.frontend import nn

    class Net(nn.Module):  # type: ignore[misc]
        """The network."""

        def __init__(self) -> None:
            self.first = nn.Conv2D(4, 8, 3, padding=1, bias=False)
            self.second = nn.Conv2D(8, 8, 3, padding=1, bias=False)

        def forward(self, data: Any) -> Any:
            return nn.op.relu(self.second(nn.op.relu(self.first(data))))

    mod, _ = Net().export_tvm(spec={"forward": {"data": nn.spec.Tensor(INPUT.shape, "float32")}})
    weights = {"first.weight": FIRST, "second.weight": SECOND}
    tensors = {name: tvm.runtime.tensor(weight) for name, weight in weights.items()}
    return relax.transform.BindParams("forward", tensors)(mod) if bound else mod


def by_torch() -> Any:
    """Return the module of a torch.export program. Raises ModuleNotFoundError without torch."""
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    convs = [torch.nn.Conv2d(weight.shape[1], 8, 3, padding=1, bias=False) for weight in (FIRST, SECOND)]
    for conv, weight in zip(convs, (FIRST, SECOND), strict=True):
        conv.weight.data = torch.from_numpy(weight)
    net = torch.nn.Sequential(convs[0], torch.nn.ReLU(), convs[1], torch.nn.ReLU()).eval()
    return from_exported_program(torch.export.export(net, (torch.from_numpy(INPUT),)))
