"""The TVM of this Python: where its parts lie and what to call it, without importing it.

Three layouts are met: a wheel (`tvm/lib`, `tvm/include`), a checkout on PYTHONPATH (`<checkout>/python/tvm`,
`<checkout>/build/lib`, `<checkout>/include`; `tvm/libinfo.py` searches the same folders), and an editable install,
which spreads one package over both.

A release is known by its version. A TVM that somebody built is not: it calls itself the same before and after it is
built again, and what was compiled with the one before must not be taken for what this one makes. So its version gets a
hash of what it consists of.
"""

from __future__ import annotations

import base64
import csv
import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from device_runner.failures import SetupMissing

BUILT = "built"
"""What is put between a version and the hash of a TVM that is no release: `0.28.dev0+built.1f0c3a9b2d`."""
LIBRARY_PATH = "TVM_LIBRARY_PATH"
"""Environment: the folder in which TVM looks for its libraries first."""
RUNTIME = ("libtvm_runtime.so", "libtvm_runtime_extra.so", "libtvm_runtime_opencl.so")
"""What a TVM may consist of, beside its compiler. No wheel of a release has the last; a build with OpenCL does."""
EXTRA_LIBRARIES = "ADRENO_BENCH_OPENCL_RUNTIME"
"""Environment: libraries to load beside the runtime, separated by `:`: TVM's OpenCL device API, the model of CLML."""
_DISTRIBUTIONS = {"tvm": ("apache-tvm", "tvm"), "tvm_ffi": ("apache-tvm-ffi",)}
"""Distribution of each package."""
_STATED = re.compile(r"^\s*(?:__)?version(?:__)?\s*=.*?[\"'](\d[^\"']*)[\"']", re.MULTILINE)


def package_folder(package: str) -> Path:
    """Folder of a package's sources. Raises SetupMissing."""
    return _folders(package)[0]


def library_folders(package: str) -> list[Path]:
    """Return the folders that have shared libraries of `tvm` or `tvm_ffi`, the one that is searched first in front."""
    override = [Path(os.environ[LIBRARY_PATH])] if package == "tvm" and os.environ.get(LIBRARY_PATH) else []
    checkouts = [folder.parents[1] for folder in _folders(package)]
    places = [
        *override,
        *(folder / "lib" for folder in _folders(package)),
        *(top / place for top in checkouts for place in ("build/lib", "lib", "build")),
    ]
    folders = dict.fromkeys(place.resolve() for place in places if any(place.glob(f"lib{package}*.so")))
    if not folders:
        raise SetupMissing(
            f"the installed {package} has no libraries: looked in {', '.join(map(str, places))}",
            hint=f"build it, or name the folder of its libraries in {LIBRARY_PATH}",
        )
    return list(folders)


def libraries(package: str, *names: str) -> list[Path]:
    """Return the shared libraries of `tvm` or `tvm_ffi` with these names that exist, by file name.

    Raises SetupMissing.
    """
    folders = library_folders(package)
    files = (next((folder / name for folder in folders if (folder / name).exists()), None) for name in names)
    return [file for file in files if file]


def library(package: str, *names: str) -> Path:
    """Return the first of these shared libraries that there is. Raises SetupMissing if there is none."""
    files = libraries(package, *names)
    if not files:
        places = ", ".join(map(str, library_folders(package)))
        raise SetupMissing(f"there is no {' or '.join(names)} in {places}", hint=f"build it, or set {LIBRARY_PATH}")
    return files[0]


def include_folders(package: str) -> list[Path]:
    """Return the folders of a package's C++ headers. Raises SetupMissing."""
    places = [
        place
        for folder in _folders(package)
        for place in (folder / "include", folder.parents[1] / "include", folder.parents[1] / "3rdparty/dlpack/include")
    ]
    folders = [place for place in places if (place / "tvm").is_dir() or (place / "dlpack").is_dir()]
    if not folders:
        raise SetupMissing(
            f"the installed {package} has no C++ headers: looked in {', '.join(map(str, places))}",
            hint="install a wheel, or keep the checkout that it was built from beside it",
        )
    return folders


