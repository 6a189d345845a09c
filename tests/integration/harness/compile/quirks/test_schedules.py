"""Functions that TVM's own schedules or names stop are built."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from defects.sample import Emit, network, source, sum_of_distances

from harness.base.case import Precision
from harness.compile.paths.kernels import kernels
from harness.compile.paths.opencl import OpenCLPath
from harness.compile.quirks import quirks_for
from harness.compile.quirks.kernel_source import LONGEST_KERNEL


def built(module: Any) -> Any:
    return kernels(source(module, quirks_for("opencl", Precision.FLOAT32, as_shipped=False), OpenCLPath()))


@pytest.mark.parametrize("padding", [(0, 0, 0, 0), (0, 0, 1, 1)])
@pytest.mark.parametrize(("multiplier", "kernel", "stride", "dilation"), [(2, 3, 2, 1), (3, 3, 1, 2), (4, 5, 1, 1)])
def test_a_depthwise_convolution_with_several_results_is_built(
    multiplier: int, kernel: int, stride: int, dilation: int, padding: tuple[int, ...]
) -> None:
    from tvm import relax

    weight = relax.const(np.ones((3 * multiplier, 1, kernel, kernel), "float32"))
    bias = relax.const(np.ones((1, 3 * multiplier, 1, 1), "float32"))

    def body(emit: Emit, data: Any) -> Any:
        options = {"strides": stride, "dilation": dilation, "padding": padding, "groups": 3}
        return relax.op.add(emit(relax.op.nn.conv2d(data, weight, **options)), bias)

    assert list(built(network(body, (1, 3, 13, 15))))


def test_a_kernel_with_a_long_name_may_have_several_results() -> None:
    from tvm import relax

    def body(emit: Emit, data: Any) -> Any:
        for _ in range(12):
            data = emit(relax.op.tanh(emit(relax.op.sigmoid(data))))
        return emit(relax.op.split(data, 2, 1))

    names = [kernel.name for kernel in built(network(body))]
    assert names
    assert max(map(len, names)) <= LONGEST_KERNEL


def test_a_sum_may_read_one_tensor_in_two_places() -> None:
    assert list(built(sum_of_distances()))


def test_the_ranks_of_numbers_compile_where_nothing_else_is_asked_for() -> None:
    """`TopK` is written so where its places alone are read. An assertion of dlight fails at such a sum."""
    from tvm import relax

    earlier = relax.const(np.arange(16) < np.arange(16)[:, None])

    def body(emit: Emit, data: Any) -> Any:
        own, others = emit(relax.op.expand_dims(data, [2])), emit(relax.op.expand_dims(data, [1]))
        ties = emit(relax.op.logical_and(emit(relax.op.equal(others, own)), earlier))
        before = emit(relax.op.logical_or(emit(relax.op.less(others, own)), ties))
        return emit(relax.op.sum(emit(relax.op.astype(before, "int64")), [2]))

    assert list(built(network(body, (1, 16))))
