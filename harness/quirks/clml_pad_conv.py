"""A pad fused into a convolution is taken for zeros on a convolution without padding."""

from __future__ import annotations

from harness.paths.clml.patterns import ClmlEdits, Match
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.clml_sample import conv, network, offers

_WIDTH = (0, 0, 0, 0, 1, 1, 1, 1)


def probe(*applied: Quirk) -> ProbeAnswer:
    """Partition a pad with ones before a convolution."""
    from tvm import relax

    mod = network(lambda emit, x: emit(conv(emit(relax.op.nn.pad(x, _WIDTH, pad_value=1.0)), padding=0)))
    return offers("openclml.pad.nn.conv2d", mod, applied)


def unlike_padding(match: Match) -> bool:
    """Other than zeros around height and width, or beside padding of the convolution's own, which would be lost."""
    if "relax.nn.pad" not in match.calls or match.convolution is None:
        return False
    pad = match.calls["relax.nn.pad"].attrs
    outer = [int(width) for width in pad.pad_width][:4]
    own = [int(width) for width in match.convolution.attrs.padding]
    return str(pad.pad_mode) != "constant" or pad.pad_value != 0 or any(outer) or any(own)


QUIRK = Quirk(
    id="clml-pad-conv",
    title="the value, the mode, and the convolution's own padding are dropped when a pad is fused into a convolution",
    upstream="src/relax/backend/contrib/clml/codegen.cc: CreateCompositeConvJSONNode writes pad_width over padding",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="only zeros, around height and width, before a convolution without padding, are fused",
    edits=ClmlEdits(veto=unlike_padding),
)
