"""The virtual phone's GPU can do no more than an Adreno, whatever driver of the host is below."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import programs
import pytest
from waiting import FENCE_S, LONG_S

from device_runner.adb_device import AdbDevice
from device_runner.device import Loadable
from device_runner.installed_tvm import EXTRA_LIBRARIES
from device_runner.runtimes import opencl as opencl_runtime
from device_runner.stand_ins.local import RPC_SERVER, LocalDevice, LocalTransport
from device_runner.stand_ins.virtual import VirtualPhone, opencl

pytestmark = [pytest.mark.rest, pytest.mark.device]

INVALID_WORK_GROUP_SIZE, OUT_OF_RESOURCES, INVALID_BUFFER_SIZE = -54, -5, -61
INVALID_IMAGE_SIZE, INVALID_IMAGE_DESCRIPTOR, INVALID_MEM_OBJECT = -40, -65, -38


@pytest.mark.parametrize("pitch", [64, 128, 4096])
def test_what_no_adreno_can_do_is_neither_offered_nor_done_and_images_lie_over_buffers(
    pitch: int, tmp_path: Path, sidecar_cache: Path
) -> None:
    program, counts = tmp_path / "asks", tmp_path / "counts"
    source = Path(__file__).with_name("virtual_gpu.c")
    subprocess.run(["gcc", str(source), "-o", str(program), "-lOpenCL"], check=True, timeout=120)
    layered = {**os.environ, opencl.VARIABLE: str(opencl.layer(sidecar_cache))}
    layered |= {"PHONE_GPU_PITCH": str(pitch), "PHONE_GPU_COUNTS": str(counts)}
    said = subprocess.run([program], env=layered, capture_output=True, text=True, timeout=300, check=True)
    answers = {name: int(value) for name, value in (line.split() for line in said.stdout.splitlines())}
    assert f"an image with rows of 160 bytes has a pitch of {aligned(160, pitch) + 8}" in said.stderr
    bytes_of = aligned(160, pitch) * 4
    assert f"10 x 4 x 3 pixels needs {3 * bytes_of} bytes, and its buffer has {2 * bytes_of}" in said.stderr
    reused = "reads reads an image of 8 x 4 x 1 pixels after another image was written over it"
    assert said.stderr.count(reused) == said.stderr.count("another image") == 1
    assert counts.read_text() == "bbibiib"
    assert answers == {
        "fp64": 0,
        "other_extensions": 1,
        "double_config": 0,
        "group": 1024,
        "items": 1024,
        "local": 32 << 10,
        "allocation": 1 << 30,
        "float_builds": 1,
        "double_builds": 0,
        "double_vector_builds": 0,
        "line_of_error": 1,
        "group_of_1024": 0,
        "group_of_2048": INVALID_WORK_GROUP_SIZE,
        "local_of_36000": OUT_OF_RESOURCES,
        "buffer_of_more_than_1_gib": INVALID_BUFFER_SIZE,
        "image_of_16385_pixels": INVALID_IMAGE_SIZE,
        "image_over_buffer": 0,
        "texel_9_3_1": 9000 + 300 + 10 + 1,
        "wrong_pitch": INVALID_IMAGE_DESCRIPTOR,
        "buffer_too_small": INVALID_IMAGE_SIZE,
        "image_after_buffer": 0,
        "view": 0,
        "after_reuse": INVALID_MEM_OBJECT,
        "written_again": 0,
    }


def test_the_peak_of_memory_is_the_kernels_and_the_gpu_drivers(
    phone: VirtualPhone, device: AdbDevice, opencl_program: Loadable
) -> None:
    if not phone.sandboxed:
        pytest.skip("its programs see this host's /sys")
    newest = int(device.transport.shell(["sh", "-c", "echo $$"], timeout_s=FENCE_S).stdout)
    for process in range(newest, newest + 500):
        folder = phone.home / f"sys/class/kgsl/kgsl/proc/{process}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kernel_max").write_text(f"{123 << 20}\n")
    with device.session({}, timeout_s=LONG_S) as session:
        session.load(opencl_program, timeout_s=FENCE_S).run([np.ones((4, 8), np.float32)], timeout_s=FENCE_S)
        first = session.peak_memory(timeout_s=FENCE_S)
        assert first.gpu_bytes == 123 << 20
        assert 1 << 20 < (first.process_bytes or 0) < 1 << 36
        assert (session.peak_memory(timeout_s=FENCE_S).process_bytes or 0) >= (first.process_bytes or 0)


def aligned(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


@pytest.mark.parametrize("pitch", [64, 4096])
def test_the_tensors_of_a_texture_program_share_memory_and_its_answer_is_right(
    pitch: int, tmp_path: Path, sidecar_cache: Path, libraries: Path
) -> None:
    program, counts = programs.convolved(libraries, "texture"), tmp_path / "counts"
    variables = {opencl.VARIABLE: str(opencl.layer(sidecar_cache)), "PHONE_GPU_PITCH": str(pitch)}
    variables |= {"PHONE_GPU_COUNTS": str(counts)}
    if opencl_runtime.needed():
        variables[EXTRA_LIBRARIES] = str(opencl_runtime.sidecar(sidecar_cache))
    device = LocalDevice("local", LocalTransport(str(tmp_path), variables), RPC_SERVER)
    x = np.arange(256, dtype=np.float32).reshape(1, 4, 8, 8)
    padded = np.pad(x.sum(1)[0], 1)
    sums = sum(padded[i : i + 8, j : j + 8] for i in range(3) for j in range(3))
    with device.session({}, timeout_s=LONG_S) as session:
        loaded = session.load(program, timeout_s=LONG_S)
        for _ in range(3):
            (answer,), _ = loaded.run([x], timeout_s=LONG_S)
            np.testing.assert_array_equal(answer, np.broadcast_to(sums, (1, 4, 8, 8)))
    assert counts.read_text().count("i") >= 3


def test_the_identity_of_the_virtual_device_has_an_adrenos_limits(device: AdbDevice) -> None:
    identity = device.identity
    assert identity.fp64 is False
    assert (identity.work_group_items, identity.local_memory_bytes) == (1024, 32 << 10)
    assert identity.allocation_bytes == 1 << 30
    assert max(identity.image2d_max_width, identity.image2d_max_height) <= 16384


def test_a_gpu_that_opencl_does_not_name_is_called_as_the_kernel_calls_it(
    device: AdbDevice, phone: VirtualPhone, monkeypatch: pytest.MonkeyPatch
) -> None:
    phone.update(gpu={"model": "Adreno740v2"})
    nameless = replace(device.opencl, name="QUALCOMM", device=None)
    monkeypatch.setitem(vars(device), "opencl", nameless)
    assert device.identity.gpu == "Adreno740v2"
