"""Probes of what kernels say otherwise than OpenCL C takes it."""

from __future__ import annotations

from typing import Any

from defects.presence import presence
from defects.sample import Emit, Probe, all_but, many_in_a_row, network, source
from harness.compile.paths.base import Workaround
from harness.compile.paths.kernels import kernels
from harness.compile.paths.opencl import OpenCLPath
from harness.compile.quirks.kernel_source import LONGEST_KERNEL
from harness.tools.upstream.probe_answer import Presence, ProbeAnswer


def _longest_name(*applied: Workaround) -> ProbeAnswer:
    """Build many element-wise operators in a row, and measure the name of their kernel."""
    longest = max(len(kernel.name) for kernel in kernels(source(many_in_a_row(), applied, OpenCLPath())))
    return presence(longest > LONGEST_KERNEL, f"a kernel's name has {longest} characters")


def _inverse_tangent(*applied: Workaround) -> ProbeAnswer:
    """Build an inverse tangent, and look what the kernel calls."""
    from tvm import relax

    atan = network(lambda emit, data: emit(relax.op.atan(data)))
    (kernel,) = kernels(source(atan, applied, OpenCLPath()))
    return presence("atanf(" in kernel.body, "a kernel calls `atanf`", "a kernel calls `atan`")


def _cast_sum(*applied: Workaround) -> ProbeAnswer:
    """Build a sum of bytes and a cast of it, and look whether the kernel cuts the sum to 8 bits."""
    from tvm import relax

    doubled = network(lambda emit, data: relax.op.astype(emit(relax.op.add(data, data)), "float32"), dtype="uint8")
    (kernel,) = kernels(source(doubled, applied, OpenCLPath()))
    cut = "convert_uchar(" in kernel.body or "(uchar)" in kernel.body
    return presence(not cut, "a cast reads a sum of bytes as int", "a sum of bytes is cut to a byte")


def _bytes_apart(*applied: Workaround) -> ProbeAnswer:
    """Build texels of bytes that lie apart, and look what the kernel takes them for."""
    from tvm import relax

    def body(emit: Emit, data: Any) -> Any:
        numbers = emit(relax.op.permute_dims(emit(relax.op.astype(data, "float32")), [0, 1, 2, 4, 3]))
        return relax.op.add(numbers, emit(relax.op.max(numbers, [2], keepdims=True)))

    text = source(network(body, (1, 1, 4, 4, 4), "uint8"), (*all_but("bytes-apart"), *applied))
    if "(0x000000ff << 0)" not in text:
        return ProbeAnswer(Presence.CANNOT_TELL, "no kernel loads bytes that lie apart")
    return presence("as_uchar4(" not in text, "four bytes are taken for one int", "four bytes are taken for a vector")


def _reversed_tile(*applied: Workaround) -> ProbeAnswer:
    """Build four numbers, tiled and reversed, and look how the kernel divides their places."""
    from tvm import relax

    def body(emit: Emit, data: Any) -> Any:
        return relax.op.flip(emit(relax.op.tile(data, (3,))), 0)

    (kernel,) = kernels(source(network(body, (4,)), applied, OpenCLPath()))
    return presence("% -4" in kernel.body, "the kernel divides by -4", "the kernel divides by 4")


PROBES: dict[str, Probe] = {
    "long-kernel-name": _longest_name,
    "builtin-suffix": _inverse_tangent,
    "narrow-integers": _cast_sum,
    "bytes-apart": _bytes_apart,
    "flattened-index": _reversed_tile,
}
