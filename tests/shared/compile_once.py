"""Compiling a network of the zoo for this host once in a whole run of the tests, whichever of them asks first."""

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnx
import pytest
import small_networks
from compile_requests import request_for
from filelock import FileLock
from waiting import LONG_S

from harness.compile.artifacts.artifact import CompileResult
from harness.compile.artifacts.compile import compile_model
from harness.compile.models.sources import model_source
from harness.compile.models.spec import InputSpec, seeded_inputs

SEED = 7
"""Of the inputs of a network."""

LARGE = ("mobilenet_v1", "resnet18", "squeezenet1_1")
"""Each takes about a minute of processor time. `tiny` has every kind of operator that they have."""


def unless_large(models: Iterable[Any]) -> list[Any]:
    """Parameters of a test that leaves the large networks to `make test-long`."""
    return [pytest.param(model, marks=pytest.mark.long) if model in LARGE else model for model in models]


def zoo_compiled(common: Path, model: str, path: str) -> tuple[Path, CompileResult]:
    """A network on a path in float32, with all workarounds, and the folder that its library is in.

    `common` is a folder of all processes of this run.
    """
    folder = common / f"{model}-{path}"
    told = folder / "compiled.json"
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "lock", timeout=LONG_S):
        if not told.exists():
            made = compile_model(request_for(model_source(model).onnx_file(folder), path), folder)
            told.write_text(json.dumps(dataclasses.asdict(made)))
    return folder, CompileResult(**json.loads(told.read_text()))


def zoo_truth(folder: Path, model: str) -> Any:
    """What onnxruntime computes of a network with one output on the inputs of `SEED`."""
    network = onnx.load(model_source(model).onnx_file(folder))
    shapes = {
        value.name: [axis.dim_value for axis in value.type.tensor_type.shape.dim] for value in network.graph.input
    }
    specs = [InputSpec(name, tuple(shape)) for name, shape in shapes.items()]
    (answer,) = small_networks.answers(network, seeded_inputs(specs, SEED))
    return answer
