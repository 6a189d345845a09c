"""A constant on the left of a subtraction or division changes sides."""

from __future__ import annotations

from harness.compiler.compat import is_constant
from harness.paths.clml.patterns import ClmlEdits, Match
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.clml_sample import constant, network, offers


def probe(*applied: Quirk) -> ProbeAnswer:
    """Partition `constant - x`."""
    from tvm import relax

    mod = network(lambda emit, x: emit(relax.op.subtract(constant(1, 4, 8, 8), x)))
    return offers("openclml.relax.subtract", mod, applied)


def constant_on_the_left(match: Match) -> bool:
    """Sums, products and extrema do not care."""
    ordered = (match.calls.get(name) for name in ("relax.subtract", "relax.divide"))
    return any(call is not None and is_constant(call.args[0]) for call in ordered)


QUIRK = Quirk(
    id="clml-constant-left",
    title="`constant - x` and `constant / x` are computed as `x - constant` and `x / constant`",
    upstream="src/relax/backend/contrib/clml/codegen.cc: the inputs of a kernel are its arguments, then its constants",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="subtractions from a constant and divisions of one stay on OpenCL",
    edits=ClmlEdits(veto=constant_on_the_left),
)
