"""Our program that hands kernels to the open compiler, compiled once by the C compiler of this machine."""

from __future__ import annotations

from pathlib import Path

from device_runner.runtimes.recipe import LOCK_DEADLINE_S, CppToolchain, run_compiler
from device_runner.store import Store, digest_of

FOLDER = "isa_program"
NAME = "compile_kernels"
SOURCES = Path(__file__).parent / "src"
FLAGS = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wl,--as-needed")


def program(cache: Path) -> Path:
    """The folder that holds it and nothing else that could be run.

    Raises SetupMissing without a compiler or OpenCL's development files, DiskFull, RigFailure.
    """
    toolchain = CppToolchain.found()

    def make(folder: Path) -> None:
        command = [toolchain.compiler, "-x", "c", *FLAGS, str(SOURCES / f"{NAME}.c"), "-x", "none", "-lOpenCL"]
        run_compiler("the program that compiles kernels", command, folder / NAME)

    key = digest_of((*FLAGS, toolchain.compiler_version), [SOURCES])
    return Store(cache, FOLDER).obtain(key, make, LOCK_DEADLINE_S)
