"""Global pooling of a tensor that is not square uses a window with its sides swapped."""

from __future__ import annotations

from harness.compiler.compat import type_of
from harness.paths.clml.codegen import shape_of
from harness.paths.clml.patterns import ClmlEdits, Match
from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.clml_sample import network, offers, runtime_source

_SWAPPED = "{in_dims.w, in_dims.h}"


def probe(*applied: Quirk) -> ProbeAnswer:
    """Partition the mean over 4 x 8, and look at the window in TVM's runtime."""
    from tvm import relax

    source = runtime_source()
    if source and _SWAPPED not in source:
        return ProbeAnswer(Presence.ABSENT, f"TVM's runtime has no window {_SWAPPED} any more")
    mod = network(lambda emit, x: emit(relax.op.mean(x, [2, 3], keepdims=True)), (1, 4, 4, 8))
    return offers("openclml.nn.global_avg_pool2d", mod, applied)


def not_square(match: Match) -> bool:
    """Height and width differ."""
    if "relax.mean" not in match.calls:
        return False
    height, width = shape_of(type_of(match.calls["relax.mean"].args[0]))[2:4]
    return height != width


QUIRK = Quirk(
    id="clml-global-pool",
    title="global average pooling of height x width is given a window of width x height",
    upstream="clml_runtime.cc: CreateGlobalPoolingLayer, {in_dims.w, in_dims.h} where other pooling has {h, w}",
    since="0.25",
    paths=("clml",),
    probe=probe,
    workaround="global pooling of tensors that are not square stays on OpenCL",
    edits=ClmlEdits(veto=not_square),
)
