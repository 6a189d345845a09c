"""Names of operators on a roofline: beside their marks, over nothing else."""

from __future__ import annotations

from harness.tools.profile.labels import label_sides
from harness.tools.profile.roofline import RooflinePoint

CONV, POOL, MATMUL = "conv2d 64x64x3x3 to 64x56x56", "max to 64x56x56", "matmul 512x1000 to 1000"


def test_a_name_stands_above_its_mark_where_there_is_room() -> None:
    points = [
        RooflinePoint(CONV, 10.0, 10.0, 0.6),
        RooflinePoint(POOL, 1.0, 1.0, 0.1),
        RooflinePoint(MATMUL, 100.0, 100.0, 0.3),
    ]
    assert label_sides({"images": points})["images", 0] == "top center"


def test_a_name_over_another_mark_or_name_goes_to_another_side_or_is_left_out() -> None:
    corners = [RooflinePoint("", 1.0, 1.0, 0.0), RooflinePoint("", 100.0, 100.0, 0.0)]
    conv, above = RooflinePoint(CONV, 10.0, 10.0, 0.6), RooflinePoint(POOL, 10.0, 13.0, 0.3)
    sides = label_sides({"images": [conv, above, *corners]})
    assert sides["images", 0] == "bottom center"
    assert sides["images", 1] == "top center"
    crowd = [RooflinePoint("", 10.0 * 1.1**x, 10.0 * 1.1**y, 0.01) for x in range(-9, 10) for y in range(-9, 10)]
    assert ("images", 0) not in label_sides({"images": [conv, *corners, *crowd]})


def test_an_operator_of_both_cases_has_one_name() -> None:
    images, buffers = (
        [RooflinePoint(CONV, 10.0, rate, 0.6), RooflinePoint(MATMUL, 1.0, 1.0, 0.4)] for rate in (200.0, 50.0)
    )
    sides = label_sides({"images": images, "buffers": buffers})
    assert {place for _, place in sides} == {0, 1}
    assert len(sides) == 2


def test_no_name_lies_over_the_axes() -> None:
    points = [RooflinePoint(CONV, 1.0, 1.0, 0.5), RooflinePoint(MATMUL, 100.0, 100.0, 0.5)]
    assert label_sides({"images": points}) == {("images", 0): "middle right", ("images", 1): "middle left"}
