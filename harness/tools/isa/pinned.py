"""Which compiler makes the numbers: Debian's packages, pinned, because another version makes other code.

This is the one place to change when a version vanishes from its suite. Old versions of every package stay at
https://snapshot.debian.org.
"""

from __future__ import annotations

SUITES = ("trixie", "trixie-backports")
"""Debian releases that apt looks in. Mesa's freedreno for x86-64 is in the second, the rest in the first."""

MESA = "26.1.6-1~bpo13+1"
LLVM = "1:19.1.7-3+b1"
PACKAGES = {
    "mesa-opencl-icd": MESA,
    "mesa-libgallium": MESA,
    "mesa-drm-shim": MESA,
    "libllvm19": LLVM,
    "libclang-cpp19": LLVM,
    "libclang-common-19-dev": LLVM,
    "libclc-19": "1:19.1.7-3",
    "libllvmspirvlib19.1": "19.1.6-1",
}
"""What decides the numbers. What else these need, apt chooses from the same suites."""

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
SHIM = f"{LIBRARIES}/libfreedreno_noop_drm_shim.so"
"""Stands in for the kernel's driver, so that Mesa finds a GPU; it executes nothing."""
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
ROOM_BYTES = 600_000_000

GPUS = {f"a{number}": number for number in (618, 630, 660, 702, 730, 740, 750, 810, 830)}
"""GPUs that this version of the shim stands in for, by name, with the number that it takes."""
