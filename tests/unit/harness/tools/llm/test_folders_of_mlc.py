"""Numbers of a folder that mlc-llm wrote, by our names, and the network that its settings describe."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.base.failures import ModelError
from harness.tools.llm.config import LlmConfig
from harness.tools.llm.folders import MlcFolder, MlcWeights
from harness.tools.llm.weights import pack, unpack

CONFIG = LlmConfig(1, 64, 2, 1, 32, 96, 128)
LLAMA = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "rms_norm_eps": 1e-5,
    "vocab_size": 128,
    "position_embedding_base": 10_000,
    "context_window_size": 4096,
}
QWEN = {**LLAMA, "rope_theta": 1e6, "tie_word_embeddings": True}
QWEN.pop("position_embedding_base")
QWEN_NETWORK = LlmConfig(1, 64, 2, 1, 32, 96, 128, 1e6, qkv_bias=True, tied=True)


def write(folder: Path, tensors: dict[str, Any] | None = None, halved: bool = False, **settings: Any) -> MlcFolder:
    """Write a folder, each tensor behind the one before, as mlc-llm does."""
    records, numbers = [], b""
    for name, array in (tensors or {}).items():
        raw = array.view(np.uint16)[..., 1::2].tobytes() if halved and array.dtype == np.float32 else array.tobytes()
        entry = {"name": name, "shape": array.shape, "dtype": str(array.dtype), "nbytes": len(raw)}
        records.append({**entry, "format": "f32-to-bf16" if halved else "raw", "byteOffset": len(numbers)})
        numbers += raw
    (folder / "params_shard_0.bin").write_bytes(numbers)
    shard = {"dataPath": "params_shard_0.bin", "nbytes": len(numbers), "records": records}
    (folder / "tensor-cache.json").write_text(json.dumps({"metadata": {}, "records": [shard]}))
    own = {"model_type": "llama", "quantization": "q4f32_1", "vocab_size": 128, "model_config": LLAMA}
    (folder / "mlc-chat-config.json").write_text(json.dumps({**own, **settings}))
    return MlcFolder(folder)


@pytest.mark.parametrize(
    ("settings", "network"),
    [
        ({}, CONFIG),
        ({"quantization": "q0f16"}, CONFIG),
        ({"model_type": "mistral", "model_config": {**LLAMA, "sliding_window_size": 256}}, CONFIG),
        ({"model_type": "qwen2", "model_config": QWEN}, QWEN_NETWORK),
        ({"model_type": "qwen3", "model_config": QWEN}, replace(QWEN_NETWORK, qkv_bias=False, head_norms=True)),
        ({"model_type": "gemma"}, None),
        ({"quantization": "q3f16_1"}, None),
        ({"quantization": "q4f16_autoawq"}, None),
        ({"model_config": {**LLAMA, "num_hidden_layers": 512, "hidden_size": 65_536}}, None),
        ({"model_config": {**LLAMA, "position_embedding_base": None}}, None),
        ({"model_config": {}}, None),
    ],
)
def test_settings_describe_a_network_that_numpy_can_judge(
    settings: dict[str, Any], network: LlmConfig | None, tmp_path: Path
) -> None:
    assert write(tmp_path, **settings).settings.network == network


def test_the_number_of_weights_is_what_the_converter_says(tmp_path: Path) -> None:
    folder = write(tmp_path, {"a.q_weight": np.zeros((2, 4), np.uint32), "a.q_scale": np.zeros((2, 1), np.float32)})
    assert folder.parameters == 64
    listed = json.loads(folder.list_file.read_text())
    totals = {"ParamSize": 2, "ParamBytes": 40.0, "BitsPerParam": 4.0}  # ten numbers of three bits in a word
    folder.list_file.write_text(json.dumps({**listed, "metadata": totals}))
    assert MlcFolder(tmp_path).parameters == 80


@pytest.mark.parametrize(("part", "transposed"), [("down", True), ("down", False), ("embed", False), ("head", True)])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_words_of_either_layout_are_unpacked(part: str, transposed: bool, dtype: str, tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).standard_normal((64, 512)).astype(np.float32)
    packed = pack(matrix, dtype)
    names = {"down": "model.layers.0.mlp.down_proj", "embed": "model.embed_tokens", "head": "lm_head"}
    suffixed = zip((f"{names[part]}.q_weight", f"{names[part]}.q_scale"), packed, strict=True)
    tensors = {name: np.ascontiguousarray(array.T if transposed else array) for name, array in suffixed}
    folder = write(tmp_path, tensors, quantization="q4f16_0" if transposed or part == "embed" else "q4f16_1")
    config = replace(CONFIG, intermediate=512) if part == "down" else replace(CONFIG, hidden=512, vocabulary=64)
    read = MlcWeights(config, folder).tensor("layers.0.down.weight" if part == "down" else f"{part}.weight")
    assert (read == unpack(*packed)).all()


@pytest.mark.parametrize(
    ("ours", "theirs", "shape"),
    [
        ("embed.weight", "model.embed_tokens.weight", (128, 64)),
        ("norm.weight", "model.norm.weight", (64,)),
        ("head.weight", "lm_head.weight", (128, 64)),
        ("layers.0.norm1.weight", "model.layers.0.input_layernorm.weight", (64,)),
        ("layers.0.norm2.weight", "model.layers.0.post_attention_layernorm.weight", (64,)),
        ("layers.0.qkv.weight", "model.layers.0.self_attn.qkv_proj.weight", (128, 64)),
        ("layers.0.qkv.bias", "model.layers.0.self_attn.c_attn.bias", (128,)),
        ("layers.0.o.weight", "model.layers.0.self_attn.o_proj.weight", (64, 64)),
        ("layers.0.gate_up.weight", "model.layers.0.mlp.gate_up_proj.weight", (192, 64)),
    ],
)
def test_plain_numbers_are_found_by_our_names(ours: str, theirs: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    others = {"model.other.weight": np.zeros(3, np.float32), theirs: numbers}
    config = replace(CONFIG, qkv_bias=True)
    assert (MlcWeights(config, write(tmp_path, others)).tensor(ours) == numbers).all()


def test_weights_of_another_vocabulary_than_the_settings_say_are_refused(tmp_path: Path) -> None:
    """Or a token behind the end of the table of embeddings would look like a defect of ours."""
    folder = write(tmp_path, {"model.embed_tokens.q_weight": np.zeros((120, 8), np.uint32)})
    with pytest.raises(ModelError, match=r"embed\.weight has 7680 numbers, and by mlc-chat-config\.json it has 8192"):
        MlcWeights(CONFIG, folder).require_complete()


def test_numbers_of_which_the_upper_half_is_stored_are_read(tmp_path: Path) -> None:
    numbers = {"model.norm.weight": np.array([1.0, -2.5, 3.0, 1e-8], np.float32)}
    read = MlcWeights(replace(CONFIG, hidden=4), write(tmp_path, numbers, halved=True)).tensor("norm.weight")
    assert read == pytest.approx(numbers["model.norm.weight"], rel=2.0**-7)
    assert read[:3].tolist() == [1.0, -2.5, 3.0]


@pytest.mark.parametrize(
    "change",
    [
        {"name": "model.norms.weight"},
        {"shape": [1 << 40]},
        {"byteOffset": 1 << 20},
        {"dtype": "object"},
        {"dtype": "nonsense"},
    ],
)
def test_a_weight_that_is_missing_or_out_of_its_file_is_named(change: dict[str, Any], tmp_path: Path) -> None:
    folder = write(tmp_path, {"model.norm.weight": np.ones(64, np.float32)})
    listed = json.loads(folder.list_file.read_text())
    listed["records"][0]["records"][0] |= change
    folder.list_file.write_text(json.dumps(listed))
    with pytest.raises(ModelError, match=r"tensor-cache\.json has no numbers for norm\.weight"):
        MlcWeights(CONFIG, MlcFolder(tmp_path)).tensor("norm.weight")
