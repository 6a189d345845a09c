"""TVM's own pattern table, with each check listened to and followed by the quirks' vetoes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from harness.compiler.compat import is_constant, is_tensor, tuple_fields, type_of
from harness.paths.clml.codegen import op_name

if TYPE_CHECKING:
    from harness.quirks.base import Quirk

CONVOLUTIONS = ("relax.nn.conv2d", "relax.nn.conv2d_transpose")


@dataclass(frozen=True)
class Match:
    """Operators that one of TVM's patterns would offload together."""

    pattern: str
    """Name of the composite that they would become."""
    context: Any
    """TVM's `PatternCheckContext`."""

    @cached_property
    def calls(self) -> dict[str, Any]:
        """The calls by their operator."""
        return {op_name(value): value for value in self.context.matched_bindings.values() if hasattr(value, "op")}

    @property
    def root(self) -> Any:
        """The call whose result the others lead to."""
        return self.context.matched_expr

    @property
    def convolution(self) -> Any | None:
        """The convolution, forward or transposed, if there is one."""
        return next((self.calls[name] for name in CONVOLUTIONS if name in self.calls), None)

    @property
    def tensors(self) -> list[Any]:
        """Types of all tensors that go in or out, or from one of the calls to another."""
        kinds = [type_of(value) for value in self._values]
        return [part for kind in kinds for part in (tuple_fields(kind) or [kind]) if is_tensor(part)]

    @property
    def activations(self) -> list[Any]:
        """Types of the tensors that are computed at run time; of several results of a call, the first."""
        kinds = [type_of(value) for value in self._values if not is_constant(value)]
        firsts = [(tuple_fields(kind) or [kind])[0] for kind in kinds]
        return [kind for kind in firsts if is_tensor(kind)]

    @property
    def _values(self) -> list[Any]:
        return [value for call in self.calls.values() for value in (call, *call.args)]

    @property
    def inner_result_escapes(self) -> bool:
        """Whether the result of a call other than the root is used outside too."""
        from tvm import relax

        inside = set(self.context.matched_bindings)
        root = self.context.value_to_bound_var[self.root]
        return any(
            not isinstance(var, relax.DataflowVar) or not inside.issuperset(self.context.var_usages[var])
            for var in inside - {root}
        )


@dataclass
class Refusals:
    """Which checks refused which calls, noted while TVM matches its patterns."""

    by_variable: dict[Any, list[tuple[str, str]]] = field(default_factory=dict)
    """(who refused, name of the pattern), by the variable that holds the call's result."""

    def note(self, match: Match, who: str) -> None:
        """A check or a quirk refused this match."""
        for variable in match.context.matched_bindings:
            self.by_variable.setdefault(variable, []).append((who, match.pattern))


def pattern_table(quirks: Sequence[Quirk], refusals: Refusals) -> list[Any]:
    """The release's own table and the quirks' additions; a match must pass TVM's check and no quirk may veto it."""
    from tvm.relax.backend.adreno import clml

    def entry(row: Sequence[Any], owner: str) -> Any:
        name, pattern, parts, check = row
        return name, pattern, parts, _checked(name, check, owner, quirks, refusals)

    own = [entry(row, f"TVM's {row[3].__name__.lstrip('_')}") for row in clml.clml_pattern_table()]
    return own + [entry(row, quirk.id) for quirk in quirks if quirk.patterns for row in quirk.patterns()]


def _checked(
    name: str, check: Callable[[Any], bool], owner: str, quirks: Iterable[Quirk], refusals: Refusals
) -> Callable[[Any], bool]:
    def accepts(context: Any) -> bool:
        match = Match(name, context)
        if check(context):
            refused_by = next((quirk.id for quirk in quirks if quirk.veto and quirk.veto(match)), None)
        else:
            refused_by = owner
        if refused_by:
            refusals.note(match, refused_by)
        return refused_by is None

    return accepts
