"""A folder that mlc-llm wrote is data of others: each name and size is checked before it is used."""

from __future__ import annotations

import _ctypes
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from device_runner.failures import Failure, Unsupported
from harness.base.case import Precision
from harness.base.failures import CompileFailure, ModelError, UsageError
from harness.tools.llm.cases import MlcTask
from harness.tools.llm.folders import MlcFolder
from harness.tools.llm.mlc import open_conversation, take_library
from harness.tools.llm.network import DECODE, DECODE_LAYERS, SCORE

WEIGHT = {"name": "model.embed.q_weight", "shape": [4, 2], "dtype": "uint32"}
SCALE = {"name": "model.embed.q_scale", "shape": [4, 1], "dtype": "float16"}
SETTINGS = {"quantization": "q4f16_1", "vocab_size": 4, "context_window_size": -1, "prefill_chunk_size": 256}
PARAMS = [{**WEIGHT, "shape": ["vocab_size", 2], "preprocs": []}, {**SCALE, "shape": ["vocab_size", 1]}]
METADATA = {"quantization": "q4f16_1", "context_window_size": 1024, "prefill_chunk_size": 256, "params": PARAMS}
TABLE = {"mlc": "lib.so", "weights": "weights", "tests": ["pp32"]}


def write(folder: Path, listed: str = "tensor-cache.json", shard: Any = None, **settings: Any) -> Path:
    """Write a library and weights; return the folder of weights."""
    weights = folder / "weights"
    weights.mkdir()
    (folder / "lib.so").write_bytes(b"library")
    (weights / "shard_0.bin").write_bytes(bytes(40))
    entry = {"dataPath": "shard_0.bin", "format": "raw-shard", "nbytes": 40, "records": [WEIGHT, SCALE]}
    (weights / listed).write_text(json.dumps({"metadata": {}, "records": [{**entry, **(shard or {})}]}))
    (weights / "mlc-chat-config.json").write_text(json.dumps({**SETTINGS, **settings}))
    return weights


@pytest.mark.parametrize("listed", ["tensor-cache.json", "ndarray-cache.json"])
def test_a_folder_of_either_age_is_read(listed: str, tmp_path: Path) -> None:
    folder = MlcFolder(write(tmp_path, listed))
    assert folder.settings.vocab_size == 4
    assert list(folder.files()) == ["tensor-cache.json", "shard_0.bin"]
    assert folder.weights["model.embed.q_weight"].shape == (4, 2)


@pytest.mark.parametrize("path", ["../shard_0.bin", "/etc/passwd", "", ".", "a/b", "shard_0.bin\n"])
def test_a_name_that_leaves_the_folder_is_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="not a file beside it"):
        MlcFolder(write(tmp_path, shard={"dataPath": path})).files()


@pytest.mark.parametrize("shard", [{"nbytes": 41}, {"dataPath": "shard_1.bin"}])
def test_a_shard_that_is_missing_or_short_is_named(shard: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"-cache\.json says 41|'shard_1.bin', which is not a file beside it"):
        MlcFolder(write(tmp_path, shard=shard)).files()


@pytest.mark.parametrize("shape", [[-1, 2], [4.0, 2], [True, 2]])
def test_a_shape_that_no_weight_has_is_refused(shape: list[Any], tmp_path: Path) -> None:
    """A count of -1 would read whatever is behind it."""
    with pytest.raises(ModelError, match=r"records\.0\.records\.0\.shape\.0"):
        MlcFolder(write(tmp_path, shard={"records": [{**WEIGHT, "shape": shape}]})).files()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"records": [1]}', '{"records": [{"dataPath": 1}]}', "\xff"])
def test_what_is_no_list_is_refused(text: str, tmp_path: Path) -> None:
    weights = write(tmp_path)
    (weights / "tensor-cache.json").write_text(text, encoding="latin-1")
    with pytest.raises(ModelError):
        MlcFolder(weights).files()


