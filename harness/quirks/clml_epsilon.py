"""The epsilon of a fused batch norm is handed over with six decimals."""

from __future__ import annotations

from harness.paths.clml.patterns import ClmlEdits, Match
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.clml_sample import batch_norm, constant, conv, network, offers

_TOLERANCE = 1e-3


def probe(*applied: Quirk) -> ProbeAnswer:
    """Partition convolution, bias, and batch norm with an epsilon of 1e-7."""
    from tvm import relax

    def body(emit, x):  # type: ignore[no-untyped-def]
        biased = emit(relax.op.add(emit(conv(x)), constant(1, 4, 1, 1)))
        return emit(batch_norm(emit, biased, epsilon=1e-7))

    return offers("openclml.bn.bias.nn.conv2d", network(body), applied)


def rounded(match: Match) -> bool:
    """Six decimals change it by more than a thousandth."""
    if match.convolution is None or "relax.nn.batch_norm" not in match.calls:
        return False
    epsilon = float(match.calls["relax.nn.batch_norm"].attrs.epsilon)
    return abs(float(f"{epsilon:f}") - epsilon) > _TOLERANCE * epsilon


QUIRK = Quirk(
    id="clml-epsilon",
    title="the epsilon of a batch norm fused into a convolution keeps six decimals: 1e-7 becomes 0",
    upstream="src/relax/backend/contrib/clml/codegen.cc: std::to_string(epsilon)",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="such a batch norm is offloaded by itself, where its epsilon is written in full",
    edits=ClmlEdits(veto=rounded),
)
