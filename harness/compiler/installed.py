"""Which TVM and which harness are installed, read without importing TVM."""

from __future__ import annotations

import functools
import importlib.metadata
import re
import sys
from pathlib import Path

from device_runner import installed_tvm
from device_runner.failures import SetupMissing

REVISION_MARK = "adreno-bench-revision"
"""File of an environment in which a commit of TVM was installed: many commits call themselves by the same version."""


HARNESS = "adreno-bench"
"""What this harness is called as a package."""


def harness_version() -> str:
    """Version of this harness, which every record names. Raises SetupMissing if only its sources are on the path."""
    try:
        return importlib.metadata.version(HARNESS)
    except importlib.metadata.PackageNotFoundError:
        sources = Path(__file__).resolve().parents[2]
        raise SetupMissing(
            f"{HARNESS} is not installed: only its sources, in {sources}, are on Python's path",
            hint=f"`{sys.executable} -m pip install --no-deps -e {sources}`",
        ) from None


@functools.cache
def versions() -> dict[str, str]:
    """Installed releases of TVM and tvm-ffi, as `tvm` and `ffi`. Raises SetupMissing."""
    return {"tvm": tvm_version(), "ffi": installed_tvm.version("tvm_ffi")}


def tvm_version() -> str:
    """Version of the installed TVM; of one that is no release with its commit or a hash. Raises SetupMissing."""
    mark = Path(sys.prefix) / REVISION_MARK
    if mark.exists():
        return f"{installed_tvm.stated_version('tvm')}+g{mark.read_text(encoding='utf-8')[:10]}"
    return installed_tvm.version("tvm")


@functools.lru_cache(1024)
def release(text: str) -> tuple[int, ...]:
    """`0.27.0.post1` as `(0, 27, 0)`, for comparing releases."""
    numbers = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(n) for n in numbers.group().split(".")) if numbers else ()
