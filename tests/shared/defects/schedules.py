"""Probes of the schedules that TVM's rules for GPUs give."""

from __future__ import annotations

import math
import re
from typing import Any

from defects.presence import presence
from defects.sample import (
    Probe,
    average_pool,
    average_pool_into_image,
    concat,
    conv_and_padding,
    depthwise_conv_and_sigmoid,
    fails_to_lower,
    first_row_of_difference,
    grouped_conv_and_activation,
    lower,
    mean_and_padding,
    source,
    sum_of_distances,
    unpadded_grouped_conv,
)
from device_runner.device import ADRENO_LOCAL_BYTES
from harness.compile.compiler.compat import writes_texture
from harness.compile.paths.base import Workaround
from harness.compile.paths.kernels import kernels
from harness.compile.paths.opencl import OpenCLPath
from harness.tools.upstream.probe_answer import Presence, ProbeAnswer

_GROUP = 4
"""Channels of a group in the sample: a work-item has as many results, one in each channel of its column."""


def _private_numbers(*applied: Workaround) -> ProbeAnswer:
    """Build a grouped 1x1 convolution with an activation, and count the numbers that a work-item keeps to itself."""
    code = "".join(kernel.body for kernel in kernels(source(grouped_conv_and_activation(), applied, OpenCLPath())))
    sizes = [int(size) for size in re.findall(r"^\s*float \w+_local\w*\[(\d+)\];", code, re.MULTILINE)]
    if not sizes:
        return ProbeAnswer(Presence.CANNOT_TELL, "a grouped convolution has no private array")
    defect = f"work-items with {_GROUP} results each keep {max(sizes)} to themselves"
    return presence(max(sizes) > _GROUP, defect)


def _sum_of_one(*applied: Workaround) -> ProbeAnswer:
    """Build a sigmoid of sums over one product, and count how often the kernel computes it."""
    code = "".join(kernel.body for kernel in kernels(source(depthwise_conv_and_sigmoid(), applied, OpenCLPath())))
    times = code.count("exp(")
    return presence(times > 1, f"a sigmoid behind sums of one product is computed {times} times for a number")


def _unpadded_groups(*applied: Workaround) -> ProbeAnswer:
    """Build a grouped convolution without padding."""
    try:
        source(unpadded_grouped_conv(), applied, OpenCLPath())
    except Exception as error:  # whatever TVM raises is the answer
        check = next((line for line in str(error).splitlines() if "Check failed" in line), str(error).strip())
        return presence(True, check)
    return presence(False, "a grouped convolution without padding is built")


def _sum_of_distances(*applied: Workaround) -> ProbeAnswer:
    """Build sums of distances."""
    try:
        source(sum_of_distances(), applied, OpenCLPath())
    except Exception:  # whatever TVM raises is the answer, and what it says is nothing
        return presence(True, "a sum of distances ends the build with an assertion")
    return presence(False, "a sum of distances is scheduled")


def _padded_mean(*applied: Workaround) -> ProbeAnswer:
    """Count the numbers of a padded mean that its schedule writes."""
    from tvm import s_tir

    functions = lower(mean_and_padding(), applied).functions.items()
    schedule = s_tir.Schedule(next(function for name, function in functions if "pad" in name.name_hint))
    last = schedule.get_child_blocks(s_tir.dlight.analysis.get_root_block(schedule))[-1]
    runs = math.prod(int(schedule.get(loop).extent) for loop in schedule.get_loops(last))
    return presence(runs < 1000, f"a padded mean writes {runs} of 1000 numbers")


def _local_memory(*applied: Workaround) -> ProbeAnswer:
    """Build a convolution and a padding, and count its local memory."""
    most = max(kernel.local_bytes for kernel in kernels(source(conv_and_padding(), applied, OpenCLPath())))
    defect = f"a convolution with a padding behind it takes {most} bytes of local memory"
    return presence(most > ADRENO_LOCAL_BYTES, defect)


def _average_pool_into_image(*applied: Workaround) -> ProbeAnswer:
    """Look whether the schedule of an average pool into an image has a loop over lanes."""
    try:
        module = lower(average_pool_into_image(), applied)
    except Exception as error:  # as 0.25 and 0.26 do
        return presence(True, str(error).strip().splitlines()[0])
    return _stores_single_numbers(module, "avg_pool2d", "average pool")


def _concatenation_into_image(*applied: Workaround) -> ProbeAnswer:
    """Look whether the schedule of a concatenation into an image has a loop over lanes."""
    return _stores_single_numbers(lower(concat(), applied), "concatenate", "concatenation")


def _stores_single_numbers(module: Any, name: str, what: str) -> ProbeAnswer:
    """PRESENT if the function of this name, which writes an image, has no loop over lanes."""
    func = {name.name_hint: func for name, func in module.functions.items()}.get(name)
    if func is None or not writes_texture(func):
        return ProbeAnswer(Presence.CANNOT_TELL, f"no {what} is written into an image")
    subject = f"{'an' if what.startswith('a') else 'a'} {what}"
    defect = f"{subject} into an image has no loop over its four lanes"
    return presence("T.vectorized" not in func.script(), defect, f"{subject} stores four lanes at a time")


PROBES: dict[str, Probe] = {
    "reduction-schedule-raises": fails_to_lower(average_pool, "an average pool in NCHW4c is scheduled", line=0),
    "reduction-part-read": fails_to_lower(first_row_of_difference, "the first row of a difference is scheduled"),
    "reduction-of-pairs": _sum_of_distances,
    "reduction-extents": _padded_mean,
    "reduction-epilogue-private": _private_numbers,
    "reduction-of-one": _sum_of_one,
    "inner-reduction-tile": _unpadded_groups,
    "local-memory-overflow": _local_memory,
    "texture-average-pool": _average_pool_into_image,
    "texture-scalar-schedule": _concatenation_into_image,
}
