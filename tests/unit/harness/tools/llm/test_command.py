"""The commands of language models: what is refused before anything is opened, and `run` that hands over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from llm_config import FIELDS
from typer.testing import CliRunner

from device_runner.failures import Failure
from harness.base.model import ProgramModel
from harness.base.suite import Suite, load_suite
from harness.cli import app
from harness.measure.records.record import Record
from harness.tools.llm import command
from harness.tools.llm.cases import TESTS
from harness.tools.llm.cases import test_of as llm_test

TEST_PARTS = [llm_test(name).part for name in TESTS]


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
        (("--weights", "nowhere"), "there is no folder"),
        (("--library", "lib.so"), "--library needs the folder of its weights"),
        (("--model", "llama_tiny", "--model", "llama_tiny"), "models: the model name 'llama_tiny_"),
    ],
)
def test_what_cannot_be_run_is_refused_at_once(words: tuple[str, ...], reason: str) -> None:
    assert reason in refusal("llm", "run", *words)


def test_a_tvm_with_another_ffi_than_its_own_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "versions", lambda: {"tvm": "0.27.0.post1", "ffi": "0.1.2"})
    assert "does not work with apache-tvm-ffi 0.1.2" in refusal("llm", "run", "--quick")


def test_run_asks_for_every_test_of_every_library(monkeypatch: pytest.MonkeyPatch) -> None:
    suites: list[Suite] = []

    def collect(suite: Suite, *_: object, **__: object) -> list[Record]:
        suites.append(suite)
        return []

    monkeypatch.setattr(command, "_run", collect)
    words = ["--format", "q4f32_1", "--pipeline", "mlc", "--pipeline", "default", "--chunk", "64", "--path", "texture"]
    CliRunner().invoke(app, ["llm", "run", "--quick", *words])
    (suite,) = suites
    names = [f"llama_tiny_q4f32_1{pipeline}" for pipeline in ("", "_default")]
    assert [case.id for case in suite.cases] == [
        f"{name}_{test}-texture-float32-untuned" for name in names for test in ("pp32", "tg_d0", "chunks")
    ]
    programs = [model for model in suite.models if isinstance(model, ProgramModel)]
    assert {(program.fields["chunk"], program.fields["weights"]) for program in programs} == {(64, "seed")}
    assert {program.word for program in programs} == {"--model llama_tiny --weights seed"}
    assert (suite.budget_s, suite.limits.build_s) == (20, 3600)


def test_a_language_model_is_a_model_of_every_command() -> None:
    words = ("--model", "llama_tiny", "--model", "tiny", "--path", "opencl", "--precision", "float32", "--json")
    cases = json.loads(CliRunner().invoke(app, ["list", *words]).stdout)
    assert cases == [
        *(f"llama_tiny_{test}-opencl-float32-untuned" for test in TEST_PARTS),
        "tiny-opencl-float32-untuned",
    ]


def test_a_suite_has_language_models_beside_others(tmp_path: Path) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_text(
        'paths = ["opencl"]\nprecisions = ["float16"]\nschedules = "none.json"\n'
        'models = ["tiny", { llm = "llama_tiny", format = ["float32", "q4f16_1"], tests = ["tg@d0"] }]\n'
    )
    assert [case.id for case in load_suite(suite).cases] == [
        "tiny-opencl-float16-untuned",
        "tiny-opencl-float16-scheduled",
        "llama_tiny_tg_d0-opencl-float32-untuned",
        "llama_tiny_q4f16_1_tg_d0-opencl-float16-untuned",
    ]


def test_a_wrong_table_of_a_suite_is_named_by_its_line(tmp_path: Path) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_text('paths = ["opencl"]\nmodels = [{ llm = "llama_tiny", tests = ["pp0"] }]\n')
    assert "suite.toml:2: there is no test 'pp0'" in refusal("list", "--suite", str(suite))


def test_another_network_stays_with_run() -> None:
    assert "no model 'llama_huge'" in refusal("run", "--model", "llama_huge")


@pytest.mark.parametrize("command", [("tune",), ("pack",), ("reduce",)])
def test_what_reads_networks_alone_refuses_language_models(command: tuple[str, ...]) -> None:
    assert "cannot read programs such as llama_tiny_pp32" in refusal(*command, "--model", "llama_tiny")


def test_show_says_where_records_come_from(tmp_path: Path) -> None:
    assert "llm run" in refusal("llm", "show", "--records", str(tmp_path / "records.jsonl"))


def test_a_network_that_4_bits_do_not_fit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**FIELDS, "hidden_size": 80}))
    assert "multiple of 32" in refusal("llm", "build", "--model", str(tmp_path), "--format", "q4f16_0")
