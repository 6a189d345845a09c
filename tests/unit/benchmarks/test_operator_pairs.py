"""Every pair of operators is a network of its own, and every operator comes first once within twenty days."""

from __future__ import annotations

from pathlib import Path

import onnx

from benchmarks.operator_pairs import A_DAY, OPERATORS, main, network, operators_of
from harness.base.suite import load_suite


def test_all_operators_come_first_within_twenty_days() -> None:
    days = [operators_of(day) for day in range(739_000, 739_020)]
    assert {len(day) for day in days} == {A_DAY}
    assert sorted(name for day in days for name in day) == sorted(OPERATORS)


def test_an_operator_goes_between_two_convolutions() -> None:
    model = network(("softmax_of_channels", "transpose"))
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in model.graph.node] == ["Conv", "Softmax", "Transpose", "Conv"]


def test_a_day_has_a_suite_of_its_pairs(tmp_path: Path) -> None:
    main(str(tmp_path), "--today")
    suite = load_suite(tmp_path / "adreno-bench.toml")
    assert len(suite.models) == len(list(tmp_path.glob("*.onnx"))) == A_DAY * len(OPERATORS)
