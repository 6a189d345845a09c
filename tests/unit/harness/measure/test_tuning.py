"""Tuning and its proof: a run counts as tuned only by its own evidence."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from fake_device import FakeDevice, Things, a_plan, things
from hypothesis import given
from hypothesis import strategies as st

from device_runner.device import Identity, Toggles
from device_runner.failures import RigFailure
from device_runner.store import sha256_of
from harness.base.case import Case, Precision, Tuning
from harness.base.outcome import Outcome
from harness.base.plan import Plan
from harness.compile.artifacts.artifact import Artifact
from harness.measure.context import Run
from harness.measure.loop import run_case
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record
from harness.measure.tuning import BLOB, CACHE_VARIABLE, RECORD_MAGIC, TuningStore, tuning_symbols


@pytest.fixture
def built(tmp_path: Path) -> Things:
    return things(tmp_path / "built")


def a_record(symbol: str, content: bytes = b"best") -> bytes:
    name = symbol.encode()
    return struct.pack("<QQQ", RECORD_MAGIC, 0, len(name)) + name + struct.pack("<Q", len(content)) + content


def tuned_plan(path: str) -> Plan:
    return replace(a_plan(), case=Case("tiny", path, Precision.FLOAT32, Tuning.TUNED))


def run(device: FakeDevice, things: Things, path: str, store: Path) -> Record:
    return run_case(tuned_plan(path), things, Run(device, TuningStore(store)), SilentProgress()).record


def programs(from_binary: int, from_source: int) -> dict[str, int]:
    return {"programs_from_binary": from_binary, "programs_from_source": from_source}


def test_binaries_are_made_once_and_given_to_the_measured_session_before_its_first_run(
    built: Things, tmp_path: Path
) -> None:
    device = FakeDevice(counts=programs(17, 0))
    record = run(device, built, "opencl", tmp_path)
    assert record.outcome is Outcome.OK
    assert record.proofs == {"programs_from_binary": 17, "programs_from_source": 0}
    tuning = ["session", "load", "run", "binaries", "closed"]
    assert device.steps[:9] == [*tuning, "session", "load", "use binaries", "run"]
    again = FakeDevice(counts=programs(17, 0))
    run(again, built, "opencl", tmp_path)
    assert "binaries" not in again.steps


@pytest.mark.parametrize(
    ("counts", "complaint"),
    [
        (programs(16, 1), "1 programs were still built from source"),
        (programs(0, 0), "no program was built from a binary"),
        ({}, "could not count"),
    ],
)
def test_a_run_that_cannot_show_that_it_was_tuned_is_inconclusive(
    built: Things, tmp_path: Path, counts: dict[str, int], complaint: str
) -> None:
    record = run(FakeDevice(counts=counts), built, "texture", tmp_path)
    assert record.outcome is Outcome.INCONCLUSIVE
    assert complaint in record.message
    assert record.wall_ms == []


def clml_log(known: set[str]) -> object:
    """What CLML's log says when its parts are `a` and `b` and its cache file knows some of them."""

    def log(toggles: Toggles) -> str:
        lines = ["[12:00:00] workspace.cc:28: Warning: CLML Target Version:4.0"]
        for symbol in ("a", "b") if CACHE_VARIABLE in toggles else ():
            hit, miss = "Loading tuning cache for symbol:", "Warning: Tuning cache not cound for symbol :"
            lines.append(f"[12:00:00] x.cc:1: {hit if symbol in known else miss}{symbol} size:4")
        return "\n".join(lines)

    return log


def clml_device(known: set[str], **facts: object) -> FakeDevice:
    files = {"/device/clml-tuning": a_record("a") + a_record("b")}
    tells = {"adreno_bench.clml_info": json.dumps({"emulated": True, "recordable_queue": True})}
    return FakeDevice(files=files, tells=tells, log=clml_log(known), **facts)  # type: ignore[arg-type]


def test_clml_tunes_in_a_process_of_its_own_and_its_emulated_time_is_nowhere(built: Things, tmp_path: Path) -> None:
    device = clml_device({"a", "b"})
    record = run(device, built, "clml", tmp_path)
    assert record.outcome is Outcome.OK
    assert (record.proofs["clml_hits"], record.proofs["clml_misses"]) == (["a", "b"], [])
    assert record.proofs["clml_version"] == "4.0"
    assert "clml" in record.emulated
    assert record.wall_ms == record.device_ms == []
    assert record.init_ms is record.first_run_ms is None
    (kept,) = tmp_path.glob(f"tunings/*/{BLOB}")
    assert record.toggles == {CACHE_VARIABLE: f"/device/{sha256_of(kept)}"}


