"""Bring a runtime to a device, and say how it is started there.

TVM opens `libOpenCL.so` (opencl_wrapper.cc). That is the name of development files; a board that only runs programs has
`libOpenCL.so.1`. A link in a folder of ours, which the server then searches, is all that it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from device_runner.failures import DeviceFull
from device_runner.runtimes.phone.store import PROGRAM, digest_of
from device_runner.store import sha256_of
from device_runner.transport.adb_transport import AdbTransport, push
from device_runner.transport.base import Transport

LINK_TIMEOUT_S = 10.0
SEARCHED = (
    *("/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"),
    *("/usr/local/lib", "/usr/local/lib/aarch64-linux-gnu"),
)
"""Folders that a board's loader searches; its cache may name more. Android has none of them."""

LINK_SCRIPT = """
folder=$1; shift
rm -f "$folder/libOpenCL.so"
known=$({ ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null)
case $known in *libOpenCL.so\\ *) exit 0;; esac
for searched; do [ ! -e "$searched/libOpenCL.so" ] || exit 0; done
for searched; do
  if [ -e "$searched/libOpenCL.so.1" ]; then found=$searched/libOpenCL.so.1; break; fi
done
[ -n "$found" ] || found=$(echo "$known" | sed -n 's/.*libOpenCL\\.so\\.1 .*=> //p' | head -n 1)
[ -n "$found" ] || exit 0
mkdir -p "$folder" && ln -s "$found" "$folder/libOpenCL.so" && echo "$folder"
"""
"""Arguments: a folder of ours, and the folders that are searched. Prints the first if TVM needs it."""


def linked_opencl(transport: Transport, searched: Sequence[str] = SEARCHED) -> str:
    """Return the device's folder with a link `libOpenCL.so` to the board's own; empty if useless.

    Raises `DeviceFull` if it cannot be made.
    """
    script = ["sh", "-c", LINK_SCRIPT, "link", f"{transport.root}/opencl", *searched]
    answer = transport.shell(script, timeout_s=LINK_TIMEOUT_S)
    if answer.code:
        raise DeviceFull(f"{transport.name} refuses a link in {transport.root}: {answer.stderr.strip()}")
    return answer.stdout.strip()


PUSH_TIMEOUT_S = 120.0
"""Timeout of pushing one file."""


def install(transport: AdbTransport, folder: Path, preload: Sequence[str] = ()) -> tuple[str, ...]:
    """Bring a folder of files to the device under the hash of its content, and return the command to start it there.

    `preload` names libraries of the folder that the loader must take along.
    """
    files = sorted(file for file in folder.iterdir() if file.is_file())
    target = f"{transport.root}/runtime/{digest_of(files)}"
    for file in files:
        push(transport, file, sha256_of(file), f"{target}/{file.name}", timeout_s=PUSH_TIMEOUT_S)
    return started_in(target, preload, linked_opencl(transport))


def started_in(folder: str, preload: Sequence[str] = (), opencl: str = "") -> tuple[str, ...]:
    """Return the command that starts a runtime which lies in a folder of the device; `opencl` is one more to search."""
    environment = [f"LD_LIBRARY_PATH={':'.join(filter(None, (folder, opencl)))}"]
    if preload:
        environment.append(f"LD_PRELOAD={':'.join(preload)}")
    return ("env", *environment, f"{folder}/{PROGRAM}")
