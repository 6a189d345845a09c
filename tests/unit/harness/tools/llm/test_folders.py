"""Weights are read from safetensors files as data, and hostile files are refused."""

from __future__ import annotations

import contextlib
import json
import math
import os
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.failures import ModelError, OracleNotFinite
from harness.tools.llm.config import LlmConfig
from harness.tools.llm.folders import FolderWeights, list_tensors
from harness.tools.llm.weights import FORMATS, effective_tensor

CONFIG = LlmConfig(1, 64, 2, 1, 32, 64, 96, qkv_bias=True)


def write(file: Path, header: object, data: bytes = b"") -> None:
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


def tensor(shape: list[int], begin: int = 0, kind: str = "F32", wide: int = 4) -> dict[str, Any]:
    return {"dtype": kind, "shape": shape, "data_offsets": [begin, begin + wide * math.prod(shape)]}


def hugging_face(
    config: LlmConfig, folder: Path, leave_out: str = "", number: float = 1.0
) -> dict[str, np.ndarray[Any, Any]]:
    """Write weights as transformers does, in two files, and return them. The last norm has the number."""
    heads = config.head_dim
    shapes = {
        "model.embed_tokens.weight": (config.vocabulary, config.hidden),
        "model.norm.weight": (config.hidden,),
        "lm_head.weight": (config.vocabulary, config.hidden),
        "model.layers.0.input_layernorm.weight": (config.hidden,),
        "model.layers.0.post_attention_layernorm.weight": (config.hidden,),
        "model.layers.0.self_attn.q_proj.weight": (config.heads * heads, config.hidden),
        "model.layers.0.self_attn.k_proj.weight": (config.kv_heads * heads, config.hidden),
        "model.layers.0.self_attn.v_proj.weight": (config.kv_heads * heads, config.hidden),
        "model.layers.0.self_attn.q_proj.bias": (config.heads * heads,),
        "model.layers.0.self_attn.k_proj.bias": (config.kv_heads * heads,),
        "model.layers.0.self_attn.v_proj.bias": (config.kv_heads * heads,),
        "model.layers.0.self_attn.o_proj.weight": (config.hidden, config.heads * heads),
        "model.layers.0.mlp.gate_proj.weight": (config.intermediate, config.hidden),
        "model.layers.0.mlp.up_proj.weight": (config.intermediate, config.hidden),
        "model.layers.0.mlp.down_proj.weight": (config.hidden, config.intermediate),
    }
    rng = np.random.default_rng(0)
    arrays = {n: rng.standard_normal(s).astype("float32") for n, s in shapes.items() if n != leave_out}
    arrays["model.norm.weight"][0] = number
    names = list(arrays)
    for number, part in enumerate((names[:7], names[7:])):
        header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
        data = b""
        for name in part:
            header[name] = tensor(list(arrays[name].shape), len(data))
            data += arrays[name].tobytes()
        write(folder / f"model-{number}.safetensors", header, data)
    return arrays


def test_weights_of_a_hugging_face_folder_are_put_together(tmp_path: Path) -> None:
    arrays = hugging_face(CONFIG, tmp_path)
    weights = FolderWeights(CONFIG, tmp_path)
    weights.require_complete()
    parts = [arrays[f"model.layers.0.self_attn.{name}_proj.weight"] for name in "qkv"]
    np.testing.assert_array_equal(weights.tensor("layers.0.qkv.weight"), np.concatenate(parts))
    np.testing.assert_array_equal(weights.tensor("head.weight"), arrays["lm_head.weight"])
    assert {name: weights.tensor(name).shape for name in CONFIG.shapes} == CONFIG.shapes


def test_a_missing_weight_is_named(tmp_path: Path) -> None:
    hugging_face(CONFIG, tmp_path, leave_out="lm_head.weight")
    with pytest.raises(ModelError, match="lm_head"):
        FolderWeights(CONFIG, tmp_path).require_complete()


def test_bfloat16_is_the_upper_half_of_float32(tmp_path: Path) -> None:
    numbers = np.array([1.0, -2.5, 3e38, 0.0], np.float32)
    write(
        tmp_path / "a.safetensors",
        {"x": tensor([4], 0, "BF16", 2)},
        (numbers.view(np.uint32) >> 16).astype("<u2").tobytes(),
    )
    read: Any = list_tensors(tmp_path)["x"].read()
    assert (np.abs(read - numbers) <= 2**-7 * np.abs(numbers)).all()
    assert read[1] == -2.5


