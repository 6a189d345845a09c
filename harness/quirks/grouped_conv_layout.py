"""Grouped and depthwise convolutions cannot be legalised in NCHW4c."""

from __future__ import annotations

from typing import Any

from harness.compiler.passes import Passes, replace_last
from harness.paths.workaround import Edits
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.sample import conv, lowers

_CONV = "relax.nn.conv2d"
_TEXTURE = {_CONV: ["NCHW4c", "OIHW4o", "NCHW4c"]}
_PLAIN = {_CONV: ["NCHW", "OIHW", "NCHW"]}


def probe(*applied: Quirk) -> ProbeAnswer:
    """Lower a depthwise convolution with TVM's own passes."""
    return lowers(conv(groups=8), applied, "a depthwise convolution")


def keep_grouped_plain(passes: Passes) -> Passes:
    """Choose the layout by convolution: NCHW4c for those with one group, NCHW for the others."""
    from tvm import relax

    def layout(call: Any) -> dict[str, list[str]]:
        # TVM asks for every operator, and takes an empty answer as "leave it".
        if call.op.name != _CONV:
            return {}
        return _TEXTURE if call.attrs.groups == 1 else _PLAIN

    return replace_last(passes, "ConvertLayout", relax.transform.ConvertLayout(_TEXTURE, layout))


QUIRK = Quirk(
    id="grouped-conv-nchw4c",
    title="depthwise and grouped convolutions are converted to NCHW4c, and legalising them divides by zero",
    upstream="python/tvm/topi/nn/conv2d.py: conv2d_NCHWc_OIHWo; the conversion is in relax/backend/adreno/pipeline.py",
    since="0.25",
    paths=("texture",),
    probe=probe,
    workaround="convolutions with more than one group stay in NCHW, on buffers",
    edits=Edits(relax=keep_grouped_plain),
)
