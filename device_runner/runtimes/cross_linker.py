"""Compiling and linking for a device of another processor, without the device's C library.

A compiled library needs little of its surroundings: functions of tvm-ffi, some of C's mathematics, `memcpy`; the probe
(`device_runner.runtimes.probe`) a little more. Which of them, its object files tell. Small stubs that define just
these, under the names by which the device's loader knows the real libraries, let the linker record where each comes
from (DT_NEEDED): bionic finds the symbols of a library that was loaded with dlopen only in what that library needs. So
the NDK's clang and the one inside the package `ziglang` serve equally, for Android and for Linux boards.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from device_runner.disk import disk_full, nearly_full
from device_runner.failures import RigFailure, SetupMissing
from device_runner.runtimes.phone.elf import BadElf, Elf, read_elf, undefined_in_object

NDK_VARIABLE = "ANDROID_NDK_HOME"
LINK_TIMEOUT_S = 120.0
PAGE_BYTES = 16_384
PAGES = f"-Wl,-z,max-page-size={PAGE_BYTES}"
FFI = "libtvm_ffi.so"
MACHINE = "EM_AARCH64"
"""ELF machine of every triple in `TRIPLES`."""

TRIPLES = {"arm64-v8a": "aarch64-linux-android", "aarch64": "aarch64-linux-gnu"}
"""LLVM triple for each ABI: a phone's `ro.product.cpu.abi`, a Linux board's `uname -m`."""

_SONAMES = {
    "aarch64-linux-android": {"c": "libc.so", "m": "libm.so", "dl": "libdl.so"},
    "aarch64-linux-gnu": {"c": "libc.so.6", "m": "libm.so.6", "dl": "libdl.so.2"},
}
_LOADERS = {"aarch64-linux-android": "/system/bin/linker64", "aarch64-linux-gnu": "/lib/ld-linux-aarch64.so.1"}
_MATHEMATICS = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs floor fma fmax
fmin fmod hypot ldexp lgamma llrint log log10 log1p log2 nearbyint pow remainder rint round roundeven sin sinh sqrt
tan tanh tgamma trunc
"""
_CODE = "abort bzero free malloc memcmp memcpy memmove memset"
_PROBE = "calloc clock_gettime getauxval getpid mprotect realloc strcmp strlen strncmp strrchr strstr"
_RUNNER = """
__libc_init __libc_start_main _exit access close dup2 fork fsync kill lseek open pipe poll prctl qsort read
rename setenv setpgid snprintf strchr strtod unlink waitpid write
"""
_C = frozenset(f"{_CODE} {_PROBE} {_RUNNER}".split())
_DL = frozenset({"dl_iterate_phdr", "dladdr", "dlerror", "dlopen", "dlsym"})
"""Symbols of bionic's libdl.so. Before glibc 2.34, libdl.so.2 has all but the first, which its libc always has."""
_M = frozenset(f"{name}{suffix}" for name in _MATHEMATICS.split() for suffix in ("", "f"))
"""What LLVM makes of TVM's mathematical intrinsics, for float and double (C17, 7.12)."""
_ABSENT = {"aarch64-linux-android": frozenset({"exp10", "exp10f", "roundeven", "roundevenf"})}
"""Of these, what the device's library lacks (bionic: libm/libm.map.txt)."""


@dataclass(frozen=True)
class Linker:
    """A clang that compiles and links for another processor."""

    version: str
    """Part of an artifact's key, because another linker makes other bytes."""
    command: tuple[str, ...]

    def compile(self, source: Path, output: Path, flags: Sequence[str]) -> None:
        """Make an object file of a C file. Raises `RigFailure`."""
        self._run([*flags, "-c", "-o", str(output), str(source)], output)

    def link(self, objects: Sequence[str | Path], library: Path, triple: str, flags: Sequence[str] = ()) -> None:
        """Make a shared library of object files and check it. Raises `RigFailure`."""
        with self._stubs(objects, triple) as stubs:
            self._share([PAGES, "-s", *flags], library, [*objects, *stubs])
        check_library(library, triple)

    def link_program(self, objects: Sequence[str | Path], program: Path, triple: str) -> None:
        """Make an executable of object files that have `_start`, and check it. Raises `RigFailure`."""
        loader = f"-Wl,-dynamic-linker,{_LOADERS[triple]}"
        flags = ["-pie", "-nostdlib", "-s", "-Wl,-e,_start", loader, PAGES, "-o", str(program)]
        with self._stubs(objects, triple) as stubs:
            self._run([*flags, *map(str, [*objects, *stubs])], program)
        _check(program, triple)

    @contextmanager
    def _stubs(self, objects: Sequence[str | Path], triple: str) -> Iterator[list[Path]]:
        """Yield a stub of each library of the device that defines what the objects expect. Raises `RigFailure`."""
        with TemporaryDirectory() as folder:
            libraries = sorted(_providers(objects, triple).items())
            yield [self._stub(Path(folder) / soname, symbols) for soname, symbols in libraries]

    def _stub(self, library: Path, symbols: Iterable[str]) -> Path:
        source = library.with_suffix(".s")
        lines = [f".globl {name}\n.type {name},%function\n{name}:" for name in sorted(symbols)]
        source.write_text("\n".join([".text", *lines, ""]), encoding="ascii")
        self._share([], library, [source])
        return library

    def _share(self, flags: Sequence[str], out: Path, inputs: Sequence[str | Path]) -> None:
        common = ["-shared", "-nostdlib", f"-Wl,-soname,{out.name}", "-o", str(out)]
        self._run([*common, *flags, *map(str, inputs)], out)

    def _run(self, arguments: Sequence[str], out: Path) -> None:
        try:
            subprocess.run([*self.command, *arguments], check=True, capture_output=True, timeout=LINK_TIMEOUT_S)
        except (OSError, subprocess.SubprocessError) as error:
            message = getattr(error, "stderr", None) or b""
            evidence = message.decode(errors="replace") or str(error)
            full = disk_full(evidence, out.parent) or nearly_full(evidence, out.parent)
            raise full or RigFailure(f"{self.version} could not make {out.name}", evidence=evidence) from error


