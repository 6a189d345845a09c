"""Which workarounds changed what is built: each edit is watched while it works.

Most workarounds that are active find nothing to change: a network without a dropout needs none for dropouts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from harness.compile.compiler.compat import structurally_equal, tvm
from harness.compile.compiler.passes import Passes
from harness.compile.paths.base import Edits, Workaround

Note = Callable[[], None]
"""Notes that the workaround changed something."""
Functions = dict[str, Any]


@dataclass(frozen=True)
class WatchedWorkaround:
    """A workaround whose edits note when they change something."""

    id: str
    edits: Edits


def watch(workarounds: Sequence[Workaround], effective: set[str]) -> list[WatchedWorkaround]:
    """Wrap workarounds so that `effective` collects the ids of those that change something."""
    return [WatchedWorkaround(each.id, _watched(each.edits, partial(effective.add, each.id))) for each in workarounds]


def _watched(edits: Edits, note: Note) -> Edits:
    """Return the edits, each of them watched in the way of its kind; a look at the network changes nothing."""
    own = {field.name: getattr(edits, field.name) for field in fields(edits)}
    return replace(
        edits, **{name: _WATCHERS[name](edit, note) for name, edit in own.items() if edit and name in _WATCHERS}
    )


def _watch_model(edit: Callable[[Any], Any], note: Note) -> Callable[[Any], Any]:
    def edited(mod: Any) -> Any:
        before = _functions(mod)
        result = edit(mod)
        if not _same(before, _functions(result)):
            note()
        return result

    return edited


def _watch_answer(ask: Callable[[Any], Any], note: Note) -> Callable[[Any], Any]:
    """Watch a question whose empty answer leaves things as they are: a layout, a veto, a pattern's check."""

    def asked(about: Any) -> Any:
        answer = ask(about)
        if answer:
            note()
        return answer

    return asked


def _watch_passes(edit: Callable[[Passes], Passes], note: Note) -> Callable[[Passes], Passes]:
    """Watch each pass that the edit adds. One that it replaces is run as well, to see what it would have made."""

    def edited(passes: Passes) -> Passes:
        result = edit(passes)
        old, new = ({id(each) for each in some} for some in (passes, result))
        left_out = [each for each in passes if id(each) not in new]
        return [each if id(each) in old else _watched_pass(each, left_out, note) for each in result]

    return edited


def _watched_pass(new: Any, left_out: Passes, note: Note) -> Any:
    """Return a pass under the same name, which later edits may be anchored to."""

    def run(mod: Any, _ctx: Any) -> Any:
        otherwise = _run_all(left_out, mod.clone()) if left_out else _functions(mod)
        result = new(mod)
        if not _same(otherwise, _functions(result)):
            note()
        return result

    return tvm.transform.module_pass(run, opt_level=int(new.info.opt_level), name=str(new.info.name))


def _run_all(passes: Passes, mod: Any) -> Functions:
    """Return the functions after these passes; none if one of them raises."""
    try:
        for each in passes:
            mod = each(mod)
    except Exception:  # TVM raises errors of every kind; then the edit makes a difference
        return {}
    return _functions(mod)


def _functions(mod: Any) -> Functions:
    """Return the functions of a module by name, as they are now: some passes change the module that they are given."""
    return {str(variable.name_hint): function for variable, function in mod.functions.items()}


def _same(first: Functions, second: Functions) -> bool:
    """Return whether all functions are the same.

    What else a module has, CLML's compiled parts say, cannot be compared.
    """
    return first.keys() == second.keys() and all(structurally_equal(first[name], second[name]) for name in first)


_WATCHERS: dict[str, Callable[[Any, Note], Any]] = {
    "model": _watch_model,
    "layouts": _watch_answer,
    "veto": _watch_answer,
    "patterns": lambda patterns, note: lambda: [(*row[:-1], _watch_answer(row[-1], note)) for row in patterns()],
    "relax": _watch_passes,
    "tir": _watch_passes,
}
