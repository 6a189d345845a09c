"""Building a C++ library against the installed TVM: once for each TVM, tvm-ffi, compiler and version of our sources.

A `Sidecar` is compiled against the headers that TVM's wheels ship and linked to the wheel's own libraries by rpath, so
nothing is written into site-packages. `tvm` is located and never imported: the child processes of a session start
without the Python package.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from device_runner import installed_tvm
from device_runner.disk import disk_full, nearly_full
from device_runner.failures import RigFailure, SetupMissing
from device_runner.store import Store, digest_of

BUILD_DEADLINE_S = 1200
"""Deadline for a compiler that shares its cores with others; alone it takes less than a minute."""
LOCK_DEADLINE_S = 2 * BUILD_DEADLINE_S
APT_HINT = "apt-get install g++ ocl-icd-opencl-dev opencl-headers pocl-opencl-icd"
FLAGS = ("-std=c++17", "-O2", "-g1", "-fPIC", "-pthread", "-Wall", "-Wextra", "-Werror")
STAND_INS = Path(__file__).parents[1] / "stand_ins"
"""Sources of the libraries that stand in for a phone's own."""
SHARED = STAND_INS / "cpp"
"""Headers that several have in common, and those that the wheel's own include and does not have; found last."""


@dataclass(frozen=True)
class CppToolchain:
    """What a library is made with, beyond our own sources."""

    includes: tuple[Path, ...]
    """Folders of the C++ headers of TVM and tvm-ffi."""
    libraries: tuple[Path, ...]
    """Folders in which a library finds what it is linked to."""
    versions: str
    """TVM's and tvm-ffi's versions."""
    compiler: str
    compiler_version: str

    @classmethod
    def find(cls) -> CppToolchain:
        """Return the TVM of this interpreter and the C++ compiler (`$CXX`, else `g++`). Raises SetupMissing."""
        compiler = shutil.which(os.environ.get("CXX") or "g++")
        if compiler is None:
            raise SetupMissing("there is no C++ compiler to build the device's runtime with", hint=APT_HINT)
        packages = ("tvm", "tvm_ffi")
        versions = " ".join(f"{package} {installed_tvm.version(package)}" for package in packages)
        answer = subprocess.run([compiler, "--version"], capture_output=True, text=True, timeout=30, check=False)
        return cls(
            tuple(folder for package in packages for folder in installed_tvm.include_folders(package)),
            tuple(folder for package in packages for folder in installed_tvm.library_folders(package)),
            versions,
            compiler,
            answer.stdout.partition("\n")[0],
        )


