"""Artifacts for arm64 run: the virtual phone's RPC server and OpenCL are arm64 programs under qemu.

Minutes long and 600 MB large, so only `make test-arm64` runs it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from arm64_machine import Arm64Machine, cannot_start, missing
from compile_requests import request_for
from mlc_library import write_mlc
from shell_bundles import Made, Place

from device_runner.adb_device import AdbDevice
from device_runner.device import Loadable
from device_runner.runtimes import probe
from device_runner.runtimes.cross_linker import check_library
from device_runner.runtimes.phone import RuntimeStore
from device_runner.stand_ins.virtual import VirtualPhone, virtual_phone
from device_runner.store import sha256_of
from device_runner.transport.adb_transport import AdbTransport
from harness.base.outcome import Outcome
from harness.base.plan import Budget
from harness.compile.artifacts.artifact import INPUTS, OUTPUTS, load_arrays
from harness.compile.artifacts.compile import compile_model, export
from harness.compile.artifacts.oracle import Question, ask_llvm
from harness.compile.artifacts.planner import host_triple
from harness.compile.models.sources import model_source
from harness.tools.bundle.pack import KINDS
from harness.tools.bundle.results import read_results
from harness.tools.llm.build import weights_folder
from harness.tools.llm.cases import test_of as llm_test
from harness.tools.llm.config import LlmConfig
from harness.tools.llm.conversation import Machine
from harness.tools.llm.folders import MlcFolder
from harness.tools.llm.judge import LlmTruth
from harness.tools.llm.lowering import MLC, build_executable, target_of
from harness.tools.llm.mlc import open_conversation
from harness.tools.llm.network import build_module
from harness.tools.llm.quirks import QUIRKS
from harness.tools.llm.run import load_library
from harness.tools.llm.verify import verify
from harness.tools.llm.weights import FORMATS, SeededWeights
from harness.tools.runtime.check import examine, host_interface

pytestmark = [
    pytest.mark.device,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif("ADRENO_BENCH_TEST_ARM64" not in os.environ, reason="run by `make test-arm64`"),
]

RUN_S = 900
LLM = LlmConfig(2, 64, 4, 2, 32, 96, 128)
SEED = 1


@pytest.fixture(scope="module")
def machine(pytestconfig: pytest.Config) -> Arm64Machine:
    if lacking := missing():
        pytest.skip(lacking)
    return Arm64Machine(Path(pytestconfig.cache.mkdir("arm64")))


@pytest.fixture
def arm64_root(machine: Arm64Machine) -> Arm64Machine:
    if lacking := cannot_start():
        pytest.skip(lacking)
    return machine


@pytest.fixture(scope="module")
def arm64_phone(machine: Arm64Machine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualPhone]:
    with virtual_phone(tmp_path_factory.mktemp("phone"), opencl_runtime=machine.opencl_runtime) as phone:
        yield phone


@pytest.mark.parametrize(
    ("path", "abi", "triple"),
    [("opencl", "arm64-v8a", "aarch64-linux-android"), ("texture", "aarch64", "aarch64-linux-gnu")],
)
def test_tiny_is_right_through_adb_and_rpc(
    path: str,
    abi: str,
    triple: str,
    machine: Arm64Machine,
    arm64_phone: VirtualPhone,
    tmp_path: Path,
    sidecar_cache: Path,
) -> None:
    _claim(arm64_phone, abi)
    transport = AdbTransport(arm64_phone.serial, arm64_phone.adb_server, arm64_phone.root)
    device = AdbDevice("arm64", transport, machine.program, partial(probe.library, sidecar_cache, "aarch64"))
    identity = device.identity
    assert identity.opencl_told_by == "probe"
    assert host_triple(identity) == triple
    model = str(model_source("tiny").onnx_file(tmp_path))
    limits = identity.image2d_max_width, identity.image2d_max_height, identity.image_max_array_layers
    request = request_for(model, path, host_triple=triple, limits=limits)
    made = compile_model(request, tmp_path)
    library = tmp_path / made.library
    check_library(library, triple)
    oracle = tmp_path / "oracle"
    oracle.mkdir()
    cpu = dataclasses.replace(request, path="cpu", host_triple=None)
    ask_llvm(cpu, Question(Path(request.model_file), SEED, {}, ""), oracle)
    loadable = Loadable(library, hashlib.sha256(library.read_bytes()).hexdigest(), made.vdevices)
    with device.session({}, timeout_s=120) as session:
        outputs, _ = session.load(loadable, timeout_s=120).run(load_arrays(oracle / INPUTS), timeout_s=RUN_S)
    for got, right in zip(outputs, load_arrays(oracle / OUTPUTS), strict=True):
        assert np.allclose(got.astype(np.float64), right.astype(np.float64), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("ours", [True, False], ids=["ours", "with mlc-llm's interface"])
def test_a_language_model_is_right_through_adb_and_rpc(
    ours: bool, machine: Arm64Machine, arm64_phone: VirtualPhone, tmp_path: Path, sidecar_cache: Path
) -> None:
    _claim(arm64_phone, "arm64-v8a")
    transport = AdbTransport(arm64_phone.serial, arm64_phone.adb_server, arm64_phone.root)
    device = AdbDevice("arm64", transport, machine.program, partial(probe.library, sidecar_cache, "aarch64"))
    triple, library = "aarch64-linux-android", tmp_path / "model.so"
    weights, config = SeededWeights(LLM), FORMATS["q4f32_1"]
    if ours:
        target = target_of(triple)
        module = build_module(LLM, config, target)[0]
        export(build_executable(module, target, MLC, QUIRKS[:1], lambda _: None), library, triple)
    else:
        write_mlc(tmp_path, LLM, config.name, QUIRKS[:1], triple)
    check_library(library, triple)
    loadable = Loadable(library, sha256_of(library), 1)
    truth = LlmTruth.compute(weights, config, 128)
    with device.session({}, timeout_s=120) as session:
        if ours:
            conversation = load_library(session, loadable, weights_folder(weights, config, tmp_path), RUN_S)
        else:
            foreign = Machine(session, loadable, RUN_S)
            conversation = open_conversation(foreign, MlcFolder(tmp_path / "weights"), 128)
        for test in ("pp32", "tg@d0", "chunks"):
            verdict = verify(llm_test(test), conversation, truth)
            assert verdict.right, verdict


def test_a_bundle_for_phones_is_run_by_its_own_program(arm64_root: Arm64Machine, tmp_path: Path) -> None:
    kept = RuntimeStore(tmp_path).add(examine(arm64_root.android_runtime(tmp_path / "runtime"), host_interface()))
    place = Place(tmp_path, tmp_path, KINDS["android-arm64"])
    place.pack(tmp_path, a_tiny_network(tmp_path, "opencl", "aarch64-linux-android"))
    done = arm64_root.run(tmp_path, "sh", "/data/there/run.sh", "results", path="/system/bin")
    assert done.returncode == 0, done.stderr
    (record,) = read_results(place.results, tmp_path).records
    assert record.outcome is Outcome.OK, record.message
    assert len(record.wall_ms) == 3
    assert (record.identity.abi, record.identity.runtime) == ("aarch64", kept.digest)  # the kernel's word for it


def test_a_bundle_for_boards_is_run_by_their_shell(arm64_root: Arm64Machine, tmp_path: Path) -> None:
    kept = RuntimeStore(tmp_path).add(examine(arm64_root.runtime_folder(tmp_path / "runtime"), host_interface()))
    place = Place(tmp_path, tmp_path, KINDS["linux-aarch64"])
    place.pack(
        tmp_path, *(a_tiny_network(tmp_path / path, path, "aarch64-linux-gnu") for path in ("opencl", "texture"))
    )
    done = arm64_root.run(tmp_path, "sh", "/data/there/run.sh", "results")
    assert done.returncode == 0, done.stderr
    records = read_results(place.results, tmp_path).records
    assert [(record.path, record.outcome) for record in records] == [("opencl", Outcome.OK), ("texture", Outcome.OK)]
    for record in records:
        assert len(record.wall_ms) == 3
        assert (record.identity.abi, record.identity.runtime) == ("aarch64", kept.digest)
        assert "PoCL" in record.identity.driver


def a_tiny_network(folder: Path, path: str, triple: str) -> Made:
    """The network tiny with the oracle's answer; a quick look is all that emulation is good for."""
    folder.mkdir(exist_ok=True)
    request = request_for(str(model_source("tiny").onnx_file(folder)), path, host_triple=triple)
    made = compile_model(request, folder)
    library, oracle = folder / made.library, folder / "oracle"
    oracle.mkdir()
    cpu = dataclasses.replace(request, path="cpu", host_triple=None)
    ask_llvm(cpu, Question(Path(request.model_file), SEED, {}, ""), oracle)
    loadable = Loadable(library, hashlib.sha256(library.read_bytes()).hexdigest(), made.vdevices)
    (given,), (right,) = (load_arrays(oracle / name) for name in (INPUTS, OUTPUTS))
    return Made("tiny", loadable, given, right, Budget(quick=True, timeout_s=RUN_S), path)


def test_tvms_own_aarch64_libraries_make_a_runtime_for_boards(machine: Arm64Machine, tmp_path: Path) -> None:
    found = examine(machine.runtime_folder(tmp_path), host_interface())
    assert found.abi == "aarch64"
    assert found.preload == ("libtvm_runtime_opencl.so", "libtvm_runtime_extra.so")


def _claim(phone: VirtualPhone, abi: str) -> None:
    """Let the phone's properties tell the processor that its programs are for."""
    properties = phone.home / "system/build.prop"
    lines = [line for line in properties.read_text().splitlines() if not line.startswith("ro.product.cpu.abi=")]
    properties.write_text("\n".join([*lines, f"ro.product.cpu.abi={abi}", ""]))
