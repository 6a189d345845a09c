"""What a row says beside its outcome."""

import random
from typing import Any

import pytest
from fake_records import a_record

from harness.base.outcome import Outcome
from harness.judge.remarks import MOST_SPREAD, remarks, row_remarks, spread_within
from harness.judge.report.table import complaints
from harness.measure.facts import Accuracy


def samples(spread: float, count: int = 30) -> list[float]:
    chance = random.Random(count)
    return [10 * (1 + spread * chance.uniform(-2, 2)) for _ in range(count)]


def test_a_spread_of_half_is_not_a_plain_ok() -> None:
    (remark,) = remarks(a_record(wall_ms=[2.0, 4.5, 10.0, 15.5, 17.0] * 2))
    assert remark == ("unsteady", "half of the samples lie more than 5% from their median")


@pytest.mark.parametrize(("spread", "said"), [(0.01, []), (0.04, []), (0.08, ["unsteady"]), (0.4, ["unsteady"])])
def test_the_threshold_is_five_percent_within(spread: float, said: list[str]) -> None:
    wall_ms = samples(spread)
    assert ((spread_within(wall_ms) or 0) > MOST_SPREAD) is bool(said)
    assert [remark.word for remark in remarks(a_record(wall_ms=wall_ms))] == said


def test_what_comparisons_refuse_is_unsteady_however_close_the_samples_lie() -> None:
    (remark,) = remarks(a_record(wall_ms=[10 + 0.1 * n for n in range(10)]))
    assert remark.word == "unsteady"
    assert "the samples drift by +8.6%" in remark.why
    (remark,) = remarks(a_record(wall_ms=[10.0, 10.01, 12.0, 10.02, 9.99, 10.0, 12.01, 9.98, 10.01, 11.99]))
    assert "fall into two groups" in remark.why


@pytest.mark.parametrize(
    "facts",
    [
        {"wall_ms": []},
        {"wall_ms": [5.0] * 30},
        {"wall_ms": [5.0, 9.0, 2.0], "quick": True},
        {"wall_ms": [1.0, 9.0] * 5, "emulated": ("gpu", "opencl")},
        {"outcome": Outcome.THROTTLED, "throttled_ms": [1.0, 9.0] * 5},
    ],
)
def test_what_has_no_samples_or_says_enough_by_its_outcome_has_no_remark(facts: dict[str, Any]) -> None:
    assert remarks(a_record(**facts)) == ()


@pytest.mark.parametrize(
    ("path", "facts", "said"),
    [
        ("texture", {"image_kernels": 0, "texture_tensors": 0}, "put no tensor into an image"),
        ("clml", {"image_kernels": 0, "subgraphs": 0}, "offloaded nothing"),
        ("texture", {"image_kernels": 3}, ""),
        ("clml", {"image_kernels": 0, "subgraphs": 1}, ""),
        ("opencl", {"image_kernels": 0}, ""),
        ("texture", {}, ""),
    ],
)
@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.WRONG_RESULT])
def test_a_path_that_did_nothing_of_its_own_measured_plain_opencl(
    path: str, facts: dict[str, int], said: str, outcome: Outcome
) -> None:
    found = remarks(a_record(f"tiny-{path}-float32-untuned", facts=facts, outcome=outcome))
    assert [remark.word for remark in found] == (["as opencl"] if said else [])
    assert all(f"path {path} {said}" in remark.why for remark in found)


def test_an_answer_that_proves_nothing_is_marked_before_all_else() -> None:
    told = remarks(a_record(vacuous=["output 0 of 1 is all zero"], wall_ms=[2.0, 4.5, 10.0, 15.5, 17.0] * 2))
    assert [remark.word for remark in told] == ["vacuous", "unsteady"]
    assert told[0].why.startswith("being right proves nothing: output 0 of 1 is all zero; use trained weights")
    assert remarks(a_record(outcome=Outcome.HANG, vacuous=["output 0 of 1 is all zero"])) == ()


def test_outputs_that_prove_nothing_beside_others_are_named() -> None:
    (remark,) = remarks(a_record(partly_vacuous=["output 1 of 2 is all zero"]))
    assert remark == ("partly vacuous", "being right proves nothing of some outputs: output 1 of 2 is all zero")
    assert remarks(a_record(outcome=Outcome.HANG, partly_vacuous=["output 1 of 2 is all zero"])) == ()


@pytest.mark.parametrize(
    ("precision", "facts", "said"),
    [
        ("float16", {"half_kernels": 0}, ["as float32"]),
        ("float16_acc32", {"half_kernels": 0, "subgraphs": 0}, ["as float32"]),
        ("float16", {"half_kernels": 2}, []),
        ("float16", {"half_kernels": 0, "subgraphs": 1}, []),
        ("float16", {"half_kernels": 0, "subgraphs": 1, "half_subgraphs": 1}, []),
        ("float16", {"half_kernels": 0, "subgraphs": 1, "half_subgraphs": 0}, ["as float32"]),
        ("float32", {"half_kernels": 0}, []),
        ("float16", {}, []),
    ],
)
def test_a_case_in_half_precision_that_computes_in_float32_says_so(
    precision: str, facts: dict[str, int], said: list[str]
) -> None:
    assert [one.word for one in remarks(a_record(precision=precision, facts=facts))] == said


def test_ties_are_counted() -> None:
    accuracy = Accuracy(True, 0.0, 0.0, 1.0, True, 0.0, ties=2)
    (remark,) = remarks(a_record(accuracy=accuracy))
    assert remark.word == "tie"
    assert remark.why.startswith("2 integers differ from the judge's")


def test_which_branch_was_judged_stands_beside_a_right_answer() -> None:
    (remark,) = remarks(a_record(branches=("then of rate", "else of b", "then of c", "then of d"), wall_ms=[]))
    assert remark.word == "one branch"
    assert remark.why == (
        "judged then of rate, else of b, then of c and 1 more, and not the other branch "
        "(--fix INPUT=NUMBER chooses one for good)"
    )
    assert remarks(a_record(branches=("then of rate",), outcome=Outcome.WRONG_RESULT)) == ()


@pytest.mark.parametrize(
    ("unsteady", "steady", "begins"),
    [
        (1, 0, ""),
        (2, 0, "both cases are unsteady"),
        (3, 0, "all 3 cases are unsteady"),
        (2, 2, ""),
        (3, 2, "all but s0-opencl-float32-untuned, s1-opencl-float32-untuned are unsteady"),
    ],
)
def test_one_line_says_that_most_rows_are_unsteady(unsteady: int, steady: int, begins: str) -> None:
    records = [a_record(case=f"u{n}-opencl-float32-untuned", wall_ms=samples(0.4)) for n in range(unsteady)]
    records += [a_record(case=f"s{n}-opencl-float32-untuned", wall_ms=samples(0.01)) for n in range(steady)]
    rows, line = row_remarks(records)
    assert line.startswith(begins)
    assert bool(line) is bool(begins)
    assert any(rows) is not bool(line)


def test_sessions_of_one_case_keep_their_remarks() -> None:
    """A line on all but some cases would name the same case on both sides."""
    busy = a_record(wall_ms=[9.0, 10.0, 10.0, 11.0, 12.0])
    rows, line = row_remarks([busy, busy, busy, a_record()])
    assert ([[remark.word for remark in row] for row in rows], line) == ([["unsteady"]] * 3 + [[]], "")
    assert "\n".join(complaints([busy, busy])).count(busy.case) == 1
