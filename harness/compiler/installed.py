"""Which TVM and which harness are installed, read without importing TVM."""

from __future__ import annotations

import functools
import importlib.metadata
import re
import sys
from pathlib import Path

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
    try:
        return {"tvm": tvm_version(), "ffi": importlib.metadata.version("apache-tvm-ffi")}
    except importlib.metadata.PackageNotFoundError as error:
        missing = "apache-tvm" if error.name == "tvm" else error.name
        raise SetupMissing(f"{missing} is not installed", hint="install the pair of requirements.lock") from None


def tvm_version() -> str:
    """Version of the installed TVM, be it built from a checkout (`tvm`) or a wheel (`apache-tvm`)."""
    try:
        installed = importlib.metadata.version("apache-tvm")
    except importlib.metadata.PackageNotFoundError:
        installed = importlib.metadata.version("tvm")
    mark = Path(sys.prefix) / REVISION_MARK
    return f"{installed}+g{mark.read_text(encoding='utf-8')[:10]}" if mark.exists() else installed


@functools.lru_cache(1024)
def release(text: str) -> tuple[int, ...]:
    """`0.27.0.post1` as `(0, 27, 0)`, for comparing releases."""
    numbers = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(n) for n in numbers.group().split(".")) if numbers else ()
