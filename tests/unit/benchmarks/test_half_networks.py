"""The table of networks in half precision has a row for each network and precision."""

from __future__ import annotations

from typing import Any

from benchmarks.half_networks import page


def record(path: str, outcome: str = "ok", **fields: Any) -> dict[str, Any]:
    return {"model": "net", "precision": "float16", "path": path, "outcome": outcome, "tvm": "0.27.0", **fields}


def test_the_newest_record_of_a_case_counts_and_an_answer_that_proves_nothing_is_not_right() -> None:
    records = [
        record("opencl", "compile-error"),
        record("opencl", max_abs_err=1e-3, tolerance=2e-3),
        record("texture", vacuous=["output 0 is constant"], max_abs_err=0.0, tolerance=2e-3),
        record("clml", "out-of-range", max_abs_err="Infinity", tolerance=2e-3),
    ]
    assert "| net | float16 | ok, 0.50 | vacuous, 0.00 | out-of-range |" in page(records)
    assert "1 of 3 cases are right" in page(records)


def test_a_case_some_outputs_of_which_prove_nothing_is_right_in_part() -> None:
    records = [record("opencl", partly_vacuous=["output 1 is constant"], max_abs_err=1e-3, tolerance=2e-3)]
    assert "| net | float16 | ok in part, 0.50 |" in page(records)
    assert "1 of 1 cases are right" in page(records)


def test_a_case_without_a_kernel_in_half_precision_is_right_in_float32() -> None:
    records = [record("opencl", facts={"half_kernels": 0}, max_abs_err=1e-3, tolerance=2e-3)]
    assert "| net | float16 | ok in float32, 0.50 |" in page(records)
    assert "1 of 1 cases are right" in page(records)
