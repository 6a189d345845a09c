"""Softmax is offloaded along any axis, and the runtime knows one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.paths.clml.codegen import shape_of
from harness.quirks.base import Answer, Quirk
from harness.quirks.clml_sample import network, offers
from harness.tvm_compat import type_of

if TYPE_CHECKING:
    from harness.paths.clml.patterns import Match


def probe(*applied: Quirk) -> Answer:
    """Partition a softmax along the width."""
    from tvm import relax

    mod = network(lambda emit, x: emit(relax.op.nn.softmax(x, axis=3)))
    return offers("openclml.relax.nn.softmax", mod, applied)


def not_along_channels(match: Match) -> bool:
    """The runtime asks for CLML's spatial mode, along the channels, whatever the axis; an axis of 3 only makes it read
    the tensor as if channels were innermost."""
    call = match.calls.get("relax.nn.softmax")
    return call is not None and call.attrs.axis % len(shape_of(type_of(call))) != 1


QUIRK = Quirk(
    id="clml-softmax-axis",
    title="softmax along any axis is offloaded and computed along the channels",
    upstream="clml_runtime.cc: CreateSoftMaxLayer, CL_SOFTMAX_MODE_SPATIAL_QCOM always; CreateSoftmaxLayerTensor",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="softmax along another axis than the channels stays on OpenCL",
    veto=not_along_channels,
)
