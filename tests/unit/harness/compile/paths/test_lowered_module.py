"""What is noted of a network's kernels: threads of a launch, and launches of an inference."""

from __future__ import annotations

from typing import Any

import pytest

from harness.compile.artifacts.reference_kernel import THREADS, _module
from harness.compile.paths import PATHS
from harness.compile.paths.base import ImageLimits
from harness.compile.paths.lowered_module import PlannedLaunch, add_host_entry, fused_operators, image_size, launches


def test_threads_and_calls_are_those_of_the_lowered_module() -> None:
    path = PATHS["opencl"]
    target = path.target(ImageLimits(), None)
    lowered = path.lower(_module(), target, ())
    tir: list[Any] = []
    path.build(add_host_entry(lowered), target, (), tir.append)

    assert launches(lowered, tir[0], "") == {"spin_kernel": PlannedLaunch(threads=THREADS, group=64, per_inference=1)}


@pytest.mark.parametrize(
    ("scope", "size"),
    [
        ("global.texture", (7, 5, 6)),
        ("global.texture-nhwc", (5 * 7, 3, 2)),
        ("global.texture-weight", (3 * 5 * 7, 2, 1)),
    ],
)
def test_the_scope_says_which_axes_are_columns_rows_and_layers(scope: str, size: tuple[int, int, int]) -> None:
    assert image_size([2, 3, 5, 7, 4], scope) == size


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("fused_conv2d_NCHWc_OIHWo1_add12_tir_sigmoid_multiply3", ["Conv", "Add", "Sigmoid", "Mul"]),
        ("fused_max_pool2d_opencl_add1", ["MaxPool", "Add"]),
        ("scatter_elements", ["ScatterElements"]),
    ],
)
def test_the_name_of_a_function_has_its_operators(name: str, operators: list[str]) -> None:
    assert fused_operators(name) == operators
