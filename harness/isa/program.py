"""Our program that hands kernels to the open compiler, compiled once by the C compiler of this machine."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from device_runner.disk import writing
from device_runner.runtimes.recipe import CppToolchain, alone, digest_of, run_compiler, scratch

FOLDER = "isa_program"
NAME = "compile_kernels"
SOURCES = Path(__file__).parent / "src"
FLAGS = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wl,--as-needed")


def program(cache: Path) -> Path:
    """The folder that holds it and nothing else that could be run.

    Raises SetupMissing without a compiler or OpenCL's development files, DiskFull, RigFailure.
    """
    toolchain = CppToolchain.found()
    made = cache / FOLDER / digest_of((*FLAGS, toolchain.compiler_version), [SOURCES]) / NAME
    if not made.exists():
        with writing(cache), alone(made), scratch(made) as folder:
            if not made.exists():
                new = folder / NAME
                command = [toolchain.compiler, "-x", "c", *FLAGS, str(SOURCES / f"{NAME}.c"), "-x", "none", "-lOpenCL"]
                run_compiler("the program that compiles kernels", command, new)
                new.replace(made)
    with suppress(OSError):  # used now, which `adreno-bench cache` goes by; a read-only cache is still a cache
        os.utime(made.parent)
    return made.parent
