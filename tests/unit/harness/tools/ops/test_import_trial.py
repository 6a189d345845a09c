"""What TVM refuses of a network before anything is scheduled."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from device_runner.failures import Failure
from harness.base.failures import CompileFailure, CompilerCrash, CompileTimeout, UnsupportedOperator
from harness.base.plan import Job
from harness.compile.models.preparation import prepare
from harness.tools.ops import import_trial


def network(operator: str, kind: int, inputs: int = 1) -> onnx.ModelProto:
    names = [f"x{place}" for place in range(inputs)]
    ends = [helper.make_tensor_value_info(name, kind, [3]) for name in [*names, "y"]]
    graph = helper.make_graph([helper.make_node(operator, names, ["y"])], "small", ends[:-1], ends[-1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def tried(model: onnx.ModelProto, folder: Path) -> Path:
    file = folder / "model.onnx"
    onnx.save(model, file)
    import_trial.import_network({"request": dataclasses.asdict(import_trial.request_for(file))}, folder)
    return folder / import_trial.ANSWER


def test_a_network_that_tvm_takes_leaves_an_answer(tmp_path: Path) -> None:
    assert tried(network("Relu", TensorProto.FLOAT), tmp_path).exists()


def test_a_network_that_tvm_cannot_legalise_is_refused_with_the_operator(tmp_path: Path) -> None:
    with pytest.raises(CompileFailure, match=r"in LegalizeOps on relax.power .*only applies to float"):
        tried(network("Pow", TensorProto.INT64, 2), tmp_path)


def with_parameter(operator: str, parameter: list[int]) -> onnx.ModelProto:
    model = network(operator, TensorProto.FLOAT)
    model.graph.node[0].input.append("parameter")
    model.graph.initializer.append(helper.make_tensor("parameter", TensorProto.INT64, [1], parameter))
    return model


def test_a_scan_that_tvms_pipeline_has_no_kernel_for_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperator, match="no kernel for CumSum"):
        tried(with_parameter("CumSum", [0]), tmp_path)


def test_a_sort_that_is_too_large_to_be_written_otherwise_says_how_large_it_may_be(tmp_path: Path) -> None:
    model = with_parameter("TopK", [3000])
    model.graph.node[0].output.append("places")
    model.graph.input[0].type.tensor_type.shape.dim[-1].dim_value = 2**13
    model.graph.output[0].type.tensor_type.shape.dim[-1].dim_value = 3000
    prepare(model)
    with pytest.raises(UnsupportedOperator, match=r"no kernel for TopK.*up to 2048"):
        tried(model, tmp_path)


@pytest.mark.parametrize(("operator", "parameter"), [("CumSum", 0), ("TopK", 3)])
def test_a_scan_or_a_sort_that_is_written_otherwise_is_taken(operator: str, parameter: int, tmp_path: Path) -> None:
    model = with_parameter(operator, [parameter])
    if operator == "TopK":
        model.graph.node[0].output.append("places")
    prepare(model)
    assert tried(model, tmp_path).exists()


@pytest.mark.parametrize(
    ("failure", "said"),
    [(CompileFailure("no such pad"), "no such pad"), (CompilerCrash("SIGSEGV"), ""), (CompileTimeout("10 s"), "")],
)
def test_only_an_answer_of_tvms_is_a_refusal(
    failure: Failure, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        def __init__(self, *_: Any, **__: Any) -> None: ...

        def __enter__(self) -> Refusing:
            return self

        def __exit__(self, *_: object) -> None: ...

        def build(self, jobs: list[Job]) -> dict[str, Failure]:
            return {job.key: failure for job in jobs}

    monkeypatch.setattr(import_trial, "Builder", Refusing)
    with import_trial.ImportTrial(tmp_path) as trial:
        assert trial.refusal_of(network("Relu", TensorProto.FLOAT)) == said
