"""Tuned convolutions of both paths beside each other: what is packed in fours is the same layer as what is not."""

from __future__ import annotations

from typing import Any

from fake_schedules import TRACE

from benchmarks.schedules_by_layer import layer, rows
from harness.compile.schedules.database import Schedule


def schedule(path: str, name: str, shapes: tuple[str, ...], ms: float, **facts: Any) -> Schedule:
    facts = {"task": "a" * 16, "untuned_ms": 4.0, "max_rel_err": 0.0, "trials": 1, "trace": TRACE, **facts}
    return Schedule(path=path, name=name, shapes=shapes, ms=ms, **facts)


PLAIN = ("float32[1,16,55,55]", "float32[64,16,3,3]", "float32[1,64,1,1]", "float32[1,64,55,55]")
PACKED = (
    *("float32[1,4,55,55,4] texture-weight", "float32[16,16,3,3,4]"),
    *("float32[1,16,1,1,4] texture-weight", "float32[1,16,55,55,4] texture-nhwc"),
)


def test_a_convolution_in_texels_is_the_layer_that_it_was_before_it_was_packed() -> None:
    packed = layer(schedule("texture", "fused_conv2d_NCHWc_OIHWo", PACKED, 2.0))
    assert (
        packed
        == layer(schedule("opencl", "fused_conv2d", PLAIN, 1.0))
        == ((1, 16, 55, 55), (64, 16, 3, 3), (1, 64, 55, 55))
    )


def test_the_fastest_of_a_layer_stands_for_it_and_one_path_alone_is_no_row() -> None:
    slow, fast = (schedule("texture", "fused_conv2d_NCHWc_OIHWo", PACKED, ms) for ms in (3.0, 2.0))
    assert rows([fast, slow, schedule("texture", "te_layout_transform", PACKED[:2], 1.0)]) == []
    ((*_, buffers, texture, ratio, _, _, untuned),) = rows([fast, slow, schedule("opencl", "fused_conv2d", PLAIN, 1.0)])
    assert (buffers, texture, ratio, untuned) == ("1", "2", "2.00", "1.00")
