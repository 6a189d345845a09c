"""Probes of fused functions: what TVM's schedules leave without threads, or store lane by lane."""

from __future__ import annotations

from typing import Any

from defects.presence import presence
from defects.sample import (
    Emit,
    Probe,
    biased_conv_and_silu,
    conv_and_erf,
    conv_and_its_input,
    fails_to_lower,
    lower,
    network,
    scatter,
    source,
)
from defects.texels import SERIAL_STORE
from harness.compile.compiler.tir import unbound_blocks
from harness.compile.paths.base import Workaround
from harness.compile.quirks.texels import QUIRKS as TEXELS
from harness.tools.upstream.probe_answer import ProbeAnswer

_TYPED_STORES = next(quirk for quirk in TEXELS if quirk.id == "texture-store-broadcast")
"""Another defect, by which every store of a vector is serialised."""
_SUMS = 11


def _left_without_threads(*applied: Workaround) -> ProbeAnswer:
    """Count the blocks of a convolution with a bias and SiLU that no thread runs."""
    from tvm import tirx

    mod = lower(biased_conv_and_silu(), applied)
    left = [
        name
        for function in mod.functions.values()
        if isinstance(function, tirx.PrimFunc)
        for name in unbound_blocks(function)
    ]
    defect = f"of a convolution with a bias and SiLU, no thread runs {', '.join(left)}"
    return presence(bool(left), defect, "threads run all of a convolution with a bias and SiLU")


def _one_lane_stored(*applied: Workaround) -> ProbeAnswer:
    """Look whether `erf` behind a convolution is stored lane by lane, each over the whole texel."""
    try:
        serial = SERIAL_STORE.search(source(conv_and_erf(), (*applied, _TYPED_STORES)))
    except Exception as error:  # as where nothing else is fused with it
        return presence(True, str(error).strip().splitlines()[-1])
    defect = "a loop over four lanes stores a whole texel of `erf` each time; the last lane wins"
    return presence(bool(serial), defect, "each texel of `erf` is stored once")


def _padding_repeated(*applied: Workaround) -> ProbeAnswer:
    """Count the functions that a padding becomes with sums of it with itself, each twice as long as the one before."""
    from tvm import relax, tirx

    def body(emit: Emit, data: Any) -> Any:
        data = emit(relax.op.nn.pad(data, [0, 0, 0, 0, 0, 0, 0, 1]))
        for _ in range(_SUMS):
            data = emit(relax.op.add(data, data))
        return data

    lowered = lower(network(body), applied)
    count = sum(isinstance(function, tirx.PrimFunc) for function in lowered.functions.values())
    defect = f"one kernel computes a padding {2**_SUMS:,} times"
    return presence(count == 1, defect, f"a padding and {_SUMS} sums are {count} kernels")


PROBES: dict[str, Probe] = {
    "fusion-repeats": _padding_repeated,
    "opaque-kernel-schedule": fails_to_lower(scatter, "a scatter is lowered"),
    "texture-left-blocks": _left_without_threads,
    "texture-shared-input": fails_to_lower(conv_and_its_input, "a 1x1 convolution with its input added is lowered"),
    "texture-scalar-call": _one_lane_stored,
}
