"""How a path applies workarounds, of which it knows nothing but their names and edits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.compile.paths.base import NO_EDITS, Edits, edit_model, edit_relax, edit_tir


@dataclass(frozen=True)
class Named:
    id: str
    edits: Edits = NO_EDITS


def appending(word: str) -> Named:
    def edit(so_far: Any) -> Any:
        return [*so_far, word]

    return Named(word, Edits(model=edit, relax=edit, tir=edit))


def test_edits_are_applied_in_the_order_of_the_workarounds() -> None:
    workarounds = (appending("first"), Named("none"), appending("second"))
    for edited in (edit_model, edit_relax, edit_tir):
        assert edited(["as released"], workarounds) == ["as released", "first", "second"]


def test_without_edits_everything_is_as_released() -> None:
    passes = ["as released"]
    for edited in (edit_model, edit_relax, edit_tir):
        assert edited(passes, (Named("none"),)) is passes


def test_each_edit_is_of_one_thing() -> None:
    workarounds = (Named("relax", Edits(relax=lambda passes: [*passes, "relax"])),)
    assert (edit_model([], workarounds), edit_relax([], workarounds), edit_tir([], workarounds)) == ([], ["relax"], [])
