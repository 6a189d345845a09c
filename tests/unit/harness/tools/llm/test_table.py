"""The table is that of llama-bench, with error and divergence, for terminals, pull requests and spreadsheets."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from fake_records import virtual_record

from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.judge.report.facts import reproduce
from harness.measure.records.parts import parts_of
from harness.measure.records.record import Record, parse
from harness.tools.llm.part import LlmPart
from harness.tools.llm.table import as_csv, as_markdown, as_text


def record(
    test: str = "pp32",
    pipeline: str = "mlc",
    tokens_per_s: float = 3200.0,
    options: tuple[str, ...] = (),
    **fields: Any,
) -> Record:
    part = LlmPart(
        model="llama_tiny",
        format="q4f16_1",
        pipeline=pipeline,
        test=test,
        options=options,
        parameters=1_710_000,
        weights_bytes=1 << 30,
        launches=24,
        tokens=32,
        depth=0,
        tokens_per_s=tokens_per_s,
        error=1e-6,
        rounding=0.567,
        divergence=2e-12,
    )
    usual = {"wall_ms": [32e3 / tokens_per_s] * 3, "parts": parts_of(part)}
    return virtual_record(**{**usual, **fields})


def test_without_a_row_the_text_begins_with_the_reason() -> None:
    text = as_text([record(outcome=Outcome.UNSUPPORTED, message="no form for images", wall_ms=[])])
    assert text.splitlines()[0].endswith("no form for images")


def test_a_row_has_what_llama_bench_prints_and_whether_it_is_right() -> None:
    (row,) = csv.DictReader(io.StringIO(as_csv([record()])))
    assert row["t/s"] == "3200.00 ± 0.00"
    assert row["model"] == "llama_tiny q4f16_1"
    assert (row["size"], row["params"], row["kernels"]) == ("1.00 GiB", "1.71 M", "24")
    assert (row["error"], row["rounding"], row["KL"]) == ("1.0e-06", "0.57", "2.0e-12")


def test_a_size_below_a_gibibyte_is_in_mebibytes() -> None:
    fields = record().part(LlmPart)
    assert fields
    small = record(parts=parts_of(fields.model_copy(update={"weights_bytes": 961 << 10})))
    assert "0.94 MiB" in as_text([small])


def test_the_ratio_of_the_pipelines_stands_below() -> None:
    text = as_text([record(), record(pipeline="default", tokens_per_s=400.0)])
    assert "pp32: pipeline mlc makes 8.0 times the tokens of default" in text


def test_a_library_of_mlc_llm_has_no_part_in_the_ratio() -> None:
    records = [record(), record(pipeline="mlc-llm", tokens_per_s=800.0)]
    assert "times the tokens" not in as_text(records)
    assert "makes 8.0 times the tokens" in as_text([*records, record(pipeline="default", tokens_per_s=400.0)])


def test_pipelines_on_two_devices_have_no_ratio() -> None:
    other = record(pipeline="default", tokens_per_s=400.0, identity_key="phone-Adreno-12345678")
    assert "times the tokens" not in as_text([record(), other])


def test_a_reason_stands_below_once_for_all_tests() -> None:
    fields: dict[str, Any] = {"outcome": Outcome.WRONG_RESULT, "message": "from layer 0 on", "wall_ms": []}
    text = as_text([record(**fields), record("tg@d0", **fields)])
    assert text.count("from layer 0 on") == 1
    assert "| wrong-result" in as_markdown([record(**fields)])


def test_other_records_have_no_row() -> None:
    assert as_csv([virtual_record()]).count("\n") == 1


def test_the_part_is_read_back_from_a_line() -> None:
    before = record()
    assert parse(before.line().encode()).part(LlmPart) == before.part(LlmPart)


def test_a_part_of_another_form_is_refused_when_it_is_asked_for() -> None:
    line = record().line().replace('"tokens":32', '"tokens":"many"')
    with pytest.raises(UsageError, match="llm"):
        parse(line.encode()).part(LlmPart)


def test_the_command_that_repeats_a_test_of_llm_run_names_network_and_weights() -> None:
    named = ("--model", "my/net", "--weights", "/home/me/w")
    again = record(options=named, as_shipped=True)
    words = "--test pp32 --format q4f16_1 --pipeline mlc --device virtual --as-shipped"
    assert reproduce(again) == f"adreno-bench llm run --model my/net --weights /home/me/w {words}"
    assert reproduce(again, published=True) == f"adreno-bench llm run --model net --weights w {words}"
    assert reproduce(record(options=("llama_tiny",))).startswith("adreno-bench run --device virtual --case ")