def test_a_table_of_a_suite_becomes_programs(tmp_path: Path) -> None:
    write(tmp_path)
    (program,) = MlcTask.read_table(TABLE, tmp_path)
    assert (program.name, program.precision) == ("lib_pp32", Precision.FLOAT16)
    task = MlcTask.of(program)
    assert task.folder.parameters == 64
    (pinned,) = MlcTask.read_table({**TABLE, "chunk": 64}, tmp_path)
    assert (task.chunk, MlcTask.of(pinned).chunk) == (None, 64)
    assert MlcTask.truth(program).payload["network"]
    assert MlcTask.build(program, None, None, None).payload["library"] == str(tmp_path / "lib.so")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"mlc": "none.so"}, "there is no library"),
        ({"weights": "none"}, "mlc-chat-config.json"),
        ({"wieghts": "weights"}, "wieghts"),
    ],
)
def test_what_cannot_be_meant_is_refused(change: dict[str, Any], reason: str, tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(UsageError, match=reason):
        MlcTask.read_table({**TABLE, **change}, tmp_path)


def test_a_library_of_any_name_has_a_case_id(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "lib.so").rename(tmp_path / "Modèle-1B.so")
    (program,) = MlcTask.read_table({**TABLE, "mlc": "Modèle-1B.so"}, tmp_path)
    assert program.name == "mod_le_1b_pp32"


@pytest.mark.parametrize("content", [b"!<arch>\n", b"version https://git-lfs.github.com/spec/v1\n", b"\x7fELF"])
def test_a_file_that_is_no_shared_library_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_bytes(content)
    job = {"library": str(tmp_path / "lib.so"), "machine": "EM_AARCH64", "buffer_bytes": 0}
    with pytest.raises(CompileFailure, match=r"lib\.so is (no ELF file|truncated)"):
        take_library(job, tmp_path)


def test_a_library_for_another_processor_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    (program,) = MlcTask.read_table(TABLE, tmp_path)
    phone = MlcTask.build(program, None, None, "aarch64-linux-android")  # type: ignore[arg-type]
    host = MlcTask.build(program, None, None, None)  # type: ignore[arg-type]
    assert phone.payload["machine"] == "EM_AARCH64"
    out = tmp_path / "out"
    out.mkdir()
    assert take_library({**host.payload, "library": _ctypes.__file__}, out).library == "lib.so"
    with pytest.raises(CompileFailure, match=r"is for processor EM_\w+, and the device has EM_S390"):
        take_library({**phone.payload, "library": _ctypes.__file__, "machine": "EM_S390"}, out)


class Machine:
    """A library that says this of itself, and remembers what it was asked for."""

    def __init__(self, metadata: str) -> None:
        self.metadata, self.sizes, self.names, self.invoked = metadata, list[int](), list[str](), list[str]()

    def call(self, function: str, *sizes: int) -> Any:
        self.sizes += sizes
        return {"_metadata": self.metadata, "embed": np.zeros((1, 8))}.get(function, "state")

    def invoke(self, function: str, *_: Any, first: bool) -> list[None]:
        self.invoked.append(function)
        return [None]

    def parameters(self, files: Any, names: list[str]) -> None:
        self.names += names

    def shape(self, *extents: int) -> int:
        return extents[-1]

    def runtime(self, function: str, *arguments: Any) -> None:
        pass


def opened(folder: Path, length: int = 32, **metadata: Any) -> Any:
    """Open a conversation with a library that says this; return what it was asked for."""
    machine: Any = Machine(json.dumps({**METADATA, **metadata}))
    open_conversation(machine, MlcFolder(write(folder)), length)
    return machine


SLIDING = {"context_window_size": -1, "sliding_window_size": 256}


@pytest.mark.parametrize(
    ("metadata", "sizes"),
    [
        ({}, [1, 1024, 256, 16, 0]),
        ({"context_window_size": 1 << 17, "prefill_chunk_size": 8192}, [1, 2048, 512, 16, 0]),
        (SLIDING, [1, 256, 256, 16, 1]),
    ],
)
def test_a_cache_has_the_size_that_the_library_was_compiled_for(
    metadata: dict[str, Any], sizes: list[int], tmp_path: Path
) -> None:
    machine = opened(tmp_path, **metadata)
    assert machine.sizes == sizes
    assert machine.names == [WEIGHT["name"], SCALE["name"]]


@pytest.mark.parametrize("limit", [{"context_window_size": 256}, SLIDING])
def test_a_text_that_does_not_fit_is_unsupported(limit: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="512 tokens does not fit: mlc-llm compiled the library for 256"):
        opened(tmp_path, 512, **limit)


@pytest.mark.parametrize(
    "params",
    [
        [{**WEIGHT, "shape": ["vocab_size", 3]}],
        [{**WEIGHT, "shape": ["vocab_size", 2, 1]}],
        [{**WEIGHT, "shape": ["vocab_size"]}],
        [{**WEIGHT, "dtype": "float16"}],
        [{**WEIGHT, "name": "model.other"}],
    ],
)
def test_weights_that_the_library_does_not_take_are_named(params: list[dict[str, Any]], tmp_path: Path) -> None:
    with pytest.raises(CompileFailure, match=r"the library takes model\.(embed|other)"):
        opened(tmp_path, params=params)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ("x", "Expecting value"),
        ("[]", "its content is not a JSON object"),
        (json.dumps({**METADATA, "params": [{**WEIGHT, "shape": [1.5]}]}), r"params\.0\.shape"),
        (json.dumps({**METADATA, "tensor_parallel_shards": 2}), "one shard .*: tensor_parallel_shards"),
        (json.dumps({**METADATA, "pipeline_parallel_stages": 2}), "one shard .*: pipeline_parallel_stages"),
        (json.dumps({**METADATA, "kv_state_kind": "rnn_state"}), "cache of keys and values: kv_state_kind"),
    ],
)
def test_a_library_that_cannot_be_run_says_why_in_a_line(metadata: str, reason: str, tmp_path: Path) -> None:
    machine: Any = Machine(metadata)
    with pytest.raises(Failure, match=reason) as caught:
        open_conversation(machine, MlcFolder(write(tmp_path)), 32)
    assert "\n" not in caught.value.message


def test_every_single_token_that_is_judged_is_decoded(tmp_path: Path) -> None:
    """Though such a library tells no layers, and prefill takes single tokens as well."""
    machine: Any = Machine(json.dumps(METADATA))
    conversation: Any = open_conversation(machine, MlcFolder(write(tmp_path)), 32)
    for step in (DECODE, DECODE_LAYERS, SCORE):
        conversation.forward(step, np.zeros(1, np.int32))
    assert machine.invoked == ["decode", "decode", "prefill"]
