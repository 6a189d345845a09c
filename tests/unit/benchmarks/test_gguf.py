"""A Llama in GGUF becomes the folder that `adreno-bench llm` reads, with the same numbers."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.gguf import convert, hugging_face_name, read_gguf
from benchmarks.trained_llm import spell
from harness.tools.llm.config import LlmConfig, read_config
from harness.tools.llm.folders import FolderWeights

CONFIG = LlmConfig(1, 64, 2, 1, 32, 64, 32, rope_theta=1e5, tied=True)
RNG = np.random.default_rng(0)
F32, Q4_1, Q8_0 = 0, 3, 8
SHAPES = {
    "token_embd": (Q8_0, (32, 64)),
    "output_norm": (F32, (64,)),
    **{f"blk.0.{name}_norm": (F32, (64,)) for name in ("attn", "ffn")},
    **{f"blk.0.attn_{name}": (Q4_1, (rows, 64)) for name, rows in {"q": 64, "k": 32, "v": 32, "output": 64}.items()},
    **{f"blk.0.ffn_{name}": (Q4_1, (64, 64)) for name in ("gate", "up", "down")},
}
VALUES = {
    "general.architecture": "llama",
    "llama.block_count": 1,
    "llama.embedding_length": 64,
    "llama.attention.head_count": 2,
    "llama.attention.head_count_kv": 1,
    "llama.feed_forward_length": 64,
    "llama.vocab_size": 32,
    "llama.rope.freq_base": 1e5,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "tokenizer.ggml.tokens": ["a", "Ġb"],
}


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def value(content: Any) -> bytes:
    if isinstance(content, str):
        return struct.pack("<I", 8) + string(content)
    if isinstance(content, list):
        return struct.pack("<IIQ", 9, 8, len(content)) + b"".join(map(string, content))
    return struct.pack("<If", 6, content) if isinstance(content, float) else struct.pack("<II", 4, content)


def blocks(kind: int, shape: tuple[int, ...]) -> tuple[bytes, Any]:
    """Return the bytes of a random tensor, and its numbers."""
    count = int(np.prod(shape)) // 32
    if kind == F32:
        numbers = RNG.standard_normal((count, 32), dtype=np.float32)
        return numbers.tobytes(), numbers.reshape(shape)
    scale = RNG.random((count, 1)).astype(np.float16)
    if kind == Q8_0:
        whole = RNG.integers(-128, 128, (count, 32), dtype=np.int8)
        raw = np.concatenate([scale.view(np.uint8), whole.view(np.uint8)], 1)
        return raw.tobytes(), (whole * scale.astype(np.float32)).reshape(shape)
    least, whole = -scale, RNG.integers(0, 16, (count, 32), dtype=np.uint8)
    nibbles = whole[:, :16] | whole[:, 16:] << 4
    raw = np.concatenate([scale.view(np.uint8), least.view(np.uint8), nibbles], 1)
    return raw.tobytes(), (whole * scale.astype(np.float32) + least).reshape(shape)


@pytest.fixture
def gguf(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A file, and its numbers by its own names."""
    header, data, numbers = b"", b"", dict[str, Any]()
    for name, (kind, shape) in SHAPES.items():
        extents = struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
        header += string(f"{name}.weight") + extents + struct.pack("<IQ", kind, len(data))
        raw, numbers[name] = blocks(kind, shape)
        data += raw + bytes(-len(raw) % 32)
    values = b"".join(string(key) + value(content) for key, content in VALUES.items())
    content = b"GGUF" + struct.pack("<IQQ", 3, len(SHAPES), len(VALUES)) + values + header
    (tmp_path / "net.gguf").write_bytes(content + bytes(-len(content) % 32) + data)
    return tmp_path / "net.gguf", numbers


def test_the_folder_is_complete_and_has_the_same_numbers(gguf: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    file, numbers = gguf
    folder = tmp_path / "net"
    convert(file, folder)
    config = read_config(folder / "config.json")
    assert config == CONFIG
    weights = FolderWeights(config, folder)
    weights.require_complete()
    assert np.array_equal(weights.tensor("embed.weight"), numbers["token_embd"])
    assert np.array_equal(weights.tensor("layers.0.down.weight"), numbers["blk.0.ffn_down"])
    assert np.array_equal(weights.tensor("layers.0.norm2.weight"), numbers["blk.0.ffn_norm"])


def test_rows_of_queries_that_turn_together_lie_half_a_head_apart(
    gguf: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    file, numbers = gguf
    convert(file, tmp_path / "net")
    queries = FolderWeights(CONFIG, tmp_path / "net").tensor("layers.0.qkv.weight")[:64].reshape(2, 2, 16, 64)
    pairs = numbers["blk.0.attn_q"].reshape(2, 16, 2, 64)
    assert np.array_equal(queries[:, 0], pairs[:, :, 0])
    assert np.array_equal(queries[:, 1], pairs[:, :, 1])


def test_names_values_and_words_are_read(gguf: tuple[Path, dict[str, Any]]) -> None:
    assert hugging_face_name("output.weight") == "lm_head.weight"
    assert hugging_face_name("blk.3.attn_q.weight") == "model.layers.3.self_attn.q_proj.weight"
    words = read_gguf(gguf[0]).values["tokenizer.ggml.tokens"]
    assert spell([0, 1], words) == "a b"