@functools.cache
def version(package: str) -> str:
    """Return what to call the installed `tvm` or `tvm_ffi`: the version of a release, with a hash added of any other.

    A release is what came from a package registry and is still as its wheel's list of files (`RECORD`) says: a file
    that is younger than the list, or of another size, is compared by content. Raises SetupMissing.
    """
    distribution = _distribution(package)
    if distribution and _as_released(distribution, package):
        return distribution.version
    return f"{stated_version(package).partition('+')[0]}+{BUILT}.{_content(package)[:10]}"


def stated_version(package: str) -> str:
    """Return the version that `tvm` or `tvm_ffi` states: in its build's file, else as a distribution."""
    for file in (folder / name for folder in _folders(package) for name in ("_version.py", "libinfo.py")):
        if file.exists() and (stated := _STATED.search(file.read_text(encoding="utf-8"))):
            return stated[1]
    distribution = _distribution(package)
    return distribution.version if distribution else "0"


def _folders(package: str) -> list[Path]:
    try:
        spec = importlib.util.find_spec(package)
    except ValueError:  # what a test or a server put in its place has no spec
        spec = None
    if spec is None or not spec.submodule_search_locations:
        hint = "pip install -r requirements.lock, or put the checkout's folder `python` on PYTHONPATH"
        raise SetupMissing(f"the Python package {package} is not installed", hint=hint)
    return [Path(folder) for folder in spec.submodule_search_locations]


def _distribution(package: str) -> importlib.metadata.Distribution | None:
    for name in _DISTRIBUTIONS[package]:
        with suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.distribution(name)
    return None


def _as_released(distribution: importlib.metadata.Distribution, package: str) -> bool:
    """Return whether the imported package is this distribution's, from a registry (PEP 610), unchanged."""
    folders, record = _folders(package), _record_file(distribution)
    if record is None or distribution.read_text("direct_url.json") or len(folders) > 1 or os.environ.get(LIBRARY_PATH):
        return False
    root = folders[0].parent
    if record.parents[1].resolve() != root.resolve():
        return False
    with record.open(encoding="utf-8", newline="") as opened:
        rows = [row for row in csv.reader(opened) if row[0].startswith(f"{package}/") and _is_loaded(row[0])]
    installed_at = record.stat().st_mtime
    listed = {name: (hashed, size) for name, hashed, size in rows}
    there = {file.relative_to(root).as_posix(): file for file in _loaded(folders[0])}
    same = (_is_as_listed(file, *listed[name], installed_at) for name, file in there.items() if name in listed)
    return there.keys() == listed.keys() and all(same)


def _record_file(distribution: importlib.metadata.Distribution) -> Path | None:
    """Return the list of a distribution's files, which an installer writes last (PEP 376)."""
    name = distribution.metadata["Name"].replace("-", "_")
    folder = Path(str(distribution.locate_file(""))) / f"{name}-{distribution.version}.dist-info"
    return file if (file := folder / "RECORD").exists() else None


def _is_as_listed(file: Path, hashed: str, size: str, installed_at: float) -> bool:
    is_now = file.stat()
    if size and int(size) != is_now.st_size:
        return False
    if is_now.st_mtime <= installed_at:  # nobody wrote to it since; its content would take ten times as long
        return True
    kind, _, listed = hashed.partition("=")
    digest = hashlib.new(kind or "sha256")
    _add(digest, file)
    return base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode() == listed


def _content(package: str) -> str:
    """Hash of all that is loaded of a package: its Python files and the libraries, wherever they lie."""
    digest = hashlib.sha256()
    loaded = {folder: list(_loaded(folder)) for folder in _folders(package)}
    loaded |= {folder: list(folder.glob(f"lib{package}*.so")) for folder in library_folders(package)}
    for folder, files in loaded.items():
        for file in sorted(files):
            digest.update(file.relative_to(folder).as_posix().encode() + b"\0")
            _add(digest, file)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, file: Path) -> None:
    with file.open("rb") as opened:
        while block := opened.read(1 << 20):
            digest.update(block)


def _loaded(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (Path(place, name) for name in names if _is_loaded(name))


def _is_loaded(name: str) -> bool:
    return name.endswith((".py", ".so"))
