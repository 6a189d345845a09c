"""Every entry of bytes that others wrote: whatever they are, they are read, or refused by the one error of that entry.

`make fuzz` draws new examples for ten minutes; in the ordinary tests each entry has some, the same in every run.
"""

from __future__ import annotations

import contextlib
import copy
import gzip
import io
import json
import os
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
import pytest
import terminal_scene
from fake_records import virtual_record
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_config import FIELDS
from typer.testing import CliRunner

from device_runner.adb_device import properties_in
from device_runner.deadline import Deadline
from device_runner.failures import Failure
from device_runner.rpc_server.tracker import receive_json
from device_runner.runtimes.probe.answers import BadAnswer, answer_of, batches_of, launches_of
from device_runner.session.rpc_replies import (
    CALL,
    COPY_ACK,
    COPY_FROM_REMOTE,
    POINTER,
    RETURN,
    Nonsense,
    RpcConversation,
)
from device_runner.stability.reading import reading
from device_runner.stability.sources import texts_in
from device_runner.stand_ins.tvm_rpc.clients import ClientRefusal, ServerError, meet
from device_runner.stand_ins.virtual.packet import ProtocolError, decode_header
from device_runner.transport.adb import Adb
from harness.base.model import ImageFolder
from harness.cli import app
from harness.compile.models.limited_fork import run_limited
from harness.compile.models.sources import model_source, read_and_prepare
from harness.compile.schedules import database
from harness.judge.history.results import load
from harness.judge.report.comparison import read_comparison
from harness.measure.records.record import RecordFile
from harness.measure.tuning import tuning_symbols
from harness.tools.builders.shared_store import entry_text, read_entry
from harness.tools.bundle.archive import find_files, unpack
from harness.tools.bundle.manifest import manifest_of
from harness.tools.bundle.results import BrokenLine, lines_of
from harness.tools.fleet.greeting import HandshakeFailure, read_name
from harness.tools.github.pull_request import PullRequest
from harness.tools.labelled.pictures import labelled_file
from harness.tools.lake.compaction import compact_file
from harness.tools.lake.parquet import ParquetDataset, needing_packages
from harness.tools.llm.config import read_config
from harness.tools.llm.folders import MlcFolder, list_tensors
from harness.tools.shared.kernels.peaks import rates_of
from harness.tools.shared.remote import BadObject
from harness.tools.torch.conversion import plain_archive

pytestmark = pytest.mark.rest
EXAMPLES = int(os.environ.get("ADRENO_BENCH_TEST_FUZZ", "25"))
LONG_S = 10.0

Reader = Callable[[bytes, Path], object]


def in_file(read: Callable[[Path], object], name: str = "file") -> Reader:
    """A reader of files."""

    def of_bytes(data: bytes, folder: Path) -> object:
        (folder / name).write_bytes(data)
        return read(folder / name)

    return of_bytes


def on_socket(talk: Callable[[socket.socket], object]) -> Reader:
    """A reader of what the other end of a connection says before it leaves."""

    def of_bytes(data: bytes, _: Path) -> object:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.sendall(data)
            theirs.shutdown(socket.SHUT_WR)
            return talk(ours)

    return of_bytes


def shell_of(data: bytes, _: Path) -> object:
    """What a shell of a device says, through an adb server that says just that."""

    class Said(Adb):
        def _connect(self, deadline: Deadline) -> socket.socket:
            ours, theirs = socket.socketpair()
            with theirs:
                theirs.sendall(data)
            return ours

    return Said("serial", 1).shell(["true"], timeout_s=LONG_S)


def network(data: bytes, folder: Path) -> object:
    file = folder / "n.onnx"
    file.write_bytes(data)
    return run_limited(file, lambda: len(read_and_prepare(file, file, {})[1]), deadline_s=LONG_S, memory_bytes=1 << 30)


def reply(data: bytes, _: Path) -> None:
    """What an RPC server answers to a client that asks for a function, calls it, and copies 8 bytes."""
    both = RpcConversation()
    asked = (GET_FUNCTION, 0), (CALL, 0), (COPY_FROM_REMOTE, 8)
    both.requests.check(HELLO[:15] + b"".join(struct.pack("<QiQ", 12, *one) for one in asked))
    both.replies.check(data)


