"""A transposed convolution cannot read what a convolution left in NCHW4c."""

from __future__ import annotations

from typing import Any

from harness.paths.workaround import Edits, Layouts
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.sample import lowers, transposed_conv

_TRANSPOSED = "relax.nn.conv2d_transpose"
_PLAIN = {_TRANSPOSED: ["NCHW", "IOHW", "NCHW"]}


def probe(*applied: Quirk) -> ProbeAnswer:
    """Lower a convolution and a transposed one."""
    return lowers(transposed_conv(), applied, "a transposed convolution")


def plain_if_transposed(call: Any) -> Layouts:
    """NCHW for transposed convolutions."""
    return _PLAIN if call.op.name == _TRANSPOSED else {}


QUIRK = Quirk(
    id="transposed-conv-layout",
    title="a transposed convolution behind a convolution gets NCHW4c, which it does not take: `Layouts must have the "
    "same size`",
    upstream="src/relax/op/nn/convolution.cc: InferLayoutConv2dTranspose",
    since="0.25",
    paths=("texture",),
    probe=probe,
    workaround="transposed convolutions stay in NCHW, on buffers",
    edits=Edits(layouts=plain_if_transposed),
)
