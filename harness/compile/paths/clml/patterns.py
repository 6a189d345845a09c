"""TVM's own pattern table, with each check listened to and followed by the workarounds' vetoes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from harness.compile.compiler.compat import is_constant, is_tensor, operator_name, relax, tuple_fields, type_of
from harness.compile.paths.base import Edits, Workaround

CONVOLUTIONS = ("relax.nn.conv2d", "relax.nn.conv2d_transpose")


@dataclass(frozen=True)
class Match:
    """Operators that one of TVM's patterns would offload together."""

    context: Any
    """TVM's `PatternCheckContext`."""

    @cached_property
    def calls(self) -> dict[str, Any]:
        """The calls by their operator."""
        return {name: value for value in self.context.matched_bindings.values() if (name := operator_name(value))}

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
        inside = set(self.context.matched_bindings)
        root = self.context.value_to_bound_var[self.root]
        return any(
            not isinstance(var, relax.DataflowVar) or not inside.issuperset(self.context.var_usages[var])
            for var in inside - {root}
        )


@dataclass(frozen=True)
class ClmlEdits(Edits):
    """Changes of what goes to CLML, beside those that work on every path."""

    veto: Callable[[Match], bool] | None = None
    """Whether what a pattern matched must stay on OpenCL although TVM would offload it."""
    patterns: Callable[[], list[Any]] | None = None
    """Entries for the end of TVM's pattern table."""


Refusals = dict[Any, list[tuple[str, str]]]
"""Which checks and workarounds refused which calls: who, and the pattern, by the variable that holds the result."""


def pattern_table(workarounds: Sequence[Workaround], refusals: Refusals) -> list[Any]:
    """Return the release's own table, then the workarounds' additions; a match must pass its check and every veto.

    `refusals` is filled while TVM matches.
    """
    from tvm.relax.backend.adreno import clml

    edits = {w.id: w.edits for w in workarounds if isinstance(w.edits, ClmlEdits)}
    vetoes = {owner: edit.veto for owner, edit in edits.items() if edit.veto}

    def entry(row: Sequence[Any], owner: str) -> Any:
        name, pattern, parts, check = row

        def accepts(context: Any) -> bool:
            match = Match(context)
            vetoed_by = (who for who, veto in vetoes.items() if veto(match))
            refused_by = next(vetoed_by, "") if check(context) else owner
            for variable in context.matched_bindings if refused_by else ():
                refusals.setdefault(variable, []).append((refused_by, name))
            return not refused_by

        return name, pattern, parts, accepts

    own = [entry(row, f"TVM's {row[3].__name__.lstrip('_')}") for row in clml.clml_pattern_table()]
    return own + [entry(row, owner) for owner, edit in edits.items() if edit.patterns for row in edit.patterns()]
