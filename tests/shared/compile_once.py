"""Compiling a network of the zoo for this host once in a whole run of the tests, whichever of them asks first."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnx
import pytest
from compile_requests import request_for
from waiting import LONG_S

from device_runner.store import sha256_of
from harness.base.suite import Limits
from harness.compile.artifacts.artifact import Artifact, CompileResult
from harness.compile.artifacts.keys import compile_job
from harness.compile.artifacts.pool import Builder
from harness.compile.models.onnx_inputs import input_specs
from harness.compile.models.sources import model_source
from harness.compile.models.spec import seeded_inputs
from harness.compile.oracle.truth import first_answer, judges_of

SEED = 7
"""Of the inputs of a network."""

LARGE = ("mobilenet_v1", "resnet18", "squeezenet1_1")
"""Each takes about a minute of processor time. `tiny` has every kind of operator that they have."""


def unless_large(models: Iterable[Any]) -> list[Any]:
    """Parameters of a test that leaves the large networks to `make test-long`."""
    return [pytest.param(model, marks=pytest.mark.long) if model in LARGE else model for model in models]


def zoo_compiled(common: Path, model: str, path: str) -> tuple[Path, CompileResult]:
    """A network on a path in float32, with all workarounds, and the folder that its library is in.

    It is an artifact in the store of all processes of this run, in `common`: what a command has built is not built
    again here, and the other way round.
    """
    file = model_source(model).onnx_file(common)
    job = compile_job(request_for(file, path), sha256_of(file), f"{model}-{path}")
    with Builder(common, Limits(build_s=LONG_S)) as builder:
        artifact = builder.build([job])[job.key]
    assert isinstance(artifact, Artifact), artifact
    return artifact.loadable.library.parent, artifact.compiled


def zoo_truth(folder: Path, model: str) -> Any:
    """What onnxruntime computes of a network with one output on the inputs of `SEED`."""
    (answer,) = truth(model_source(model).onnx_file(folder).read_bytes())
    return answer


def truth(network: bytes) -> list[Any]:
    """What the first judge outside TVM that can computes of a network on the inputs of `SEED`."""
    model = onnx.load_model_from_string(network)
    return first_answer(judges_of(model), seeded_inputs(input_specs(model), SEED)).outputs
