"""Packages of Debian and Ubuntu that a run needs and Python's cannot bring; `.ci/system-packages` installs the same."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

COMMAND = "sudo apt-get install -y --no-install-recommends"


def missing_packages(root: Path = Path("/"), which: Callable[[str], object] = shutil.which) -> list[str]:
    """Return the packages that are not there, by their Debian names: an OpenCL of any maker counts as one.

    Args:
        root: Root of the file system.
        which: Finds a program.
    """
    programs: Mapping[str, str] = {"g++": "g++", "bubblewrap": "bwrap", "mksh": "mksh", "toybox": "toybox"}
    files: Mapping[str, Sequence[str]] = {
        "pocl-opencl-icd": ("etc/OpenCL/vendors/*.icd",),
        "opencl-headers": ("usr/include/CL/cl.h",),
        "ocl-icd-opencl-dev": ("usr/lib/*/libOpenCL.so", "usr/lib*/libOpenCL.so"),
    }
    missing = [name for name, patterns in files.items() if not any(any(root.glob(pattern)) for pattern in patterns)]
    return [*missing, *(name for name, program in programs.items() if not which(program))]


def fix_command(missing: Sequence[str]) -> str:
    """Return the command that brings packages; a comment if none is missing."""
    return f"{COMMAND} {' '.join(missing)}" if missing else "# nothing is missing"
