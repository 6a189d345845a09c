"""Libraries and programs of ours in C: compiled once for this host, and for devices of another processor."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from device_runner import installed_tvm
from device_runner.failures import SetupMissing
from device_runner.runtimes.cross_linker import NDK_VARIABLE, TRIPLES, Linker, linker
from device_runner.runtimes.recipe import LOCK_DEADLINE_S, CppToolchain, one_source, run_compiler
from device_runner.store import Store, digest_of

SHARED = Path(__file__).parent / "c"
"""What several of them have in common."""
FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra")
FOREIGN_FLAGS = ("-fno-stack-protector", "-fno-sanitize=all", "-U_FORTIFY_SOURCE", "-fno-builtin-bcmp")
"""Flags that keep a compiler from calling functions of its own C library, which is not the device's."""
SYSTEMS = {"arm64-v8a": "-DFOR_ANDROID", "aarch64": "-DFOR_GLIBC"}
"""The C library of devices, by ABI."""


@dataclass(frozen=True)
class CCode:
    """What a library or a program is made of."""

    name: str
    """File name of the program."""
    title: str
    """What to call it when it cannot be built."""
    folder: str
    """Folder of the program in the cache."""
    sources: tuple[Path, ...]
    """Folders of its C files and headers."""
    flags: tuple[str, ...] = ()
    """Compiler flags beside `FLAGS`."""
    links: tuple[str, ...] = ()
    """Flags of the linker."""
    libraries: tuple[str, ...] = ()
    """What it is linked to on this host."""
    executable: bool = False

    def file(self, cache: Path, abi: str = "") -> Path:
        """Return the one for devices of an ABI, by default this host's, built at the first call.

        Raises SetupMissing if there is no compiler for that processor, DiskFull, RigFailure if it does not compile.
        """
        if abi in ("", platform.machine()):
            host = CppToolchain.find()
            return self._obtain(cache, host.compiler_version, partial(self._for_host, host))
        if abi not in TRIPLES:
            hint = f"there is one for {', '.join(TRIPLES)}; {NDK_VARIABLE} and ziglang know these"
            raise SetupMissing(f"there is no {self.folder} for devices with ABI {abi}", hint=hint)
        tools = linker(TRIPLES[abi])
        return self._obtain(cache, f"{tools.version} {abi}", partial(self._for_device, tools, abi))

    def _obtain(self, cache: Path, compiler: str, make: Callable[[Path, Path], None]) -> Path:
        def fill(folder: Path) -> None:
            files = (file for place in self.sources for file in place.glob("*.c"))
            make(one_source(folder / "all.c", files), folder / self.name)

        words = (*FLAGS, *FOREIGN_FLAGS, *self.flags, *self.links, *self.libraries, compiler)
        key = digest_of(words, (*self.sources, *_headers()))
        return Store(cache, self.folder).obtain(key, fill, LOCK_DEADLINE_S) / self.name

    def _for_host(self, toolchain: CppToolchain, source: Path, out: Path) -> None:
        links = [*([] if self.executable else ["-shared"]), *self.links, "-x", "none"]
        links += [*(f"-L{folder}" for folder in toolchain.libraries), *self.libraries]
        run_compiler(self.title, [toolchain.compiler, "-x", "c", *self._flags(), "-Werror", str(source), *links], out)

    def _for_device(self, tools: Linker, abi: str, source: Path, out: Path) -> None:
        code = out.with_suffix(".o")
        tools.compile(source, code, [*self._flags(), *FOREIGN_FLAGS, SYSTEMS[abi]])
        if self.executable:
            tools.link_program([code], out, TRIPLES[abi])
        else:
            tools.link([code], out, TRIPLES[abi], self.links)

    def _flags(self) -> list[str]:
        includes = (*(f"-I{folder}" for folder in self.sources), *(f"-isystem{folder}" for folder in _headers()))
        return [*FLAGS, *self.flags, *includes]


def _headers() -> list[Path]:
    """tvm-ffi's own, with DLPack's."""
    return installed_tvm.include_folders("tvm_ffi")