def tiny_network() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        model = onnx.load(model_source("tiny").onnx_file(Path(folder)))
    for tensor in model.graph.initializer:
        tensor.raw_data = bytes(len(tensor.raw_data))
    return bytes(model.SerializeToString())


def an_archive() -> bytes:
    import tarfile

    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as made:
        member = tarfile.TarInfo("results/turns.jsonl")
        member.size = 3
        made.addfile(member, io.BytesIO(b"{}\n"))
    return file.getvalue()


def history(file: Path) -> object:
    machine = file.parent / "results" / "m"
    machine.mkdir(parents=True, exist_ok=True)
    (machine / "machine.json").write_text("{}")
    (machine / "beefbeef-env.json").write_bytes(file.read_bytes())
    return load(machine.parent)


def a_dataset() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder, needing_packages():
        RecordFile(Path(folder) / "r.jsonl").append(virtual_record())
        compact_file(Path(folder) / "r.jsonl", Path(folder))
        return next(Path(folder).rglob("*.parquet")).read_bytes()


def dataset(file: Path) -> object:
    with ParquetDataset([file]) as found:
        return [list(found.newest(bool)), list(found.newest_builds(bool)), found.outcomes()]


@dataclass(frozen=True)
class Entry:
    """Where bytes of others come in."""

    read: Reader
    refusals: tuple[type[Exception], ...]
    """What it may raise."""
    seeds: Callable[[], list[bytes]] = field(default=lambda: [b"{}"])
    """Bytes that it reads, of which others are made, and what was once not refused as it should be."""


GET_FUNCTION = 9
LLM_CONFIG = json.dumps({**FIELDS, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}).encode()
MLC_WEIGHTS = (
    b'{"records": [{"dataPath": "tensor-cache.json", "nbytes": 124, "records": '
    b'[{"name": "a", "shape": [2], "dtype": "uint32"}]}]}'
)
"""A list that is its own shard."""
MLC_SETTINGS = (
    b'{"model_type": "qwen2", "quantization": "q4f16_0", "vocab_size": 8, "model_config": {"hidden_size": 8, '
    b'"intermediate_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "rms_norm_eps": 1e-5, "vocab_size": 8, '
    b'"rope_theta": 1e4, "rope_scaling": {"rope_type": "llama3"}}}'
)
SAFETENSORS = b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}'
SAFETENSORS = struct.pack("<Q", len(SAFETENSORS)) + SAFETENSORS + bytes(4)
DEEP = b"[" * 100_000
ADB = b"OKAYOKAY" + struct.pack("<BI", 1, 2) + b"hi" + struct.pack("<BI", 3, 1) + b"\0"
HELLO = struct.pack("<ii", 0xFF271, 7) + b"client:"
REPLY = (
    struct.pack("<ii1s", 0xFF271, 1, b"k")
    + struct.pack("<QiiiQ", 20, RETURN, 1, POINTER, 7)
    + struct.pack("<QiiiqiQiiiBBHqQiQ", 76, RETURN, 3, 1, 70, 7, 1, 1, 0, 1, 2, 32, 1, 2, 0, POINTER, 1)
    + struct.pack("<QiQ", 12, COPY_ACK, 0)
)
CLML = struct.pack("<QQQ", 0x434C4D4C54554E45, 0, 1) + b"a" + struct.pack("<Q", 0)
PEAKS = json.dumps({"copy_bytes_s": 1e9}).encode()
REPORT = b"@adreno-bench battery\nlevel: 50\n\n@adreno-bench 0"


def a_picture() -> bytes:
    """A small PNG."""
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (9, 8), (1, 2, 3)).save(file, "PNG")
    return file.getvalue()


def picture(data: bytes, folder: Path) -> None:
    """Read labelled data whose only picture is this."""
    (folder / "val/cat").mkdir(parents=True)
    (folder / "val/cat/0.png").write_bytes(data)
    labelled_file(ImageFolder(folder=folder / "val", resize=8, crop=8), folder / "cache")


