"""An operator whose two operands are one tensor loses one of them."""

from __future__ import annotations

from harness.paths.clml.patterns import ClmlEdits, Match
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.clml_sample import network, offers

_OPERANDS = 2


def probe(*applied: Quirk) -> ProbeAnswer:
    """Partition `x + x`."""
    from tvm import relax

    return offers("openclml.relax.add", network(lambda emit, x: emit(relax.op.add(x, x))), applied)


def same_operand(match: Match) -> bool:
    """Both operands are the same variable."""
    operands = list(getattr(match.root, "args", []))
    return len(operands) == _OPERANDS and bool(operands[0].same_as(operands[1]))


QUIRK = Quirk(
    id="clml-same-operand",
    title="`x + x` becomes a kernel with one input, and the runtime reads a second one that is not there",
    upstream="src/relax/transform/fuse_ops.cc gives the composite one parameter; clml_runtime.cc: CreateBinaryLayer",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="operators on one tensor twice stay on OpenCL",
    edits=ClmlEdits(veto=same_operand),
)
