"""Softmax is offloaded along any axis, and the runtime tells two of them apart."""

from __future__ import annotations

from harness.compiler.compat import type_of
from harness.paths.clml.codegen import shape_of
from harness.paths.clml.patterns import ClmlEdits, Match
from harness.quirks.base import ProbeAnswer, Quirk
from harness.quirks.clml_sample import network, offers


def probe(*applied: Quirk) -> ProbeAnswer:
    """Partition a softmax along the height."""
    from tvm import relax

    mod = network(lambda emit, x: emit(relax.op.nn.softmax(x, axis=2)))
    return offers("openclml.relax.nn.softmax", mod, applied)


def unknown_axis(match: Match) -> bool:
    """Neither along the channels nor, in four dimensions, along the width."""
    if "relax.nn.softmax" not in match.calls:
        return False
    call = match.calls["relax.nn.softmax"]
    rank = len(shape_of(type_of(call)))
    return (rank, call.attrs.axis % rank) not in ((2, 1), (3, 1), (4, 1), (4, 3))


QUIRK = Quirk(
    id="clml-softmax-axis",
    title="softmax along any axis is offloaded; along others than channels and width it is computed along the channels",
    upstream="clml_runtime.cc: CreateSoftmaxLayerTensor, a layout for axis 3 and one for all others",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="softmax along an axis that the runtime does not know stays on OpenCL",
    edits=ClmlEdits(veto=unknown_axis),
)
