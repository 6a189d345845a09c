"""What a path is: how a model is lowered for Adreno, what must be true of the result, and its noise-free numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.paths.workaround import Workaround


@dataclass(frozen=True)
class ImageLimits:
    """The largest image of a device, in pixels and layers (CL_DEVICE_IMAGE2D_MAX_*, CL_DEVICE_IMAGE_MAX_ARRAY_SIZE).

    The defaults are those of recent Adreno parts, which TVM assumes of every device.
    """

    image2d_max_width: int = 16384
    image2d_max_height: int = 16384
    image_max_array_layers: int = 2048


@dataclass(frozen=True)
class BuiltModule:
    """What the compiler made of a model on a path."""

    lowered: Any
    """IRModule after all Relax passes."""
    executable: Any
    source: str
    """OpenCL C of all kernels, empty on the cpu."""


@dataclass(frozen=True)
class PathFacts:
    """Numbers of a built model that are the same every time. A change of one of them is a change of the compiler."""

    kernels: int
    """OpenCL kernels in the source."""
    image_kernels: int
    """Those that read or write an image."""
    half_kernels: int
    """Those with numbers in half precision, whatever precision was asked for."""
    source_bytes: int
    calls: int
    """Compiled functions called in one inference; one of them may launch several kernels."""
    texture_tensors: int
    """Intermediate tensors that live in an image."""
    buffer_tensors: int
    """Intermediate tensors that live in plain memory."""
    storage_bytes: int
    """Memory planned for intermediate tensors, without the row padding that a device may add to images."""


def unseen(_: Any) -> None:
    """For whoever does not want to see the module after all TIR passes."""


class CompilationPath(Protocol):
    """One way to reach the device. A path is one file, registered in `harness.paths.PATHS`."""

    @property
    def name(self) -> str:
        """What stands in the case id."""

    def target(self, limits: ImageLimits, host_triple: str | None) -> Any:
        """TVM's target for a device with these limits; host code for this LLVM triple, or for this machine."""

    def lower(self, mod: Any, target: Any, workarounds: Sequence[Workaround]) -> Any:
        """From an imported IRModule to what the VM's code generator takes."""

    def build(
        self, lowered: Any, target: Any, workarounds: Sequence[Workaround], see: Callable[[Any], None] = unseen
    ) -> Any:
        """A VM executable. `see` is told the module after all TIR passes, where the path runs them."""

    def check(self, built: BuiltModule) -> None:
        """Raises `InvalidKernel` for what no device could run, before a device sees it."""

    def facts(self, built: BuiltModule) -> PathFacts:
        """The noise-free numbers."""


def host_target(host_triple: str | None) -> Any:
    """The target of host code."""
    return {"kind": "llvm", "mtriple": host_triple} if host_triple else "llvm"
