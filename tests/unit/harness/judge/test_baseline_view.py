"""Baselines as sides: the same as their models make, and the same refusals."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from fake_records import IDENTITY, blessing_of, sessions

import harness.judge.baseline
from device_runner.failures import Failure
from harness.base.failures import UsageError
from harness.judge.baseline import Baseline, BlessedSession, files_in, load, read_side, sides_in
from harness.judge.baseline_view import BaselineView, BlessedSessionView
from harness.judge.checked_file import LARGEST_BYTES
from harness.measure.facts import Reference

CASE = "tiny-opencl-float32-untuned"
NOT_OF_A_SIDE = {"sha256"}


def blessed(folder: Path, **facts: Any) -> Path:
    baseline = blessing_of(sessions(10, 2, **facts)).baseline
    assert baseline
    baseline.save(folder)
    return Baseline.file(folder, IDENTITY.key, baseline.case)


def test_a_view_has_the_fields_of_its_model() -> None:
    aliases = {field.alias or name for name, field in Baseline.model_fields.items()}
    assert {field.encode_name for field in msgspec.structs.fields(BaselineView)} - NOT_OF_A_SIDE == aliases
    assert {field.name for field in msgspec.structs.fields(BlessedSessionView)} == {*BlessedSession.model_fields}


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"parts": [Reference("k", [5.0, 5.1, 5.0], [6.5, 6.6, 6.5])]},
        {"steadiness": {"clock_histogram": {"800": 1.0}}},
        {"unchecked": "no e-5] judge", "max_abs_err": 2.5e-6, "tolerance": 1},
        {"unchecked": "µs", "max_abs_err": 1e-20, "tolerance": 1e16},
        {"quirks": ("q",), "network": "n", "truth": "t", "facts": {"kernels": 3}},
        {"settings": {"work_group": 64}},
    ],
)
def test_a_file_makes_the_side_that_its_model_makes(tmp_path: Path, facts: dict[str, Any]) -> None:
    file = blessed(tmp_path, **facts)
    assert read_side(str(file)) == Baseline.read(file).side
    assert sides_in(tmp_path, lambda _: True) == {side.key: side for side in (each.side for each in load(tmp_path))}
    assert sides_in(tmp_path, lambda case: case != CASE) == {}


def test_what_bless_wrote_is_read_without_its_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = blessed(tmp_path, max_abs_err=2.5e-6, tolerance=1)
    monkeypatch.setattr(Baseline, "read", lambda _: pytest.fail("read with its model"))
    assert read_side(str(file)).key.case == CASE


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('"started_at": "2', '"started_at": "1'),
        ('"schema": 1', '"schema": 0'),
        ('"schema": 1', '"schema": 1, "more": 1'),
        ('"kind": "latency"', '"kind": "guess"'),
        ('"sha256": "', '"sha256": "0'),
        (f'"case": "{CASE}"', '"case": "../escape"'),
        ("{", "["),
        ("}\n", "}" + " " * LARGEST_BYTES),
    ],
)
def test_a_file_that_is_not_good_is_refused_as_its_model_refuses_it(tmp_path: Path, was: str, now: str) -> None:
    file = blessed(tmp_path)
    text = file.read_text()
    assert was in text
    file.write_text(text.replace(was, now))
    with pytest.raises(UsageError) as expected:
        Baseline.read(file)
    with pytest.raises(UsageError) as refusal:
        read_side(str(file))
    assert str(refusal.value) == str(expected.value)


def test_a_file_that_was_moved_or_is_gone_is_refused(tmp_path: Path) -> None:
    file = blessed(tmp_path)
    moved = file.rename(file.with_name("other-opencl-float32-untuned.json"))
    with pytest.raises(UsageError, match="is the baseline of"):
        read_side(str(moved))
    with pytest.raises(Failure, match="cannot read"):
        read_side(str(file))


def test_a_file_of_very_many_sessions_is_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = blessed(tmp_path)
    monkeypatch.setattr(harness.judge.baseline, "READ_BYTES", file.stat().st_size)
    assert read_side(str(file)) == Baseline.read(file).side
    with file.open("a") as stream:
        stream.write("more")
    with pytest.raises(UsageError, match="is no baseline"):
        read_side(str(file))


def test_files_come_by_folder_then_by_name(tmp_path: Path) -> None:
    for name in ("b/1.json", "b-c/2.json", "b.json", "a/.3.json", "b/not.txt", "b/c/4.json"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    found = [*tmp_path.glob("*.json"), *tmp_path.glob("*/*.json")]
    assert files_in(tmp_path) == [str(file) for file in sorted(found, key=lambda file: file.parts)]
    assert files_in(tmp_path / "none") == []


def test_a_side_takes_eight_bytes_for_each_sample(tmp_path: Path) -> None:
    side = read_side(str(blessed(tmp_path, parts=[Reference("k", [5.0, 5.1, 5.0], [6.5, 6.6, 6.5])])))
    for samples in (*side.sessions, side.probes[0].reference_ms, side.probes[0].slowed_ms):
        assert memoryview(samples).nbytes == 8 * len(samples)  # type: ignore[arg-type]
