"""What pages say of a record beside its numbers."""

from __future__ import annotations

from pathlib import Path

from fake_records import a_record

from harness.judge.report.facts import reproduce


def test_the_command_that_repeats_a_case_names_a_model_that_is_none_of_the_suite() -> None:
    options = ("--model", "/home/me/net.onnx", "--shape", "x=1x3", "--trust", "--records", "/etc/x", "--model", "-x")
    record = a_record("net-opencl-float32-untuned", model_options=options)
    case = "--device phone --case net-opencl-float32-untuned"
    assert reproduce(record) == f"adreno-bench run --model /home/me/net.onnx --shape x=1x3 {case}"
    assert "run --model net.onnx --shape x=1x3 --device" in reproduce(record, published=True)


def test_the_command_that_repeats_a_case_names_a_suite_file_of_another_name() -> None:
    record = a_record("net-opencl-float32-untuned", model_options=("--suite", "mine/s.toml"))
    case = "--device phone --case net-opencl-float32-untuned"
    assert reproduce(record) == f"adreno-bench run --suite mine/s.toml {case}"
    assert reproduce(record, Path("/here/s.toml")) == f"adreno-bench run --suite /here/s.toml {case}"


def test_the_command_that_repeats_a_case_names_the_schedules_that_were_given() -> None:
    record = a_record("net-opencl-float32-scheduled", model_options=("--schedules", "/home/me/tuned.jsonl"))
    case = "--device phone --case net-opencl-float32-scheduled"
    assert reproduce(record) == f"adreno-bench run --schedules /home/me/tuned.jsonl {case}"
    assert "--schedules /home/me/tuned.jsonl" in reproduce(record, Path("/here/s.toml"))
    assert "--schedules tuned.jsonl" in reproduce(record, published=True)
