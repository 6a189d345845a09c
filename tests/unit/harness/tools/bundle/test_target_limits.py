"""The limits of another device that a bundle is built for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_records import a_record
from typer.testing import CliRunner

from device_runner.device import Identity
from device_runner.selection import remember_identity
from harness.base.failures import UsageError
from harness.cli import app
from harness.compile.schedules.database import ScheduleOrigin, Schedules, TaskLimits
from harness.measure.records.record import RecordFile
from harness.tools.bundle.pack import KINDS
from harness.tools.bundle.target_limits import with_limits_of

OTHER = Identity(
    "phone",
    "A1",
    gpu="Adreno (TM) 830",
    image2d_max_width=8192,
    image2d_max_height=4096,
    image_max_array_layers=1024,
    work_group_items=512,
    local_memory_bytes=16 << 10,
)
HERE = KINDS["android-arm64"].identity


def test_a_phone_is_taken_for_an_adreno_if_nothing_else_is_said() -> None:
    assert (HERE.image2d_max_width, HERE.image2d_max_height, HERE.work_group_items) == (16384, 16384, 1024)
    assert KINDS["linux-aarch64"].identity.image2d_max_width == 8192


def test_the_last_record_of_a_file_tells_its_devices_limits(tmp_path: Path) -> None:
    records = RecordFile(tmp_path / "records.jsonl")
    records.append(a_record(identity=replace(OTHER, image2d_max_width=4096)), a_record(identity=OTHER))
    found = with_limits_of(HERE, str(records.path), tmp_path)
    limits = ("image2d_max_width", "image2d_max_height", "image_max_array_layers", "work_group_items")
    assert [getattr(found, name) for name in limits] == [8192, 4096, 1024, 512]
    assert replace(found, **{name: getattr(HERE, name) for name in (*limits, "local_memory_bytes")}) == HERE


def test_a_file_of_schedules_tells_the_limits_that_it_was_found_with(tmp_path: Path) -> None:
    file = tmp_path / "schedules.jsonl"
    threads = {"work_group_items": OTHER.work_group_items, "local_memory_bytes": OTHER.local_memory_bytes}
    Schedules(ScheduleOrigin(tvm="0.27", limits=TaskLimits.of(OTHER), **threads), ()).write(file)
    found = with_limits_of(HERE, str(file), tmp_path)
    assert (found.image2d_max_width, found.work_group_items, found.local_memory_bytes) == (8192, 512, 16 << 10)


def test_a_device_that_was_opened_before_is_known_by_its_name(tmp_path: Path) -> None:
    remember_identity("A1", OTHER, tmp_path)
    assert with_limits_of(HERE, "A1", tmp_path).image2d_max_height == 4096


def test_what_tells_no_limits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="B2 is neither a file nor a device that was opened before"):
        with_limits_of(HERE, "B2", tmp_path)
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(UsageError, match="has no records, and no schedules either"):
        with_limits_of(HERE, str(tmp_path / "empty.jsonl"), tmp_path)


def test_a_device_that_nobody_knows_is_refused_before_anything_is_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path))
    done = CliRunner().invoke(app, ["pack", "--model", "tiny", "--like", "nobody"])
    assert isinstance(done.exception, UsageError)
    assert "nobody is neither a file nor a device" in done.exception.message
    assert "preparing" not in done.stderr
