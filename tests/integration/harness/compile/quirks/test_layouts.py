"""What workarounds of layouts leave to TVM's later passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from combinations import one_at_a_time
from defects.sample import Emit, lower, mask_and_its_opposite, network, source

from harness.base.case import Precision
from harness.compile.compiler.compat import type_of
from harness.compile.quirks import quirks_for


@pytest.mark.parametrize("groups", [8, 1])
def test_a_reshape_of_a_convolution_is_read_by_what_follows_it(groups: int) -> None:
    from tvm import relax

    weight = relax.const(np.ones((8, 8 // groups, 3, 3), "float32"))
    matrix = relax.const(np.ones((64, 8), "float32"))

    def body(emit: Emit, data: Any) -> Any:
        convolution = emit(relax.op.nn.conv2d(data, weight, groups=groups, padding=1))
        return emit(relax.op.matmul(emit(relax.op.reshape(convolution, (1, 8, 64))), matrix))

    lowered = lower(network(body, (1, 8, 8, 8)), quirks_for("texture", Precision.FLOAT32, as_shipped=False))
    assert not relax.analysis.free_vars(lowered["main"])


def _lower(body: Callable[[Emit, Any], Any], batch: int = 1) -> Any:
    from tvm import relax

    weight = relax.const(np.ones((8, 4, 3, 3), "float32"))

    def after_conv(emit: Emit, data: Any) -> Any:
        return body(emit, emit(relax.op.nn.conv2d(data, weight, padding=1)))

    module = network(after_conv, (batch, 4, 8, 8))
    return lower(module, quirks_for("texture", Precision.FLOAT32, as_shipped=False))


@pytest.mark.parametrize(
    ("name", "axes"),
    one_at_a_time(["max", "mean", "min", "prod", "std", "sum", "variance"], [[1], None, [1, 2, 3], [-3]]),
)
def test_a_reduction_over_channels_may_keep_their_axis(name: str, axes: list[int] | None) -> None:
    from tvm import relax

    lowered = _lower(lambda _emit, data: getattr(relax.op, name)(data, axes, True))
    shape = [int(extent) for extent in type_of(lowered["main"].body.body).shape.values]
    assert shape == [1, 1, *([8, 8] if axes in ([1], [-3]) else [1, 1])]


@pytest.mark.parametrize(
    ("name", "batch"),
    one_at_a_time(["add", "multiply", "maximum", "subtract", "divide", "power", "less"], [1, 2]),
)
def test_an_operand_may_have_one_channel(name: str, batch: int) -> None:
    from tvm import relax

    def body(emit: Emit, data: Any) -> Any:
        return getattr(relax.op, name)(data, emit(relax.op.mean(data, [1], keepdims=True)))

    assert _lower(body, batch)


@pytest.mark.parametrize(
    ("name", "axes", "kept"),
    one_at_a_time(["max", "mean", "std", "variance"], [[1], [2, 3], [3], None], [True, False]),
)
def test_a_reduction_of_an_image_beside_that_image_compiles(name: str, axes: list[int] | None, kept: bool) -> None:
    from tvm import relax

    weight = relax.const(np.ones((8, 8, 3, 3), "float32"))

    def body(emit: Emit, data: Any) -> Any:
        convolution = emit(relax.op.nn.conv2d(data, weight, padding=1))
        reduced = emit(getattr(relax.op, name)(convolution, axes, keepdims=kept))
        return emit(relax.op.subtract(convolution, reduced)) if kept else reduced

    lowered = lower(network(body, (1, 8, 8, 8)), quirks_for("texture", Precision.FLOAT32, as_shipped=False))
    assert not relax.analysis.free_vars(lowered["main"])


@pytest.mark.parametrize(
    ("shape", "first"),
    one_at_a_time([(1, 1, 8, 8), (1, 1, 8, 1), (1, 1, 1, 1), (1, 8, 1, 1), (2, 1, 8, 8)], [True, False]),
)
def test_an_image_and_what_is_broadcast_over_it_compile(shape: tuple[int, ...], first: bool) -> None:
    from tvm import relax

    weight, other = (relax.const(np.ones(extents, "float32")) for extents in ((8, 8, 3, 3), shape))

    def body(emit: Emit, data: Any) -> Any:
        convolution = emit(relax.op.nn.conv2d(data, weight, padding=1))
        operands = (convolution, other) if first else (other, convolution)
        return emit(relax.op.nn.conv2d(emit(relax.op.divide(*operands)), weight))

    lowered = lower(network(body, (1, 8, 8, 8)), quirks_for("texture", Precision.FLOAT32, as_shipped=False))
    assert not relax.analysis.free_vars(lowered["main"])


def test_a_comparison_that_two_operators_read_compiles() -> None:
    assert "__kernel" in source(mask_and_its_opposite(), quirks_for("texture", Precision.FLOAT32, as_shipped=False))


def test_doubles_of_a_convolution_that_are_a_result_as_well_compile() -> None:
    """TVM copies them into an image for the next kernel; no phone that is emulated here computes in them."""
    from tvm import relax

    weight = relax.const(np.ones((4, 4, 3, 3), "float32"))

    def body(emit: Emit, data: Any) -> Any:
        doubled = emit(relax.op.multiply(emit(relax.op.nn.conv2d(data, weight, padding=1)), relax.const(2.0)))
        doubles = emit(relax.op.astype(doubled, "float64"))
        again = emit(relax.op.sigmoid(emit(relax.op.astype(doubles, "float32"))))
        return relax.Tuple([emit(relax.op.add(again, data)), doubles])

    made = source(network(body, (2, 4, 8, 5)), quirks_for("texture", Precision.FLOAT32, as_shipped=False))
    assert "double" in made
