"""Grouped and depthwise convolutions cannot be legalised in NCHW4c."""

from __future__ import annotations

from typing import Any

from harness.paths.workaround import Edits, Layouts
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.sample import conv, lowers

_CONV = "relax.nn.conv2d"
_PLAIN = {_CONV: ["NCHW", "OIHW", "NCHW"]}


def probe(*applied: Quirk) -> ProbeAnswer:
    """Lower a depthwise convolution with TVM's own passes."""
    return lowers(conv(groups=8), applied, "a depthwise convolution")


def plain_if_grouped(call: Any) -> Layouts:
    """NCHW for convolutions with more than one group."""
    return _PLAIN if call.op.name == _CONV and call.attrs.groups > 1 else {}


QUIRK = Quirk(
    id="grouped-conv-nchw4c",
    title="depthwise and grouped convolutions are converted to NCHW4c, and legalising them divides by zero",
    upstream="python/tvm/topi/nn/conv2d.py: conv2d_NCHWc_OIHWo; the conversion is in relax/backend/adreno/pipeline.py",
    since="0.25",
    paths=("texture",),
    probe=probe,
    workaround="convolutions with more than one group stay in NCHW, on buffers",
    edits=Edits(layouts=plain_if_grouped),
)
