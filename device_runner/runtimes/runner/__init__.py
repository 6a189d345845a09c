"""The runner: what runs one turn of a bundle, a program of C against tvm-ffi's C interface."""

from __future__ import annotations

import platform
from pathlib import Path

from device_runner import installed_tvm
from device_runner.failures import SetupMissing
from device_runner.runtimes import probe
from device_runner.runtimes.cross import TRIPLES, Linker, linker
from device_runner.runtimes.recipe import LOCK_DEADLINE_S, CppToolchain, one_source, run_compiler
from device_runner.store import Store, digest_of

FOLDER = NAME = "runner"
SOURCES = Path(__file__).parent / "src"
SHARED = Path(probe.__file__).parent / "src"
"""The probe's sources, of which the runner takes the texts."""
FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-fPIE", "-Wall", "-Wextra")
FOREIGN_FLAGS = (
    "-fno-stack-protector",
    "-fno-sanitize=all",
    "-U_FORTIFY_SOURCE",
    "-fno-builtin-bcmp",
)
STARTS = {"arm64-v8a": "-DRUNNER_STARTS_ON_ANDROID", "aarch64": "-DRUNNER_STARTS_ON_GLIBC"}
"""Which C library starts it, by ABI."""


def program(cache_dir: Path, abi: str) -> Path:
    """The program for devices of an ABI, built at the first call.

    Raises SetupMissing if there is no compiler for that processor, DiskFull, RigFailure if it does not compile.
    """
    if abi not in (*STARTS, platform.machine()):
        raise SetupMissing(
            f"there is no runner for devices with ABI {abi}", hint=f"there is one for {', '.join(STARTS)}"
        )
    foreign_flags = (*FOREIGN_FLAGS, STARTS[abi]) if abi in STARTS and abi != platform.machine() else ()
    toolchain = linker(TRIPLES[abi]) if foreign_flags else CppToolchain.find()
    compiler = toolchain.version if isinstance(toolchain, Linker) else toolchain.compiler_version
    includes = installed_tvm.include_folders("tvm_ffi")

    def make(folder: Path) -> None:
        source, made = one_source(folder / "all.c", [*SOURCES.glob("*.c"), SHARED / "text.c"]), folder / NAME
        flags = [*FLAGS, f"-I{SOURCES}", f"-I{SHARED}", *(f"-isystem{include}" for include in includes)]
        if isinstance(toolchain, Linker):
            code = made.with_suffix(".o")
            toolchain.compile(source, code, [*flags, *foreign_flags])
            toolchain.link_program([code], made, TRIPLES[abi])
        else:
            searched = [f"-L{folder}" for folder in toolchain.libraries]
            links = ["-x", "none", *searched, "-ltvm_ffi", "-ldl", "-lm", "-static-libgcc"]
            run_compiler("the runner", [toolchain.compiler, "-x", "c", *flags, "-Werror", str(source), *links], made)

    key = digest_of((*FLAGS, *foreign_flags, compiler, abi), (SOURCES, SHARED, *includes))
    return Store(cache_dir, FOLDER).obtain(key, make, LOCK_DEADLINE_S) / NAME