ENTRIES = {
    "network": Entry(network, (Failure,), lambda: [tiny_network()]),
    "program": Entry(in_file(plain_archive, "n.pt2"), (Failure,), lambda: [b"PK\5\6" + bytes(18)]),
    "archive": Entry(
        in_file(lambda file: find_files(file, {"turns.jsonl": 1 << 20}, file.parent / "into"), "r.tar"),
        (Failure,),
        lambda: [an_archive(), gzip.compress(an_archive())],
    ),
    "bundle": Entry(
        in_file(lambda file: unpack(file, file.parent / "into"), "b.tar"), (Failure,), lambda: [an_archive()]
    ),
    "chain": Entry(lambda data, _: list(lines_of(io.BytesIO(data), "")), (BrokenLine,), lambda: [b"0" * 64 + b" {}\n"]),
    "manifest": Entry(lambda data, _: manifest_of(data), (Failure,), lambda: [b'{"schema": 1}', DEEP]),
    "records": Entry(
        in_file(lambda file: RecordFile(file).load()), (), lambda: [virtual_record().line().encode(), DEEP]
    ),
    "dataset": Entry(in_file(dataset, "r.parquet"), (Failure,), lambda: [a_dataset()]),
    "verdicts": Entry(in_file(read_comparison), (Failure,), lambda: [b'{"schema": 1, "cases": []}', DEEP]),
    "shared store": Entry(
        lambda data, _: read_entry(data, "artifacts/key"),
        (BadObject,),
        lambda: [entry_text("artifacts/key", {"lib.so": "0" * 64}).encode(), DEEP],
    ),
    "configuration": Entry(in_file(read_config, "config.json"), (Failure,), lambda: [LLM_CONFIG, DEEP]),
    "safetensors": Entry(
        in_file(lambda file: list_tensors(file.parent), "a.safetensors"), (Failure,), lambda: [SAFETENSORS]
    ),
    "mlc weights": Entry(
        in_file(lambda file: MlcFolder(file.parent).weights, "tensor-cache.json"),
        (Failure,),
        lambda: [MLC_WEIGHTS, DEEP],
    ),
    "mlc settings": Entry(
        in_file(lambda file: MlcFolder(file.parent).settings.network, "mlc-chat-config.json"),
        (Failure,),
        lambda: [MLC_SETTINGS, DEEP],
    ),
    "schedules": Entry(in_file(database.read), (Failure,), lambda: [b'{"schema": 1}\n', DEEP]),
    "asv": Entry(in_file(history), (), lambda: [b'{"commit_hash": "a", "date": 1}', DEEP]),
    "adb": Entry(shell_of, (Failure,), lambda: [ADB]),
    "packet": Entry(lambda data, _: decode_header(data), (ProtocolError,), lambda: [bytes(24)]),
    "client": Entry(on_socket(lambda sock: meet(sock, "", "k", "")), (ClientRefusal, ServerError), lambda: [HELLO]),
    "name": Entry(on_socket(read_name), (HandshakeFailure, OSError), lambda: [HELLO]),
    "reply": Entry(reply, (Nonsense,), lambda: [REPLY]),
    "tracker": Entry(
        on_socket(lambda sock: receive_json(sock, Deadline(LONG_S))),
        (ValueError, OSError),
        lambda: [struct.pack("<i", 2) + b"{}", struct.pack("<i", 50_000) + DEEP[:50_000]],
    ),
    "probe": Entry(lambda data, _: answer_of(data), (BadAnswer,), lambda: [b"{}", DEEP]),
    "launches": Entry(lambda data, _: launches_of(data), (BadAnswer,), lambda: [b'{"launches": []}', DEEP]),
    "peaks": Entry(lambda data, _: rates_of(data), (BadAnswer,), lambda: [PEAKS, DEEP]),
    "batches": Entry(lambda data, _: batches_of(data, 3), (BadAnswer, Failure), lambda: [b"{}", DEEP]),
    "tuning": Entry(lambda data, _: tuning_symbols(data), (Failure,), lambda: [CLML]),
    "properties": Entry(lambda data, _: properties_in(data.decode(errors="replace")), (), lambda: [b"[a]: [b]\n"]),
    "picture": Entry(picture, (Failure,), lambda: [a_picture()]),
    "event": Entry(
        in_file(lambda file: PullRequest.of_job({"GITHUB_EVENT_PATH": str(file)})),
        (Failure,),
        lambda: [b'{"pull_request": {"number": 7}}', DEEP],
    ),
    "heat": Entry(lambda data, _: reading(texts_in(data.decode(errors="replace"))), (), lambda: [REPORT]),
}


