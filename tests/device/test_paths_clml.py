"""Path `clml` from model to answer, on the functional model of TVM's CLML runtime."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clml_golden
import numpy as np
import pytest
from compile_once import SEED, unless_large, zoo_compiled, zoo_truth
from compile_requests import request_for
from waiting import LONG_S

from device_runner.runtimes import clml as clml_runtime
from device_runner.runtimes import opencl as opencl_runtime
from harness.compile.artifacts.artifact import CompileResult
from harness.compile.artifacts.compile import compile_model
from harness.compile.models.sources import model_source
from harness.compile.models.spec import InputSpec, seeded_inputs

pytestmark = pytest.mark.device

Answer = Callable[..., tuple[CompileResult, Any]]


@pytest.fixture(scope="session")
def runtime(sidecar_cache: Path) -> Any:
    """TVM with an OpenCL device and a loader of CLML modules."""
    if opencl_runtime.needed():
        opencl_runtime.load(opencl_runtime.sidecar(sidecar_cache))
    if clml_runtime.needed():
        clml_runtime.load(clml_runtime.library(sidecar_cache))
    import tvm

    return tvm


@pytest.fixture
def answer(runtime: Any, common: Path) -> Answer:
    """Compile a network of the zoo for a path, once, load the exported library, run it once on seeded inputs."""

    def run(model: str, path: str) -> tuple[CompileResult, Any]:
        folder, made = zoo_compiled(common, model, path)
        return made, run_once(runtime, folder, made, path)

    return run


def run_once(tvm: Any, folder: Path, made: CompileResult, path: str) -> Any:
    device = tvm.cpu() if path == "cpu" else tvm.device("opencl")
    library = tvm.runtime.load_module(str(folder / made.library))
    machine = tvm.relax.VirtualMachine(library, [device] * made.vdevices)
    inputs = seeded_inputs([InputSpec(name, tuple(shape), dtype) for name, shape, dtype in made.inputs], SEED)
    entry = "main" if path == "cpu" else "main_to_host"
    machine.set_input(entry, *(tvm.runtime.tensor(array) for array in inputs.values()))
    machine.invoke_stateful(entry)
    return machine.get_outputs(entry).numpy()


def test_tiny_is_right(answer: Answer) -> None:
    made, got = answer("tiny", "clml")
    _, expected = answer("tiny", "cpu")
    assert made.offload is not None
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
    assert made.facts["subgraph_calls"] > 1
    assert made.facts["kernels"] > 0, "what stays outside runs on OpenCL"


@pytest.mark.long
@pytest.mark.parametrize(("precision", "share"), [("float16", 0.97), ("float16_acc32", 0.0)])
def test_float16_compiles(tmp_path: Path, precision: str, share: float) -> None:
    """PoCL has no float16, so what stays outside cannot run here. CLML cannot add up in float32 what is float16."""
    file = model_source("tiny").onnx_file(tmp_path)
    made = compile_model(request_for(file, "clml", precision), tmp_path)
    assert made.facts["macs_offloaded"] / made.facts["macs"] == pytest.approx(share, abs=0.01)


def test_depthwise_as_shipped_is_refused_by_the_runtime(runtime: Any, tmp_path: Path) -> None:
    file = model_source("tiny").onnx_file(tmp_path)
    made = compile_model(request_for(file, "clml", as_shipped=True), tmp_path)
    with pytest.raises(RuntimeError, match="only supports group size of 1"):
        run_once(runtime, tmp_path, made, "clml")


@pytest.mark.slow
@pytest.mark.parametrize("model", unless_large(["mobilenet_v1", "resnet18", "squeezenet1_1"]))
def test_zoo_is_right(answer: Answer, tmp_path: Path, model: str) -> None:
    made, got = answer(model, "clml")
    np.testing.assert_allclose(got, zoo_truth(tmp_path, model), rtol=1e-3, atol=1e-3)
    assert made.facts["macs_offloaded"] > 0.9 * made.facts["macs"]


SCRIPT = """
import json, pathlib, sys
sys.path.insert(0, {shared!r})
import clml_golden
from harness.compile.paths.clml import register
register(pathlib.Path({cache!r}))
import tvm
from tvm.relax.backend.adreno.clml import OpenCLMLOffLoad
bytes_of = tvm.get_global_func("adreno_bench.module_bytes")
for case in {cases!r}:
    mod = OpenCLMLOffLoad()(clml_golden.build(case))
    made = [(m.kind, bytes_of(m).hex()) for m in mod.attrs["external_mods"]]
    print(json.dumps(made))
"""


def test_tvms_own_pass_works_in_any_script(sidecar_cache: Path) -> None:
    names = ("split_partition", "two_outputs_used_outside", "small_net", "conv2d_bias_bn_eps_noscale")
    shared = str(Path(clml_golden.__file__).parent)
    script = SCRIPT.format(shared=shared, cache=str(sidecar_cache), cases=names)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=LONG_S, check=False)
    assert done.returncode == 0, done.stderr
    for name, line in zip(names, done.stdout.splitlines(), strict=True):
        expected = clml_golden.modules(name)
        assert json.loads(line) == [["clml", module["bytes_hex"]] for module in expected]
