"""The kernels of a network on one GPU, with how often one inference launches them: what a whole inference executes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.isa.compiled import CompiledKernel
from harness.isa.statistics import Statistics
from harness.paths.lowered import Launch


@dataclass(frozen=True)
class NetworkKernel:
    """One kernel of a network."""

    compiled: CompiledKernel
    launch: Launch | None
    """None in what was built before launches were noted."""

    @property
    def name(self) -> str:
        """As TVM calls it."""
        return self.compiled.source.name

    @property
    def statistics(self) -> Statistics | None:
        """None if the compiler made no code of it."""
        return self.compiled.statistics

    @property
    def threads(self) -> int | None:
        """Threads of one inference, in all its launches."""
        if self.launch is None or self.launch.threads is None:
            return None
        return self.launch.threads * self.launch.per_inference

    def per_inference(self, field: str) -> int | None:
        """A count of one thread, for all threads of one inference; None if it, or the number of threads, is not known.

        A kernel that is never launched counts nothing.
        """
        if self.launch and not self.launch.per_inference:
            return 0
        count = getattr(self.statistics, field, None)
        return None if count is None or self.threads is None else count * self.threads


@dataclass(frozen=True)
class Network:
    """One case on one GPU."""

    case: str
    gpu: str
    artifact: str
    kernels: tuple[NetworkKernel, ...]

    def per_inference(self, field: str) -> int | None:
        """The sum over all kernels; None if one of them is not known."""
        counts = [kernel.per_inference(field) for kernel in self.kernels]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    @property
    def intensity(self) -> float | None:
        """Floating-point operations for each byte that is asked of memory; None if either is not known."""
        flops, moved = self.per_inference("flops_run"), self.per_inference("bytes_run")
        return flops / moved if flops is not None and moved else None

    @property
    def fewest_waves(self) -> int | None:
        """Of all kernels that are launched."""
        return min((k.statistics.waves for k in self._launched if k.statistics), default=None)

    @property
    def spilling(self) -> list[NetworkKernel]:
        """Kernels that are launched and keep values in memory because registers do not suffice."""
        return [kernel for kernel in self._launched if kernel.statistics and kernel.statistics.spills]

    @property
    def refused(self) -> list[NetworkKernel]:
        """Kernels of which the compiler made no code."""
        return [kernel for kernel in self.kernels if kernel.compiled.failure]

    @property
    def _launched(self) -> list[NetworkKernel]:
        return [kernel for kernel in self.kernels if kernel.launch is None or kernel.launch.per_inference]

    def to_json(self) -> dict[str, Any]:
        """All numbers, as plain values."""
        return {
            "case": self.case,
            "gpu": self.gpu,
            "artifact": self.artifact,
            "instructions_per_inference": self.per_inference("instructions"),
            "instructions_run_per_inference": self.per_inference("instructions_run"),
            "flops_per_byte": self.intensity,
            "fewest_waves": self.fewest_waves,
            "kernels": [_plain(kernel) for kernel in self.kernels],
        }


def network(
    case: str,
    gpu: str,
    artifact: str,
    compiled: Sequence[CompiledKernel],
    launches: Mapping[str, Mapping[str, Any]] | None,
) -> Network:
    """Put together what the compiler made of the kernels of one case, and what the artifact's manifest says of them."""
    known = {name: Launch(**told) for name, told in (launches or {}).items()}
    kernels = [NetworkKernel(one, known.get(one.source.name)) for one in compiled]
    return Network(case, gpu, artifact, tuple(kernels))


def _plain(kernel: NetworkKernel) -> dict[str, Any]:
    failure = kernel.compiled.failure
    return {
        "name": kernel.name,
        "source": kernel.compiled.source.digest,
        "outcome": failure.outcome if failure else "ok",
        "message": failure.message if failure else "",
        "launch": asdict(kernel.launch) if kernel.launch else None,
        "instructions_per_inference": kernel.per_inference("instructions"),
        "instructions_run_per_inference": kernel.per_inference("instructions_run"),
        "statistics": asdict(kernel.statistics) if kernel.statistics else None,
    }
