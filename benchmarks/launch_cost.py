"""What the sidecar adds to a kernel launch: `python benchmarks/launch_cost.py`.

An empty kernel is launched through the sidecar, as compiled host code does, and through plain OpenCL calls on the same
device, in alternating rounds of one process. Printed are the medians of the host's time per launch, their difference
and their ratio.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
from pathlib import Path

from device_runner.runtimes import probe
from device_runner.runtimes.opencl import OPENCL, sidecar
from device_runner.runtimes.recipe import SHARED, CppToolchain
from harness.tools.doctor.opencl_status import opencl_status

CACHE = Path(__file__).parents[1] / ".cache"
SOURCE = Path(__file__).with_suffix(".cc")


def compile_program(library: Path, folder: Path) -> Path:
    """Return the program that measures, linked to the sidecar."""
    toolchain, program = CppToolchain.find(), folder / "launch_cost"
    includes = [f"-isystem{folder}" for folder in toolchain.includes]
    folders = [flag for found in toolchain.libraries for flag in (f"-L{found}", f"-Wl,-rpath,{found}")]
    command = [toolchain.compiler, "-std=c++17", "-O2", *includes, f"-I{OPENCL.sources}", "-idirafter", str(SHARED)]
    libraries = [str(library), f"-Wl,-rpath,{library.parent}", *folders, "-ltvm_runtime", "-ltvm_ffi", "-lOpenCL"]
    subprocess.run([*command, str(SOURCE), "-o", str(program), *libraries], check=True, timeout=300)
    return program


def main() -> None:
    """Measure and print."""
    library = sidecar(CACHE)
    with tempfile.TemporaryDirectory() as folder:
        program = compile_program(library, Path(folder))
        done = subprocess.run([str(program)], capture_output=True, text=True, check=True, timeout=600)
    rounds = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
    with_us, plain_us = (statistics.median(column) / 1000 for column in zip(*rounds, strict=True))
    chosen = opencl_status(library, probe.library(CACHE)).chosen
    print(json.dumps(chosen and {"platform": chosen.platform, "device": chosen.name}))
    print(f"through the sidecar {with_us:.2f} us, plain OpenCL {plain_us:.2f} us per launch ({len(rounds)} rounds)")
    print(f"the sidecar's own cost {with_us - plain_us:+.2f} us, ratio {with_us / plain_us:.3f}")


if __name__ == "__main__":
    main()
