"""The virtual phone's GPU can do no more than an Adreno, whatever driver of the host is below."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from device_runner.adb_device import AdbDevice
from device_runner.virtual import VirtualPhone, opencl

pytestmark = pytest.mark.device

INVALID_WORK_GROUP_SIZE, OUT_OF_RESOURCES, INVALID_BUFFER_SIZE, INVALID_IMAGE_SIZE = -54, -5, -61, -40


def test_what_no_adreno_can_do_is_neither_offered_nor_done(tmp_path: Path, sidecar_cache: Path) -> None:
    program = tmp_path / "asks"
    source = Path(__file__).with_name("virtual_gpu.c")
    subprocess.run(["gcc", str(source), "-o", str(program), "-lOpenCL"], check=True, timeout=120)
    layered = {**os.environ, opencl.VARIABLE: str(opencl.layer(sidecar_cache))}
    said = subprocess.run([program], env=layered, capture_output=True, text=True, timeout=300, check=True).stdout
    answers = {name: int(value) for name, value in (line.split() for line in said.splitlines())}
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
    }


def test_the_identity_of_the_virtual_device_has_an_adrenos_limits(device: AdbDevice) -> None:
    identity = device.identity
    assert identity.fp64 is False
    assert (identity.work_group_items, identity.local_memory_bytes) == (1024, 32 << 10)
    assert max(identity.image2d_max_width, identity.image2d_max_height) <= 16384


def test_a_gpu_that_opencl_does_not_name_is_called_as_the_kernel_calls_it(
    device: AdbDevice, phone: VirtualPhone, monkeypatch: pytest.MonkeyPatch
) -> None:
    phone.update(gpu={"model": "Adreno740v2"})
    nameless = replace(device.opencl, name="QUALCOMM", device=None)
    monkeypatch.setitem(vars(device), "opencl", nameless)
    assert device.identity.gpu == "Adreno740v2"
