"""TVM's runtime for real phones: where it lies on this host, and how it comes to the phone.

TVM's wheels hold no runtime for Android. A folder for each ABI, with `tvm_rpc` and the shared libraries that it needs,
is brought to the phone under the hash of its content.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from device_runner.failures import SetupMissing
from device_runner.push import push

if TYPE_CHECKING:
    from device_runner.adb_device import AdbTransport

FOLDER_VARIABLE = "ADRENO_BENCH_PHONE_RUNTIME"
"""Environment variable: a folder that holds one folder for each ABI."""

PROGRAM = "tvm_rpc"

PUSH_TIMEOUT_S = 120.0


def runtime_folder(abi: str, cache: Path) -> Path:
    """Where the runtime for an ABI lies on this host. Raises `SetupMissing` if there is none."""
    folder = Path(os.environ.get(FOLDER_VARIABLE) or cache / "phone-runtime") / abi
    if not (folder / PROGRAM).is_file():
        raise SetupMissing(
            f"there is no TVM runtime for phones with ABI {abi or 'unknown'} yet",
            hint=f"put {PROGRAM} and its shared libraries, built for that ABI, into {folder}",
        )
    return folder


def install(transport: AdbTransport, folder: Path) -> tuple[str, ...]:
    """Bring a runtime folder to the phone, and return the command that starts it there."""
    files = sorted(file for file in folder.iterdir() if file.is_file())
    hashes = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    digest = hashlib.sha256(repr(sorted(hashes.items())).encode()).hexdigest()[:16]
    target = f"{transport.root}/runtime/{digest}"
    for file in files:
        push(transport, file, hashes[file.name], f"{target}/{file.name}", timeout_s=PUSH_TIMEOUT_S)
    return ("env", f"LD_LIBRARY_PATH={target}", f"{target}/{PROGRAM}")
