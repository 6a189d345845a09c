"""A virtual phone as a device: what `device_runner.registry` opens by its name."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from device_runner.adb_device import AdbDevice
from device_runner.device import Device
from device_runner.runtimes import host, opencl, probe
from device_runner.runtimes.phone import RuntimeStore
from device_runner.stand_ins.virtual import faults, virtual_phone
from device_runner.stand_ins.virtual.opencl import layer
from device_runner.transport.adb_transport import AdbTransport, Progress

FIRST = "virtual"
"""Name of the phone that has this host's cores for itself."""
SHARED = "own cores"
"""Also emulated on a numbered virtual phone: other phones share its processor while it is timed."""


@contextmanager
def open_virtual(name: str, cache: Path, progress: Progress | None, step: Callable[[str], None]) -> Iterator[Device]:
    """Start a virtual phone, and stop it when the context ends. Raises SetupMissing, RigFailure."""
    injected = faults.from_environment()
    original = RuntimeStore(cache).find_for(platform.machine())
    step(host.STEP)
    opencl_runtime, clml_runtime = host.libraries(cache, without_opencl=original is not None)
    step("step 2 of 3: starting the phone")
    with virtual_phone(
        cache / name,
        opencl_runtime=opencl_runtime,
        opencl_layer=layer(cache),
        clml_runtime=clml_runtime,
        original=original,
        env=opencl.chosen(),
        injected=injected,
    ) as phone:
        transport = AdbTransport(phone.serial, phone.adb_server, phone.root, progress)
        emulated = phone.emulated if name == FIRST else (*phone.emulated, SHARED)
        device = AdbDevice(
            name,
            transport,
            ["tvm_rpc"],
            partial(probe.library, cache),
            kind="virtual",
            emulated=emulated,
            runtime=original.digest if original else "",
            restart_adb=phone.restart_adb,
        )
        with closing(device):
            yield device
