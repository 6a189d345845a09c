"""How phones did from week to week, by their records: counted by the index as by reading everything."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_records import IDENTITY, a_record, index_of
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from device_runner.recovery.ladder import RecoveryStep
from harness.base.outcome import Outcome
from harness.cli import app
from harness.measure.records.record import Record, week_of
from harness.tools.fleet.health import PhoneWeek, health, monday_of

STEP = RecoveryStep("retry", "gone", 1.0, 1.0, True)
MONDAY, SUNDAY, NEXT_MONDAY = "2026-11-16T00:00:00+00:00", "2026-11-22T23:59:59+00:00", "2026-11-23T00:00:00+00:00"


def of(serial: str = "A", started_at: str = MONDAY, **facts: Any) -> Record:
    return a_record(identity=replace(IDENTITY, serial=serial), device=serial, started_at=started_at, **facts)


def known(folder: Path, records: list[Record], device: str | None = None) -> list[PhoneWeek]:
    with index_of(folder, records) as index:
        return health(index.outcomes(device))


def test_a_week_of_a_phone_is_its_failures_recoveries_and_throttled_share(tmp_path: Path) -> None:
    records = [
        *(of(wall_ms=[1.0]) for _ in range(6)),
        of(outcome=Outcome.THROTTLED),
        of(outcome=Outcome.THROTTLED),
        of(outcome=Outcome.DEVICE_LOST, recovery=[STEP, STEP]),
        of(outcome=Outcome.INFRA_ERROR),
        of(outcome=Outcome.DEVICE_CRASH),
        of(outcome=Outcome.HANG),
        of(outcome=Outcome.WRONG_RESULT, recovery=[STEP]),
    ]
    assert known(tmp_path, records) == [PhoneWeek("A", "2026-11-16", 13, 1, 1, 2, 2, 2, 0.25)]


def test_weeks_begin_on_mondays_and_phones_stand_apart(tmp_path: Path) -> None:
    records = [of(started_at=NEXT_MONDAY), of("B"), of(), of(started_at=SUNDAY), of(started_at="yesterday")]
    assert [(week.phone, week.week, week.records) for week in known(tmp_path, records)] == [
        ("A", "", 1),
        ("A", "2026-11-16", 2),
        ("A", "2026-11-23", 1),
        ("B", "2026-11-16", 1),
    ]
    assert {week.phone for week in known(tmp_path, records, "B")} == {"B"}


def test_heat_in_a_sustained_run_is_no_sign_of_a_bad_phone(tmp_path: Path) -> None:
    records = [of(outcome=Outcome.THROTTLED), of(standalone=True)]
    (week,) = known(tmp_path, records)
    assert (week.records, week.throttled_share) == (2, 1.0)


def test_a_phone_that_was_never_timed_has_no_share(tmp_path: Path) -> None:
    (week,) = known(tmp_path, [of(outcome=Outcome.DEVICE_LOST)])
    assert week.throttled_share is None


@given(st.datetimes())
def test_a_week_has_seven_days_and_the_first_is_its_monday(moment: Any) -> None:
    monday = monday_of(week_of(moment.isoformat()))
    since = (moment.date() - type(moment).fromisoformat(monday).date()).days
    assert 0 <= since < 7
    assert type(moment).fromisoformat(monday).weekday() == 0


def asked(file: Path, *options: str) -> Any:
    return CliRunner().invoke(app, ["devices", "--health", "--records", str(file), *options])


def test_the_command_shows_it_as_a_table_and_for_programs(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text("".join(r.line() + "\n" for r in [of(), of("B", outcome=Outcome.DEVICE_LOST), of("B")]))
    assert asked(file).exit_code == 0
    assert "2026-11-16" in asked(file).output
    (only,) = json.loads(asked(file, "--json", "--device", "B").output)
    assert (only["phone"], only["records"], only["lost"], only["throttled_share"]) == ("B", 2, 1, 0.0)
    assert "no records of C" in str(asked(file, "--device", "C").exception)
    assert "no records in" in str(asked(tmp_path / "none.jsonl").exception)


@pytest.mark.parametrize("other", ["--restore", "--watch"])
def test_it_goes_with_no_other_question(other: str, tmp_path: Path) -> None:
    assert "--health" in str(asked(tmp_path / "none.jsonl", other).exception)
