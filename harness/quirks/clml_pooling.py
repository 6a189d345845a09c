"""Pooling is offloaded whatever its layout, dilation, rounding and treatment of padding."""

from __future__ import annotations

from harness.compiler.compat import type_of
from harness.paths.clml.codegen import shape_of
from harness.paths.clml.patterns import ClmlEdits, Match
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.clml_sample import network, offers


def probe(*applied: Quirk) -> ProbeAnswer:
    """Partition a max pool in NHWC."""
    from tvm import relax

    mod = network(lambda emit, x: emit(relax.op.nn.max_pool2d(x, (2, 2), layout="NHWC")))
    return offers("openclml.nn.max_pool2d", mod, applied)


def unread_attributes(match: Match) -> bool:
    """An attribute that the runtime does not read would matter."""
    name = next((n for n in ("relax.nn.max_pool2d", "relax.nn.avg_pool2d") if n in match.calls), None)
    if name is None:
        return False
    call = match.calls[name]
    attrs = call.attrs
    if (str(attrs.layout), str(attrs.out_layout)) != ("NCHW", "NCHW") or any(d != 1 for d in attrs.dilation):
        return True
    padding = [int(width) for width in attrs.padding]
    if name == "relax.nn.avg_pool2d" and attrs.count_include_pad and any(padding):
        return True
    sizes, results = shape_of(type_of(call.args[0]))[2:], shape_of(type_of(call))[2:]
    spans = [size + padding[i] + padding[i + 2] - int(attrs.pool_size[i]) for i, size in enumerate(sizes)]
    return results != [span // int(stride) + 1 for span, stride in zip(spans, attrs.strides, strict=True)]


QUIRK = Quirk(
    id="clml-pooling",
    title="pooling in NHWC, with dilation, ceil_mode or counted padding is offloaded; the runtime reads none of these",
    upstream="relax/backend/adreno/clml.py: _check_maxpool2d, _check_avgpool2d; clml_runtime.cc: CreatePoolingLayer",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="pooling whose result depends on one of them stays on OpenCL",
    edits=ClmlEdits(veto=unread_attributes),
)
