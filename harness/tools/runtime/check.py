"""Check on the host whether a device could load a folder as TVM's runtime, by its files alone.

What a phone says about a wrong library is `tvm_rpc` ending at once.

The release of TVM is not written in its runtime libraries. What tells releases apart is their interface: the C
functions of tvm-ffi (46, 48 and 50 of them in 0.1.12, 0.1.13 and 0.1.14) and the names of the VM's built-in functions
(83 in TVM 0.25 and 0.26, 92 in 0.27; the same on x86-64 and AArch64), both counted in the published wheels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from device_runner import installed_tvm
from device_runner.failures import Failure
from device_runner.runtimes.phone.elf import BadElf, Elf, read_elf
from device_runner.runtimes.phone.store import PROGRAM, RuntimeFolder
from harness.base.tables import counted

FFI, RUNTIME, OPENCL = "libtvm_ffi.so", "libtvm_runtime.so", "libtvm_runtime_opencl.so"
EXTRA = "libtvm_runtime_extra.so"
CXX = "libc++_shared.so"
REQUIRED = (PROGRAM, RUNTIME, FFI, OPENCL)
WELCOME = (EXTRA, CXX)
"""Taken if they are there, and asked for only by who needs them."""

ARM64_PAGE_BYTES = 16_384
"""The largest page of Android 15 and later (developer.android.com/guide/practices/page-sizes)."""
X86_64_PAGE_BYTES = 4096

VENDOR_LIBRARIES = frozenset({"libOpenCL.so", "libcdsprpc.so"})
"""Vendor libraries that programs in /data/local/tmp see. A copy in the folder would hide the phone's own."""

_ANDROID = """
EGL GLESv1_CM GLESv2 GLESv3 OpenMAXAL OpenSLES aaudio amidi android binder_ndk c camera2ndk dl icu jnigraphics log m
mediandk nativehelper nativewindow neuralnetworks stdc++ sync vulkan z
"""
ANDROID_LIBRARIES = VENDOR_LIBRARIES | {f"lib{name}.so" for name in _ANDROID.split()}
"""Android's own, for everybody (developer.android.com/ndk/guides/stable_apis)."""

_GLIBC = """
libOpenCL.so.1 libc.so.6 libdl.so.2 libgcc_s.so.1 libm.so.6 libpthread.so.0 librt.so.1 libstdc++.so.6 libz.so.1
"""
GLIBC_LIBRARIES = frozenset(_GLIBC.split())
"""What a Linux board with a desktop's C and C++ libraries has, beside the linker itself."""


@dataclass(frozen=True)
class System:
    """What a program of one ABI finds on the device."""

    abi: str
    """`ro.product.cpu.abi` of a phone, `uname -m` of a Linux board."""
    name: str
    machine: str
    interpreter: str
    libraries: frozenset[str]
    page_bytes: int
    """The largest page that it may have."""


def _glibc(abi: str, machine: str, interpreter: str, page_bytes: int) -> System:
    libraries = GLIBC_LIBRARIES | {PurePosixPath(interpreter).name}
    return System(abi, "Linux with glibc", machine, interpreter, libraries, page_bytes)


ANDROID = "Android"
SYSTEMS = (
    System("arm64-v8a", ANDROID, "EM_AARCH64", "/system/bin/linker64", frozenset(ANDROID_LIBRARIES), ARM64_PAGE_BYTES),
    _glibc("aarch64", "EM_AARCH64", "/lib/ld-linux-aarch64.so.1", ARM64_PAGE_BYTES),
    _glibc("x86_64", "EM_X86_64", "/lib64/ld-linux-x86-64.so.2", X86_64_PAGE_BYTES),
)


class RuntimeRefused(Failure):
    """The folder holds no runtime that would work; `reasons` has one line for each thing that is wrong."""

    outcome = "usage"

    def __init__(self, folder: Path, reasons: list[str]) -> None:
        self.reasons = tuple(reasons)
        others = f" ({counted(len(reasons), 'reason')} in all)" if len(reasons) > 1 else ""
        super().__init__(
            f"{folder} holds no runtime that a phone could use: {reasons[0]}{others}",
            hint="docs/tutorial/first-phone.md explains how to build one",
        )


@dataclass(frozen=True)
class Interface:
    """What tells releases of TVM apart."""

    ffi: frozenset[str]
    """C functions of tvm-ffi."""
    builtins: frozenset[str]
    """Names of the VM's built-in functions."""


def examine(folder: Path, host: Interface) -> RuntimeFolder:
    """Check a folder against what its system's loader asks and against the host's TVM. Raises `RuntimeRefused`."""
    if not folder.is_dir():
        raise RuntimeRefused(folder, ["it is not a folder" if folder.exists() else "it does not exist"])
    if absent := [name for name in REQUIRED if not (folder / name).is_file()]:
        raise RuntimeRefused(folder, [f"{name} is not in it" for name in absent])
    elves, reasons = _read_all(folder)
    if reasons:  # what else is wrong may only follow from that
        raise RuntimeRefused(folder, reasons)
    system = _system(elves[PROGRAM])
    if system is None:
        raise RuntimeRefused(folder, [_foreign(elves[PROGRAM])])
    for name, elf in elves.items():
        reasons += _unloadable(name, elf, system, elves)
    reasons += _unresolved(elves)
    notes = [] if EXTRA in elves else [f"without {EXTRA} it has no CLML"]
    lacking, more = _compare(host, interface(folder / FFI, folder / RUNTIME))
    reasons += lacking
    notes += more
    if reasons:
        raise RuntimeRefused(folder, reasons)
    reached = _needed_by_program(elves)
    preload = tuple(name for name in (OPENCL, EXTRA) if name in elves and name not in reached)
    return RuntimeFolder(system.abi, tuple(folder / name for name in sorted(elves)), preload, tuple(notes))


