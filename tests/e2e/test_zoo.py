"""The zoo by onnxruntime, which all paths are held to, and by LLVM, against ONNX's own definition of its operators."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from compile_requests import request_for
from onnx.reference import ReferenceEvaluator

from harness.compile.artifacts.artifact import INPUTS, OUTPUTS, load_arrays
from harness.compile.artifacts.oracle import Question, ask_llvm, find_truth
from harness.compile.models.spec import Original
from harness.tools.zoo.models import ZOO

WISHED = os.environ.get("ADRENO_BENCH_TEST_ZOO", "")
NAMES = [model.name for model in ZOO]


@pytest.mark.slow
@pytest.mark.skipif(not WISHED, reason="run by `make test-zoo`")
@pytest.mark.parametrize("name", NAMES if WISHED == "all" else WISHED.split(","))
def test_judge_and_witness_answer_as_onnx_defines_it(name: str, tmp_path: Path) -> None:
    model = next(model for model in ZOO if model.name == name)
    file = model.onnx_file(tmp_path)
    drawn = {name: str(distribution) for name, distribution in model.input_values(tmp_path).items()}
    question, llvm = Question(file, 1, drawn, ""), tmp_path / "llvm"
    llvm.mkdir()
    find_truth(Original(file), question, tmp_path)
    ask_llvm(request_for(file, "cpu"), question, llvm)
    network = onnx.load(file)
    network.opset_import[0].version = 17  # onnx 1.23 mixes a batch's own statistics into batch norms of sets before 14
    inputs = dict(zip([value.name for value in network.graph.input], load_arrays(tmp_path / INPUTS), strict=True))
    expected = ReferenceEvaluator(network).run(None, inputs)
    answers = (load_arrays(folder / OUTPUTS) for folder in (tmp_path, llvm))
    for truth, witness, want in zip(*answers, expected, strict=True):
        assert 0.01 < want.std() < 100
        assert np.abs(truth - want).max() < 1e-4 * np.abs(want).max()
        assert np.abs(witness - want).max() < 1e-4 * np.abs(want).max()
