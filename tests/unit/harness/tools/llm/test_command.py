"""The commands of language models: what is refused before anything is opened, and `run` that hands over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from device_runner.failures import Failure
from harness.cli import app


def refusal(*words: str) -> str:
    ended = CliRunner().invoke(app, list(words))
    assert isinstance(ended.exception, Failure), ended.output
    return str(ended.exception)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--model", "llama_huge"), "no language model 'llama_huge'"),
        (("--format", "q5"), "no format 'q5'"),
        (("--test", "pp0"), "no test 'pp0'"),
        (("--pipeline", "tvm"), "no pipeline 'tvm'"),
        (("--weights", "nowhere"), "no *.safetensors"),
    ],
)
def test_what_cannot_be_run_is_refused_at_once(words: tuple[str, ...], reason: str) -> None:
    assert reason in refusal("llm", "run", *words)


def test_run_hands_language_models_over() -> None:
    assert "one device at a time" in refusal("run", "--model", "llama_tiny", "--device", "a", "--device", "b")


def test_another_network_stays_with_run() -> None:
    assert "no model 'llama_huge'" in refusal("run", "--model", "llama_huge")


def test_show_says_where_records_come_from(tmp_path: Path) -> None:
    assert "llm run" in refusal("llm", "show", "--records", str(tmp_path / "records.jsonl"))


def test_a_network_that_4_bits_do_not_fit_is_refused(tmp_path: Path) -> None:
    fields = {
        "model_type": "llama",
        "num_hidden_layers": 1,
        "hidden_size": 80,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "vocab_size": 96,
    }
    (tmp_path / "config.json").write_text(json.dumps(fields))
    assert "multiple of 32" in refusal("llm", "build", "--model", str(tmp_path), "--format", "q4f16_0")
