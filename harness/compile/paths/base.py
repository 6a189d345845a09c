"""What a path is: how a model is lowered for Adreno, what must be true of the result, its numbers, and its edits.

A workaround is a name and edits of what would be compiled. Passes are edited as TVM's own ordered list, so everything
else stays as the release has it. When the pass that an edit is anchored to is gone, the edit fails loudly. A path does
not know which defect a workaround is for, nor when it is needed: that is in `harness.compile.quirks`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.compile.compiler.compat import relax
from harness.compile.compiler.passes import Passes, replace_last


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

    module: Any
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
    """Number of kernels that read or write an image."""
    half_kernels: int
    """Number of kernels that compute in half precision, in every precision of the case."""
    double_kernels: int
    """Number of kernels that compute in double precision, which no Adreno has."""
    source_bytes: int
    calls: int
    """Compiled functions called in one inference; one of them may launch several kernels."""
    texture_tensors: int
    """Intermediate tensors that live in an image."""
    image_side: int
    """Pixels of the longest side of these images; 0 without any."""
    image_layers: int
    """Layers of the deepest of these images; 0 without any."""
    buffer_tensors: int
    """Intermediate tensors that live in plain memory."""
    storage_bytes: int
    """Memory planned for intermediate tensors, without the row padding that a device may add to images."""


def ignore_module(_: Any) -> None:
    """Do nothing with the module after all TIR passes."""


class CompilationPath(Protocol):
    """One way to reach the device. A path is one file, registered in `harness.compile.paths.PATHS`."""

    @property
    def name(self) -> str:
        """What stands in the case id."""

    @property
    def family(self) -> str:
        """Path whose known defects, tuning and clock it has: its own name, or that of the path it is a variant of."""

    def target(self, limits: ImageLimits, host_triple: str | None) -> Any:
        """TVM's target for a device with these limits; host code for this LLVM triple, or for this machine."""

    def lower(self, mod: Any, target: Any, workarounds: Sequence[Workaround]) -> Any:
        """Lower an imported IRModule to the input of the VM's code generator."""

    def build(
        self, module: Any, target: Any, workarounds: Sequence[Workaround], see: Callable[[Any], None] = ignore_module
    ) -> Any:
        """Return a VM executable. `see` is told the module after all TIR passes, where the path runs them."""

    def check(self, built: BuiltModule) -> None:
        """Raise `InvalidKernel` for what no device could run, before a device sees it."""

    def facts(self, built: BuiltModule) -> PathFacts:
        """Return the noise-free numbers."""


def host_target(host_triple: str | None) -> Any:
    """Return the target of host code."""
    return {"kind": "llvm", "mtriple": host_triple} if host_triple else "llvm"


EditPasses = Callable[[Passes], Passes]
Layouts = Mapping[str, Sequence[str]]
"""Layouts of data, weights and result, by operator."""
TEXTURE_LAYOUTS: Layouts = {"relax.nn.conv2d": ["NCHW4c", "OIHW4o", "NCHW4c"]}
"""Layouts that TVM's passes for path `texture` ask for (relax/backend/adreno/pipeline.py)."""


@dataclass(frozen=True)
class Edits:
    """Changes that work on every path. None leaves things as the release has them."""

    network: Callable[[Any], None] | None = None
    """Edits the ONNX network before it is imported. Raises MisreadOperator for one that would be misread."""
    model: Callable[[Any], Any] | None = None
    """Edits of the imported module, before it gets its precision."""
    layouts: Callable[[Any], Layouts] | None = None
    """Layouts of an operator's call, for the layout pass of path `texture`; empty leaves them to TVM."""
    relax: EditPasses | None = None
    tir: EditPasses | None = None


NO_EDITS = Edits()


class Workaround(Protocol):
    """Named edits. Workarounds are applied in the order in which they are given."""

    @property
    def id(self) -> str:
        """What stands in records and in the offload report."""

    @property
    def edits(self) -> Edits:
        """What it changes."""


def edit_model(mod: Any, workarounds: Sequence[Workaround]) -> Any:
    """Return an imported module with the workarounds."""
    for workaround in workarounds:
        if edit := workaround.edits.model:
            mod = edit(mod)
    return mod


def edit_relax(passes: Passes, workarounds: Sequence[Workaround]) -> Passes:
    """Return a list of Relax passes with the workarounds.

    Raises `RigFailure` if one is anchored to a pass that is gone.
    """
    if chosen := [workaround.edits.layouts for workaround in workarounds if workaround.edits.layouts]:
        passes = replace_last(passes, "ConvertLayout", _layout_pass(chosen))
    for workaround in workarounds:
        if edit := workaround.edits.relax:
            passes = edit(passes)
    return passes


def _layout_pass(chosen: Sequence[Callable[[Any], Layouts]]) -> Any:
    """Return the pass that converts layouts, with those that are chosen by operator."""

    def layout(call: Any) -> dict[str, list[str]]:
        """TVM asks for every operator, and takes an empty answer as "leave it"."""
        usual = {name: own for name, own in TEXTURE_LAYOUTS.items() if name == call.op.name}
        asked = next((answer for choose in chosen if (answer := choose(call))), usual)
        return {name: list(own) for name, own in asked.items()}

    return relax.transform.ConvertLayout({name: list(own) for name, own in TEXTURE_LAYOUTS.items()}, layout)


def edit_tir(passes: Passes, workarounds: Sequence[Workaround]) -> Passes:
    """Return a list of TIR passes with the workarounds.

    Raises `RigFailure` if one is anchored to a pass that is gone.
    """
    for workaround in workarounds:
        if edit := workaround.edits.tir:
            passes = edit(passes)
    return passes
