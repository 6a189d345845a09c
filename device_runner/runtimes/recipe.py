"""Building a C++ library against the installed TVM: once for each TVM, tvm-ffi, compiler and version of our sources.

A library that has a `Recipe` is compiled against the headers that TVM's wheels ship and linked to the wheel's own
libraries by rpath, so nothing is written into site-packages. `tvm` is located and never imported: the child processes
of a session start without the Python package.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from device_runner.failures import RigFailure, SetupMissing

BUILD_DEADLINE_S = 300
LOCK_DEADLINE_S = 2 * BUILD_DEADLINE_S
APT_HINT = "apt-get install g++ ocl-icd-opencl-dev opencl-headers pocl-opencl-icd"
FLAGS = ("-std=c++17", "-O2", "-g1", "-fPIC", "-pthread", "-Wall", "-Wextra", "-Werror")


@dataclass(frozen=True)
class Recipe:
    """A shared library of ours: what it is made of."""

    name: str
    """Its file name."""
    title: str
    """What to call it when it cannot be built."""
    sources: Path
    """Folder of its C++ files."""
    flags: tuple[str, ...] = ()
    """Compiler flags beside `FLAGS`."""
    links: tuple[str, ...] = ()
    """System libraries beside TVM's own."""
    missing_headers: Path | None = None
    """Folder of headers that the wheel's own include and does not have; they are found after all others."""


@dataclass(frozen=True)
class CppToolchain:
    """What a library is made with, beyond our own sources."""

    tvm: Path
    """Folder of the package `tvm`: headers under `include`, libraries under `lib`."""
    ffi: Path
    """Folder of the package `tvm_ffi`."""
    versions: str
    """TVM's and tvm-ffi's versions."""
    compiler: str
    compiler_version: str

    @classmethod
    def found(cls) -> CppToolchain:
        """The TVM of this interpreter and the C++ compiler (`$CXX`, else `g++`). Raises SetupMissing."""
        compiler = shutil.which(os.environ.get("CXX") or "g++")
        if compiler is None:
            raise SetupMissing("there is no C++ compiler to build the device's runtime with", hint=APT_HINT)
        versions = " ".join(f"{name} {_version(name)}" for name in ("apache-tvm", "apache-tvm-ffi"))
        shown = subprocess.run([compiler, "--version"], capture_output=True, text=True, timeout=30, check=False)
        return cls(
            package_folder("tvm"), package_folder("tvm_ffi"), versions, compiler, shown.stdout.partition("\n")[0]
        )

    @property
    def libraries(self) -> tuple[Path, Path]:
        """The folders in which a library finds what it is linked to."""
        return self.tvm / "lib", self.ffi / "lib"


def package_folder(package: str) -> Path:
    """Where a package is installed, without importing it. Raises SetupMissing."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SetupMissing(f"the Python package {package} is not installed", hint="pip install -r requirements.lock")
    return Path(next(iter(spec.submodule_search_locations)))


def built(recipe: Recipe, cache_dir: Path, *, extra_flags: Sequence[str] = ()) -> Path:
    """The library for the TVM of this interpreter, built at the first call; later calls only look it up.

    Processes that ask at the same time build it once. Raises SetupMissing without compiler or OpenCL development
    files, RigFailure if it does not compile.
    """
    from filelock import FileLock, Timeout

    toolchain = CppToolchain.found()
    library = _place(toolchain, recipe, cache_dir, extra_flags)
    folder = library.parent
    if library.exists():
        with suppress(OSError):  # used now, which `adreno-bench cache` goes by; a read-only cache is still a cache
            os.utime(folder)
        return library
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "lock", timeout=LOCK_DEADLINE_S):
            if not library.exists():
                build(toolchain, recipe, library, extra_flags)
    except Timeout:
        raise RigFailure(f"another process has been building {library} for {LOCK_DEADLINE_S} s") from None
    return library


def is_built(recipe: Recipe, cache_dir: Path) -> bool:
    """Whether `built` only has to look it up. Raises SetupMissing without a C++ compiler."""
    return _place(CppToolchain.found(), recipe, cache_dir).exists()


def _place(toolchain: CppToolchain, recipe: Recipe, cache_dir: Path, extra_flags: Sequence[str] = ()) -> Path:
    return cache_dir / _key(toolchain, recipe, extra_flags) / recipe.name


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"  # a TVM built from source; the hash of its headers' folder still tells it apart


def _key(toolchain: CppToolchain, recipe: Recipe, extra_flags: Sequence[str]) -> str:
    digest = hashlib.sha256()
    flags = (*FLAGS, *recipe.flags, *recipe.links, *extra_flags)
    for part in (*flags, toolchain.versions, str(toolchain.tvm), str(toolchain.ffi), toolchain.compiler_version):
        digest.update(part.encode() + b"\0")
    for folder in dict.fromkeys(filter(None, (recipe.missing_headers, recipe.sources))):
        for source in sorted(folder.rglob("*")):
            if source.is_file():
                digest.update(source.relative_to(folder).as_posix().encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


def build(toolchain: CppToolchain, recipe: Recipe, library: Path, extra_flags: Sequence[str] = ()) -> None:
    """Make the library in a folder beside it, then move it into place.

    The sources are compiled as one: most of the time goes into TVM's headers, which are then read once. Only one may
    do so at a time. Raises SetupMissing without OpenCL development files, RigFailure if it does not compile.
    """
    flags = (*FLAGS, *recipe.flags, *extra_flags, "-shared", "-Wl,--no-undefined")
    includes = [f"-isystem{package / 'include'}" for package in (toolchain.tvm, toolchain.ffi)]
    missing = ["-idirafter", str(recipe.missing_headers)] if recipe.missing_headers else []
    searched = [flag for folder in toolchain.libraries for flag in (f"-L{folder}", f"-Wl,-rpath,{folder}")]
    links = (*searched, "-ltvm_runtime", "-ltvm_ffi", *recipe.links)
    scratch = library.parent / "building"
    shutil.rmtree(scratch, ignore_errors=True)  # of a build that was killed: we hold the lock
    scratch.mkdir()
    sources, linked = scratch / "all.cc", scratch / library.name
    sources.write_text("".join(f'#include "{source}"\n' for source in sorted(recipe.sources.glob("*.cc"))))
    command = [toolchain.compiler, *flags, *includes, *missing, str(sources), "-o", str(linked), *links]
    try:
        _run(recipe, command)
        linked.replace(library)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run(recipe: Recipe, command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_DEADLINE_S, check=False)
    except subprocess.TimeoutExpired:
        raise RigFailure(f"building {recipe.title} took more than {BUILD_DEADLINE_S} s") from None
    if done.returncode == 0:
        return
    if re.search(r"CL/cl\.h: No such file|cannot find -lOpenCL", done.stderr):
        raise SetupMissing("the OpenCL development files are missing", hint=APT_HINT, evidence=done.stderr)
    raise RigFailure(
        f"{recipe.title} does not compile against the installed TVM",
        hint="the releases in pyproject.toml are known to work",
        evidence=done.stderr,
    )
