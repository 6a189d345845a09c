"""Probes of the names of kernels, and of functions in them."""

from __future__ import annotations

from defects.sample import Probe, many_in_a_row, network, source
from harness.compile.paths.base import Workaround
from harness.compile.paths.kernels import kernels
from harness.compile.paths.opencl import OpenCLPath
from harness.compile.quirks.base import ProbeAnswer
from harness.compile.quirks.kernel_names import LONGEST_KERNEL


def _longest_name(*applied: Workaround) -> ProbeAnswer:
    """Build many element-wise operators in a row, and measure the name of their kernel."""
    longest = max(len(kernel.name) for kernel in kernels(source(many_in_a_row(), applied, OpenCLPath())))
    return ProbeAnswer.of(longest > LONGEST_KERNEL, f"a kernel's name has {longest} characters")


def _inverse_tangent(*applied: Workaround) -> ProbeAnswer:
    """Build an inverse tangent, and look what the kernel calls."""
    from tvm import relax

    atan = network(lambda emit, data: emit(relax.op.atan(data)))
    (kernel,) = kernels(source(atan, applied, OpenCLPath()))
    return ProbeAnswer.of("atanf(" in kernel.body, "a kernel calls `atanf`", "a kernel calls `atan`")


PROBES: dict[str, Probe] = {
    "long-kernel-name": _longest_name,
    "builtin-suffix": _inverse_tangent,
}
