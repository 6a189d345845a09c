"""Runs the compiler on sources, for one GPU. A source on which it dies or hangs is that source's outcome alone."""

from __future__ import annotations

import secrets
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from device_runner.lifetime import dying_with_parent
from harness.isa import pinned, sandbox
from harness.isa.failures import KernelHang, NoToolchain, UnknownOutput
from harness.isa.output import Report, parse
from harness.isa.source import KernelSource
from harness.isa.toolchain import Toolchain
from harness.process import Listener, end_family

START_DEADLINE_S = 60.0
KERNEL_DEADLINE_S = 120.0
"""For one kernel, on a machine that is busy with other things; the slowest known takes a few seconds."""
LISTEN_S = 10.0
_LOOK_EVERY_S = 0.1
_MOST_LINES = 2_000_000
"""Of one run; a hundred times what a large network makes the compiler print."""


def compile_all(toolchain: Toolchain, gpu: str, kernels: Sequence[KernelSource]) -> list[Report | KernelHang]:
    """What came of each source. Raises NoToolchain, UnknownOutput."""
    reports: list[Report | KernelHang] = []
    while len(reports) < len(kernels):
        mark = f"@{secrets.token_hex(8)}"
        lines, hung = printed(toolchain, gpu, kernels[len(reports) :], mark)
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


def printed(toolchain: Toolchain, gpu: str, kernels: Sequence[KernelSource], mark: str) -> tuple[list[str], bool]:
    """What one process prints, in which lines of our program begin with `mark`; and whether it had to be ended."""
    with tempfile.TemporaryDirectory() as folder:
        for number, kernel in enumerate(kernels):
            (Path(folder) / f"{number}.cl").write_text(kernel.text, encoding="utf-8")
        files = [f"{sandbox.SOURCES}/{number}.cl" for number in range(len(kernels))]
        argv = [*sandbox.loaded(pinned.SHIM), mark, *files]
        line = sandbox.command(toolchain.root, Path(folder), toolchain.program, _variables(gpu), argv)
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
    seen, began, deadline_s = 0, time.monotonic(), START_DEADLINE_S
    while True:
        try:
            process.wait(_LOOK_EVERY_S)
            return False
        except subprocess.TimeoutExpired:
            known = len(lines)
            if any(line.startswith(f"{mark} begin ") for line in lines[seen:known]):
                began, deadline_s = time.monotonic(), KERNEL_DEADLINE_S
            seen = known
            if time.monotonic() - began > deadline_s or known > _MOST_LINES:
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
