"""What is kept of a network's machine code: the part of a record that a later build is compared with, exactly."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from harness.isa.network import Network, NetworkKernel


@dataclass(frozen=True)
class KernelCode:
    """One kernel for one GPU."""

    name: str
    source: str
    """Hash of its source, in which its own name does not count."""
    code: str
    """Hash of its machine code; empty if the compiler made none."""
    message: str = ""
    """Why it made none."""
    instructions: int | None = None
    """Issue slots of the code as it stands."""
    instructions_per_inference: int | None = None
    """The same for all threads of an inference; 0 if it is never launched, None if the threads are not known."""
    instructions_run_per_inference: int | None = None
    """The same, each instruction times the trips of the loops around it; None if those are not known either."""
    registers: int | None = None
    waves: int | None = None
    spills: int | None = None

    @property
    def launched(self) -> bool:
        """Whether an inference runs it, as far as is known."""
        return self.instructions_per_inference != 0


@dataclass(frozen=True)
class MachineCode:
    """All kernels of one case for one GPU, by one version of the compiler, which is part of what they are."""

    gpu: str
    compiler: str
    """Mesa's and LLVM's versions: numbers of another one are another series."""
    kernels: tuple[KernelCode, ...]
    flops_per_byte: float | None = None

    @property
    def series(self) -> tuple[str, str]:
        """What two have to share to be compared."""
        return self.gpu, self.compiler

    def per_inference(self, field: str) -> int | None:
        """The sum of a count over all kernels; None if it is not known of one of them."""
        counts = [getattr(kernel, f"{field}_per_inference") for kernel in self.kernels]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    @property
    def fewest_waves(self) -> int | None:
        """Of all kernels that are launched."""
        return min((k.waves for k in self.kernels if k.launched and k.waves is not None), default=None)

    @property
    def spilling(self) -> list[str]:
        """Kernels that are launched and keep values in memory because registers do not suffice."""
        return [kernel.name for kernel in self.kernels if kernel.launched and kernel.spills]

    @property
    def refused(self) -> list[KernelCode]:
        """Kernels of which the compiler made no code."""
        return [kernel for kernel in self.kernels if kernel.message]


def code_of(network: Network, compiler: str) -> MachineCode:
    """What is kept of a network that the compiler of this version made."""
    return MachineCode(network.gpu, compiler, tuple(map(_kernel, network.kernels)), network.intensity)


def matching(codes: Sequence[MachineCode], wanted: MachineCode) -> MachineCode | None:
    """The one that may be compared: for the same GPU, by the same version of the compiler."""
    return next((code for code in codes if code.series == wanted.series), None)


def _kernel(kernel: NetworkKernel) -> KernelCode:
    told, failure, source = kernel.statistics, kernel.compiled.failure, kernel.compiled.source
    return KernelCode(
        name=kernel.name,
        source=_hash(source.text.replace(kernel.name, "kernel")),
        code=_hash("\n".join(kernel.compiled.assembly)) if told else "",
        message=str(failure) if failure else "",
        instructions=told.instructions if told else None,
        instructions_per_inference=kernel.per_inference("instructions"),
        instructions_run_per_inference=kernel.per_inference("instructions_run"),
        registers=told.registers if told else None,
        waves=told.waves if told else None,
        spills=told.spills if told else None,
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
