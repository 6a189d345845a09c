"""OpenCL under the name that TVM asks for, on Linux boards that have it under another.

TVM opens `libOpenCL.so` (opencl_wrapper.cc). That is the name of development files; a board that only runs programs has
`libOpenCL.so.1`. A link in a folder of ours, which the server then searches, is all that it takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from device_runner.failures import DeviceFull
from device_runner.transport.base import Transport

LINK_TIMEOUT_S = 10.0
SEARCHED = (
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/local/lib/aarch64-linux-gnu",
)
"""Where a board's loader looks by itself; it may know more places, which its cache tells. Android has none of them."""

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
    """The folder on the device in which `libOpenCL.so` is a link to the board's own; empty if none is needed, or helps.

    Raises `DeviceFull` if it cannot be made.
    """
    script = ["sh", "-c", LINK_SCRIPT, "link", f"{transport.root}/opencl", *searched]
    answer = transport.shell(script, timeout_s=LINK_TIMEOUT_S)
    if answer.code:
        raise DeviceFull(f"{transport.name} refuses a link in {transport.root}: {answer.stderr.strip()}")
    return answer.stdout.strip()
