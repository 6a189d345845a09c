"""Two orders of operands match and then stop the code generator."""

from __future__ import annotations

from harness.compiler.compat import is_constant
from harness.paths.clml.patterns import ClmlEdits, Match
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.clml_sample import constant, conv, network, offers


def probe(*applied: Quirk) -> ProbeAnswer:
    """Partition `bias + conv(x)`."""
    from tvm import relax

    mod = network(lambda emit, x: emit(relax.op.add(constant(1, 4, 1, 1), emit(conv(x)))))
    return offers("openclml.bias.nn.conv2d", mod, applied)


def unplaced(match: Match) -> bool:
    """A weight that is no constant, or a bias on the left of its sum."""
    if match.convolution is None:
        return False
    bias = match.calls.get("relax.add")
    return not is_constant(match.convolution.args[1]) or (bias is not None and is_constant(bias.args[0]))


QUIRK = Quirk(
    id="clml-unplaced-operand",
    title="a weight that is no constant, and `bias + conv(x)`, match and then fail in the code generator",
    upstream="src/relax/backend/contrib/clml/codegen.cc: CreateCompositeConvJSONNode (memo_.count is false)",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="such a convolution, or the sum, stays on OpenCL",
    edits=ClmlEdits(veto=unplaced),
)
