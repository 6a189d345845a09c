"""A folder that mlc-llm wrote is data of others: each name and size is checked before it is used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.base.case import Precision
from harness.base.failures import ModelError, UsageError
from harness.tools.llm.mlc import MlcFolder, MlcTask

WEIGHT = {"name": "model.embed.q_weight", "shape": [4, 2], "dtype": "uint32"}
SCALE = {"name": "model.embed.q_scale", "shape": [4, 1], "dtype": "float16"}
SETTINGS = {"quantization": "q4f16_1", "vocab_size": 4, "context_window_size": 2048, "prefill_chunk_size": 256}
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
    with pytest.raises(ModelError, match=r"has not the|'shard_1.bin', which is not a file beside it"):
        MlcFolder(write(tmp_path, shard=shard)).files()


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
