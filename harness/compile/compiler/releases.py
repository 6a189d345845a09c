"""Which TVM and which harness are installed, and what is known of releases, all without importing TVM.

TVM's metadata only bounds tvm-ffi from below, so `pip install apache-tvm` alone gives a pair that cannot be imported or
that crashes while it compiles. `RELEASES` was found by trying each pair.
"""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import importlib.util
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from device_runner import installed_tvm
from device_runner.failures import SetupMissing

REVISION_MARK = "adreno-bench-revision"
"""File of an environment in which a commit of TVM was installed: many commits call themselves by the same version."""


JUDGES = ("onnxruntime", "onnx", "torch")
HARNESS = "adreno-bench"
"""What this harness is called as a package."""


def harness_version() -> str:
    """Version of this harness, which every record names. Raises SetupMissing if only its sources are on the path."""
    try:
        return importlib.metadata.version(HARNESS)
    except importlib.metadata.PackageNotFoundError:
        sources = Path(__file__).resolve().parents[3]
        raise SetupMissing(
            f"{HARNESS} is not installed: only its sources, in {sources}, are on Python's path",
            hint=f"`{sys.executable} -m pip install --no-deps -e {sources}`",
        ) from None


@functools.cache
def versions() -> dict[str, str]:
    """Installed releases of TVM and tvm-ffi, as `tvm` and `ffi`. Raises SetupMissing."""
    return {"tvm": tvm_version(), "ffi": installed_tvm.version("tvm_ffi")}


def judge_versions() -> dict[str, str]:
    """Versions of what computes answers outside TVM, by package; empty for a package that is not installed."""
    return {name: _version(name) for name in JUDGES}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


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


@dataclass(frozen=True)
class Release:
    """One release of apache-tvm."""

    tvm: str
    ffi: tuple[str, ...]
    """Releases of apache-tvm-ffi that work with it; the first is the one to install."""
    released_at: str
    """Time at which PyPI received the wheel for Linux on x86-64 (`upload_time_iso_8601` of its JSON API)."""

    @property
    def pins(self) -> list[str]:
        """The packages that work together, as pip takes them."""
        return [f"apache-tvm=={self.tvm}", f"apache-tvm-ffi=={self.ffi[0]}"]


_TABLE = (
    Release("0.25.0.post1", ("0.1.12",), "2026-06-24T23:33:23+00:00"),
    Release("0.26.0", ("0.1.14.post1", "0.1.13.post3"), "2026-08-11T02:34:21+00:00"),
    Release("0.27.0.post1", ("0.1.14.post1", "0.1.14.post0"), "2026-09-29T21:06:25+00:00"),
)
RELEASES: Mapping[str, Release] = MappingProxyType({release.tvm: release for release in _TABLE})
"""Releases of apache-tvm by version, the oldest first."""


def is_release(word: str) -> bool:
    """Return whether a word is written as a release is: `0.26`, `v0.27.0` or `0.27.0.post1`."""
    return re.fullmatch(r"v?\d+\.\d+(\.\d+)?(\.post\d+)?", word) is not None


def find_release(word: str) -> str | None:
    """Return the known release that a word names whole or by its first numbers, as 0.27 does; None for no such one."""
    if word in RELEASES:
        return word
    numbers = release(word.removeprefix("v")) if is_release(word) and "post" not in word else ()
    names = [name for name in RELEASES if numbers and release(name)[: len(numbers)] == numbers]
    return names[0] if len(names) == 1 else None


def require_working_pair(installed: Mapping[str, str]) -> None:
    """Raise SetupMissing for releases `tvm` and `ffi` known not to work together. An untried TVM passes."""
    tvm, ffi = installed["tvm"], installed["ffi"]
    release = RELEASES.get(tvm)
    if release and ffi.partition("+")[0] not in release.ffi:
        raise SetupMissing(
            f"apache-tvm {tvm} does not work with apache-tvm-ffi {ffi}",
            hint=f"pip install apache-tvm-ffi=={release.ffi[0]}",
        )


IMPORTER_TABLE = "_get_convert_map"
"""The function of the importer that returns its table, a dictionary of operators by name."""
HANDLED_ELSEWHERE = frozenset(("If", "Constant"))
"""Operators that the importer handles outside its table."""


HOST_FUNCTIONS = {"NonZero": "relax.run.nonzero", "Compress": "relax.run.nonzero", "Unique": "relax.run.unique"}
"""Operators whose results are as many as the data decide, and the function that TVM's importer makes them call."""


@functools.cache
def onnx_operators() -> frozenset[str]:
    """Operators that the installed importer knows. Raises SetupMissing if there is no TVM with such a table."""
    if names := _keys(_relax_source("frontend", "onnx", "onnx_frontend.py")):
        return names | HANDLED_ELSEWHERE
    raise SetupMissing("there is no TVM with an ONNX importer", hint="install the pair of requirements.lock")


@functools.cache
def host_operators() -> frozenset[str]:
    """Operators whose function the installed TVM has in its Python package only, so no device has it."""
    source = _relax_source("op", "set.py")
    return frozenset(
        name for name, function in HOST_FUNCTIONS.items() if f'register_global_func("{function}")' in source
    )


def _relax_source(*place: str) -> str:
    """Return a source file of the installed TVM, read without loading TVM; empty if it is not there."""
    spec = importlib.util.find_spec("tvm")
    files = (Path(folder, "relax", *place) for folder in (spec.submodule_search_locations or () if spec else ()))
    return next((file.read_text(encoding="utf-8") for file in files if file.is_file()), "")


def _keys(source: str) -> frozenset[str]:
    """Return the keys of the dictionary that the table's function returns; it ends where the next definition begins."""
    _, head, rest = source.partition(f"\ndef {IMPORTER_TABLE}(")
    if not head:
        return frozenset()
    ends = [end for word in ("\ndef ", "\nclass ") if (end := rest.find(word)) > 0]
    tree = ast.parse(f"def {IMPORTER_TABLE}({rest[: min(ends, default=len(rest))]}")
    keys = [key for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys]
    return frozenset(key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
