"""Long sums in half precision: LLVM is wrong where they lose digits or saturate, and right where they are wider."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from harness.base.case import RELATIVE_TOLERANCE, Precision
from harness.base.failures import OracleNotFinite
from harness.base.plan import Job
from harness.base.request import CompileRequest
from harness.base.suite import Limits
from harness.compile.artifacts.artifact import OUTPUTS, Answers, load_arrays
from harness.compile.artifacts.keys import llvm_half_job
from harness.compile.artifacts.pool import Builder
from harness.measure.correctness import compare_answers

if TYPE_CHECKING:
    from device_runner.device import Array

TERMS = 16384


def _file(folder: Path, weight: Array) -> Path:
    """Write a network that multiplies positive numbers with a weight, and divides what the sums come to."""
    nodes = [
        helper.make_node("Abs", ["x"], ["positive"]),
        helper.make_node("MatMul", ["positive", "w"], ["sum"]),
        helper.make_node("Mul", ["sum", "small"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(*end) for end in (("x", 1, [2, TERMS]), ("y", 1, [2, 8]))]
    constants = {"w": weight.astype(np.float32), "small": np.float32(1 / 1024)}
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "net.onnx")
    return folder / "net.onnx"


@pytest.mark.parametrize("beyond_range", [False, True], ids=["lose digits", "leave the range on the way"])
def test_products_of_many_terms_need_sums_in_single_precision(tmp_path: Path, beyond_range: bool) -> None:
    weight = np.abs(np.random.default_rng(0).normal(size=(TERMS, 8)))
    if beyond_range:
        weight *= np.where(np.arange(TERMS) < TERMS / 2, 24.0, -24.0)[:, None]
    file = _file(tmp_path, weight)
    request = dataclasses.asdict(CompileRequest(str(file), "cpu", Precision.FLOAT32.value, [], None, 0, 0, 0))
    single = Job("witness", "a" * 16, "LLVM", {"request": request, "seed": 0, "inputs": {}, "labelled": ""})
    half, wide = (llvm_half_job(single, precision) for precision in (Precision.FLOAT16, Precision.FLOAT16_ACC32))
    with Builder(tmp_path / "store", Limits()) as builder:
        built = builder.build([single, half, wide])

    def right(job: Job, precision: Precision) -> bool:
        answers, truth = built[job.key], built[single.key]
        assert isinstance(truth, Answers)
        if not isinstance(answers, Answers):
            return False
        outputs, expected = (load_arrays(each.folder / OUTPUTS) for each in (answers, truth))
        return compare_answers(outputs, expected, RELATIVE_TOLERANCE[precision]).right

    assert isinstance(built[half.key], OracleNotFinite) is beyond_range
    assert not right(half, Precision.FLOAT16)
    assert right(wide, Precision.FLOAT16_ACC32)
