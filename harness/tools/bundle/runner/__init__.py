"""The runner: what runs one turn of a bundle, a program of C against tvm-ffi's C interface."""

from __future__ import annotations

from pathlib import Path

from device_runner.runtimes.c_code import SHARED, CCode

NAME = "runner"
RUNNER = CCode(
    NAME,
    "the runner",
    NAME,
    (Path(__file__).parent / "src", SHARED),
    ("-fPIE",),
    libraries=("-ltvm_ffi", "-ldl", "-lm", "-static-libgcc"),
    executable=True,
)
program = RUNNER.file
