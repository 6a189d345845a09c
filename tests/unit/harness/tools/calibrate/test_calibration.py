"""Calibration: sessions taken in turns and kept, profiles written and read back, gates held to them."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_device import FakeDevice, FakeProgram, Things, a_plan, things
from fake_records import IDENTITY, a_record, blessing_of, sessions
from hypothesis import given
from hypothesis import strategies as st

from device_runner.failures import RigFailure
from harness.base.failures import UsageError
from harness.base.outcome import ExitCode, Outcome
from harness.base.plan import Plan
from harness.compile.artifacts.pool import Builder
from harness.judge.noise import PROFILES, NoiseProfile, find_profile
from harness.judge.stats.pair import Rules
from harness.measure.context import Run
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record, RecordFile
from harness.measure.tuning import TuningStore
from harness.tools.calibrate.calibration import (
    CalibrationResult,
    estimate_of,
    exit_code_of,
    profile_all,
    profile_of,
    take_sessions,
)

CASE = "tiny-opencl-float32-untuned"
RULES = Rules()


def a_profile(records: list[Record] | None = None) -> NoiseProfile:
    made = profile_of(records or sessions(10, 16), RULES)
    assert isinstance(made, NoiseProfile), made
    return made


class FakeBuilder(Builder):
    """Has everything built already."""

    def __init__(self, built: Things) -> None:
        self._built = built

    def build(self, jobs: Any) -> Any:
        return {job.key: self._built[job.key] for job in jobs}


@pytest.fixture
def calibrate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, list[Record]]]:
    """Take sessions of two cases on a device made of plain Python."""
    built = things(tmp_path)
    both = {**built, "c-other": built["c-tiny"], "o-other": built["o-tiny"]}
    file = RecordFile(tmp_path / "calibration.jsonl")

    chance = random.Random(0)

    def wall_ms(self: FakeProgram, repeat: int, *, timeout_s: float) -> list[float]:
        self.device.met("wall")
        return [2 * chance.gauss(1, 0.02) for _ in range(repeat)]

    monkeypatch.setattr(FakeProgram, "wall_ms", wall_ms)

    def take(device: FakeDevice, count: int, plans: list[Plan] | None = None) -> dict[str, list[Record]]:
        run = Run(device, TuningStore(tmp_path))
        chosen = plans or [a_plan(), a_plan("other")]
        return take_sessions(chosen, run, FakeBuilder(both), file, SilentProgress(), count)

    return take


def kept(folder: Path) -> list[str]:
    return [record.model for record in RecordFile(folder / "calibration.jsonl").load().records]


def test_cases_take_turns_each_session_is_fresh_and_kept(calibrate: Any, tmp_path: Path) -> None:
    device = FakeDevice()
    taken = calibrate(device, 5)
    assert [len(records) for records in taken.values()] == [5, 5]
    assert kept(tmp_path) == ["tiny", "other"] * 5
    assert device.steps.count("session") == 10
    done = list(profile_all(taken.values(), RULES))
    assert all(one.profile for one in done)
    assert exit_code_of(done) is ExitCode.GOOD


def test_what_a_killed_calibration_left_counts_and_what_is_done_is_done_anew(calibrate: Any, tmp_path: Path) -> None:
    device = FakeDevice()
    with pytest.raises(KeyboardInterrupt):
        calibrate(FakeDevice(fails={"wall": KeyboardInterrupt()}), 6)
    calibrate(device, 6, [a_plan()])
    file = RecordFile(tmp_path / "calibration.jsonl")
    three = file.load().records[:3]
    file.path.write_text("".join(record.line() + "\n" for record in three))
    device.steps.clear()
    assert [len(records) for records in calibrate(device, 6).values()] == [6, 6]
    assert device.steps.count("session") == 3 + 6
    device.steps.clear()
    calibrate(device, 6)
    assert device.steps.count("session") == 12


def test_another_build_starts_anew(calibrate: Any) -> None:
    calibrate(FakeDevice(), 6, [a_plan()])
    old = replace(a_plan(), compile=replace(a_plan().compile, key="c-other"))
    device = FakeDevice()
    assert len(calibrate(device, 4, [old])[CASE]) == 4
    assert device.steps.count("session") == 4


def test_what_is_wrong_is_told_once_and_not_run_again(calibrate: Any, tmp_path: Path) -> None:
    taken = calibrate(FakeDevice(error=1.0), 8)
    assert kept(tmp_path) == ["tiny", "other"]
    done = list(profile_all(taken.values(), RULES))
    assert done[0].reasons[0].startswith("wrong-result: ")
    assert exit_code_of(done) is ExitCode.WRONG_OR_BROKEN


def test_sessions_that_the_rig_spoils_are_tried_as_often_as_asked_and_no_more(calibrate: Any) -> None:
    done = list(profile_all(calibrate(FakeDevice(fails={"session": RigFailure("no adb")}), 4).values(), RULES))
    assert "infra-error: no adb" in done[0].reasons[0]
    assert exit_code_of(done) is ExitCode.RIG_FAILURE


def test_too_few_usable_sessions_are_inconclusive_with_their_reasons() -> None:
    records = [*sessions(10, 3), a_record(wall_ms=[5.0] * 10)]
    (done,) = profile_all([records], RULES)
    assert done.profile is None
    assert "3 usable sessions; at least 4 are needed" in done.reasons[0]
    assert "session 4" in done.reasons[1]
    assert exit_code_of([done]) is ExitCode.NOTHING_MEASURED
    assert exit_code_of([done, CalibrationResult(done.key, a_profile())]) is ExitCode.GOOD


def test_a_case_that_was_once_wrong_has_no_noise_profile_and_a_lost_session_is_named() -> None:
    wrong = a_record(outcome=Outcome.WRONG_RESULT, message="off by 3")
    (done,) = profile_all([[*sessions(10, 8), wrong]], RULES)
    assert (done.profile, done.reasons) == (None, ("wrong-result: off by 3",))
    assert exit_code_of([done]) is ExitCode.WRONG_OR_BROKEN
    lost = a_record(outcome=Outcome.DEVICE_LOST, message="gone")
    (done,) = profile_all([[lost, *sessions(10, 8), lost]], RULES)
    assert done.profile
    assert done.reasons[0] == "device-lost: gone (2 sessions did not end well)"
    assert exit_code_of([done]) is ExitCode.GOOD


def test_an_emulated_path_has_no_noise_profile() -> None:
    (done,) = profile_all([[a_record(emulated=("gpu", "opencl"))]], RULES)
    assert "the path opencl is emulated" in done.reasons[0]
    assert exit_code_of([done]) is ExitCode.NOTHING_MEASURED


def test_a_noise_profile_reads_back_and_says_what_can_be_seen(tmp_path: Path) -> None:
    made = a_profile()
    assert made.save(tmp_path / PROFILES)
    assert not made.save(tmp_path / PROFILES)
    read = find_profile(tmp_path, IDENTITY.key, CASE)
    assert read == made
    assert made.sessions == 16 - len(made.left_out)
    assert 9 < made.location_ms < 11
    shown = [one.change or 0 for one in made.smallest_detectable]
    assert shown == sorted(shown, reverse=True)
    assert shown[1] == pytest.approx(estimate_of(made).smallest_detectable(4), rel=1e-3)


def test_no_baseline_is_taken_for_a_noise_profile_nor_the_other_way_round(tmp_path: Path) -> None:
    from harness.judge import baseline

    blessing = blessing_of(sessions(10))
    assert blessing.baseline
    blessing.baseline.save(tmp_path)
    a_profile().save(tmp_path / PROFILES)
    assert baseline.load(tmp_path) == [blessing.baseline]
    with pytest.raises(UsageError, match="is no baseline"):
        baseline.load(tmp_path / PROFILES)
    assert find_profile(tmp_path, IDENTITY.key, CASE)


def changed(name: str, value: object) -> Callable[[str], str]:
    return lambda text: json.dumps({**json.loads(text), name: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed("sd", 0.001), "was edited by hand since it was written"),
        (changed("sd", 0), "is no noise profile of schema 1"),
        (changed("sd", -1), "at `$.sd`"),
        (changed("sd", "NaN"), "at `$.sd`"),
        (changed("df", 1e999), "is no noise profile ("),
        (changed("sd", 1e300), "at `$.sd`"),
        (changed("sd", 1e-300), "at `$.sd`"),
        (changed("sessions", 1), "at `$.sessions`"),
        (changed("schema", 0), "at `$.schema`"),
        (changed("new_field", 1), "unknown field `new_field`"),
        (changed("case", "../../x"), "edited by hand"),
        (lambda text: text[:50], "is no noise profile ("),
        (lambda text: "", "is no noise profile ("),
    ],
)
def test_a_noise_profile_that_is_not_good_is_one_line(tmp_path: Path, change: Any, message: str) -> None:
    a_profile().save(tmp_path / PROFILES)
    file = tmp_path / PROFILES / IDENTITY.key / f"{CASE}.json"
    file.write_text(change(file.read_text()))
    with pytest.raises(UsageError) as caught:
        find_profile(tmp_path, IDENTITY.key, CASE)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@given(samples=st.lists(st.lists(st.floats(), max_size=12), max_size=8))
def test_whatever_the_sessions_hold_there_is_a_good_noise_profile_or_a_reason(samples: list[list[float]]) -> None:
    made = profile_of([a_record(wall_ms=times) for times in samples], RULES)
    if not isinstance(made, NoiseProfile):
        assert made
        return
    with tempfile.TemporaryDirectory() as folder:
        made.save(Path(folder))
        assert NoiseProfile.find(Path(folder), IDENTITY.key, CASE) == made


def test_a_noise_profile_of_outcomes_that_are_not_right_is_none() -> None:
    assert profile_of([a_record(outcome=Outcome.DEVICE_LOST)] * 5, RULES) == (
        "0 usable sessions; at least 4 are needed",
    )
