"""Which OpenCL device a machine has, asked in a session of its own.

TVM's runtime says which device it uses, by name and driver; the probe tells everything about it. Where there is no
probe, or it does harm, TVM's two words are all that is known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from posixpath import basename
from typing import TYPE_CHECKING, Any, Protocol

from device_runner.deadline import Deadline
from device_runner.device import Toggles
from device_runner.failures import DeviceCrash, Hang, PathFailure, SetupMissing

if TYPE_CHECKING:
    from device_runner.runtimes.probe import OpenCLDevice, Probe
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
    "`adreno-bench doctor --device` at a phone"
)
HASH_TIMEOUT_S = 30.0


class Machine(Protocol):
    """What is asked: `RpcDevice`."""

    name: str
    transport: Transport
    probe: Probe

    def session(self, toggles: Toggles, *, timeout_s: float) -> AbstractContextManager[RpcSession]:
        """A fresh server process."""


def identify(machine: Machine, timeout_s: float) -> dict[str, Any]:
    """The fields of `Identity` that are OpenCL's. Raises `SetupMissing` without a usable OpenCL device."""
    machine.probe.ready()  # built outside of the session's deadline
    try:
        try:
            return _asked(machine, timeout_s)
        except (DeviceCrash, Hang):
            if not machine.probe.lacking:
                raise
            return _asked(machine, timeout_s)  # the probe did it, and is not asked again
    except PathFailure as failure:  # no program ran: it is the rig that has no OpenCL
        message = f"OpenCL does not work on {machine.name}: {failure.message}"
        raise SetupMissing(message, hint=HINT, evidence=failure.evidence) from failure


def _asked(machine: Machine, timeout_s: float) -> dict[str, Any]:
    deadline = Deadline(timeout_s)
    with machine.session({}, timeout_s=timeout_s) as session:
        names = session.opencl_names(timeout_s=deadline.remaining_s)
        answer = session.probe.describe(deadline)
        session.probe.count(deadline)  # what would do harm in a measured session does it here
    if names is None:
        why = f" ({answer.problem})" if answer and answer.problem else ""
        raise SetupMissing(f"OpenCL does not work on {machine.name}: TVM's runtime finds no device{why}", hint=HINT)
    device = answer.device_of(*names) if answer else None
    if answer is None or device is None:
        return _told_by_tvm(*names)
    return {**_told_by_probe(device), **_digests(machine, answer.files)}


def _told_by_tvm(name: str, driver_version: str) -> dict[str, Any]:
    return {"gpu": name.strip(), "driver": driver_version.strip(), "opencl_told_by": BY_TVM, **LEAST_IMAGE}


def _told_by_probe(device: OpenCLDevice) -> dict[str, Any]:
    return {
        "gpu": device.gpu,
        "driver": device.driver,
        "clml": device.clml,
        "extensions": device.extensions,
        "opencl_told_by": BY_PROBE,
        **{name: getattr(device, name) or least for name, least in LEAST_IMAGE.items()},
    }


def _digests(machine: Machine, files: Sequence[str]) -> dict[str, str]:
    """Of OpenCL's and of OpenCL ML's files; empty text where the device does not let us read them all."""
    if not files:
        return {}
    answer = machine.transport.shell(["sha256sum", *files], timeout_s=HASH_TIMEOUT_S)
    if answer.code:
        return {}
    sums = [(basename(path), hash_) for hash_, _, path in (line.partition("  ") for line in answer.stdout.splitlines())]
    clml = [named for named in sums if "clml" in named[0].lower()]
    opencl = [named for named in sums if named not in clml]
    return {"opencl_libraries": _digest(opencl), "clml_libraries": _digest(clml)}


def _digest(sums: Iterable[tuple[str, str]]) -> str:
    """First 16 hexadecimal digits of the SHA-256 of names and SHA-256s, sorted."""
    ordered = sorted(sums)
    return hashlib.sha256(repr(ordered).encode()).hexdigest()[:16] if ordered else ""
