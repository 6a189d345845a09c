"""Grouped and depthwise convolutions are offloaded, and the runtime refuses them."""

from __future__ import annotations

from harness.paths.clml.patterns import ClmlEdits, Match
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.clml_sample import conv, network, offers


def probe(*applied: Quirk) -> ProbeAnswer:
    """Partition a depthwise convolution."""
    return offers("openclml.nn.conv2d", network(lambda emit, x: emit(conv(x, groups=4))), applied)


def grouped(match: Match) -> bool:
    """More than one group. The runtime's transposed convolution ignores groups."""
    return match.convolution is not None and match.convolution.attrs.groups != 1


QUIRK = Quirk(
    id="clml-grouped-conv",
    title='grouped and depthwise convolutions are offloaded; the runtime stops: "only supports group size of 1"',
    upstream="relax/backend/adreno/clml.py: _check_conv2d never looks at groups; clml_runtime.cc: "
    "CreateConvolution2DLayer, whose depthwise mode no pattern of Relax can reach",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="convolutions with more than one group stay on OpenCL",
    edits=ClmlEdits(veto=grouped),
)
