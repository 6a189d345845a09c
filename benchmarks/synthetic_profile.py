"""Profiles as no device has made them, for pictures."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping

from harness.compile.compiler.tir import OperatorWork
from harness.measure.records.record import Record
from harness.tools.shared.kernels.profile import Operator, Peaks, Profile

COPY_GB_S, FLOAT32_GFLOP_S = 42.0, 910.0
PEAKS = Peaks(copy_gb_s=COPY_GB_S, image_gb_s=58.0, float32_gflop_s=FLOAT32_GFLOP_S, float16_gflop_s=1790.0)
"""Of a made-up phone."""
OPERATORS = (
    ("conv2d_relu", 64, 3, 112, 7, 0.42),
    ("conv2d1_add_relu", 64, 64, 56, 3, 0.31),
    ("conv2d2_add_relu", 128, 128, 28, 3, 0.24),
    ("conv2d3_add_relu", 256, 256, 14, 3, 0.15),
    ("conv2d4_add_relu", 512, 512, 7, 3, 0.06),
    ("conv2d_down", 128, 64, 28, 1, 0.2),
    ("conv2d1_down", 256, 128, 14, 1, 0.12),
    ("conv2d2_down", 512, 256, 7, 1, 0.08),
    ("matmul", 1000, 512, 1, 1, 0.05),
)
"""Of a residual network: function, channels that it writes and reads, rows, extent of its filter, share of the peak."""
FASTER = {"opencl": 1.0, "texture": 1.7, "clml": 2.2}
"""How many times as fast as on opencl each operator is."""


def profile_of(record: Record, slower: Mapping[str, float] | None = None, session: int = 0) -> Profile:
    """Return a made-up profile of a residual network on the path and build of a record.

    Args:
        record: Case, build and device.
        slower: Factors of the times of operators, by function, whose kernels then have another source.
        session: Its number; each has noise of its own.
    """
    operators = tuple(sorted(_operators(record.path, slower or {}, session), key=lambda operator: -operator.ms))
    total = sum(operator.ms for operator in operators)
    return Profile(
        case=record.case,
        identity_key=record.identity_key,
        gpu=record.identity.gpu,
        tvm=record.tvm,
        artifact=record.artifact,
        as_shipped=record.as_shipped,
        operators=operators,
        kernels_ms=total,
        span_ms=total * 1.04,
        wall_ms=total * 1.07,
        peaks=PEAKS,
    )


def _operators(path: str, slower: Mapping[str, float], session: int) -> Iterator[Operator]:
    chance, noise = random.Random(path), random.Random(session)
    for function, out, into, rows, extent, share in OPERATORS:
        shapes = [[1, into, rows, rows], [out, into, extent, extent], [1, out, rows, rows]]
        if function == "matmul":
            shapes = [[1, into], [into, out], [1, out]]
        flops = 2 * out * into * rows * rows * extent * extent
        moved = 4 * sum(map(math.prod, shapes))
        best_ms = max(flops / FLOAT32_GFLOP_S, moved / COPY_GB_S) / 1e6
        factor = slower.get(function, 1.0)
        yield Operator(
            function=function,
            kernels=(f"{function}_kernel",),
            launches=1,
            ms=best_ms / share / FASTER[path] * chance.uniform(0.8, 1.3) * factor * noise.gauss(1, 0.006),
            threads=out * rows * rows // 4,
            work=OperatorWork(function, shapes, moved, flops, flops),
            source=f"{function} {path} {factor}",
        )
