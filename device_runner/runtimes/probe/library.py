"""The probe's library, compiled once for each kind of device; and whether a device's probe may be used."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable
from pathlib import Path

from device_runner import installed_tvm
from device_runner.failures import Failure, SetupMissing
from device_runner.runtimes.cross import NDK_VARIABLE, TRIPLES, Linker, linker
from device_runner.runtimes.recipe import LOCK_DEADLINE_S, CppToolchain, one_source, run_compiler
from device_runner.store import Store, digest_of

FOLDER = "probe"
ENDING = ".probe.so"
"""Of its file's name, also on the device."""
SOURCES = Path(__file__).parent / "src"
FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra")
FOREIGN_FLAGS = ("-fno-stack-protector", "-fno-sanitize=all", "-U_FORTIFY_SOURCE")
"""Without them a compiler may ask for functions of its own C library, which is not the device's."""
KEEP = "-Wl,-z,nodelete"
"""It stays loaded until the process ends: TVM's runtime calls through it once it counts programs."""


def library(cache_dir: Path, abi: str = "") -> Path:
    """The library for devices of an ABI, by default this host's, built at the first call.

    Raises SetupMissing if there is no compiler for that processor, DiskFull, RigFailure if it does not compile.
    """
    if abi in ("", platform.machine()):
        return _obtain(cache_dir, CppToolchain.find(), "")
    if abi not in TRIPLES:
        hint = f"there is one for {', '.join(TRIPLES)}; {NDK_VARIABLE} and ziglang know these"
        raise SetupMissing(f"there is no probe for devices with ABI {abi}", hint=hint)
    return _obtain(cache_dir, linker(TRIPLES[abi]), TRIPLES[abi])


def _obtain(cache_dir: Path, toolchain: CppToolchain | Linker, triple: str) -> Path:
    name = f"adreno{ENDING}"

    def make(folder: Path) -> None:
        source = one_source(folder / "all.c", SOURCES.glob("*.c"))
        if isinstance(toolchain, Linker):
            _for_triple(toolchain, triple, source, folder / name)
        else:
            _for_this_host(toolchain, source, folder / name)

    compiler = toolchain.version if isinstance(toolchain, Linker) else toolchain.compiler_version
    key = digest_of((*FLAGS, *FOREIGN_FLAGS, KEEP, compiler, triple), (SOURCES, *_headers()))
    return Store(cache_dir, FOLDER).obtain(key, make, LOCK_DEADLINE_S) / name


def _for_this_host(toolchain: CppToolchain, source: Path, made: Path) -> None:
    command = [toolchain.compiler, "-x", "c", *FLAGS, "-Werror", *_includes(), "-shared", KEEP]
    links = ["-x", "none", *(f"-L{folder}" for folder in toolchain.libraries), "-ltvm_ffi", "-ldl"]
    run_compiler("the probe", [*command, str(source), *links], made)


def _for_triple(chosen: Linker, triple: str, source: Path, made: Path) -> None:
    code = made.with_suffix(".o")
    chosen.compile(source, code, (*FLAGS, *FOREIGN_FLAGS, *_includes()))
    chosen.link([code], made, triple, [KEEP])


def _headers() -> list[Path]:
    """tvm-ffi's own, with DLPack's."""
    return installed_tvm.include_folders("tvm_ffi")


def _includes() -> list[str]:
    return [f"-isystem{folder}" for folder in _headers()]


class Probe:
    """The probe for one device: built when it is first needed, and not used again once it did harm."""

    def __init__(self, make: Callable[[], Path] | None) -> None:
        self._make = make
        self._made: tuple[Path, str] | None = None
        self.lacking = "" if make else "there is none for this device"
        """Why it is not used, in one line; empty if it is."""

    def ready(self) -> tuple[Path, str] | None:
        """The library and its sha256; None if it is lacking. A failure to build it is no reason to do without a run."""
        if self._make and self._made is None and not self.lacking:
            try:
                file = self._make()
                self._made = file, hashlib.sha256(file.read_bytes()).hexdigest()
            except (Failure, OSError) as failure:
                self.lacking = f"it could not be built: {failure}"
        return None if self.lacking else self._made
