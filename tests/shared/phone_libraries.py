"""Small libraries that stand for TVM's runtime on a device: this host's compiler makes them, marked as AArch64.

They are good for what reads files; nothing can run their code.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

from harness.tools.runtime.check import Interface

EM_AARCH64, EM_X86_64 = 183, 62
HOST = Interface(frozenset({"TVMFFIGetVersion", "TVMFFIFunctionCall"}), frozenset({"vm.builtin.copy"}))


def ffi_code(interface: Interface) -> str:
    return " ".join(f"void {name}(){{}}" for name in sorted(interface.ffi))


def runtime_code(interface: Interface) -> str:
    names = "".join(f"\\0{name}\\0" for name in sorted(interface.builtins))
    return f"""extern void TVMFFIFunctionCall();
const char names[] = "{names}"; void _ZN3tvm7runtimeEv(){{ TVMFFIFunctionCall(); }}"""


FFI, RUNTIME = ffi_code(HOST), runtime_code(HOST)
OPENCL = "extern void _ZN3tvm7runtimeEv(); void _ZN3tvm6openclEv(){ _ZN3tvm7runtimeEv(); }"
PROGRAM = "extern void _ZN3tvm7runtimeEv(); void _start(){ _ZN3tvm7runtimeEv(); }"


def mark(file: Path, machine: int = EM_AARCH64) -> Path:
    data = bytearray(file.read_bytes())
    data[18:20] = struct.pack("<H", machine)
    file.write_bytes(data)
    return file


def link(out: Path, code: str, needs: Sequence[str] = (), flags: Sequence[str] = (), page: int = 16384) -> Path:
    """Link `code`; what it needs lies beside it, or is made for the occasion."""
    source = out.with_name(f"{out.name}.c")
    source.write_text(code)
    made = []
    for need in needs:
        if not (out.parent / need).exists():
            made.append(link(out.parent / need, ""))
        mark(out.parent / need, EM_X86_64)
    kind = ["-pie", "-Wl,--unresolved-symbols=ignore-all"] if out.name == "tvm_rpc" else ["-shared"]
    common = ["gcc", "-fPIC", "-nostdlib", *kind, f"-Wl,-soname,{out.name},-z,max-page-size={page},--no-as-needed"]
    beside = [str(out.parent / need) for need in needs]
    subprocess.run([*common, *flags, "-o", str(out), str(source), *beside], check=True)
    for need in needs:
        mark(out.parent / need)
    for file in (*made, source):
        file.unlink()
    return mark(out)


ANDROID = ("-Wl,--dynamic-linker=/system/bin/linker64",)
BOARD = ("-Wl,--dynamic-linker=/lib/ld-linux-aarch64.so.1",)


def runtime_in(
    folder: Path, loader: Sequence[str] = ANDROID, libc: str = "libc.so", interface: Interface = HOST
) -> Path:
    """A whole runtime for phones, or for boards with glibc's loader and library."""
    folder.mkdir(exist_ok=True)
    link(folder / "libtvm_ffi.so", ffi_code(interface), [libc])
    link(folder / "libtvm_runtime.so", runtime_code(interface), ["libtvm_ffi.so", libc])
    link(folder / "libtvm_runtime_opencl.so", OPENCL, ["libtvm_runtime.so"])
    link(folder / "tvm_rpc", PROGRAM, ["libtvm_runtime.so"], loader)
    return folder
