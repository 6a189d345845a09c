"""Bring a runtime to a device, and say how it is started there."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from device_runner.runtimes.phone.check import PROGRAM
from device_runner.runtimes.phone.opencl_link import linked_opencl
from device_runner.runtimes.phone.store import digest_of
from device_runner.transport.adb_transport import AdbTransport
from device_runner.transport.push import push

PUSH_TIMEOUT_S = 120.0
"""For one file."""


def install(transport: AdbTransport, folder: Path, preload: Sequence[str] = ()) -> tuple[str, ...]:
    """Bring a folder of files to the device under the hash of its content, and return the command to start it there.

    `preload` names libraries of the folder that the loader must take along.
    """
    files = sorted(file for file in folder.iterdir() if file.is_file())
    target = f"{transport.root}/runtime/{digest_of(files)}"
    for file in files:
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
        push(transport, file, sha256, f"{target}/{file.name}", timeout_s=PUSH_TIMEOUT_S)
    return started_in(target, preload, linked_opencl(transport))


def started_in(folder: str, preload: Sequence[str] = (), opencl: str = "") -> tuple[str, ...]:
    """The command that starts a runtime which lies in a folder of the device; `opencl` is one more to search."""
    environment = [f"LD_LIBRARY_PATH={':'.join(filter(None, (folder, opencl)))}"]
    if preload:
        environment.append(f"LD_PRELOAD={':'.join(preload)}")
    return ("env", *environment, f"{folder}/{PROGRAM}")
