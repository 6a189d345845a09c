"""What was built for a case, opened, and held to what the device can do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from device_runner.failures import Failure, Unsupported
from harness.build.artifact import INPUTS, LABELLED, OTHER_OUTPUTS, OUTPUTS, RANGE, Answers, Artifact, Built
from harness.build.oracle import load_arrays
from harness.build.value_range import beyond_half
from harness.cases.plan import Plan, no_half
from harness.probes.reference import ReferenceKernel
from harness.run.tuning import CacheUse

if TYPE_CHECKING:
    from device_runner.device import Array, Identity

T = TypeVar("T")


@dataclass(frozen=True)
class Work:
    """What was built for one case."""

    plan: Plan
    built: Built
    artifact: Artifact
    answers: Path
    """Folder of the oracle's answers."""

    @cached_property
    def inputs(self) -> list[Array]:
        """What the case is run on."""
        return load_arrays(self.answers / INPUTS)

    @cached_property
    def expected(self) -> list[Array]:
        """The oracle's answer."""
        return load_arrays(self.answers / OUTPUTS)

    @cached_property
    def other(self) -> list[Array]:
        """The oracle's answer to other inputs; empty if it had none."""
        return load_arrays(self.answers / OTHER_OUTPUTS)

    @cached_property
    def labelled(self) -> list[Array]:
        """Inputs, labels and the oracle's classes of labelled data; empty without."""
        file = self.answers / LABELLED
        return load_arrays(file) if file.exists() else []


@dataclass(frozen=True)
class Prepared:
    """What the measured session of a case is given."""

    cache: CacheUse
    reference: ReferenceKernel | None = None
    """The reference kernel, to be timed in the same session; None of a run that does not time, or if there is none."""


def open_work(plan: Plan, built: Built) -> Work:
    """Take what was built for a case. Raises Unsupported of one that was not built, and what building it raised."""
    if plan.unsupported:
        raise Unsupported(plan.unsupported)
    artifact = _expect(built[plan.compile.key], Artifact)
    return Work(plan, built, artifact, _expect(built[plan.oracle.key], Answers).folder)


def _expect(built: Artifact | Answers | Failure, kind: type[T]) -> T:
    if isinstance(built, Failure):
        raise built
    if not isinstance(built, kind):
        raise TypeError(f"expected {kind.__name__}, found {type(built).__name__}")
    return built


def require_support(work: Work, identity: Identity) -> None:
    """Raise Unsupported if the device lacks half precision that the model itself needs, or the memory for it.

    Cases in half precision were refused before they were built (`Plan.unsupported`). A device that does not say whether
    it has it is given the library to try. The library has the weights, and the compiler has planned the memory of
    everything between: nothing is pushed that can only end in a device that kills its processes one after the other.
    """
    artifact = work.artifact
    kernels = artifact.compiled.facts.get("half_kernels", 0)
    in_half = bool(kernels) or any(dtype == "float16" for _, _, dtype in artifact.compiled.inputs)
    if in_half and (why := no_half(identity)):
        raise Unsupported(f"{why}, and the model itself is in half precision ({kernels} of its kernels)")
    needed = artifact.size_bytes + artifact.compiled.facts.get("storage_bytes", 0)
    if 0 < identity.memory_bytes < needed:
        raise Unsupported(
            f"the model takes about {needed / 1e9:.3g} GB of memory, and {identity.gpu or identity.serial} has "
            f"{identity.memory_bytes / 1e9:.3g} GB",
            hint="try it in half precision, with a smaller batch, or on another device",
        )


def half_range(plan: Plan, built: Built) -> str:
    """Why no answer in half precision could be right; empty if one could, or if it is not known."""
    measured = built.get(plan.range.key) if plan.range else None
    return beyond_half(measured.folder / RANGE) if isinstance(measured, Answers) else ""
