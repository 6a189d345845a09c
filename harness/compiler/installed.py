"""Which TVM is installed, read without importing it."""

from __future__ import annotations

import functools
import importlib.metadata
import re
import sys
from pathlib import Path

REVISION_MARK = "adreno-bench-revision"
"""File of an environment in which a commit of TVM was installed: many commits call themselves by the same version."""


@functools.cache
def versions() -> dict[str, str]:
    """Installed releases of TVM and tvm-ffi, as `tvm` and `ffi`."""
    return {"tvm": tvm_version(), "ffi": importlib.metadata.version("apache-tvm-ffi")}


def tvm_version() -> str:
    """Version of the installed TVM. A checkout builds `tvm`, wheels are `apache-tvm`."""
    try:
        installed = importlib.metadata.version("apache-tvm")
    except importlib.metadata.PackageNotFoundError:
        installed = importlib.metadata.version("tvm")
    mark = Path(sys.prefix) / REVISION_MARK
    return f"{installed}+g{mark.read_text(encoding='utf-8')[:10]}" if mark.exists() else installed


def release(text: str) -> tuple[int, ...]:
    """`0.27.0.post1` as `(0, 27, 0)`, for comparing releases."""
    numbers = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(n) for n in numbers.group().split(".")) if numbers else ()
