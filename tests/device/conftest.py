"""What device tests share: the OpenCL runtime, built once, a virtual phone for each file, and libraries to run."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import programs
import pytest

from device_runner.adb_device import AdbDevice
from device_runner.device import Loadable
from device_runner.runtimes import opencl as opencl_runtime
from device_runner.runtimes import probe
from device_runner.runtimes.phone import RuntimeStore
from device_runner.stand_ins.virtual import Faults, VirtualPhone, opencl, private_adb, sandbox, virtual_phone
from device_runner.stand_ins.virtual.faults import NeedsStandIn
from device_runner.transport.adb_transport import AdbTransport

COUNTS = "PHONE_GPU_COUNTS"
"""Environment: a file in which the layer of the virtual GPU counts buffers and the images that lie over them."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Skip what needs a fault that only our stand-ins have, where phones run TVM's own software."""
    try:
        yield
    except NeedsStandIn as refused:
        pytest.skip(str(refused))


@pytest.fixture(scope="module")
def running_phone(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, sidecar_cache: Path
) -> Iterator[VirtualPhone]:
    """A virtual phone, whose driver keeps compiled kernels for files that use `warm_driver`.

    One for each file, so that no file has to be undone for the next: a start takes 0.3 s of processor time.
    """
    runtime = opencl_runtime.sidecar(sidecar_cache) if opencl_runtime.needed() else None
    original = RuntimeStore(sidecar_cache).find_for(platform.machine())
    home, layer = tmp_path_factory.mktemp("phone"), opencl.layer(sidecar_cache)
    counts = home / "data/local/tmp/gpu_counts"
    env = {COUNTS: f"{'' if not sandbox.why_not() else home}/data/local/tmp/gpu_counts"} if COUNTS in os.environ else {}
    faults = Faults(driver_keeps_programs="warm_driver" in request.fixturenames)
    with virtual_phone(
        home, opencl_runtime=runtime, opencl_layer=layer, original=original, env=env, injected=faults
    ) as phone:
        yield phone
    if counts.exists():
        with Path(os.environ[COUNTS]).open("a") as all_of_them:
            all_of_them.write(counts.read_text())


@pytest.fixture
def phone(running_phone: VirtualPhone) -> Iterator[VirtualPhone]:
    """A virtual phone without faults, that answers."""
    running_phone.fault(**vars(Faults()))
    private_adb.connect(running_phone.adb_server, running_phone.serial, 20)
    yield running_phone
    running_phone.fault(**vars(Faults()))


@pytest.fixture
def device(phone: VirtualPhone, sidecar_cache: Path) -> AdbDevice:
    transport = AdbTransport(phone.serial, phone.adb_server, phone.root)
    return AdbDevice(
        "virtual",
        transport,
        ["tvm_rpc"],
        partial(probe.library, sidecar_cache),
        kind="virtual",
        emulated=phone.emulated,
        restart_adb=phone.restart_adb,
    )


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("libraries; rm -rf $HOME")


@pytest.fixture(scope="session")
def opencl_program(libraries: Path) -> Loadable:
    return programs.doubled_relu(libraries, "opencl")


@pytest.fixture(scope="session")
def cpu_program(libraries: Path) -> Loadable:
    return programs.doubled_relu(libraries, "cpu")


@pytest.fixture(scope="session")
def misbehaving(libraries: Path) -> Loadable:
    return programs.misbehaving(libraries)


@pytest.fixture(scope="session")
def deaf(libraries: Path) -> Loadable:
    return programs.deaf(libraries)
