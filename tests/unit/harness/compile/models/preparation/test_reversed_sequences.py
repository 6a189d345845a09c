"""ReverseSequence by index gives what onnxruntime gives."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from small_networks import answers, changed, kinds, network, values

from harness.compile.models.preparation.indices import write_reversals


@pytest.mark.parametrize("lengths", [[4, 4], [1, 3], [2, 4]])
@pytest.mark.parametrize("times", [0, 1])
def test_each_sequence_is_turned_up_to_its_length(times: int, lengths: list[int]) -> None:
    node = helper.make_node("ReverseSequence", ["x", "lengths"], ["y"], time_axis=times, batch_axis=1 - times)
    shape = (4, 2, 3) if times == 0 else (2, 4, 3)
    model = network([node], {"x": shape}, lengths=np.array(lengths))
    x = values(*shape)
    plain, said = changed(model, write_reversals)
    assert "ReverseSequence" not in kinds(plain)
    assert said == "wrote 1 ReverseSequence by index"
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])
