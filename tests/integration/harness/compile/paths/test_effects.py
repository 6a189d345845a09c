"""A workaround notes that it changed something, and only then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

tvm = pytest.importorskip("tvm")
from harness.compile.compiler.compat import tensor_type  # noqa: E402
from harness.compile.paths.base import Edits, edit_model, edit_relax  # noqa: E402
from harness.compile.paths.clml.patterns import ClmlEdits  # noqa: E402
from harness.compile.paths.effects import WatchedWorkaround, watch  # noqa: E402


def module(name: str = "add") -> Any:
    from tvm import relax

    builder = relax.BlockBuilder()
    x = relax.Var("x", tensor_type((2, 2), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            made = builder.emit_output(getattr(relax.op, name)(x, x))
        builder.emit_func_output(made)
    return builder.get()


def a_pass(name: str, work: Callable[[Any], Any]) -> Any:
    return tvm.transform.module_pass(lambda mod, _ctx: work(mod), opt_level=0, name=name)


def in_place(mod: Any) -> Any:
    mod["main"] = module("multiply")["main"]
    return mod


def raising(mod: Any) -> Any:
    raise ValueError("this pass fails")


def as_it_is(mod: Any) -> Any:
    return mod


def watched(edits: Edits) -> tuple[WatchedWorkaround, set[str]]:
    effective: set[str] = set()
    return watch([WatchedWorkaround("mine", edits)], effective)[0], effective


@pytest.mark.parametrize(
    ("work", "changes"), [(as_it_is, False), (lambda mod: module(), False), (in_place, True), (raising, None)]
)
def test_a_pass_that_is_added(work: Callable[[Any], Any], changes: bool | None) -> None:
    mine, effective = watched(Edits(relax=lambda passes: [*passes, a_pass("added", work)]))
    (added,) = edit_relax([], [mine])
    assert added.info.name == "added"
    if changes is None:
        with pytest.raises(ValueError, match="this pass fails"):
            added(module())
    else:
        added(module())
        assert effective == ({"mine"} if changes else set())


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [(as_it_is, as_it_is, False), (in_place, in_place, False), (as_it_is, in_place, True), (raising, as_it_is, True)],
)
def test_a_pass_that_is_replaced(old: Callable[[Any], Any], new: Callable[[Any], Any], changes: bool) -> None:
    mine, effective = watched(Edits(relax=lambda passes: [a_pass("new", new), *passes[1:]]))
    for one in edit_relax([a_pass("old", old), a_pass("other", as_it_is)], [mine]):
        one(module())
    assert effective == ({"mine"} if changes else set())


@pytest.mark.parametrize(("work", "changes"), [(as_it_is, False), (in_place, True)])
def test_an_edit_of_the_model(work: Callable[[Any], Any], changes: bool) -> None:
    mine, effective = watched(Edits(model=work))
    edit_model(module(), [mine])
    assert effective == ({"mine"} if changes else set())


@pytest.mark.parametrize("answer", [True, False])
def test_a_veto_and_a_pattern(answer: bool) -> None:
    mine, effective = watched(ClmlEdits(veto=lambda _match: answer))
    assert isinstance(mine.edits, ClmlEdits)
    assert mine.edits.veto
    mine.edits.veto(None)  # type: ignore[arg-type]
    assert effective == ({"mine"} if answer else set())

    mine, effective = watched(ClmlEdits(patterns=lambda: [("name", "pattern", {}, lambda _context: answer)]))
    assert isinstance(mine.edits, ClmlEdits)
    assert mine.edits.patterns
    ((*_, check),) = mine.edits.patterns()
    check(None)
    assert effective == ({"mine"} if answer else set())


def test_a_layout() -> None:
    mine, effective = watched(Edits(layouts=lambda call: {"op": ["NCHW"]} if call == "conv" else {}))
    assert mine.edits.layouts
    assert not mine.edits.layouts("pool")
    assert not effective
    assert mine.edits.layouts("conv")
    assert effective == {"mine"}
