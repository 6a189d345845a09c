"""What a path knows of a workaround: its name, and its edits of what would be compiled.

Passes are edited as TVM's own ordered list, so everything else stays as the release has it. When the pass that an edit
is anchored to is gone, the edit fails loudly. A path does not know which defect a workaround is for, nor when it is
needed: that is in `harness.quirks`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.compiler.passes import Passes

EditPasses = Callable[[Passes], Passes]


@dataclass(frozen=True)
class Edits:
    """Changes that work on every path. None leaves things as the release has them."""

    model: Callable[[Any], Any] | None = None
    """Of the imported module, before it is given its precision."""
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
    for workaround in workarounds:
        if edit := workaround.edits.relax:
            passes = edit(passes)
    return passes


def edit_tir(passes: Passes, workarounds: Sequence[Workaround]) -> Passes:
    """A list of TIR passes with the workarounds. Raises `RigFailure` if one is anchored to a pass that is gone."""
    for workaround in workarounds:
        if edit := workaround.edits.tir:
            passes = edit(passes)
    return passes
