"""Any constant that is added to a convolution counts as its bias."""

from __future__ import annotations

from harness.compiler.compat import is_constant, type_of
from harness.paths.clml.codegen import shape_of
from harness.paths.clml.patterns import ClmlEdits, Match
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.clml_sample import constant, conv, network, offers


def probe(*applied: Quirk) -> ProbeAnswer:
    """Partition a convolution plus a whole tensor."""
    from tvm import relax

    mod = network(lambda emit, x: emit(relax.op.add(emit(conv(x)), constant(1, 4, 8, 8))))
    return offers("openclml.bias.nn.conv2d", mod, applied)


def not_one_per_channel(match: Match) -> bool:
    """A bias is shaped (1, channels, 1, 1)."""
    if match.convolution is None or "relax.add" not in match.calls:
        return False
    added = [shape_of(type_of(arg)) for arg in match.calls["relax.add"].args if is_constant(arg)]
    channels = shape_of(type_of(match.convolution))[1]
    return added != [[1, channels, 1, 1]]


QUIRK = Quirk(
    id="clml-bias-shape",
    title="a scalar, a row or a whole tensor added to a convolution is handed over as a bias per channel",
    upstream="relax/backend/adreno/clml.py: conv_pattern takes any constant for a bias",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="only a constant of one number per channel is fused as a bias",
    edits=ClmlEdits(veto=not_one_per_channel),
)
