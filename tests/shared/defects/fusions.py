"""Probes of fused functions: what TVM's schedules leave without threads, or store lane by lane."""

from __future__ import annotations

from typing import Any

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
from harness.compile.paths.opencl import OpenCLPath
from harness.compile.quirks.base import ProbeAnswer
from harness.compile.quirks.texels import QUIRKS as TEXELS

_TYPED_STORES = next(quirk for quirk in TEXELS if quirk.id == "texture-store-broadcast")
"""Another defect, by which every store of a vector is serialised."""
_SILU = 10


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
    return ProbeAnswer.of(bool(left), defect, "threads run all of a convolution with a bias and SiLU")


def _one_lane_stored(*applied: Workaround) -> ProbeAnswer:
    """Look whether `erf` behind a convolution is stored lane by lane, each over the whole texel."""
    try:
        serial = SERIAL_STORE.search(source(conv_and_erf(), (*applied, _TYPED_STORES)))
    except Exception as error:  # as where nothing else is fused with it
        return ProbeAnswer.of(True, str(error).strip().splitlines()[-1])
    defect = "a loop over four lanes stores a whole texel of `erf` each time; the last lane wins"
    return ProbeAnswer.of(bool(serial), defect, "each texel of `erf` is stored once")


def _silu_repeated(*applied: Workaround) -> ProbeAnswer:
    """Count the exponentials in the kernels of ten SiLU."""
    from tvm import relax

    def body(emit: Emit, data: Any) -> Any:
        for _ in range(_SILU):
            data = emit(relax.op.multiply(data, emit(relax.op.sigmoid(data))))
        return data

    count = source(network(body), applied, OpenCLPath()).count("exp(")
    text = f"the kernels of {_SILU} SiLU compute {count} sigmoids for each element"
    return ProbeAnswer.of(count > 512, text, text)


PROBES: dict[str, Probe] = {
    "fusion-repeats": _silu_repeated,
    "opaque-kernel-schedule": fails_to_lower(scatter, "a scatter is lowered"),
    "texture-left-blocks": _left_without_threads,
    "texture-shared-input": fails_to_lower(conv_and_its_input, "a 1x1 convolution with its input added is lowered"),
    "texture-scalar-call": _one_lane_stored,
}
