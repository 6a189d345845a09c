"""Small ONNX networks of a test's own, and what onnxruntime makes of them before and after a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from harness.compile.oracle.onnx_runtime import OnnxRuntime


def network(
    nodes: Sequence[Any],
    shapes: Mapping[str, Sequence[Any]],
    outputs: Sequence[str] = ("y",),
    *,
    opset: int = 17,
    dtype: int = TensorProto.FLOAT,
    **weights: Any,
) -> Any:
    """A network with inputs of one number format, whose outputs have the types that ONNX infers."""
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, dtype, shape) for name, shape in shapes.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=6 if opset < 9 else 8)


def answers(model: Any, inputs: Mapping[str, Any]) -> list[Any]:
    """What the judge's onnxruntime computes, without its optimisations, of which some round otherwise."""
    return OnnxRuntime(model).ask(inputs)


def changed(model: Any, step: Callable[[Any], Any]) -> tuple[Any, Any]:
    """A copy that a step has changed, and what the step said."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy, step(copy)


def kinds(model: Any) -> list[str]:
    """Operators of a network."""
    return [node.op_type for node in model.graph.node]


def values(*shape: int, seed: int = 0) -> Any:
    """Standard normal numbers."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)
