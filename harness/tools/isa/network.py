"""The kernels of a network on one GPU, with how often one inference launches them: what a whole inference executes.

They are made from artifacts in the store; what is kept of them is `harness.tools.isa.code`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from device_runner.failures import Failure
from device_runner.store import cache_root
from harness.base.failures import UsageError
from harness.compile.artifacts.artifact import Artifact
from harness.compile.artifacts.pool import load_artifact
from harness.compile.compiler.tir import OperatorWork
from harness.compile.paths.lowered_module import PlannedLaunch
from harness.tools.isa.code import KernelCode, MachineCode, total
from harness.tools.isa.kernels import CompiledKernel, compile_kernels
from harness.tools.isa.runner import sources
from harness.tools.isa.toolchain import MesaToolchain


@dataclass(frozen=True)
class GpuNetwork:
    """One case on one GPU."""

    case: str
    gpu: str
    compiler: str
    """Version of what made the kernels (`MesaToolchain.identity`)."""
    artifact: str
    kernels: tuple[CompiledKernel, ...]

    @cached_property
    def code(self) -> MachineCode:
        """What is kept of it."""
        fields = ("flops_run", "bytes_run")
        flops, moved = (total([kernel.per_inference(field) for kernel in self.kernels]) for field in fields)
        intensity = flops / moved if flops is not None and moved else None
        return MachineCode(self.gpu, self.compiler, tuple(map(_kernel, self.kernels)), intensity)

    def to_json(self) -> dict[str, Any]:
        """Return all numbers, as plain values."""
        return {
            "case": self.case,
            "gpu": self.gpu,
            "artifact": self.artifact,
            "instructions_per_inference": self.code.per_inference("instructions"),
            "instructions_run_per_inference": self.code.per_inference("instructions_run"),
            "flops_per_byte": self.code.flops_per_byte,
            "fewest_waves": self.code.fewest_waves,
            "kernels": [_plain(kernel) for kernel in self.kernels],
        }


def network(
    case: str,
    gpu: str,
    compiler: str,
    artifact: str,
    compiled: Sequence[CompiledKernel],
    launches: Mapping[str, Mapping[str, Any]] | None,
) -> GpuNetwork:
    """Put together what the compiler made of the kernels of one case, and what the artifact's manifest says of them."""
    planned = {name: PlannedLaunch(**fields) for name, fields in (launches or {}).items()}
    kernels = tuple(replace(kernel, launch=planned.get(kernel.name)) for kernel in compiled)
    return GpuNetwork(case, gpu, compiler, artifact, kernels)


def _plain(kernel: CompiledKernel) -> dict[str, Any]:
    failure = kernel.failure
    return {
        "name": kernel.name,
        "source": kernel.source.digest,
        "outcome": failure.outcome if failure else "ok",
        "message": failure.message if failure else "",
        "launch": asdict(kernel.launch) if kernel.launch else None,
        "instructions_per_inference": kernel.per_inference("instructions"),
        "instructions_run_per_inference": kernel.per_inference("instructions_run"),
        "statistics": asdict(kernel.statistics) if kernel.statistics else None,
    }


def networks(toolchain: MesaToolchain, artifacts: Mapping[str, str], gpus: Sequence[str]) -> list[GpuNetwork]:
    """Compile each case for each GPU. `artifacts` are keys of the store by case.

    Kernels of several cases are compiled once.

    Raises UsageError for an artifact that is no longer in the store, and what `compile_kernels` raises.
    """
    cache = cache_root()
    built = {case: _built(case, key) for case, key in artifacts.items()}
    texts = {case: sources(artifact.source) for case, artifact in built.items()}
    compiled = compile_kernels(toolchain, cache, [kernel for text in texts.values() for kernel in text], gpus)
    by_digest = {gpu: {kernel.source.digest: kernel for kernel in kernels} for gpu, kernels in compiled.items()}
    networks = []
    for case, kernels in texts.items():
        for gpu in gpus:
            results = [by_digest[gpu][kernel.digest] for kernel in kernels]
            networks.append(
                network(case, gpu, toolchain.identity, artifacts[case], results, built[case].compiled.launches)
            )
    return networks


def work_of(key: str) -> list[OperatorWork]:
    """Return what the operators of an artifact have to do; nothing if that was not noted, or if it is gone."""
    manifest = load_artifact(cache_root(), key)
    return [OperatorWork(**fields) for fields in (manifest.compiled.work or ())] if manifest else []


def _built(case: str, key: str) -> Artifact:
    if artifact := load_artifact(cache_root(), key):
        return artifact
    raise UsageError(f"the build of {case} is not in the cache", hint="`adreno-bench build` makes it again")


def codes_of(networks: Sequence[GpuNetwork]) -> tuple[list[MachineCode], Failure | None]:
    """Return a case on several GPUs, and the message of the first kernel that the compiler refused."""
    refused = (kernel.failure for network in networks for kernel in network.kernels if kernel.failure)
    return [network.code for network in networks], next(refused, None)


def _kernel(kernel: CompiledKernel) -> KernelCode:
    statistics, failure, source = kernel.statistics, kernel.failure, kernel.source
    return KernelCode(
        name=kernel.name,
        source=_hash(source.text.replace(kernel.name, "kernel")),
        code=_hash("\n".join(kernel.assembly)) if statistics else "",
        message=str(failure) if failure else "",
        instructions_per_inference=kernel.per_inference("instructions"),
        instructions_run_per_inference=kernel.per_inference("instructions_run"),
        **{name: getattr(statistics, name, None) for name in ("instructions", "registers", "waves", "spills")},
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
