"""The layer between the OpenCL loader and the host's driver that makes the virtual phone's GPU no more than an Adreno.

The loader takes it from the environment (`OPENCL_LAYERS`), so it holds for TVM's own runtime, for ours and for the
probe alike. It is compiled once and needs nothing but C's library: the loader opens it before anything else is there.
"""

from __future__ import annotations

from pathlib import Path

from device_runner.runtimes.recipe import LOCK_DEADLINE_S, CppToolchain, one_source, run_compiler
from device_runner.store import Store, digest_of

VARIABLE = "OPENCL_LAYERS"
"""The loader's own: libraries, separated by `:` (ocl-icd's manual)."""
FOLDER, NAME = "opencl_layer", "phone_gpu.so"
"""A name that does not count among the files that OpenCL consists of (the probe's `add_file`)."""
SOURCES = Path(__file__).parent / "src"
FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-fvisibility=default", "-Wall", "-Wextra", "-Werror")


def layer(cache: Path) -> Path:
    """The library, built at the first call. Raises SetupMissing, DiskFull, RigFailure if it does not compile."""
    toolchain = CppToolchain.find()

    def make(folder: Path) -> None:
        source = one_source(folder / "all.c", SOURCES.glob("*.c"))
        command = [toolchain.compiler, "-x", "c", *FLAGS, f"-I{SOURCES}", "-shared", str(source)]
        run_compiler("the virtual GPU's limits", command, folder / NAME)

    key = digest_of((*FLAGS, toolchain.compiler_version), (SOURCES,))
    return Store(cache, FOLDER).obtain(key, make, LOCK_DEADLINE_S) / NAME
