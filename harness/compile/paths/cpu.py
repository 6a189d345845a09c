"""Path `cpu`: the oracle. As little of TVM as possible, so that it shares no defect with the paths under test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from device_runner.device import Array
from harness.compile.compiler.compat import relax, tvm
from harness.compile.paths.base import BuiltModule, ImageLimits, PathFacts, Workaround, host_target, ignore_module
from harness.compile.paths.lowered_module import path_facts


@dataclass(frozen=True)
class CpuPath:
    """LLVM code from TVM's generic pipeline: no fusion, no schedules, no layouts."""

    name: str = "cpu"
    family: ClassVar[str] = "cpu"

    def target(self, limits: ImageLimits, host_triple: str | None) -> Any:
        """LLVM for the host; the device's limits do not matter."""
        return tvm.target.Target(host_target(host_triple))

    def lower(self, mod: Any, target: Any, workarounds: Sequence[Workaround]) -> Any:
        """TVM's generic Relax passes."""
        with target:
            return relax.get_pipeline("default")(mod)

    def build(
        self, module: Any, target: Any, workarounds: Sequence[Workaround], see: Callable[[Any], None] = ignore_module
    ) -> Any:
        """TVM's generic TIR passes, of which nothing is seen, then code generation."""
        return relax.build(module, target, relax_pipeline=None)

    def check(self, built: BuiltModule) -> None:
        """There is no kernel to check."""

    def facts(self, built: BuiltModule) -> PathFacts:
        """Return the noise-free numbers."""
        return path_facts(built)


def cpu_machine(mod: Any) -> Any:
    """TVM's virtual machine with a module compiled for this CPU."""
    cpu = CpuPath()
    target = cpu.target(ImageLimits(), None)
    return relax.VirtualMachine(cpu.build(cpu.lower(mod, target, []), target, []), tvm.cpu())


def run_on_cpu(machine: Any, inputs: Iterable[Array]) -> list[Array]:
    """Return the outputs of `main` of such a machine."""
    answer = machine["main"](*map(tvm.runtime.tensor, inputs))
    return [tensor.numpy() for tensor in ([answer] if hasattr(answer, "numpy") else answer)]
