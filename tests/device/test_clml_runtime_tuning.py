"""Tuning caches and switches of the CLML model: each case is a process of its own, as the environment is read once."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from clml_graphs import SYMBOL, Graph
from waiting import LONG_S

from device_runner.runtimes import clml as clml_runtime

pytestmark = [pytest.mark.rest, pytest.mark.device]

MAGIC = 0x434C4D4C54554E45
SCRIPT = """
import json, sys
import numpy, tvm_ffi
from pathlib import Path
from device_runner.runtimes import clml as clml_runtime
clml_runtime.load(Path(sys.argv[1]))
create = tvm_ffi.get_global_func("runtime.clml_runtime_create")
for symbol, graph, names, shapes in json.load(sys.stdin):
    constants = [tvm_ffi.from_dlpack(numpy.ones(shape, "float32")) for shape in shapes]
    create(symbol, graph, names)["__init_" + symbol](constants)
print(tvm_ffi.get_global_func("adreno_bench.clml_info")())
"""


@dataclass(frozen=True)
class Process:
    """A process that initialised some modules."""

    log: str
    error: str
    """The last line of the log of a process that failed."""
    info: dict[str, Any]

    def counts(self, *names: str, symbol: str = SYMBOL) -> list[int]:
        return [self.info["symbols"][symbol][name] for name in names]


@pytest.fixture(scope="session")
def model(sidecar_cache: Path) -> Path:
    return clml_runtime.library(sidecar_cache)


@pytest.fixture
def start(model: Path) -> Any:
    """Initialises graphs, by symbol, in a process with these environment variables."""

    def run(graphs: dict[str, Graph] | None = None, **environment: object) -> Process:
        graphs = {SYMBOL: network()} if graphs is None else graphs
        modules = [
            (symbol, graph.json(), graph.const_names(), [values.shape for values in graph.constants])
            for symbol, graph in graphs.items()
        ]
        clean = {name: value for name, value in os.environ.items() if "CLML" not in name}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(model)],
            input=json.dumps(modules),
            env={**clean, **{name: str(value) for name, value in environment.items()}},
            capture_output=True,
            text=True,
            timeout=LONG_S,
            check=False,
        )
        assert done.returncode in {0, 1}, done.stderr
        failed = done.returncode == 1
        error = done.stderr.strip().splitlines()[-1] if failed else ""
        return Process(done.stderr, error, {} if failed else json.loads(done.stdout))

    return run


def network(channels: int = 4) -> Graph:
    """Two operators that can be tuned and one, a convolution without activation, that cannot."""
    graph = Graph()
    shape = (1, channels, 6, 6)
    conv = graph.conv("nn.conv2d", [graph.input(*shape), graph.random(channels, channels, 3, 3)], shape)
    relu = graph.conv("relu.nn.conv2d", [conv, graph.random(channels, channels, 3, 3)], shape, activation_type="relu")
    return graph.out(graph.kernel("relax.nn.softmax", [relu], shape, axis=1))


def records(file: Path) -> list[tuple[str, bytes]]:
    """Symbols and blobs of a tuning file."""
    found, data = [], file.read_bytes()
    while data:
        magic, reserved, size = struct.unpack_from("<3Q", data)
        assert (magic, reserved) == (MAGIC, 0)
        symbol, data = data[24 : 24 + size].decode(), data[24 + size :]
        (size,) = struct.unpack_from("<Q", data)
        blob, data = data[8 : 8 + size], data[8 + size :]
        found.append((symbol, blob))
    return found


def record(symbol: str, blob: bytes) -> bytes:
    return struct.pack("<3Q", MAGIC, 0, len(symbol)) + symbol.encode() + struct.pack("<Q", len(blob)) + blob


@pytest.fixture
def tuned(start: Any, tmp_path: Path) -> Path:
    """The file that a tuning run of `network()` leaves."""
    file = tmp_path / "tuned"
    start(CLML_TUNING_CACHE=file, CLML_IS_TUNING_RUN=1)
    return file


def test_without_a_cache_nothing_is_looked_for(start: Any) -> None:
    cold = start()
    assert cold.counts("hits", "misses", "tunable", "tuned") == [0, 0, 2, 0]
    assert cold.info["emulated"] is True
    assert cold.info["recordable_queue"] is True
    assert "CLML Target Version:4.0" in cold.log
    assert "CLML is emulated by adreno-bench" in cold.log


def test_a_tuning_run_writes_a_record_for_each_symbol(start: Any, tmp_path: Path) -> None:
    file = tmp_path / "cache"
    run = start({"one": network(), "two": network(2)}, CLML_TUNING_CACHE=file, CLML_IS_TUNING_RUN=1)
    assert run.info["tuning_run"] is True
    assert [run.counts("saved", "hits", "misses", symbol=symbol) for symbol in ("one", "two")] == [[1, 0, 0]] * 2
    assert [symbol for symbol, blob in records(file) if blob] == ["one", "two"]


def test_a_tuned_run_finds_its_operators(start: Any, tuned: Path) -> None:
    run = start(CLML_TUNING_CACHE=tuned)
    assert run.counts("hits", "misses", "tunable", "tuned") == [1, 0, 2, 2]
    ((symbol, blob),) = records(tuned)
    assert f"Loading tuning cache for symbol:{symbol} size:{len(blob)}" in run.log


def test_a_symbol_that_is_not_in_the_file_is_a_miss(start: Any, tuned: Path) -> None:
    run = start({"other": network()}, CLML_TUNING_CACHE=tuned)
    assert run.counts("hits", "misses", "tuned", symbol="other") == [0, 1, 0]
    assert f"Tuning cache not cound for symbol :other in file {tuned}" in run.log


def test_the_record_of_an_older_artifact_is_a_hit_that_tunes_nothing(start: Any, tuned: Path) -> None:
    assert start({SYMBOL: network(2)}, CLML_TUNING_CACHE=tuned).counts("hits", "misses", "tuned") == [1, 0, 0]


def test_the_first_record_wins_over_a_better_one(start: Any, tuned: Path) -> None:
    start({SYMBOL: network(2)}, CLML_TUNING_CACHE=tuned, CLML_IS_TUNING_RUN=1)
    assert [symbol for symbol, _ in records(tuned)] == [SYMBOL, SYMBOL]
    assert start({SYMBOL: network(2)}, CLML_TUNING_CACHE=tuned).counts("hits", "tuned") == [1, 0]


def test_the_record_of_another_driver_tunes_nothing(start: Any, tuned: Path) -> None:
    run = start(CLML_TUNING_CACHE=tuned, ADRENO_BENCH_CLML_VERSION="3.1")
    assert run.counts("hits", "tuned") == [1, 0]
    assert "CLML Target Version:3.1" in run.log


@pytest.mark.parametrize("before", [b"\0" * 8, b"garbage!" * 4, record("other", b"x")[:-1]], ids=repr)
def test_what_is_no_record_hides_all_that_follows(before: bytes, start: Any, tuned: Path) -> None:
    tuned.write_bytes(before + tuned.read_bytes())
    assert start(CLML_TUNING_CACHE=tuned).counts("hits", "misses") == [0, 1]


def test_records_of_others_are_passed_over(start: Any, tuned: Path) -> None:
    tuned.write_bytes(record("other", b"anything") + tuned.read_bytes())
    assert start(CLML_TUNING_CACHE=tuned).counts("hits", "tuned") == [1, 2]


@pytest.mark.parametrize(
    "change", [lambda data: data[:-3], lambda data: record(SYMBOL, b"not ours")], ids=["cut", "alien"]
)
def test_a_record_that_the_driver_cannot_use_is_an_error(change: Any, start: Any, tuned: Path) -> None:
    tuned.write_bytes(change(tuned.read_bytes()))
    run = start(CLML_TUNING_CACHE=tuned)
    assert "Loading tuning cache for symbol:" in run.log
    assert "CLML Error:clLoadMLTuningCacheQCOM" in run.error


@pytest.mark.parametrize("data", [record("x", b"")[:20], struct.pack("<3Q", MAGIC, 0, 2**64 - 1), record(SYMBOL, b"")])
def test_lengths_are_not_believed(data: bytes, start: Any, tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(data)
    assert start(CLML_TUNING_CACHE=tmp_path / "cache").counts("hits", "misses") == [0, 1]


@pytest.mark.parametrize("name", ["no-such-file", "."])
def test_a_cache_that_cannot_be_read_is_an_error(name: str, start: Any, tmp_path: Path) -> None:
    assert f"Cannot open {tmp_path / name}" in start(CLML_TUNING_CACHE=tmp_path / name).error


def test_a_cache_that_cannot_be_written_is_an_error(start: Any, tmp_path: Path) -> None:
    run = start(CLML_TUNING_CACHE=tmp_path / "no-such-folder" / "cache", CLML_IS_TUNING_RUN=1)
    assert f"Cannot open {tmp_path / 'no-such-folder' / 'cache'}" in run.error


@pytest.mark.parametrize("value", ["yes", "", "99999999999"])
def test_a_tuning_switch_that_is_no_number_is_an_error(value: str, start: Any) -> None:
    assert "stoi" in start(CLML_IS_TUNING_RUN=value).error


@pytest.mark.parametrize(("value", "tuning"), [("0", False), ("2", True), (" 1 and more", True)])
def test_the_tuning_switch_is_read_as_a_number(value: str, tuning: bool, start: Any, tuned: Path) -> None:
    assert start(CLML_IS_TUNING_RUN=value, CLML_TUNING_CACHE=tuned).info["tuning_run"] is tuning


def test_a_tuning_run_without_a_file_is_none(start: Any) -> None:
    assert start(CLML_IS_TUNING_RUN=1).info["tuning_run"] is False


def test_the_recordable_queue_is_switched_off_by_any_value(start: Any) -> None:
    assert start(CLML_DISABLE_RECORDABLE_QUEUE="").info["recordable_queue"] is False


@pytest.mark.parametrize(
    ("version", "error"),
    [("none", "Qualcomm extn not present"), ("5.0", "Unsupported target version"), ("soon", "Unsupported target")],
)
def test_a_device_that_tvms_runtime_cannot_use_is_refused(version: str, error: str, start: Any) -> None:
    assert error in start(ADRENO_BENCH_CLML_VERSION=version).log
