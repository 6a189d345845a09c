"""A network is read from Hugging Face's config.json, or refused by the name of what it has not."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from harness.base.failures import ModelError
from harness.tools.llm.config import LLAMA_TINY, LlmConfig, read_config, read_plain

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 16,
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "intermediate_size": 8192,
    "vocab_size": 128256,
    "rope_theta": 500000.0,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
    "rope_scaling": {
        "rope_type": "llama3",
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    "transformers_version": "4.45",
}
QWEN = {
    "model_type": "qwen2",
    "num_hidden_layers": 24,
    "hidden_size": 896,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "intermediate_size": 4864,
    "vocab_size": 151936,
    "rope_theta": 1e6,
    "tie_word_embeddings": True,
    "sliding_window": 32768,
    "use_sliding_window": False,
}


def read(folder: Path, fields: object) -> LlmConfig:
    file = folder / "config.json"
    file.write_text(json.dumps(fields))
    return read_config(file)


def test_a_llama_with_a_billion_weights(tmp_path: Path) -> None:
    config = read(tmp_path, LLAMA)
    assert config.parameters == 1_235_814_400
    assert config.scaling
    assert config.scaling.factor == 32
    assert "head.weight" not in config.shapes
    assert read_plain(LlmConfig, json.loads(json.dumps(asdict(config)))) == config


def test_qwen_has_biases_that_its_configuration_does_not_name(tmp_path: Path) -> None:
    config = read(tmp_path, QWEN)
    assert config.parameters == 494_032_768
    assert config.shapes["layers.0.qkv.bias"] == ((14 + 2 * 2) * 64,)
    assert "layers.0.o.bias" not in config.shapes


def test_qwen3_norms_heads_of_a_size_of_their_own(tmp_path: Path) -> None:
    fields = {"model_type": "qwen3", "num_hidden_layers": 28, "hidden_size": 1024, "num_attention_heads": 16}
    sizes = {"num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072, "vocab_size": 151936}
    config = read(tmp_path, {**QWEN, **fields, **sizes})
    assert config.parameters == 596_049_920
    assert config.shapes["layers.0.q_norm.weight"] == (128,)
    assert "layers.0.qkv.bias" not in config.shapes


def test_theta_may_stand_among_the_rope_parameters(tmp_path: Path) -> None:
    parameters = {"rope_theta": 1e6, "rope_type": "default"}
    assert read(tmp_path, {**QWEN, "rope_theta": 1e4, "rope_parameters": parameters}).rope_theta == 1e6


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"model_type": "qwen3_moe"}, "model_type"),
        ({"model_type": "gemma2"}, "model_type"),
        ({"hidden_act": "gelu"}, "hidden_act"),
        ({"mlp_bias": True}, "mlp_bias"),
        ({"num_local_experts": 8}, "num_local_experts"),
        ({"sliding_window": 512}, "sliding window"),
        ({"model_type": "mistral", "sliding_window": 512, "use_sliding_window": False}, "sliding window"),
        ({"model_type": "qwen2", "sliding_window": 512, "use_sliding_window": True}, "sliding window"),
        ({"model_type": "mistral", "attention_bias": True}, "attention_bias: transformers builds a mistral without"),
        ({"max_position_embeddings": 0}, "max_position_embeddings"),
        ({"original_max_position_embeddings": 4096}, "original_max_position_embeddings is not that of the rotation"),
        ({"is_causal": False}, "is_causal"),
        ({"is_causal": None}, "is_causal"),
        ({"per_layer_config": {"0": {"intermediate_size": 96}}}, "per_layer_config"),
        ({"quantization": {"group_size": 64, "bits": 4}}, "quantization"),
        ({"rope_parameters": {"rope_theta": 500000.0}}, "rope_scaling and rope_parameters are two different rotations"),
        ({"num_key_value_heads": 5}, "share"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2}}, "rope_scaling"),
        ({"rope_scaling": {"type": "linear", "factor": 2}}, "rope_scaling"),
        ({"hidden_size": -1}, "hidden_size"),
        ({"head_dim": None, "hidden_size": 100}, "cut"),
        ({"vocab_size": 10**12}, "vocab_size"),
        ({"vocab_size": 1}, "vocab_size"),
        ({"final_logit_softcapping": 30.0}, "final_logit_softcapping"),
        ({"query_pre_attn_scalar": 224}, "query_pre_attn_scalar"),
        ({"logits_scaling": 8.0}, "logits_scaling"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ({"auto_map": {"AutoModel": "modeling_encoder.Encoder"}}, "auto_map"),
        ({"layer_types": ["linear_attention"]}, "layer_types"),
        (
            {"rope_scaling": {"rope_type": "llama3", "factor": 32.0}},
            r"rope_scaling\.llama3\.low_freq_factor: Field required",
        ),
        ({"rope_scaling": {**LLAMA["rope_scaling"], "high_freq_factor": 1.0}}, "high_freq_factor"),
        ({"rope_scaling": {"rope_type": "default", "partial_rotary_factor": 0.5}}, "partial_rotary_factor"),
        (
            {"rope_scaling": None, "rope_parameters": {"full_attention": {"rope_type": "yarn"}}},
            "rope_parameters: full_attention",
        ),
    ],
)
def test_another_network_is_refused_by_name(change: dict[str, Any], word: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=f"config.json.*{word}"):
        read(tmp_path, {**LLAMA, **change})


@pytest.mark.parametrize("family", ["gemma3", "gpt2", "phi3"])
def test_another_family_is_named_before_the_fields_that_it_has_not(family: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"config.json: model_type: Input should be 'llama', "):
        read(tmp_path, {"model_type": family, "hidden_act": "gelu_new", "n_layer": 2})


@pytest.mark.parametrize(
    ("family", "field"), [("mistral", "num_key_value_heads"), ("qwen2", "num_key_value_heads"), ("qwen3", "head_dim")]
)
def test_a_field_that_a_family_has_a_number_of_its_own_for_must_be_there(
    family: str, field: str, tmp_path: Path
) -> None:
    fields = {**LLAMA, "model_type": family}
    assert read(tmp_path, fields).kv_heads == 8
    del fields[field]
    with pytest.raises(ModelError, match=f"it has no {field}"):
        read(tmp_path, fields)


@pytest.mark.parametrize("field", ["partial_rotary_factor", "logits_scaling", "mlp_bias", "quantization_config"])
def test_a_field_that_changes_nothing_is_accepted(field: str, tmp_path: Path) -> None:
    plain = 1.0 if field in ("partial_rotary_factor", "logits_scaling") else None
    assert read(tmp_path, {**LLAMA, field: plain}) == read(tmp_path, LLAMA)


def test_the_same_rotation_may_stand_in_both_places(tmp_path: Path) -> None:
    own_theta = {**LLAMA["rope_scaling"], "rope_theta": 500000.0}
    assert read(tmp_path, {**LLAMA, "rope_parameters": own_theta}) == read(tmp_path, LLAMA)
    assert read(tmp_path, {**LLAMA, "rope_scaling": {**own_theta, "rope_theta": 2e6}}).rope_theta == 2e6


@pytest.mark.parametrize(("full", "empty"), [("rope_scaling", "rope_parameters"), ("rope_parameters", "rope_scaling")])
def test_an_empty_rotation_says_nothing(full: str, empty: str, tmp_path: Path) -> None:
    rotation = {**LLAMA["rope_scaling"], "rope_theta": 500000.0}
    plain = {key: value for key, value in LLAMA.items() if key != "rope_scaling"}
    assert read(tmp_path, {**plain, full: rotation, empty: {}}) == read(tmp_path, LLAMA)
    assert read(tmp_path, {**plain, full: {}, empty: {}}) == read(tmp_path, plain)


@pytest.mark.parametrize(
    ("family", "biases"), [("llama", "qkvo"), ("qwen2", "qkv"), ("qwen3", "qkvo"), ("qwen2 unasked", "qkv")]
)
def test_attention_has_the_biases_that_transformers_builds(family: str, biases: str, tmp_path: Path) -> None:
    name, _, unasked = family.partition(" ")
    config = read(tmp_path, {**LLAMA, "model_type": name, "attention_bias": not unasked})
    assert (config.qkv_bias, config.output_bias) == (True, biases.endswith("o"))


def test_the_range_of_training_may_stand_outside_of_the_rotation_as_well(tmp_path: Path) -> None:
    assert read(tmp_path, {**LLAMA, "original_max_position_embeddings": 8192}) == read(tmp_path, LLAMA)
    plain = {**LLAMA, "rope_scaling": None}
    assert read(tmp_path, {**plain, "original_max_position_embeddings": 4096}) == read(tmp_path, plain)


@pytest.mark.parametrize("family", ["qwen2", "qwen3"])
def test_a_window_that_is_not_switched_on_does_not_count(family: str, tmp_path: Path) -> None:
    fields = {**LLAMA, "model_type": family}
    assert read(tmp_path, {**fields, "sliding_window": 512}) == read(tmp_path, fields)


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, "\xff", '{"model_type": "llama"}'])
def test_what_is_no_configuration_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text, encoding="latin-1")
    with pytest.raises(ModelError):
        read_config(tmp_path / "config.json")


def test_the_tiny_network_has_every_weight_once() -> None:
    assert len(LLAMA_TINY.shapes) == 1 + 2 * 6 + 2


def test_the_hint_tells_of_tensorflow_js_only_for_a_file_of_another_name(tmp_path: Path) -> None:
    for name, hint in (("config.json", "correct it or download it again"), ("model.json", "give the config.json of")):
        (tmp_path / name).write_text("{")
        with pytest.raises(ModelError) as caught:
            read_config(tmp_path / name)
        assert caught.value.hint.startswith(hint)
        assert ("TensorFlow.js" in caught.value.hint) == (name == "model.json")
