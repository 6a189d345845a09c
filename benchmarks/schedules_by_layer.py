"""Which path is faster for which convolution, both tuned, as a table in Markdown: by a file of schedules.

    python -m benchmarks.schedules_by_layer benchmarks/sessions/h200-schedules.jsonl

A file keeps what each task took when it was measured again: its kernels alone, in turns with TVM's own schedule. A
convolution that both paths kept a schedule for is a row. `texture` packs channels in fours, so shapes are unpacked
before they are compared; where several tasks of a path have one convolution (with and without an addition after it),
the fastest stands for it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.base.tables import markdown_table
from harness.compile.schedules.database import Schedule, read

HEADERS = (
    *("input", "weight", "output", "buffers ms", "texture ms", "texture/buffers, tuned"),
    *("buffers ms, untuned", "texture ms, untuned", "texture/buffers, untuned"),
)
Layer = tuple[tuple[int, ...], ...]
"""Shapes of a convolution's input, weight and output, unpacked."""


def layer(schedule: Schedule) -> Layer | None:
    """Return the convolution that a schedule is for; None if it is for something else."""
    if "conv2d" not in schedule.name or len(schedule.shapes) < 3:
        return None
    data, weight, result = (_dimensions(schedule.shapes[which]) for which in (0, 1, -1))
    return _unpack(data, 1), _unpack(weight, 0), _unpack(result, 1)


def _dimensions(shape: str) -> tuple[int, ...]:
    """Return the numbers of `float32[1,4,55,55,4] texture-weight`."""
    inside = re.search(r"\[([\d,]+)\]", shape)
    return tuple(map(int, inside[1].split(","))) if inside else ()


def _unpack(shape: tuple[int, ...], packed: int) -> tuple[int, ...]:
    """Return a shape of five, NCHW4c or OIHW4o, with the fours back where they came from."""
    if len(shape) != 5:
        return shape
    return (*shape[:packed], shape[packed] * shape[4], *shape[packed + 1 : 4])


def rows(schedules: Sequence[Schedule]) -> list[tuple[str, ...]]:
    """One row for each convolution that both paths kept a schedule for, the dearest first."""
    fastest: dict[tuple[str, Layer], Schedule] = {}
    for one in sorted(schedules, key=lambda schedule: -schedule.ms):
        if at := layer(one):
            fastest[one.path, at] = one
    both = [
        (at, buffers, fastest["texture", at])
        for (path, at), buffers in fastest.items()
        if path == "opencl" and ("texture", at) in fastest
    ]
    both.sort(key=lambda row: -max(row[1].ms, row[2].ms))
    return [_row(*row) for row in both]


def _row(at: Layer, buffers: Schedule, texture: Schedule) -> tuple[str, ...]:
    return (
        *("x".join(map(str, shape)) for shape in at),
        *_pair(buffers.ms, texture.ms),
        *_pair(buffers.untuned_ms, texture.untuned_ms),
    )


def _pair(buffers_ms: float, texture_ms: float) -> tuple[str, str, str]:
    return f"{buffers_ms:.3g}", f"{texture_ms:.3g}", f"{texture_ms / buffers_ms:.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table. Raises UsageError for a file that is none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="what `adreno-bench tune` wrote")
    print(markdown_table(rows(read(parser.parse_args(arguments).file).records), HEADERS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
