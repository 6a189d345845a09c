"""What was built for a case is opened, or says why it cannot be."""

from __future__ import annotations

import pytest
from fake_device import a_plan

from harness.base.case import RELATIVE_TOLERANCE, ROUNDING_FACTOR, Precision
from harness.base.failures import CompileFailure, InputRefused
from harness.compile.artifacts.artifact import CompileResult
from harness.measure.work import limits, open_work


def test_inputs_that_nobody_can_compute_come_before_a_compile_error() -> None:
    built = {"c-tiny": CompileFailure("no schedule"), "o-tiny": InputRefused("index 9 is out of bounds")}
    with pytest.raises(InputRefused, match="index 9"):
        open_work(a_plan(), built)


def test_a_compile_error_says_what_those_outside_tvm_say_of_the_network() -> None:
    built = {"c-tiny": CompileFailure("Squeeze of 16"), "o-tiny": CompileFailure("Squeeze of 16", hint="invalid ONNX")}
    with pytest.raises(CompileFailure, match="Squeeze of 16: invalid ONNX"):
        open_work(a_plan(), built)


@pytest.mark.parametrize(
    ("asked", "facts", "dtype", "computed"),
    [
        ("float16", {"half_kernels": 3}, "float32", "float16"),
        ("float16_acc32", {"half_kernels": 3}, "float32", "float16_acc32"),
        ("float16", {"half_kernels": 0}, "float32", "float32"),
        ("float16", {"half_kernels": 0, "subgraphs": 1}, "float32", "float16"),
        ("float16", {"half_kernels": 0, "subgraphs": 1, "half_subgraphs": 1}, "float32", "float16"),
        ("float16", {"half_kernels": 0, "subgraphs": 1, "half_subgraphs": 0}, "float32", "float32"),
        ("float32", {"half_kernels": 3}, "float32", "float16"),
        ("float32", {"half_kernels": 0, "subgraphs": 1}, "float32", "float32"),
        ("float32", {"half_kernels": 0, "subgraphs": 1}, "float16", "float16"),
    ],
)
def test_an_answer_is_judged_in_the_precision_that_is_computed_in(
    asked: str, facts: dict[str, int], dtype: str, computed: str
) -> None:
    compiled = CompileResult("model.so", 1, [("x", [1, 3], dtype)], 1, [], facts, 1.0)
    plan = RELATIVE_TOLERANCE[asked], ROUNDING_FACTOR[asked]
    assert limits(compiled, Precision(asked), *plan) == (
        RELATIVE_TOLERANCE[computed],
        ROUNDING_FACTOR[computed],
        Precision(computed),
    )
    assert limits(compiled, Precision(asked), 0.5, 0.0) == (0.5, 0.0, Precision(computed)), "a suite's tolerance stays"