HOSTILE = [
    {"x": tensor([1 << 40])},
    {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}},
    {"x": {"dtype": "F32", "shape": [-1], "data_offsets": [4, 0]}},
    {"x": {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}},
    {"x": {"dtype": "F32", "shape": ["2"], "data_offsets": [0, 8]}},
    {"x": {"dtype": "F32", "shape": [True, 2], "data_offsets": [0, 8]}},
    {"x": {"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]}},
    {"x": {"dtype": "F32", "shape": [2]}},
    {"x": tensor([1]), "y": tensor([1])},
    {"x": tensor([1], 4)},
    {"x": 3},
    [1],
]


@pytest.mark.parametrize("header", HOSTILE)
def test_a_header_that_lies_is_refused(header: object, tmp_path: Path) -> None:
    write(tmp_path / "a.safetensors", header, bytes(8))
    with pytest.raises(ModelError, match="not a safetensors file"):
        list_tensors(tmp_path)


def test_a_file_that_was_cut_short_names_the_first_tensor_that_is_not_whole(tmp_path: Path) -> None:
    write(tmp_path / "a.safetensors", {"x": tensor([2], 0), "y": tensor([2], 8)}, bytes(12))
    with pytest.raises(ModelError, match="not a whole one: y ends at 16 bytes of numbers, and the file has 12"):
        list_tensors(tmp_path)


def test_a_length_beyond_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", 2**63))
    with pytest.raises(ModelError):
        list_tensors(tmp_path)


def test_an_index_says_which_files_count(tmp_path: Path) -> None:
    write(tmp_path / "a.safetensors", {"x": tensor([2])}, bytes(8))
    write(tmp_path / "z.safetensors", {"x": tensor([1])}, bytes(4))
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": "a.safetensors"}}))
    assert list_tensors(tmp_path)["x"].shape == (2,)
    index.write_text(json.dumps({"weight_map": {"x": "z.safetensors"}}))
    (tmp_path / "a.safetensors").rename(tmp_path / "model.safetensors")  # goes before an index, as in transformers
    assert list_tensors(tmp_path)["x"].shape == (2,)


def test_a_weight_that_two_files_have_is_not_taken_from_either(tmp_path: Path) -> None:
    for name, number in (("a", 1.0), ("b", 2.0)):
        write(tmp_path / f"{name}.safetensors", {"x": tensor([1])}, struct.pack("<f", number))
    with pytest.raises(ModelError, match=r"x is in .*a.safetensors and .*b.safetensors"):
        list_tensors(tmp_path)


@pytest.mark.parametrize("name", ["b.safetensors", "../a.safetensors", "/etc/passwd", ""])
def test_a_file_of_the_index_that_is_not_beside_it_is_named(name: str, tmp_path: Path) -> None:
    write(tmp_path / "a.safetensors", {"x": tensor([2])}, bytes(8))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": name}}))
    with pytest.raises(ModelError, match=f"index.json names '{name}', which is not a file beside it"):
        list_tensors(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"weight_map": {}}', '{"weight_map": {"x": 1}}'])
def test_what_is_no_index_is_refused(text: str, tmp_path: Path) -> None:
    write(tmp_path / "a.safetensors", {"x": tensor([2])}, bytes(8))
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(ModelError, match="index"):
        list_tensors(tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match="has no"):
        list_tensors(tmp_path)


@pytest.mark.parametrize(
    "name", ["model.layers.0.self_attn.o_proj.bias", "model.layers.1.mlp.up_proj.weight", "score.weight"]
)
def test_a_weight_that_the_configuration_does_not_have_is_named(name: str, tmp_path: Path) -> None:
    hugging_face(CONFIG, tmp_path)
    write(tmp_path / "more.safetensors", {name: tensor([2])}, bytes(8))
    with pytest.raises(ModelError, match=name):
        FolderWeights(CONFIG, tmp_path).require_complete()


def test_a_table_of_rotations_is_not_used(tmp_path: Path) -> None:
    hugging_face(CONFIG, tmp_path)
    name = "model.layers.0.self_attn.rotary_emb.inv_freq"
    write(tmp_path / "more.safetensors", {name: tensor([2])}, bytes(8))
    FolderWeights(CONFIG, tmp_path).require_complete()


def test_a_head_beside_tied_embeddings_has_to_be_their_table(tmp_path: Path) -> None:
    """Of another one, transformers 5 would compute with the head, and transformers 4 with the table."""
    table = hugging_face(CONFIG, tmp_path, leave_out="lm_head.weight")["model.embed_tokens.weight"]
    weights = FolderWeights(replace(CONFIG, tied=True), tmp_path)
    for numbers, right in ((table, True), (table + 1, False)):
        write(tmp_path / "more.safetensors", {"lm_head.weight": tensor([*table.shape])}, numbers.tobytes())
        refusal = pytest.raises(ModelError, match=r"lm_head\.weight is not the table of embeddings")
        with contextlib.nullcontext() if right else refusal:
            replace(weights).require_complete()


@pytest.mark.parametrize(("number", "form"), [(math.nan, "float32"), (math.inf, "q4f32_1"), (1e6, "float16")])
def test_a_number_that_is_not_finite_is_refused_because_any_answer_would_be_right(
    number: float, form: str, tmp_path: Path
) -> None:
    hugging_face(CONFIG, tmp_path, number=number)
    weights = FolderWeights(CONFIG, tmp_path)
    with pytest.raises(OracleNotFinite, match=r"norm\.weight has numbers that are not finite"):
        effective_tensor(weights, FORMATS[form], "norm.weight")


def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(ModelError, match="pickled"):
        list_tensors(tmp_path)


@given(st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "a.safetensors").write_bytes(data)
    with contextlib.suppress(ModelError):
        list_tensors(folder)