def linker(triple: str) -> Linker:
    """Return the linker for a triple: the NDK's if `ANDROID_NDK_HOME` is set, else ziglang's. Raises `SetupMissing`."""
    if ndk := os.environ.get(NDK_VARIABLE):
        return _of_ndk(Path(ndk), triple)
    try:
        version = importlib.metadata.version("ziglang")
    except importlib.metadata.PackageNotFoundError:
        raise SetupMissing(
            f"there is no linker for {triple}",
            hint=f"`make phones` or `{sys.executable} -m pip install ziglang`, or set {NDK_VARIABLE} to Android's NDK",
        ) from None
    # Zig has no Android target of its own; without a C library the operating system makes no difference.
    command = (sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-musl")
    return Linker(f"ziglang {version}", command)


def check_library(library: Path, triple: str) -> Elf:
    """Check that the device's loader will take a library (bionic: linker.cpp, linker_phdr.cpp). Raises `RigFailure`."""
    elf = _check(library, triple)
    if not elf.exported:
        raise RigFailure(f"no device could use the linked {library.name}: it exports nothing")
    if elf.section_fault:
        raise RigFailure(f"no phone could load the linked {library.name}: it {elf.section_fault}")
    return elf


def _check(linked: Path, triple: str) -> Elf:
    """Check what libraries and programs have in common, and return the file. Raises `RigFailure`."""
    try:
        elf = read_elf(linked)
    except BadElf as error:
        raise RigFailure(f"the linked {linked.name} {error}") from error
    strange = sorted(set(elf.needed) - {FFI, *_SONAMES[triple].values()})
    lost = sorted(symbol for symbol in elf.undefined if _provider(symbol, triple) not in elf.needed)
    findings = [
        ((elf.kind, elf.machine, elf.bits) != ("ET_DYN", MACHINE, 64), f"it is {elf.kind} for {elf.machine}"),
        (elf.page_bytes < PAGE_BYTES, f"its segments fit pages of {elf.page_bytes} bytes"),
        ("DT_GNU_HASH" not in elf.hash_tables, "it has no DT_GNU_HASH"),
        (elf.text_relocations, "it has text relocations"),
        (elf.writable_code, "its code can be written"),
        (strange, f"it needs {', '.join(strange)}"),
        (lost, f"nothing that it needs defines {', '.join(lost)}"),
    ]
    if wrong := [what for is_so, what in findings if is_so]:
        raise RigFailure(f"no device could load the linked {linked.name}: {'; '.join(wrong)}")
    return elf


def _providers(objects: Sequence[str | Path], triple: str) -> Mapping[str, set[str]]:
    """Which library of the device defines which of the symbols that the objects expect. Raises `RigFailure`."""
    providers: dict[str, set[str]] = {}
    try:
        symbols = frozenset[str]().union(*(undefined_in_object(Path(file)) for file in objects))
    except BadElf as error:
        raise RigFailure(f"an object file of TVM's {error}") from error
    for symbol in symbols:
        if soname := _provider(symbol, triple):
            providers.setdefault(soname, set()).add(symbol)
    return providers


def _provider(symbol: str, triple: str) -> str:
    """Return the library that defines a symbol on the device; empty if none is known."""
    if symbol.startswith("TVMFFI"):
        return FFI
    if symbol in _ABSENT.get(triple, ()):
        return ""
    kind = next((kind for kind, symbols in (("c", _C), ("m", _M), ("dl", _DL)) if symbol in symbols), "")
    return _SONAMES[triple].get(kind, "")


def _of_ndk(ndk: Path, triple: str) -> Linker:
    clang = next(iter(sorted(ndk.glob("toolchains/llvm/prebuilt/*/bin/clang"))), None)
    properties = ndk / "source.properties"
    if clang is None or not properties.is_file():
        raise SetupMissing(
            f"{NDK_VARIABLE} names {ndk}, which holds no Android NDK",
            hint=f"set it to a folder with {properties.name} and toolchains/llvm, or unset it",
        )
    revision = re.search(r"Pkg\.Revision\s*=\s*(\S+)", properties.read_text(encoding="utf-8"))
    version = revision[1] if revision else "of unknown revision"
    return Linker(f"NDK {version}", (str(clang), f"--target={triple}", "-fuse-ld=lld"))
