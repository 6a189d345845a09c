"""Names and devices: what there is to run on, and how a name becomes a device that is ours for a while."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from device_runner.device import Device, DeviceEntry
from device_runner.failures import Failure
from device_runner.lease import lease, owner_of

if TYPE_CHECKING:
    from device_runner.adb_server import AdbEntry
    from device_runner.push import Progress

VIRTUAL, LOCAL = "virtual", "local"

OPENCL_VARIABLES = ("ADRENO_BENCH_OPENCL_DEVICE", "OCL_ICD_VENDORS")
"""What chooses OpenCL's device and driver on this host chooses them on the virtual phone too."""

WAIT_FOR_DEVICE_S = 3600.0
"""How long a run waits for another one to free the device."""


class UnknownDevice(Failure):
    """There is no device of this name."""

    outcome = "usage"


def list_devices(cache: Path) -> list[DeviceEntry]:
    """The virtual device, this host, and every phone that the user's adb server knows, in whatever state.

    Starts an adb server only if a phone hangs on this host's USB. Raises `RigFailure` if the server does not answer.
    """
    from device_runner.adb_server import known_devices

    built_in = [
        DeviceEntry(VIRTUAL, "virtual", "ready", {"what": "an Android-shaped sandbox on this host's OpenCL"}),
        DeviceEntry(LOCAL, "local", "ready", {"what": "this host's OpenCL, without adb"}),
    ]
    phones = [DeviceEntry(entry.serial, "phone", _state(entry), entry.tags) for entry in known_devices()]
    return [_unless_busy(entry, cache) for entry in (*built_in, *phones)]


@contextmanager
def open_device(
    name: str,
    cache: Path,
    *,
    say: Callable[[str], None] | None = None,
    progress: Progress | None = None,
    timeout_s: float = WAIT_FOR_DEVICE_S,
    runtime: bool = True,
) -> Iterator[Device]:
    """Hold a device and, if it is the virtual one, start it. Everything is undone when the context ends.

    `say` is told whom we wait for, `progress` how far a push has come. Without `runtime` nothing is brought to a phone:
    it can be looked at and put back, and has no sessions. Raises `UnknownDevice`, `DeviceBusy` if it is
    not free within `timeout_s`, `SetupMissing`, or `DeviceLost` if it cannot be reached.
    """
    if name not in _BUILT_IN:
        _require_known(name)
    opened = _BUILT_IN.get(name, _phone if runtime else _bare_phone)
    with lease(name, _leases(cache), timeout_s=timeout_s, waiting=say), opened(name, cache, progress) as device:
        yield device


def put_back(name: str, cache: Path, *, timeout_s: float = 0) -> Mapping[str, str]:
    """Put back what a killed run left changed on a device: what came of each knob, empty if it left nothing.

    Raises `UnknownDevice`, `DeviceBusy` if somebody measures on it, or `DeviceLost` if it cannot be reached.
    """
    from device_runner.adb_device import AdbDevice

    with open_device(name, cache, timeout_s=timeout_s, runtime=False) as device:
        return device.keeper.put_back() if isinstance(device, AdbDevice) else {}


def _runtimes(cache: Path) -> tuple[Path | None, Path | None]:
    """What the installed TVM lacks on devices of this host: its OpenCL runtime, and CLML's functional model."""
    from device_runner import clml_runtime, opencl_runtime

    opencl = opencl_runtime.sidecar(cache) if opencl_runtime.needed() else None
    return opencl, clml_runtime.library(cache) if clml_runtime.needed() else None


@contextmanager
def _virtual(name: str, cache: Path, progress: Progress | None) -> Iterator[Device]:
    from device_runner.adb_device import AdbDevice, AdbTransport
    from device_runner.virtual import faults, virtual_phone

    injected = faults.from_environment()
    opencl, clml = _runtimes(cache)
    chosen = {name: value for name in OPENCL_VARIABLES if (value := os.environ.get(name))}
    with virtual_phone(
        cache / "virtual", opencl_runtime=opencl, clml_runtime=clml, env=chosen, injected=injected
    ) as phone:
        transport = AdbTransport(phone.serial, phone.adb_port, phone.root, progress)
        with closing(AdbDevice(name, transport, ["tvm_rpc"], kind="virtual", emulated=phone.emulated)) as device:
            yield device


@contextmanager
def _local(name: str, cache: Path, _progress: Progress | None) -> Iterator[Device]:
    from device_runner.local import RPC_SERVER, LocalDevice, LocalTransport
    from device_runner.virtual.tvm_rpc.runtime import EXTRA_LIBRARIES

    environment = {EXTRA_LIBRARIES: ":".join(str(library) for library in _runtimes(cache) if library)}
    yield LocalDevice(name, LocalTransport(str(cache / "local"), environment), RPC_SERVER)


@contextmanager
def _phone(serial: str, cache: Path, progress: Progress | None) -> Iterator[Device]:
    from device_runner.adb_device import PHONE_ROOT, AdbDevice, AdbTransport, abi_of
    from device_runner.adb_server import default_port
    from device_runner.phone_runtime import RuntimeStore, install

    transport = AdbTransport(serial, default_port(), PHONE_ROOT, progress)
    runtime = RuntimeStore(cache).runtime_for(abi_of(transport))
    with closing(AdbDevice(serial, transport, install(transport, runtime.folder, runtime.preload))) as device:
        yield device


@contextmanager
def _bare_phone(serial: str, cache: Path, progress: Progress | None) -> Iterator[Device]:
    from device_runner.adb_device import PHONE_ROOT, AdbDevice, AdbTransport
    from device_runner.adb_server import default_port

    with closing(AdbDevice(serial, AdbTransport(serial, default_port(), PHONE_ROOT, progress), ["false"])) as device:
        yield device


_BUILT_IN = {VIRTUAL: _virtual, LOCAL: _local}


def _require_known(name: str) -> None:
    from device_runner.adb_server import known_devices

    names = [VIRTUAL, LOCAL, *(entry.serial for entry in known_devices())]
    if name not in names:
        raise UnknownDevice(f"there is no device {name!r}", hint=_suggestion(name, names))


def _suggestion(name: str, names: Sequence[str]) -> str:
    nearest = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {nearest[0]!r}?" if nearest else f"there are: {', '.join(names)}"


def _state(entry: AdbEntry) -> str:
    """Adb's word for it; adbutils keeps only the first of `no permissions`."""
    return {"device": "ready", "no": "no permissions"}.get(entry.state, entry.state)


def _unless_busy(entry: DeviceEntry, cache: Path) -> DeviceEntry:
    owner = owner_of(entry.name, _leases(cache))
    if not owner:
        return entry
    return DeviceEntry(entry.name, entry.kind, "busy", {**entry.detail, "used by": str(owner)})


def _leases(cache: Path) -> Path:
    return cache / "leases"
