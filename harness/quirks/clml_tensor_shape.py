"""Batches above one and tensors of more than four dimensions are offloaded."""

from __future__ import annotations

from harness.paths.clml.codegen import shape_of
from harness.paths.clml.patterns import ClmlEdits, Match
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.clml_sample import conv, network, offers

_DIMENSIONS = 4


def probe(*applied: Quirk) -> ProbeAnswer:
    """Partition a convolution of two images."""
    return offers("openclml.nn.conv2d", network(lambda emit, x: emit(conv(x)), (2, 4, 8, 8)), applied)


def too_large(match: Match) -> bool:
    """The leading size of an activation is above one, or there are too few or too many sizes."""
    shapes = [shape_of(tensor) for tensor in match.activations]
    return any(not 0 < len(shape) <= _DIMENSIONS or shape[0] != 1 for shape in shapes)


QUIRK = Quirk(
    id="clml-tensor-shape",
    title="batches above one are offloaded for convolutions, pooling, batch norm and reshape, though the other checks "
    "say that CLML has none; of more than four dimensions the runtime reads the first four",
    upstream="relax/backend/adreno/clml.py: only _check_binary_op looks at the batch; clml_utils.cc: MakeCLMLTensor",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="operators on batches above one, or on more than four dimensions, stay on OpenCL",
    edits=ClmlEdits(veto=too_large),
)
