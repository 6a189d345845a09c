"""The light models of the `onnx` package: real topologies that nobody made for this harness."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from command import bench
from onnx import numpy_helper

from benchmarks.light_models import LIGHT, NAMES, with_weights, write
from harness.base.outcome import Outcome
from harness.measure.records.record import RecordFile

WISHED = os.environ.get("ADRENO_BENCH_TEST_LIGHT", "")


def test_weights_are_seeded_and_differ_and_the_model_is_valid() -> None:
    first, second = (with_weights(onnx.load(LIGHT / "light_shufflenet.onnx")) for _ in range(2))
    onnx.checker.check_model(first)
    assert first.SerializeToString(deterministic=True) == second.SerializeToString(deterministic=True)
    weights = [numpy_helper.to_array(tensor) for tensor in first.graph.initializer]
    assert [value.name for value in first.graph.input] == ["gpu_0/data_0"]
    assert "ConstantOfShape" not in {node.op_type for node in first.graph.node}
    assert all(np.ptp(weight) > 0 for weight in weights if weight.dtype == np.float32 and weight.size > 1)


@pytest.mark.slow
@pytest.mark.device
@pytest.mark.skipif(not WISHED, reason="run by `make test-light`")
@pytest.mark.parametrize("name", NAMES if WISHED == "all" else WISHED.split(","))
def test_light_model_is_right_on_opencl_and_texture(name: str, tmp_path: Path, cache: Path) -> None:
    suite = write(tmp_path, [name])
    bench(tmp_path, cache, "run", "--suite", str(suite), "--quick")
    records = RecordFile(tmp_path / "records.jsonl").load().records
    assert [(record.path, record.outcome, record.vacuous) for record in records] == [
        ("opencl", Outcome.OK, []),
        ("texture", Outcome.OK, []),
    ]