PACKAGES = {"dataset": ("duckdb", "pyarrow")}
"""Packages that an entry needs, and not every host has."""


@st.composite
def mutants(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """Any bytes, or those of a seed with some places changed, cut or doubled."""
    data = bytearray(draw(st.sampled_from(seeds) | st.binary(max_size=200)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 8))] = draw(st.binary(max_size=8))
    return bytes(data)


def a_record() -> dict[str, Any]:
    """One with something in its fields."""
    found = virtual_record(
        emulated=(),
        wall_ms=[1.0, 2.0] * 6,
        device_ms=[1.0] * 3,
        max_abs_err=1e-6,
        tolerance=1e-3,
        facts={"kernels": 3},
        parts={"offload": terminal_scene.OFFLOAD},
        steadiness={"before": {"gpu_c": 30.0}, "after": {"gpu_c": 36.0}, "clock_histogram": {"800": 1.0}},
        schedules={"took": ["a"], "refused": {"b": "why"}},
        proofs={"programs_from_binary": 1, "programs_from_source": 0},
    )
    plain: dict[str, Any] = json.loads(found.line())
    return plain


def places(value: object) -> Iterator[tuple[Any, Any]]:
    """Each place in JSON: what holds it, and its key."""
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


NUMBERS = [None, True, 0, -1, 10**30, 1e300, 1e-300, float("inf"), float("nan")]
OTHERS = ["", "../x", "\x1b[2J", "9999-12-31T23:59:59+00:00", [], {}, [None], {"a": 1}, [1.7e308] * 12, [-1.0] * 12]


def show_and_report(record: dict[str, Any], folder: Path) -> None:
    other = virtual_record(case="tiny-texture-float32-untuned", path="texture")
    (folder / "records.jsonl").write_text(f"{json.dumps(record)}\n{other.line()}\n")
    for command in (["show"], ["show", "--all", "*"], ["report", "--out", str(folder / "page.html")]):
        ended = CliRunner().invoke(app, [*command, "--records", str(folder / "records.jsonl")])
        assert ended.exception is None or isinstance(ended.exception, (SystemExit, Failure)), command
        assert "\x1b" not in ended.output


@pytest.mark.parametrize(
    "fields",
    [
        {"tolerance": None},
        {"wall_ms": [1.0, float("inf")]},
        {"steadiness": {"before": {"gpu_c": float("inf")}}},
        {"parts": {"offload": {"subgraphs": []}}},
        {"parts": {"offload": {**terminal_scene.OFFLOAD, "mac_share": "x", "macs_offloaded": None}}},
        {"parts": {"sustained": {"columns": 3}}},
    ],
)
def test_a_record_that_once_was_called_a_bug_is_shown_or_refused(fields: dict[str, Any], tmp_path: Path) -> None:
    show_and_report({**a_record(), **fields}, tmp_path)


@given(st.data())
@settings(max_examples=EXAMPLES)
def test_what_a_record_says_is_shown_or_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    record = a_record()
    for _ in range(data.draw(st.integers(1, 2))):
        holder, key = data.draw(st.sampled_from(list(places(record))))
        holder[key] = copy.deepcopy(data.draw(st.sampled_from(NUMBERS + OTHERS)))
    show_and_report(record, tmp_path_factory.mktemp("record"))


@pytest.mark.parametrize("name", ENTRIES)
def test_whatever_others_write_is_read_or_refused(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    for package in PACKAGES.get(name, ()):
        pytest.importorskip(package, reason="`make scale` installs it")
    entry = ENTRIES[name]
    seeds = entry.seeds()

    def read(data: bytes) -> None:
        with contextlib.suppress(*entry.refusals):
            entry.read(data, tmp_path_factory.mktemp(name))

    for seed in seeds:
        read(seed)
    settings(max_examples=EXAMPLES)(given(mutants(seeds))(read))()