def test_a_miss_is_inconclusive_and_names_the_symbol(built: Things, tmp_path: Path) -> None:
    record = run(clml_device({"a"}), built, "clml", tmp_path)
    assert record.outcome is Outcome.INCONCLUSIVE
    assert record.message == "CLML found no tuning for 1 of its parts, first b"


@pytest.mark.parametrize("hits", [{"a"}, set[str]()])
def test_a_part_with_nothing_to_tune_is_no_miss_though_the_log_says_so(
    built: Things, tmp_path: Path, hits: set[str]
) -> None:
    """Its record is there and empty, and TVM's runtime asks for content alone."""
    device = clml_device(hits)
    device.files["/device/clml-tuning"] = b"".join(a_record(s, b"tuned" if s in hits else b"") for s in "ab")
    record = run(device, built, "clml", tmp_path)
    assert record.outcome is Outcome.OK, record.message
    assert record.proofs["clml_misses"] == []
    assert record.proofs["clml_nothing_to_tune"] == sorted({"a", "b"} - hits)


def test_of_two_records_of_a_part_the_first_counts_as_for_tvm(built: Things, tmp_path: Path) -> None:
    device = clml_device({"a"})
    device.files["/device/clml-tuning"] = a_record("a") + a_record("b", b"tuned") + a_record("b", b"")
    assert run(device, built, "clml", tmp_path).message == "CLML found no tuning for 1 of its parts, first b"


def test_another_artifact_or_driver_tunes_again(built: Things, tmp_path: Path) -> None:
    run(clml_device({"a", "b"}), built, "clml", tmp_path)
    other_driver = clml_device({"a", "b"}, identity=Identity("virtual", "fake", driver="new", emulated=("gpu",)))
    run(other_driver, built, "clml", tmp_path)
    assert len(list(tmp_path.glob(f"tunings/*/{BLOB}"))) == 2
    artifact = built["c-tiny"]
    assert isinstance(artifact, Artifact)
    run(clml_device({"a", "b"}), {**built, "c-tiny": replace(artifact, key="rebuilt")}, "clml", tmp_path)
    assert len(list(tmp_path.glob(f"tunings/*/{BLOB}"))) == 3


def test_more_than_a_device_is_sent_is_not_taken_from_it(
    built: Things, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.measure.tuning.LARGEST_BLOB_BYTES", 4)
    record = run(FakeDevice(counts=programs(17, 0)), built, "opencl", tmp_path)
    assert record.outcome is Outcome.INFRA_ERROR
    assert "bytes, and at most 4 are taken from a device" in record.message
    assert not list(tmp_path.glob(f"tunings/*/{BLOB}"))


def test_a_doctored_cache_is_made_again(built: Things, tmp_path: Path) -> None:
    run(clml_device({"a", "b"}), built, "clml", tmp_path)
    (kept,) = tmp_path.glob(f"tunings/*/{BLOB}")
    kept.write_bytes(a_record("a", b"other") + a_record("b"))
    assert run(clml_device({"a", "b"}), built, "clml", tmp_path).outcome is Outcome.OK
    assert b"other" not in kept.read_bytes()


@given(st.lists(st.tuples(st.text(max_size=20), st.binary(max_size=50)), max_size=6))
def test_a_tuning_file_tells_its_symbols(records: list[tuple[str, bytes]]) -> None:
    blob = b"".join(a_record(symbol, content) for symbol, content in records)
    assert tuning_symbols(blob) == [symbol for symbol, _ in records]


@given(st.binary(min_size=1, max_size=200), st.integers(0, 100))
def test_a_damaged_tuning_file_is_refused_and_never_more(junk: bytes, cut: int) -> None:
    endless = struct.pack("<QQQ", RECORD_MAGIC, 0, 2**64 - 1)
    for blob in (junk, a_record("a")[: -1 - cut % 20], a_record("a") + junk, endless):
        with pytest.raises(RigFailure, match="the CLML tuning file is damaged"):
            tuning_symbols(blob)
