"""Which OpenCL device a machine has, asked in a session of its own.

TVM's runtime says which device it uses, by name and driver; the probe tells everything about it. Where there is no
probe, or it does harm, TVM's two words are all that is known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from posixpath import basename
from typing import TYPE_CHECKING, Any, Protocol

from device_runner.deadline import Deadline
from device_runner.device import Toggles
from device_runner.failures import DeviceCrash, Hang, PathFailure, SetupMissing
from device_runner.runtimes.probe import MOST_BROKEN, DeviceProbe
from device_runner.runtimes.probe.answers import OpenCLDevice, OpenClReport, plain

if TYPE_CHECKING:
    from device_runner.session.rpc_session import RpcSession
    from device_runner.transport.base import Transport

BY_PROBE, BY_TVM = "probe", "tvm"

LEAST_IMAGE = {"image2d_max_width": 8192, "image2d_max_height": 8192, "image_max_array_layers": 2048}
"""What every device with images has (OpenCL 1.2, table 4.3), for one that does not say.

A library that is built for it runs on every device. Some tensors are then kept in other places than on a device that
says more, so it may be slower; it is never wrong.
"""

HINT = (
    "does it have a driver for OpenCL (Android: /vendor/lib64/libOpenCL.so)? `adreno-bench doctor` looks at this host, "
    "`adreno-bench doctor --device SERIAL` at a phone"
)
HASH_TIMEOUT_S = 30.0


class IdentifiableDevice(Protocol):
    """What is asked: `RpcDevice`."""

    name: str
    transport: Transport
    probe: DeviceProbe

    def session(self, toggles: Toggles, *, timeout_s: float) -> AbstractContextManager[RpcSession]:
        """Return a fresh server process."""


@dataclass(frozen=True)
class Description:
    """What is known of a machine's OpenCL device."""

    name: str
    """Device name by TVM's runtime, like the driver's version."""
    driver_version: str
    device: OpenCLDevice | None = None
    """All else, as the probe tells it; None where it is lacking, or knows no such device."""
    files: tuple[str, ...] = ()
    """What OpenCL consists of in the process, as far as names show."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """`opencl_libraries` and `clml_libraries` of `Identity`."""

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of `Identity` that are OpenCL's."""
        device = self.device
        if device is None:
            return {"gpu": self.name, "driver": self.driver_version, "opencl_told_by": BY_TVM, **LEAST_IMAGE}
        images = {name: getattr(device, name) or least for name, least in LEAST_IMAGE.items()}
        named = {"gpu": device.gpu, "driver": device.driver, "clml": device.clml, "extensions": device.extensions}
        sizes = {
            "memory_bytes": device.size("global_memory_bytes"),
            "work_group_items": device.size("max_work_group_size"),
            "local_memory_bytes": device.size("local_memory_bytes"),
            "allocation_bytes": device.size("max_allocation_bytes"),
        }
        return {**named, **images, **sizes, **self.digests, "opencl_told_by": BY_PROBE}


def describe(machine: IdentifiableDevice, timeout_s: float) -> Description:
    """Ask a machine for its OpenCL device. Raises `SetupMissing` if there is none that can be used."""
    machine.probe.ready()  # built outside of the session's deadline
    try:
        for _ in range(MOST_BROKEN):
            try:
                return _asked(machine, timeout_s)
            except (DeviceCrash, Hang):
                if not machine.probe.suspect:
                    raise
        return _asked(machine, timeout_s)  # the probe did it, and is not asked again
    except PathFailure as failure:  # no program ran: it is the rig that has no OpenCL
        message = f"OpenCL does not work on {machine.name}: {failure.message}"
        raise SetupMissing(message, hint=HINT, evidence=failure.evidence) from failure


def _asked(machine: IdentifiableDevice, timeout_s: float) -> Description:
    with machine.session({}, timeout_s=timeout_s) as session:
        names = session.opencl_names(timeout_s=timeout_s)
        # The probe has a time of its own: a busy host that is slow to start the session is not the probe's fault.
        answer = session.probe.describe(Deadline(timeout_s))
        session.probe.count(Deadline(timeout_s))  # what would do harm in a measured session does it here
    if names is None:
        why = f" ({answer.problem})" if answer and answer.problem else ""
        raise SetupMissing(f"OpenCL does not work on {machine.name}: TVM's runtime finds no device{why}", hint=HINT)
    return description_of(names, answer, lambda files: _sums(machine, files))


def description_of(
    names: tuple[str, str], answer: OpenClReport | None, sums: Callable[[Sequence[str]], str]
) -> Description:
    """Build the description from TVM's attributes, the probe's answer, and `sha256sum` of files; None on failure."""
    name, driver_version = map(plain, names)
    device = answer.device_of(name, driver_version) if answer else None
    if answer is None or device is None:
        return Description(name, driver_version)
    return Description(name, driver_version, device, answer.files, _digests(sums(answer.files) if answer.files else ""))


def _sums(machine: IdentifiableDevice, files: Sequence[str]) -> str:
    """SHA-256 of files; nothing where the device does not let us read them all."""
    answer = machine.transport.shell(["sha256sum", *files], timeout_s=HASH_TIMEOUT_S)
    return "" if answer.code else answer.stdout


def _digests(printed: str) -> dict[str, str]:
    """Digests of OpenCL's and OpenCL ML's files, from the output of `sha256sum`; empty without."""
    if not printed.strip():
        return {}
    sums = [(basename(path), hash_) for hash_, _, path in (line.partition("  ") for line in printed.splitlines())]
    clml = {hash_ for name, hash_ in sums if "clml" in name.lower()}
    return {"opencl_libraries": _digest({hash_ for _, hash_ in sums} - clml), "clml_libraries": _digest(clml)}


def _digest(sums: Iterable[str]) -> str:
    """Digest of files by content alone: the first 16 digits of the SHA-256 of their sorted SHA-256s."""
    ordered = sorted(sums)
    return hashlib.sha256(" ".join(ordered).encode()).hexdigest()[:16] if ordered else ""
