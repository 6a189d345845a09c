"""What the open compiler makes of the kernels of a network: made once for each source, GPU and version, and kept."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from device_runner.failures import Failure
from device_runner.files import write_whole
from device_runner.store import key_of, sha256_of
from harness.base.failures import UsageError
from harness.base.process import cores
from harness.compile.paths.lowered_module import PlannedLaunch
from harness.tools.isa import pinned
from harness.tools.isa.failures import KernelCrash, KernelHang, KernelRefused
from harness.tools.isa.runner import KernelSource, Report, compile_all
from harness.tools.isa.statistics import Statistics, read_code
from harness.tools.isa.toolchain import MesaToolchain

KIND = "isa_kernels"
MOST_PROCESSES = max(1, min(3, cores()))
"""GPUs that are compiled for at a time, each in a process of its own."""
_READERS = ("kernels", "runner", "statistics", "trips")
"""Modules of this folder that decide what is kept of a kernel."""
_PLACE = re.compile(r"(?:^|[/\s])[\w.<>-]*:(\d+):(\d+): ((?:fatal )?error: .*)", re.MULTILINE)


@dataclass(frozen=True)
class CompiledKernel:
    """One kernel for one GPU: its numbers, or what the compiler said of it."""

    source: KernelSource
    gpu: str
    statistics: Statistics | None
    """Its statistics; None if the compiler refused it."""
    assembly: tuple[str, ...]
    failure: Failure | None = None
    launch: PlannedLaunch | None = None
    """How one inference of a network launches it; None in older builds, which did not record launches."""

    @property
    def name(self) -> str:
        """TVM's name of the kernel."""
        return self.source.name

    @property
    def threads(self) -> int | None:
        """Threads of one inference, in all its launches."""
        if self.launch is None or self.launch.threads is None or self.launch.per_inference is None:
            return None
        return self.launch.threads * self.launch.per_inference

    def per_inference(self, field: str) -> int | None:
        """Return a thread's count for all threads of an inference; None if either is not known.

        A kernel that is never launched counts nothing.
        """
        if self.launch and self.launch.per_inference == 0:
            return 0
        count = getattr(self.statistics, field, None)
        return None if count is None or self.threads is None else count * self.threads


def check_gpus(names: Sequence[str]) -> None:
    """Raise UsageError for a GPU that the compiler's stand-in for a driver does not know."""
    if unknown := [name for name in names if name not in pinned.GPUS]:
        raise UsageError(f"there is no GPU {unknown[0]!r}", hint=f"known are {', '.join(pinned.GPUS)}")


def compile_kernels(
    toolchain: MesaToolchain, cache: Path, kernels: Sequence[KernelSource], gpus: Sequence[str]
) -> dict[str, list[CompiledKernel]]:
    """Return every kernel for every GPU, by GPU, in their order. Raises UsageError, NoToolchain, UnknownOutput."""
    check_gpus(gpus)
    with ThreadPoolExecutor(MOST_PROCESSES, thread_name_prefix="isa") as pool:
        compiled = pool.map(lambda gpu: _for_gpu(toolchain, cache, kernels, gpu), gpus)
        return dict(zip(gpus, compiled, strict=True))


def _for_gpu(toolchain: MesaToolchain, cache: Path, kernels: Sequence[KernelSource], gpu: str) -> list[CompiledKernel]:
    folder = _folder(toolchain, cache, gpu)
    results = {kernel.digest: result for kernel in kernels if (result := _load(folder, kernel, gpu))}
    missing = list({kernel.digest: kernel for kernel in kernels if kernel.digest not in results}.values())
    for kernel, report in zip(missing, compile_all(toolchain, gpu, missing), strict=True):
        result = read_report(kernel, gpu, report)
        results[kernel.digest] = result
        if isinstance(result.failure, KernelRefused | None):  # the rest may come out otherwise next time
            write_whole(folder / f"{kernel.digest}.json", json.dumps(_plain(result)))
    return [results[kernel.digest] for kernel in kernels]


def _folder(toolchain: MesaToolchain, cache: Path, gpu: str) -> Path:
    """Folder of the results for one GPU, one version of the compiler, and one version of the parser of its output."""
    reader = {name: sha256_of(Path(__file__).with_name(f"{name}.py")) for name in _READERS}
    folder = cache / KIND / key_of({"compiler": toolchain.identity, "gpu": gpu, "reader": reader})
    write_whole(folder / "title", f"kernels for {gpu}, by {toolchain.identity}\n")  # used now, by the folder's time
    return folder


def read_report(kernel: KernelSource, gpu: str, report: Report | KernelHang) -> CompiledKernel:
    """Return what a report says of a kernel. Raises UnknownOutput."""
    if isinstance(report, KernelHang):
        return CompiledKernel(kernel, gpu, None, (), report)
    if failure := _failure(kernel, report):
        return CompiledKernel(kernel, gpu, None, (), failure)
    return CompiledKernel(kernel, gpu, *read_code(report.code_lines, report.kernels[0]))


def _failure(kernel: KernelSource, report: Report) -> Failure | None:
    if report.code not in (None, 0):
        return KernelRefused(f"the open compiler refuses it{_place_of_error(kernel, report.log)}", evidence=report.log)
    if not report.ended or report.code is None:
        last = report.message.splitlines()[-1:] or ["without a word"]
        return KernelCrash(f"the open compiler died: {last[0]}", evidence=report.message)
    if [built.name for built in report.kernels] != [kernel.name]:
        names = ", ".join(built.name for built in report.kernels) or "none"
        return KernelCrash(f"the open compiler made other kernels of the source: {names}", evidence=report.message)
    return None


def _place_of_error(kernel: KernelSource, log: str) -> str:
    """Return the first error, its line as in the kernel's file, and that line."""
    match = _PLACE.search(log)
    if match is None:
        first = next((line for line in log.splitlines() if line.strip()), "it does not say why")
        return f": {first.strip()}"
    number = kernel.original_line(int(match[1]))
    line = kernel.original.splitlines()[number - 1].strip() if number else ""
    return f": line {number or match[1]}: {match[3]}: {line}"


def _plain(kernel: CompiledKernel) -> dict[str, Any]:
    failure = kernel.failure
    return {
        "statistics": asdict(kernel.statistics) if kernel.statistics else None,
        "assembly": kernel.assembly,
        "refused": {"message": failure.message, "evidence": failure.evidence} if failure else None,
    }


def _load(folder: Path, kernel: KernelSource, gpu: str) -> CompiledKernel | None:
    """Return what is kept; None if there is nothing, or nothing that this version can read."""
    try:
        entry = json.loads((folder / f"{kernel.digest}.json").read_text(encoding="utf-8"))
        refused = entry["refused"]
        failure = KernelRefused(refused["message"], evidence=refused["evidence"]) if refused else None
        statistics = Statistics(**entry["statistics"]) if entry["statistics"] else None
        return CompiledKernel(kernel, gpu, statistics, tuple(entry["assembly"]), failure)
    except (OSError, ValueError, KeyError, TypeError):
        return None
