"""What is refused before TVM sees a network."""

from __future__ import annotations

import pytest
from onnx import helper
from small_networks import network

from harness.base.failures import UnsupportedOperator
from harness.compile.models.outline import require_on_device


def test_an_operator_without_a_kernel_is_refused_by_name_with_what_to_do() -> None:
    """TVM stops in another pass on each path, of which none names the operator."""
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores"], ["y"])
    model = network([node], {"boxes": (1, 6, 4), "scores": (1, 1, 6)})
    with pytest.raises(UnsupportedOperator, match=r"no OpenCL kernel for NonMaxSuppression \(y\)") as caught:
        require_on_device(model, ())
    assert "up to its boxes and scores" in caught.value.hint


def test_other_operators_pass() -> None:
    require_on_device(network([helper.make_node("Relu", ["x"], ["y"])], {"x": (2, 3)}), ())
