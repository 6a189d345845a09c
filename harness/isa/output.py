"""What our program and the compiler print, taken apart into one report for each source (`src/compile_kernels.c`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.isa.failures import UnknownOutput

_MESA = re.compile(r"MESA: (info|warning|error): ?(.*)")
_KERNEL = re.compile(r"kernel (\w+) private (\d+) local (\d+) group (\d+)")


@dataclass(frozen=True)
class BuiltKernel:
    """What OpenCL tells of a kernel."""

    name: str
    private_bytes: int
    """Memory of one thread for arrays and spills, as it is reserved."""
    local_bytes: int
    largest_group: int


@dataclass(frozen=True)
class Report:
    """What came of one source."""

    ended: bool
    """Whether the compiler was through with it; if not it died, or was ended."""
    code: int | None
    """What `clBuildProgram` returned, None if it did not."""
    log: str
    """The build log, if it was refused."""
    kernels: tuple[BuiltKernel, ...]
    code_lines: tuple[str, ...]
    """What Mesa's compiler printed, without its mark."""
    said: str
    """Everything else, which no program of ours prints: the last words of one that died."""


@dataclass(frozen=True)
class Output:
    """All of one run."""

    driver: str
    """Version of the driver, empty if the run did not come so far."""
    problem: str
    reports: tuple[Report, ...]


def parse(lines: Sequence[str], mark: str) -> Output:
    """Take the lines apart. Raises UnknownOutput for a line of ours that is not known."""
    driver, problem, reports = "", "", []
    section: list[str] | None = None
    for line in lines:
        ours = line.removeprefix(f"{mark} ") if line.startswith(f"{mark} ") else ""
        if ours.startswith("begin "):
            section = []
            reports.append((section, mark))
        elif section is not None:
            section.append(line)
        elif ours.startswith("driver "):
            driver = ours.removeprefix("driver ")
        elif ours.startswith("no device "):
            problem = f"the compiler finds no GPU (error {ours.removeprefix('no device ')})"
        elif not ours:
            problem = line.strip() or problem
    return Output(driver, problem, tuple(_report(*one) for one in reports))


def _report(lines: Sequence[str], mark: str) -> Report:
    code: int | None = None
    ended, in_log = False, False
    log: list[str] = []
    kernels: list[BuiltKernel] = []
    code_lines: list[str] = []
    said: list[str] = []
    for line in lines:
        ours = line.removeprefix(f"{mark} ") if line.startswith(f"{mark} ") else ""
        if ours in ("log", "end of log"):
            in_log = ours == "log"
        elif in_log:
            log.append(line)
        elif ours.startswith("built "):
            code = int(ours.removeprefix("built "))
        elif found := _KERNEL.fullmatch(ours):
            kernels.append(BuiltKernel(found[1], *(int(number) for number in found.groups()[1:])))
        elif ours.startswith("end "):
            ended = True
        elif ours:
            raise UnknownOutput(f"the compiler says {ours!r} of a kernel")
        elif mesa := _MESA.fullmatch(line):
            code_lines.append(mesa[2])
        else:
            said.append(line)
    return Report(ended, code, "\n".join(log).strip(), tuple(kernels), tuple(code_lines), "\n".join(said).strip())
