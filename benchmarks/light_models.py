"""The nine light models that the `onnx` package ships, with weights of ours, and a suite file that runs them.

    python -m benchmarks.light_models FOLDER [NAME...]
    adreno-bench run --suite FOLDER/light.toml --quick

They are real topologies (AlexNet to DenseNet-121, opset 9, exported from Caffe2) whose weights are `ConstantOfShape`,
one number each. With those a network computes next to nothing, and a wrong compiler may be right. So each weight gets
random numbers, seeded by its name, of a size that keeps activations about 1 through the network: the second moment
of each tensor is estimated along the graph, and a convolution's weights are divided by that of its input.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = (
    "squeezenet", "bvlc_alexnet", "zfnet512", "shufflenet", "resnet50",
    "inception_v1", "inception_v2", "vgg19", "densenet121",
)  # fmt: skip
"""Roughly by how long they take."""
SUITE = """models = [{models}]
paths = ["opencl", "texture"]

[limits]
build_s = 3600
build_memory_gb = 16
run_s = 1800
"""
MODEL = '{{ onnx = "light_{name}.onnx", name = "{name}" }}'

_BATCH_NORM = {1: (0.7, 1.3), 2: (-0.2, 0.2), 3: (-0.2, 0.2), 4: (0.6, 1.6)}
"""Ranges of gamma, beta, mean and variance, by their place among the inputs: mild, and all different."""


def with_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with seeded weights in place of `ConstantOfShape` and constant initialisers."""
    graph = model.graph
    given = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    shapes: dict[str, tuple[int, ...]] = {}
    for node in graph.node:
        if node.op_type == "ConstantOfShape":
            shapes[node.output[0]] = tuple(int(extent) for extent in given[node.input[0]])
    shapes |= {name: array.shape for name, array in given.items() if array.size > 1 and array.dtype == np.float32}
    nodes = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    made: dict[str, Any] = {}
    moments: dict[str, float] = {}
    sums = {node.output[0] for node in nodes if node.op_type == "Sum"}
    for node in nodes:
        for place, name in enumerate(node.input):
            if name in shapes and name not in made:
                made[name] = _weight(name, shapes[name], node.op_type, place, moments.get(node.input[0], 1.0))
        # A rectifier takes half of what is around 0, and next to nothing of a sum with what was rectified before.
        of_sum = node.op_type == "Relu" and node.input[0] in sums
        moment = moments[node.input[0]] if of_sum else _moment(node, moments)
        moments |= dict.fromkeys(node.output, moment)
    used = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used - made.keys()]
    inputs = [value for value in graph.input if value.name in used - given.keys() - made.keys()]
    del graph.node[:], graph.initializer[:], graph.input[:]
    graph.input.extend(inputs)
    graph.node.extend(nodes)
    graph.initializer.extend([*kept, *(numpy_helper.from_array(array, name) for name, array in made.items())])
    model.ir_version = max(model.ir_version, 4)  # before, initialisers had to be inputs, too
    return model


def _weight(name: str, shape: tuple[int, ...], kind: str, place: int, moment: float) -> Any:
    """Values of a weight, as its operator and its place among the inputs have them."""
    random = np.random.default_rng(list(hashlib.sha256(name.encode()).digest()))
    if kind in ("Conv", "Gemm") and place == 1:
        deviation = (1.0 / (float(np.prod(shape[1:])) * moment)) ** 0.5
        return (deviation * random.standard_normal(shape)).astype(np.float32)
    low, high = _BATCH_NORM.get(place, (-0.2, 0.2)) if kind == "BatchNormalization" else (-0.2, 0.2)
    # An Unsqueeze leads to Mul or Add: `_w_` is how Caffe2 calls scales, the others are offsets.
    low, high = (0.7, 1.3) if kind == "Unsqueeze" and "_w_" in name else (low, high)
    return random.uniform(low, high, shape).astype(np.float32)


def _moment(node: Any, moments: dict[str, float]) -> float:
    """About how large the second moment of a node's result is, if its weights are those of `_weight`."""
    of_inputs = [moments[name] for name in node.input if name in moments] or [1.0]
    if node.op_type in ("Conv", "Gemm"):
        return 1.0
    if node.op_type == "Sum":
        return sum(of_inputs)
    mean = sum(of_inputs) / len(of_inputs)
    return mean * {"Relu": 0.5, "MaxPool": 2.0}.get(node.op_type, 1.0)


def write(folder: Path, names: Sequence[str] = NAMES) -> Path:
    """Write the models and the suite file; returns the suite file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        model = with_weights(onnx.load(LIGHT / f"light_{name}.onnx"))
        onnx.save(model, folder / f"light_{name}.onnx")
    suite = folder / "light.toml"
    suite.write_text(SUITE.format(models=", ".join(MODEL.format(name=name) for name in names)), encoding="utf-8")
    return suite


if __name__ == "__main__":
    print(write(Path(sys.argv[1]), sys.argv[2:] or NAMES))
