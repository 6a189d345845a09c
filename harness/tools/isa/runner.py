"""Runs the compiler on sources, for one GPU, and takes apart what it prints: one report for each source.

A source is given to it without the declarations of the other kernels of its network. One on which it dies or hangs is
that source's outcome alone. `src/compile_kernels.c` is our program that hands them to the compiler.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

from device_runner.files import scratch_folder
from device_runner.lifetime import dying_with_parent
from harness.base.process import Listener, end_family
from harness.tools.isa import pinned, sandbox
from harness.tools.isa.failures import KernelHang, NoToolchain, UnknownOutput
from harness.tools.isa.toolchain import MesaToolchain
from harness.tools.shared.kernel_source import pieces

_DECLARATION = re.compile(r"__kernel\b[^{;]*;")
_MESA = re.compile(r"MESA: (info|warning|error): ?(.*)")
_KERNEL = re.compile(r"kernel (\w+) private (\d+) local (\d+) group \d+")
START_DEADLINE_S = 60.0
KERNEL_DEADLINE_S = 120.0
"""Deadline for one kernel on a busy machine; the slowest known takes a few seconds."""
LISTEN_S = 10.0
_LOOK_EVERY_S = 0.1
_MOST_LINES = 2_000_000
"""Most lines of one run: a hundred times what the compiler prints for a large network."""


@dataclass(frozen=True)
class KernelSource:
    """One kernel."""

    name: str
    text: str
    original: str
    """The source that the device compiles, with declarations: its lines are those of `kernels`."""

    @property
    def digest(self) -> str:
        """The same for the same kernel in any network."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:24]

    def original_line(self, line: int) -> int:
        """Return the line in the original text of a line of `text`, counted from 1; 0 if there is none."""
        numbers = [number for number, text in enumerate(self.original.splitlines(), 1) if not _is_declaration(text)]
        return numbers[line - 1] if 0 < line <= len(numbers) else 0


def sources(text: str) -> list[KernelSource]:
    """Return the kernels of a network's OpenCL source, as TVM writes it."""
    return [
        KernelSource(name, "".join(f"{line}\n" for line in piece.splitlines() if not _is_declaration(line)), piece)
        for name, piece in pieces(text).items()
    ]


def _is_declaration(line: str) -> bool:
    return bool(_DECLARATION.fullmatch(line.strip()))


@dataclass(frozen=True)
class BuiltKernel:
    """What OpenCL tells of a kernel."""

    name: str
    private_bytes: int
    """Memory of one thread for arrays and spills, as it is reserved."""
    local_bytes: int


@dataclass(frozen=True)
class Report:
    """What the compiler said and made of one source."""

    ended: bool
    """Whether the compiler was through with it; if not it died, or was ended."""
    code: int | None
    """What `clBuildProgram` returned, None if it did not."""
    log: str
    """The build log, if it was refused."""
    kernels: tuple[BuiltKernel, ...]
    code_lines: tuple[str, ...]
    """What Mesa's compiler printed, without its mark."""
    message: str
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
    return Output(driver, problem, tuple(_report(*arguments) for arguments in reports))


def _report(lines: Sequence[str], mark: str) -> Report:
    code: int | None = None
    ended, in_log = False, False
    log: list[str] = []
    kernels: list[BuiltKernel] = []
    code_lines: list[str] = []
    messages: list[str] = []
    for line in lines:
        ours = line.removeprefix(f"{mark} ") if line.startswith(f"{mark} ") else ""
        if ours in ("log", "end of log"):
            in_log = ours == "log"
        elif in_log:
            log.append(line)
        elif ours.startswith("built "):
            code = int(ours.removeprefix("built "))
        elif match := _KERNEL.fullmatch(ours):
            kernels.append(BuiltKernel(match[1], *(int(number) for number in match.groups()[1:])))
        elif ours.startswith("end "):
            ended = True
        elif ours:
            raise UnknownOutput(f"the compiler says {ours!r} of a kernel")
        elif mesa := _MESA.fullmatch(line):
            code_lines.append(mesa[2])
        else:
            messages.append(line)
    return Report(ended, code, "\n".join(log).strip(), tuple(kernels), tuple(code_lines), "\n".join(messages).strip())


def compile_all(toolchain: MesaToolchain, gpu: str, kernels: Sequence[KernelSource]) -> list[Report | KernelHang]:
    """Return a report of each source. Raises NoToolchain, UnknownOutput."""
    reports: list[Report | KernelHang] = []
    while len(reports) < len(kernels):
        mark = f"@{secrets.token_hex(8)}"
        lines, hung = run_compiler(toolchain, gpu, kernels[len(reports) :], mark)
        output = parse(lines, mark)
        if output.driver != toolchain.mesa:
            why = output.problem or f"it calls itself {output.driver!r} instead of {toolchain.mesa!r}"
            raise NoToolchain(f"the compiler for {gpu} does not run: {why}", hint="`adreno-bench doctor` looks closer")
        if not output.reports:
            raise UnknownOutput(f"the compiler for {gpu} ended before the first kernel", evidence=output.problem)
        reports += output.reports
        if hung and not output.reports[-1].ended:
            reports[-1] = KernelHang(f"the compiler did not end within {KERNEL_DEADLINE_S:.0f} s")
    return reports


def run_compiler(
    toolchain: MesaToolchain, gpu: str, kernels: Sequence[KernelSource], mark: str
) -> tuple[list[str], bool]:
    """Return what one process prints, our program's lines after `mark`, and whether it had to be ended."""
    with scratch_folder() as folder:
        for number, kernel in enumerate(kernels):
            (folder / f"{number}.cl").write_text(kernel.text, encoding="utf-8")
        files = [f"{sandbox.SOURCES}/{number}.cl" for number in range(len(kernels))]
        argv = [*sandbox.program_line(pinned.SHIM), mark, *files]
        line = sandbox.command(toolchain.root, folder, toolchain.program, _variables(gpu), argv)
        lines: list[str] = []
        process = subprocess.Popen(
            dying_with_parent(line),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
            errors="replace",
        )
        try:
            assert process.stderr
            heard = Listener(process.stderr, lines.append)
            hung = _wait(process, lines, mark)
        finally:
            if process.poll() is None:
                end_family(process.pid)
            process.wait()
        heard.join(LISTEN_S)
    return lines, hung


def _wait(process: subprocess.Popen[str], lines: list[str], mark: str) -> bool:
    """Wait until it ends; whether a kernel, or the start, took too long or said too much."""
    before, began, deadline_s = 0, time.monotonic(), START_DEADLINE_S
    while True:
        try:
            process.wait(_LOOK_EVERY_S)
            return False
        except subprocess.TimeoutExpired:
            count = len(lines)
            if any(line.startswith(f"{mark} begin ") for line in lines[before:count]):
                began, deadline_s = time.monotonic(), KERNEL_DEADLINE_S
            before = count
            if time.monotonic() - began > deadline_s or count > _MOST_LINES:
                return True


def _variables(gpu: str) -> dict[str, str]:
    return {
        "RUSTICL_ENABLE": "freedreno",
        "FD_GPU_ID": str(pinned.GPUS[gpu]),
        "IR3_SHADER_DEBUG": "cs,nocache",
        "FD_MESA_DEBUG": "serialc",
        "MESA_SHADER_CACHE_DISABLE": "true",
        "LC_ALL": "C.UTF-8",
    }
