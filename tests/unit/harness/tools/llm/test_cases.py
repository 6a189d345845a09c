"""Tests, networks and variants are named as people type them, and refused where they cannot be meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from llm_config import FIELDS

from harness.base.case import Precision
from harness.base.failures import UsageError
from harness.base.model import ProgramModel
from harness.base.request import QuirkPolicy
from harness.tools.llm.cases import TESTS, LlmTask, tasks_of
from harness.tools.llm.cases import test_of as llm_test
from harness.tools.llm.lowering import DEFAULT, MLC
from harness.tools.llm.quirks import chosen_quirks


@pytest.mark.parametrize("name", TESTS)
def test_the_usual_tests_have_the_names_of_llama_bench(name: str) -> None:
    test = llm_test(name)
    assert test.name == name
    assert test.decodes == name.startswith("tg")


def test_a_name_says_tokens_and_depth() -> None:
    prompt = llm_test("pp128@d512")
    assert (prompt.tokens, prompt.depth, prompt.length) == (128, 512, 640)
    decode = llm_test("tg@d512")
    assert (decode.tokens, decode.depth, decode.length) == (1, 512, 529)


@pytest.mark.parametrize("name", ["pp", "pp0", "pp513", "tg128", "tg@d4096", "xx", "pp32@d1600", ""])
def test_what_cannot_be_run_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        llm_test(name)


def test_every_test_of_every_library_is_a_case_of_its_own() -> None:
    tasks = tasks_of(["llama_tiny"], format=["float32", "q4f16_0", "float16"], pipeline=["mlc", "default"])
    programs = [task.program() for task in tasks]
    assert len({program.name for program in programs}) == len(programs) == 36
    assert programs[6].name == "llama_tiny_default_pp32"
    assert programs[12].name == "llama_tiny_q4f16_0_pp32"
    assert programs[12].precision is Precision.FLOAT16


def test_a_program_says_all_that_its_test_needs() -> None:
    (task,) = tasks_of(["llama_tiny"], format=["q4f32_1"], tests=["tg@d512"])
    program = task.program()
    assert LlmTask.of(ProgramModel.model_validate_json(program.model_dump_json())) == task


@pytest.mark.parametrize("choice", [{"format": ["q5"]}, {"pipeline": ["tvm"]}, {"tests": ["pp0"]}])
def test_unknown_words_are_refused(choice: dict[str, list[str]]) -> None:
    with pytest.raises(UsageError, match="there is no"):
        tasks_of(["llama_tiny"], **choice)


def test_an_unknown_key_is_named() -> None:
    with pytest.raises(UsageError, match="formt") as refusal:
        LlmTask.read_table({"llm": "llama_tiny", "formt": "float32"}, Path())
    assert "format" in refusal.value.hint


@pytest.mark.parametrize("key", ["tests", "format", "pipeline"])
def test_a_list_without_a_word_is_refused(key: str) -> None:
    with pytest.raises(UsageError, match=f"{key}: List should have at least 1") as refusal:
        LlmTask.read_table({"llm": "llama_tiny", key: []}, Path())
    assert not refusal.value.hint


def test_all_tests_of_a_table_share_one_truth() -> None:
    programs = LlmTask.read_table({"llm": "llama_tiny", "tests": ["pp32", "chunks"]}, Path())
    assert len({LlmTask.truth(program).key for program in programs}) == 1
    (other,) = LlmTask.read_table({"llm": "llama_tiny", "tests": ["chunks"], "format": "q4f32_1"}, Path())
    assert LlmTask.truth(other).key != LlmTask.truth(programs[0]).key


def test_a_folder_with_a_configuration_is_a_model_by_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "Llama-3.2 1B"
    folder.mkdir()
    assert not LlmTask.read_word(str(folder))
    (folder / "config.json").write_text(json.dumps(FIELDS))
    for word in (str(folder), str(folder / "config.json")):
        assert {task.model for task in tasks_of([word])} == {"llama_3_2_1b"}
        assert {program.word for program in LlmTask.read_word(word)} == {word}
    assert LlmTask.read_word("llama_tiny")
    assert not LlmTask.read_word("tiny")


@pytest.mark.parametrize("chunk", [0, 513])
def test_a_step_is_pinned_within_what_the_library_takes(chunk: int) -> None:
    (program,) = LlmTask.read_table({"llm": "llama_tiny", "tests": ["pp512"], "chunk": 64}, Path())
    assert LlmTask.of(program).chunk == 64
    with pytest.raises(UsageError, match="chunk"):
        LlmTask.read_table({"llm": "llama_tiny", "chunk": chunk}, Path())


def test_a_configuration_is_found_beside_its_suite(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(FIELDS))
    programs = LlmTask.read_table({"llm": "config.json", "name": "mine", "tests": ["pp32"]}, tmp_path)
    assert [program.name for program in programs] == ["mine_pp32"]


@pytest.mark.parametrize(("test", "fits"), [("pp256", True), ("pp257", False), ("tg@d239", True), ("tg@d240", False)])
def test_a_text_longer_than_the_positions_of_the_network_is_unsupported(test: str, fits: bool, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**FIELDS, "max_position_embeddings": 256}))
    (program,) = LlmTask.read_table({"llm": "config.json", "tests": [test]}, tmp_path)
    why = "" if fits else "a text of 257 tokens does not fit: the network has 256 positions (max_position_embeddings)"
    assert LlmTask.unsupported(program, "opencl") == why
    assert "form for images" in LlmTask.unsupported(program, "texture")


def test_common_expressions_are_worked_around_where_tvm_eliminates_them() -> None:
    policy = QuirkPolicy()
    assert set(chosen_quirks(policy, DEFAULT)) - set(chosen_quirks(policy, MLC)) == {"let-common-expression"}
    assert chosen_quirks(QuirkPolicy(as_shipped=True), DEFAULT) == []
