"""The lines that `show CASE` begins with."""

from __future__ import annotations

from fake_records import a_record, sessions
from hypothesis import given
from hypothesis import strategies as st

from harness.base.outcome import Outcome
from harness.judge.report.case_summary import BARS, BINS, case_summary, histogram
from harness.measure.records.parts import parts_of
from harness.tools.labelled.part import TopOne


@given(st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=400).filter(lambda samples: min(samples) < max(samples)))
def test_a_histogram_has_a_mark_wherever_a_sample_is(samples: list[float]) -> None:
    drawn = histogram(samples)
    assert len(drawn) == BINS
    assert set(drawn) <= set(BARS)
    assert drawn[0] != " "
    assert drawn[-1] != " "
    assert BARS[-1] in drawn


def test_a_right_case_is_told_in_a_dozen_lines() -> None:
    (record,) = sessions(10, 1, device_ms=[9.0, 9.1, 9.2], library_bytes=17_900_000, judge="onnxruntime 1")
    lines = case_summary(record).splitlines()
    assert len(lines) <= 13
    text = "\n".join(lines)
    for told in ("✓ right", "ms; median", "p90", "max", "10 samples", "library 17.9 MB", "judged by onnxruntime 1"):
        assert told in text
    assert lines[-3].endswith("adreno-bench run --device phone --case tiny-opencl-float32-untuned")


def test_a_wrong_case_has_its_reason_and_no_latency() -> None:
    text = case_summary(a_record(outcome=Outcome.WRONG_RESULT, message="off by 3", hint="do this"))
    assert "✗ wrong, wrong-result (owner: path): off by 3" in text
    assert "hint           do this" in text
    assert "latency" not in text


def test_outputs_that_prove_nothing_are_named_beside_the_others() -> None:
    text = case_summary(a_record(partly_vacuous=["output 1 of 2 is all zero"]))
    assert "partly vacuous being right proves nothing of some outputs: output 1 of 2 is all zero\n" in text
    assert "state          ✓ right\n" in text


def test_samples_that_are_all_the_same_need_no_histogram() -> None:
    assert "█" not in case_summary(a_record(wall_ms=[1.0] * 5))


def test_the_99th_percentile_is_named_where_it_is_not_the_largest_sample() -> None:
    assert "max 1.2, 3 samples" in case_summary(a_record(wall_ms=[1.0, 1.1, 1.2]))
    assert "p99 2, 200 samples" in case_summary(a_record(wall_ms=[1.0, 2.0] * 99 + [3.0, 1.0]))


def test_labelled_data_say_how_many_are_right() -> None:
    text = case_summary(a_record(parts=parts_of(TopOne(10, 9, 8, 9, 5))))
    assert "top-1          9 of 10 labelled inputs right, 8 by the oracle" in text
