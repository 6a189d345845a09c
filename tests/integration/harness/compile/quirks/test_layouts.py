"""What workarounds of layouts leave to TVM's later passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.base.case import Precision
from harness.compile.quirks import quirks_for
from harness.tools.upstream.probes.sample import Emit, lower, network


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
