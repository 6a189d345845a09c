"""Probes of what the importer leaves in a model."""

from __future__ import annotations

from functools import partial
from typing import Any

from defects.misreadings import answer, roi_align
from defects.misreadings import network as one_operator
from defects.presence import presence
from defects.sample import (
    Emit,
    Probe,
    clipped_conv,
    conv,
    dropout,
    fails_to_lower,
    network,
    source,
    sum_of_stack,
)
from harness.compile.paths.base import Workaround, edit_model
from harness.compile.paths.kernels import kernels
from harness.compile.paths.opencl import OpenCLPath
from harness.tools.upstream.probe_answer import ProbeAnswer


def _slash_in_a_name(*applied: Workaround) -> ProbeAnswer:
    """Build a convolution of `gpu_0/data_0`, a name as Caffe2 gives it."""
    built = source(conv(input_name="gpu_0/data_0"), applied, OpenCLPath())
    parameters = [text.strip() for kernel in kernels(built) for text in kernel.parameters.split(",")]
    broken = next((text for text in parameters if "/" in text), None)
    right = f"a kernel's parameters are {', '.join(parameters)}"
    return presence(broken is not None, f"a kernel has the parameter `{broken}`", right)


def _maximum_of_constants() -> Any:
    """Return a sum with the maximum of two constants, which is a function as the importer writes Clip."""
    from tvm import relax, topi

    def body(emit: Emit, data: Any) -> Any:
        largest = relax.BlockBuilder.current().emit_te(topi.maximum, relax.const(3.0), relax.const(2.0))
        return emit(relax.op.add(data, largest))

    return network(body)


def _function_in_half(*applied: Workaround) -> ProbeAnswer:
    """Choose half precision for a convolution and a function behind it."""
    from tvm import relax

    try:
        relax.transform.ToMixedPrecision()(edit_model(clipped_conv(), applied))
    except RuntimeError as error:
        return presence(True, str(error).strip().splitlines()[-1])
    return presence(False, "a function takes what a convolution computes in half precision")


def _shape_as_numbers() -> Any:
    """Return the extents of the input, as the importer asks for them."""
    from tvm import relax

    return network(lambda emit, data: emit(relax.op.shape_to_tensor(emit(relax.op.shape_of(data)))))


PROBES: dict[str, Probe] = {
    "input-name-in-kernel": _slash_in_a_name,
    "function-of-constants": fails_to_lower(_maximum_of_constants, "a function of constants is folded"),
    "shape-to-tensor": fails_to_lower(_shape_as_numbers, "a shape is lowered to numbers"),
    "squeeze-axes": partial(answer, partial(one_operator, "Squeeze", (1, 1, 3), [], 11, axes=[1])),
    "dropout-layout": fails_to_lower(dropout, "a dropout is lowered"),
    "stack-layout": fails_to_lower(sum_of_stack, "a stack is lowered"),
    "roi-align-half-pixel": partial(answer, partial(roi_align, spatial_scale=0.5)),
    "function-in-half": _function_in_half,
}
