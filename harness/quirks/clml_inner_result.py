"""A result from the middle of a composite is used elsewhere, and the runtime gives the composite's result for it."""

from __future__ import annotations

from harness.paths.clml.patterns import ClmlEdits, Match
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.clml_sample import conv, network, offers


def probe(*applied: Quirk) -> ProbeAnswer:
    """Partition `conv(x) + relu(conv(x))`."""
    from tvm import relax

    def body(emit, x):  # type: ignore[no-untyped-def]
        convolved = emit(conv(x))
        return emit(relax.op.add(convolved, emit(relax.op.nn.relu(convolved))))

    return offers("openclml.relu.nn.conv2d", network(body), applied)


def inner_result_escapes(match: Match) -> bool:
    """Used by an operator that is not part of the match, or returned."""
    return match.inner_result_escapes


QUIRK = Quirk(
    id="clml-inner-result",
    title="a convolution whose result is used beside the activation fused to it yields the activated result twice",
    upstream="clml_runtime.cc: one tensor per node, whatever its number of outputs",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="operators are fused only if nothing else reads what passes between them",
    edits=ClmlEdits(veto=inner_result_escapes),
)