def interface(ffi: Path, runtime: Path) -> Interface:
    """Return what two libraries offer. Raises `BadElf`."""
    names = re.findall(rb"(?<=\0)vm\.builtin\.[\w.]+(?=\0)", runtime.read_bytes())
    functions = (name for name in read_elf(ffi).exported if name.startswith("TVMFFI"))
    return Interface(frozenset(functions), frozenset(name.decode() for name in names))


def host_interface() -> Interface:
    """Return the interface of the installed TVM."""
    return interface(installed_tvm.library("tvm_ffi", FFI), installed_tvm.library("tvm", RUNTIME))


def _read_all(folder: Path) -> tuple[dict[str, Elf], list[str]]:
    """Return the files that matter and all they need, and what is wrong with unreadable ones."""
    elves: dict[str, Elf] = {}
    reasons = []
    waiting = [*REQUIRED, *(name for name in WELCOME if (folder / name).is_file())]
    names = set(waiting)
    while waiting:
        name = waiting.pop(0)
        try:
            elves[name] = elf = read_elf(folder / name)
        except (BadElf, OSError) as error:
            reasons.append(f"{name} {error if isinstance(error, BadElf) else f'cannot be read: {error.strerror}'}")
            continue
        provided = names.union(*(system.libraries for system in SYSTEMS))
        files = [need for need in elf.needed if need not in provided and _plain(need) and (folder / need).is_file()]
        waiting += files
        names.update(files)
    return elves, reasons


def _plain(name: str) -> bool:
    """Return whether a DT_NEEDED entry is a mere file name: one with a slash would lead out of the folder."""
    return "/" not in name and name not in ("", ".", "..")


def _system(program: Elf) -> System | None:
    systems = (s for s in SYSTEMS if (s.machine, s.interpreter) == (program.machine, program.interpreter))
    return next(systems, None)


def _foreign(program: Elf) -> str:
    choices = " or ".join(f"{system.abi} ({system.name})" for system in SYSTEMS)
    loader = program.interpreter or "no dynamic linker"
    return f"{PROGRAM} is for {program.machine}, {program.bits} bits, with {loader}; it must be for {choices}"


def _unloadable(name: str, elf: Elf, system: System, elves: Mapping[str, Elf]) -> Iterator[str]:
    """Yield why the system's loader would not take a file."""
    if elf.machine != system.machine:
        yield f"{name} is for {elf.machine}, {PROGRAM} for {system.machine}"
        return
    if elf.kind != "ET_DYN":
        yield f"{name} is not position-independent, as {system.name} requires"
    if name != PROGRAM and not elf.exported:
        yield f"{name} was stripped of its dynamic symbol table (use `llvm-strip --strip-unneeded`)"
    if elf.page_bytes < (pages := system.page_bytes):
        flag = f"-Wl,-z,max-page-size={pages}"
        yield f"{name} is aligned to pages of {elf.page_bytes} bytes, not {pages} (link with {flag}, or NDK r28)"
    if system.name == ANDROID and name != PROGRAM and elf.section_fault:
        yield f"{name} {elf.section_fault}, which Android's loader refuses (strip with `llvm-strip --strip-unneeded`)"
    if elf.text_relocations:
        yield f"{name} has text relocations, which Android refuses"
    for need in elf.needed:
        if need not in elves and need not in system.libraries:
            yield f"{need}, which {name} needs, is neither in the folder nor part of {system.name}"


def _unresolved(elves: Mapping[str, Elf]) -> Iterator[str]:
    """Symbols of TVM or of the NDK's C++ library that no file has: the files come from different builds."""
    exported = frozenset[str]().union(*(elf.exported for elf in elves.values()))
    for name, elf in elves.items():
        unresolved = sorted(elf.undefined - exported)
        missing = [symbol for symbol in unresolved if symbol.startswith("TVM") or re.search("3tvm|__ndk1", symbol)]
        if missing:
            yield f"{name} needs {missing[0]} ({len(missing)} such symbols), which no file of the folder has"


def _compare(host: Interface, phone: Interface) -> tuple[list[str], list[str]]:
    """Reasons to refuse, and notes. Functions that only the phone has do no harm by themselves."""
    reasons, notes = [], []
    for name, ours, theirs in ((FFI, host.ffi, phone.ffi), (RUNTIME, host.builtins, phone.builtins)):
        lacking, more = sorted(ours - theirs), sorted(theirs - ours)
        if lacking:
            reasons.append(
                f"{name} is of an older release than this host's TVM: it lacks {lacking[0]} "
                f"({len(lacking)} of {len(ours)} functions)"
            )
        elif more:
            notes.append(f"{name} may be of a newer release than this host's TVM: it adds {more[0]} ({len(more)} such)")
    if not reasons and not notes:
        notes.append("its interface is that of this host's TVM; the exact release is not written in its files")
    return reasons, notes


def _needed_by_program(elves: Mapping[str, Elf]) -> set[str]:
    """Return what the loader brings along with the program, through however many steps."""
    reached: set[str] = set()
    waiting = [PROGRAM]
    while waiting:
        for need in elves[waiting.pop()].needed:
            if need in elves and need not in reached:
                reached.add(need)
                waiting.append(need)
    return reached