@dataclass
class Sidecar:
    """A shared library of ours with a part of TVM's runtime that the installed TVM may lack."""

    name: str
    """File name of the library."""
    title: str
    """What to call it when it cannot be built."""
    folder: str
    """Folder of the library in the cache."""
    function: str
    """A global function of TVM's that it brings."""
    sources: Path
    """Folder of its C++ files."""
    flags: tuple[str, ...] = ()
    """Compiler flags beside `FLAGS`."""
    links: tuple[str, ...] = ()
    """System libraries beside TVM's own."""
    loaded: bool = False
    """Whether `load` has brought it into this process."""

    def library(self, cache: Path, *, extra_flags: Sequence[str] = (), toolchain: CppToolchain | None = None) -> Path:
        """Return the library for a TVM, by default this interpreter's. The first call builds it.

        Processes that ask at the same time build it once. Raises SetupMissing without compiler or OpenCL development
        files, DiskFull, and RigFailure if it does not compile.
        """
        chosen, store = toolchain or CppToolchain.find(), Store(cache, self.folder)

        def compile_and_link(folder: Path) -> None:
            code_name = f"{self.name}.o"
            make = partial(self._compile, chosen, extra_flags=extra_flags)
            code = store.obtain(self._code_key(chosen, extra_flags), lambda at: make(at / code_name), LOCK_DEADLINE_S)
            self._link(chosen, code / code_name, folder / self.name, extra_flags)

        return store.obtain(self._key(chosen, extra_flags), compile_and_link, LOCK_DEADLINE_S) / self.name

    def is_built(self, cache: Path) -> bool:
        """Return whether `library` only has to look it up. Raises SetupMissing without a C++ compiler."""
        return Store(cache, self.folder).find(self._key(CppToolchain.find(), ())) is not None

    def needed(self) -> bool:
        """Return whether the installed TVM lacks what it brings, be it loaded here or not.

        Loads TVM's runtime libraries, and tvm-ffi, which keeps the registry; never the package `tvm`.
        """
        return self.loaded or not self._registered()

    def load(self, library: Path) -> bool:
        """Load it into this process unless what it brings is there already; says whether it did.

        Raises SetupMissing if the system's OpenCL loader is missing, RigFailure if the library does not load.
        """
        if self._registered():
            return False
        open_library(library)
        self.loaded = True
        return True

    def _registered(self) -> bool:
        """Return whether this process has what it brings, once all of TVM's own is loaded."""
        import tvm_ffi

        for library in installed_tvm.libraries("tvm", *installed_tvm.RUNTIME):
            open_library(library)
        return tvm_ffi.get_global_func(self.function, allow_missing=True) is not None

    def _key(self, toolchain: CppToolchain, extra_flags: Sequence[str]) -> str:
        """Key of a linked library, which contains the paths of TVM's own libraries."""
        installed = (toolchain.versions, *map(str, toolchain.libraries))
        return digest_of((*self.links, *installed, self._code_key(toolchain, extra_flags)), ())

    def _code_key(self, toolchain: CppToolchain, extra_flags: Sequence[str]) -> str:
        """Key of the code before linking: every TVM with the same headers shares it, wherever it is installed."""
        folders = (*toolchain.includes, SHARED, self.sources)
        return digest_of((*FLAGS, *self.flags, *extra_flags, toolchain.compiler_version), folders)

    def _compile(self, toolchain: CppToolchain, output: Path, extra_flags: Sequence[str]) -> None:
        """Compile the sources as one: most of the time goes into TVM's headers, which are then read once."""
        includes = [*(f"-isystem{folder}" for folder in toolchain.includes), "-idirafter", str(SHARED)]
        sources = one_source(output.with_name("all.cc"), self.sources.glob("*.cc"))
        flags = (*FLAGS, *self.flags, *extra_flags, *includes)
        run_compiler(self.title, [toolchain.compiler, *flags, "-c", str(sources)], output)

    def _link(self, toolchain: CppToolchain, code: Path, output: Path, extra_flags: Sequence[str]) -> None:
        searched = [flag for folder in toolchain.libraries for flag in (f"-L{folder}", f"-Wl,-rpath,{folder}")]
        links = (*searched, "-ltvm_runtime", "-ltvm_ffi", *self.links)
        command = [toolchain.compiler, *extra_flags, "-shared", "-pthread", "-Wl,--no-undefined"]
        run_compiler(self.title, [*command, str(code), *links], output)


def open_library(library: Path) -> None:
    """Load a library whose symbols serve others. Raises SetupMissing without OpenCL's loader, RigFailure."""
    try:
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        if "libOpenCL" in str(error):
            raise SetupMissing("the system's OpenCL loader is missing", hint=APT_HINT, evidence=str(error)) from error
        raise RigFailure(f"{library.name} does not load", evidence=str(error)) from error


def one_source(file: Path, sources: Iterable[Path]) -> Path:
    """Return a file that includes all others, so that they are compiled as one."""
    file.write_text("".join(f'#include "{source}"\n' for source in sorted(sources)))
    return file


def run_compiler(title: str, command: Sequence[str], output: Path) -> None:
    """Run a compiler with `-o output`. Raises SetupMissing without OpenCL's development files, DiskFull, RigFailure."""
    try:
        done = subprocess.run(
            [*command, "-o", str(output)], capture_output=True, text=True, timeout=BUILD_DEADLINE_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise RigFailure(f"building {title} took more than {BUILD_DEADLINE_S} s") from None
    if done.returncode == 0:
        return
    # A linker that maps its output into memory dies of a full disk without a word of it.
    if full := disk_full(done.stderr, output.parents[1]) or nearly_full(done.stderr, output.parents[1]):
        raise full
    if re.search(r"CL/cl\w*\.h: No such file|cannot find -lOpenCL", done.stderr):
        raise SetupMissing("the OpenCL development files are missing", hint=APT_HINT, evidence=done.stderr)
    raise RigFailure(
        f"{title} does not compile against the installed TVM",
        hint="the releases in pyproject.toml are known to work",
        evidence=done.stderr,
    )
