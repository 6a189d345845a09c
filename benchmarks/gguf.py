"""A Llama in GGUF as Hugging Face's `config.json` and safetensors, with float32 numbers.

    python -m benchmarks.gguf FILE FOLDER

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; blocks of numbers: ggml-common.h, `block_q4_1` and
`block_q8_0`. Reads data and executes nothing of it.
"""

from __future__ import annotations

import json
import math
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MAGIC = b"GGUF"
STRING, LIST = 8, 9
PLAIN = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
"""Letter of `struct` for each type of a value."""
BLOCK = 32
"""Numbers of a block."""


class BlockFormat(NamedTuple):
    """How numbers are kept: so many bytes a block, and how they are unpacked."""

    block_bytes: int
    unpack: Callable[[Any], Any]
    """Blocks (count, bytes) to numbers (count, `BLOCK`)."""


def _half(pair: Any) -> Any:
    return pair.copy().view("<f2").astype(np.float32)


def _q4_1(blocks: Any) -> Any:
    scale, least, nibbles = _half(blocks[:, :2]), _half(blocks[:, 2:4]), blocks[:, 4:]
    return np.concatenate([nibbles & 15, nibbles >> 4], axis=1) * scale + least


FORMATS = {
    0: BlockFormat(4 * BLOCK, lambda blocks: blocks.copy().view("<f4")),
    3: BlockFormat(4 + BLOCK // 2, _q4_1),
    8: BlockFormat(2 + BLOCK, lambda blocks: blocks[:, 2:].view("i1") * _half(blocks[:, :2])),
}
"""F32, Q4_1 and Q8_0, by their numbers in the file."""


@dataclass(frozen=True)
class Gguf:
    """A file: its values, and where each tensor lies."""

    values: dict[str, Any]
    tensors: dict[str, tuple[tuple[int, ...], int, int]]
    """Shape, number of the format, and offset in the file."""
    content: Any

    def read(self, name: str) -> Any:
        """Return a tensor as float32."""
        shape, kind, begin = self.tensors[name]
        form = FORMATS[kind]
        blocks = math.prod(shape) // BLOCK
        raw = np.array(self.content[begin : begin + blocks * form.block_bytes]).reshape(blocks, form.block_bytes)
        return form.unpack(raw).astype(np.float32).reshape(shape)


class _Reader:
    def __init__(self, content: Any) -> None:
        self._content, self.place = content, 0

    def number(self, letter: str) -> Any:
        size = struct.calcsize(letter)
        self.place += size
        return struct.unpack(f"<{letter}", self._content[self.place - size : self.place].tobytes())[0]

    def string(self) -> str:
        size = self.number("Q")
        self.place += size
        return str(self._content[self.place - size : self.place].tobytes(), "utf-8")

    def value(self, kind: int) -> Any:
        if kind == LIST:
            kind, count = self.number("I"), self.number("Q")
            return [self.value(kind) for _ in range(count)]
        return self.string() if kind == STRING else self.number(PLAIN[kind])


def read_gguf(file: Path) -> Gguf:
    """Read a file; numbers stay in it until they are asked for."""
    content = np.memmap(file, mode="r")
    reader = _Reader(content)
    if content[:4].tobytes() != MAGIC:
        raise SystemExit(f"{file} is not a GGUF file")
    reader.place = len(MAGIC)
    _version, tensors, values = reader.number("I"), reader.number("Q"), reader.number("Q")
    pairs = {reader.string(): reader.value(reader.number("I")) for _ in range(values)}
    places = {}
    for _ in range(tensors):
        name, extents = reader.string(), [reader.number("Q") for _ in range(reader.number("I"))]
        places[name] = (tuple(extents[::-1]), reader.number("I"), reader.number("Q"))
    alignment = pairs.get("general.alignment", 32)
    base = -(-reader.place // alignment) * alignment
    return Gguf(pairs, {name: (shape, kind, base + at) for name, (shape, kind, at) in places.items()}, content)


NAMES = {
    "token_embd": "embed_tokens",
    "output_norm": "norm",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_output": "self_attn.o_proj",
    **{f"attn_{letter}": f"self_attn.{letter}_proj" for letter in "qkv"},
    **{f"ffn_{part}": f"mlp.{part}_proj" for part in ("gate", "up", "down")},
}
"""Hugging Face's name of each module."""


def hugging_face_name(name: str) -> str:
    """Return Hugging Face's name of a tensor: `blk.3.attn_q.weight` is `model.layers.3.self_attn.q_proj.weight`."""
    if name == "output.weight":
        return "lm_head.weight"
    *layer, module, kind = name.replace("blk.", "layers.").split(".")
    return ".".join(["model", *layer, NAMES[module], kind])


def without_pairs(matrix: Any, heads: int) -> Any:
    """Return rows of queries or keys as Hugging Face has them. llama.cpp keeps rows that turn together in pairs."""
    return matrix.reshape(heads, -1, 2, matrix.shape[-1]).swapaxes(1, 2).reshape(matrix.shape)


def config_of(values: dict[str, Any], *, tied: bool) -> dict[str, Any]:
    """Return the `config.json` of a file's values."""
    return {
        "model_type": values["general.architecture"],
        "num_hidden_layers": values["llama.block_count"],
        "hidden_size": values["llama.embedding_length"],
        "num_attention_heads": values["llama.attention.head_count"],
        "num_key_value_heads": values["llama.attention.head_count_kv"],
        "intermediate_size": values["llama.feed_forward_length"],
        "vocab_size": values["llama.vocab_size"],
        "rope_theta": values["llama.rope.freq_base"],
        "rms_norm_eps": round(values["llama.attention.layer_norm_rms_epsilon"], 9),
        "tie_word_embeddings": tied,
    }


def convert(file: Path, folder: Path) -> None:
    """Write `config.json` and `model.safetensors` into a folder."""
    gguf = read_gguf(file)
    config = config_of(gguf.values, tied="output.weight" not in gguf.tensors)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    header, place = {}, 0
    for name, (shape, *_) in gguf.tensors.items():
        size = 4 * math.prod(shape)
        entry = {"dtype": "F32", "shape": shape, "data_offsets": [place, place + size]}
        header[hugging_face_name(name)], place = entry, place + size
    text = json.dumps(header).encode()
    folder.mkdir(exist_ok=True)
    with (folder / "model.safetensors").open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for name in gguf.tensors:
            tensor, module = gguf.read(name), name.split(".")[-2]
            stream.write((without_pairs(tensor, heads[module]) if module in heads else tensor).tobytes())
    (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")


if __name__ == "__main__":
    convert(*map(Path, sys.argv[1:]))
