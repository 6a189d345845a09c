"""Modules of a program of one's own, from each of TVM's front ends, on OpenCL."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import relax_modules as nets
from page_blocks import blocks
from places import ROOT

import adreno_bench as bench
from device_runner.runtimes import clml as clml_runtime
from device_runner.runtimes import opencl as opencl_runtime
from device_runner.runtimes.phone.elf import read_elf
from harness.compile.paths.cpu import cpu_machine, run_on_cpu

pytestmark = pytest.mark.device

Answer = Callable[..., nets.Array]


@pytest.fixture
def run(sidecar_cache: Path) -> Answer:
    """Run a function of a library on OpenCL, once."""
    if opencl_runtime.needed():
        opencl_runtime.load(opencl_runtime.sidecar(sidecar_cache))
    if clml_runtime.needed():
        clml_runtime.load(clml_runtime.library(sidecar_cache))
    import tvm

    def run(file: Path, devices: int, *inputs: nets.Array, name: str = "main") -> nets.Array:
        device = tvm.device("opencl")
        machine = tvm.relax.VirtualMachine(tvm.runtime.load_module(str(file)), [device] * devices)
        result = machine[name](*(tvm.runtime.tensor(array, device) for array in inputs or (nets.INPUT,)))
        return np.asarray((result if hasattr(result, "numpy") else result[0]).numpy())

    return run


@pytest.fixture
def answer(run: Answer, tmp_path: Path) -> Answer:
    """Compile a module for a path and run it once."""

    def answer(mod: Any, path: str, *inputs: nets.Array, name: str = "main", **words: Any) -> nets.Array:
        compiled = bench.compile(mod, path, **words)
        assert path != "texture" or compiled.facts["image_kernels"]
        library = compiled.export_library(tmp_path / f"{len(list(tmp_path.iterdir()))}.so")
        return run(library, compiled.devices, *inputs, name=name)

    return answer


def require_right(result: nets.Array) -> None:
    np.testing.assert_allclose(result, nets.answer(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("path", ["opencl", "texture", "clml"])
@pytest.mark.parametrize(
    ("make", "name"),
    [(nets.by_hand, "main"), (nets.by_onnx, "main"), (nets.by_nn, "forward"), (nets.by_torch, "main")],
)
def test_a_module_of_each_front_end_is_right(make: Callable[[], Any], name: str, path: str, answer: Answer) -> None:
    if make is nets.by_torch:
        pytest.importorskip("torch")
    require_right(answer(make(), path, name=name))


def test_what_is_wrong_as_shipped_is_right_with_the_workarounds(answer: Answer) -> None:
    mod = nets.by_hand()
    if "texture-store-broadcast" not in bench.compile(mod, "texture").quirks:
        pytest.skip("this release of TVM stores texels right")
    shipped = answer(mod, "texture", as_shipped=True)
    assert np.max(np.abs(shipped - nets.answer())) > 10
    require_right(answer(mod, "texture"))


@pytest.mark.parametrize("path", ["texture", "clml"])
@pytest.mark.parametrize("name", nets.LAYOUT_TRAPS)
def test_what_is_behind_a_convolution_in_images_is_right(name: str, path: str, answer: Answer) -> None:
    mod = nets.followed(nets.LAYOUT_TRAPS[name])
    (expected,) = run_on_cpu(cpu_machine(mod), [nets.INPUT])
    assert np.max(np.abs(answer(mod, path) - expected)) < 1e-4


@pytest.mark.parametrize("path", ["opencl", "texture", "clml"])
def test_weights_may_stay_inputs(path: str, answer: Answer) -> None:
    require_right(answer(nets.by_nn(bound=False), path, nets.INPUT, nets.FIRST, nets.SECOND))


def test_a_module_means_what_it_says_where_the_onnx_importer_would_be_corrected(answer: Answer) -> None:
    features = np.random.default_rng(1).standard_normal((1, 2, 8, 8), np.float32)
    regions = np.array([[1, 1, 9, 9], [2, 3, 12, 11], [0, 0, 15, 15]], np.float32)
    (expected,) = run_on_cpu(cpu_machine(nets.regions()), [features, regions])
    assert np.max(np.abs(answer(nets.regions(), "opencl", features, regions) - expected)) < 1e-5


def test_the_example_of_the_docs_compiles_what_tvm_runs(
    run: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs/how-to/models.md").read_text("utf-8")
    (example,) = (block for block in blocks(page, "python") if "bench.compile" in block)
    monkeypatch.chdir(tmp_path)
    onnx.save(nets.onnx_file(), "net.onnx")
    abi = ', abi="arm64-v8a"'
    assert abi in example
    if find_spec("ziglang"):
        exec(example, {})
        assert read_elf(tmp_path / "lib.so").machine == "EM_AARCH64"
    values: dict[str, Any] = {}
    exec(example.replace(abi, "").replace("lib.so", "here.so"), values)
    require_right(run(tmp_path / "here.so", values["compiled"].devices))
