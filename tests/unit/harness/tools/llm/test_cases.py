"""Tests, networks and variants are named as people type them, and refused where they cannot be meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.base.case import Case, Precision
from harness.base.failures import UsageError
from harness.tools.llm.cases import TESTS, LlmModel, is_llm, variants_of
from harness.tools.llm.cases import test_of as llm_test


@pytest.mark.parametrize("name", TESTS)
def test_the_usual_tests_have_the_names_of_llama_bench(name: str) -> None:
    test = llm_test(name)
    assert test.name == name
    assert test.decodes == name.startswith("tg")


def test_a_name_says_tokens_and_depth() -> None:
    prompt = llm_test("pp128@d512")
    assert (prompt.tokens, prompt.depth, prompt.length) == (128, 512, 640)
    decode = llm_test("tg@d512")
    assert (decode.tokens, decode.depth, decode.length) == (1, 512, 520)


@pytest.mark.parametrize("name", ["pp", "pp0", "pp513", "tg128", "tg@d4096", "xx", "pp32@d1600", ""])
def test_what_cannot_be_run_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        llm_test(name)


def test_every_variant_has_cases_of_its_own() -> None:
    variants = variants_of(["llama_tiny"], formats=["float32", "q4f16_0"], pipelines=["mlc", "default"])
    cases = [variant.case(llm_test(name)) for variant in variants for name in TESTS]
    assert len({case.id for case in cases}) == len(cases) == 24
    assert all(Case.parse(case.id) == case for case in cases)
    assert cases[6].model == "llama_tiny_default_pp32"
    assert cases[12] == Case("llama_tiny_q4f16_0_pp32", "opencl", Precision.FLOAT16)


@pytest.mark.parametrize("choice", [{"formats": ["q5"]}, {"pipelines": ["tvm"]}, {"paths": ["cpu"]}])
def test_unknown_words_are_refused(choice: dict[str, list[str]]) -> None:
    with pytest.raises(UsageError, match="there is no"):
        variants_of(["llama_tiny"], **choice)  # type: ignore[arg-type]


def test_a_folder_with_a_configuration_is_a_model_by_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "Llama-3.2 1B"
    folder.mkdir()
    assert not is_llm(str(folder))
    fields = {
        "model_type": "llama",
        "num_hidden_layers": 1,
        "hidden_size": 64,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "vocab_size": 96,
    }
    (folder / "config.json").write_text(json.dumps(fields))
    assert is_llm(str(folder))
    assert is_llm(str(folder / "config.json"))
    assert LlmModel.read(str(folder)).name == "llama_3_2_1b"
    assert is_llm("llama_tiny")
    assert not is_llm("tiny")
