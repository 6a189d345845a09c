"""A batch norm fused into a transposed convolution stops the runtime."""

from __future__ import annotations

from harness.paths.clml.patterns import ClmlEdits, Match
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.clml_sample import batch_norm, conv_transpose, network, offers


def probe(*applied: Quirk) -> ProbeAnswer:
    """Partition a transposed convolution with batch norm."""
    mod = network(lambda emit, x: emit(batch_norm(emit, emit(conv_transpose(x)))))
    return offers("openclml.bn.nn.conv2d_transpose", mod, applied)


def with_batch_norm(match: Match) -> bool:
    """Its attributes are not where the runtime looks for them."""
    return {"relax.nn.conv2d_transpose", "relax.nn.batch_norm"} <= match.calls.keys()


QUIRK = Quirk(
    id="clml-conv-transpose",
    title="batch norm is fused into transposed convolutions, and the runtime stops: no attribute `batchnorm`",
    upstream="src/relax/backend/contrib/clml/codegen.cc: only composites that end in nn.conv2d get `batchnorm`; "
    "clml_runtime.cc: CreateConvolution2DLayer",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="the batch norm is offloaded by itself",
    edits=ClmlEdits(veto=with_batch_norm),
)
