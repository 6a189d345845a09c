"""What a path knows of a workaround: its name, and its edits of what would be compiled.

Passes are edited as TVM's own ordered list, so everything else stays as the release has it. When the pass that an edit
is anchored to is gone, the edit fails loudly. A path does not know which defect a workaround is for, nor when it is
needed: that is in `harness.quirks`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.compiler.passes import Passes, replace_last

EditPasses = Callable[[Passes], Passes]
Layouts = Mapping[str, Sequence[str]]
"""By operator: of data, weights and result."""
TEXTURE_LAYOUTS: Layouts = {"relax.nn.conv2d": ["NCHW4c", "OIHW4o", "NCHW4c"]}
"""That TVM's passes for path `texture` ask for (relax/backend/adreno/pipeline.py)."""


@dataclass(frozen=True)
class Edits:
    """Changes that work on every path. None leaves things as the release has them."""

    model: Callable[[Any], Any] | None = None
    """Of the imported module, before it is given its precision."""
    layouts: Callable[[Any], Layouts] | None = None
    """Of a call of an operator, for the pass of path `texture` that converts layouts; empty leaves it to TVM."""
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
    """An imported module with the workarounds."""
    for workaround in workarounds:
        if edit := workaround.edits.model:
            mod = edit(mod)
    return mod


def edit_relax(passes: Passes, workarounds: Sequence[Workaround]) -> Passes:
    """A list of Relax passes with the workarounds. Raises `RigFailure` if one is anchored to a pass that is gone."""
    if chosen := [workaround.edits.layouts for workaround in workarounds if workaround.edits.layouts]:
        passes = replace_last(passes, "ConvertLayout", _converting(chosen))
    for workaround in workarounds:
        if edit := workaround.edits.relax:
            passes = edit(passes)
    return passes


def _converting(chosen: Sequence[Callable[[Any], Layouts]]) -> Any:
    """The pass that converts layouts, with those that are chosen by operator."""
    from tvm import relax

    def layout(call: Any) -> dict[str, list[str]]:
        """TVM asks for every operator, and takes an empty answer as "leave it"."""
        usual = {name: own for name, own in TEXTURE_LAYOUTS.items() if name == call.op.name}
        asked = next((found for choose in chosen if (found := choose(call))), usual)
        return {name: list(own) for name, own in asked.items()}

    return relax.transform.ConvertLayout({name: list(own) for name, own in TEXTURE_LAYOUTS.items()}, layout)


def edit_tir(passes: Passes, workarounds: Sequence[Workaround]) -> Passes:
    """A list of TIR passes with the workarounds. Raises `RigFailure` if one is anchored to a pass that is gone."""
    for workaround in workarounds:
        if edit := workaround.edits.tir:
            passes = edit(passes)
    return passes
