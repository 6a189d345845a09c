"""Transposed convolutions are offloaded with more than the runtime reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.quirks.base import Answer, Quirk
from harness.quirks.clml_sample import batch_norm, conv_transpose, network, offers

if TYPE_CHECKING:
    from harness.paths.clml.patterns import Match


def probe(*applied: Quirk) -> Answer:
    """Partition a transposed convolution with batch norm."""
    mod = network(lambda emit, x: emit(batch_norm(emit, emit(conv_transpose(x)))))
    return offers("openclml.bn.nn.conv2d_transpose", mod, applied)


def beyond_the_runtime(match: Match) -> bool:
    """Batch norm, whose attributes the runtime looks for elsewhere, or output padding, which it never reads."""
    call = match.calls.get("relax.nn.conv2d_transpose")
    if call is None:
        return False
    return "relax.nn.batch_norm" in match.calls or any(int(width) for width in call.attrs.output_padding)


QUIRK = Quirk(
    id="clml-conv-transpose",
    title="the runtime stops at a transposed convolution with batch norm, and never reads its output padding",
    upstream="src/relax/backend/contrib/clml/codegen.cc: no `batchnorm` attribute but for nn.conv2d; clml_runtime.cc: "
    "CreateConvolution2DLayer",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="batch norm is not fused into them, and those with output padding stay on OpenCL",
    veto=beyond_the_runtime,
)
