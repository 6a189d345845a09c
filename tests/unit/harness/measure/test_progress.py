"""How far a run has come, and when a silence is broken."""

from __future__ import annotations

import re
import sys

import pytest
from fake_records import a_record

from harness.judge.report.screen import Screen
from harness.measure.progress import Silence, Tally
from harness.tools.shared.revision_search import Pace


class Hands:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_what_is_left_takes_as_long_as_what_is_done_did() -> None:
    clock = Hands()
    tally = Tally(clock)
    assert str(tally) == ""
    tally.expect(9)
    assert str(tally) == "0 of 9"
    clock.now += 30
    for _ in range(3):
        tally.did()
    assert str(tally) == "3 of 9, about 60 s left"
    clock.now += 270
    assert str(tally) == "3 of 9, about 10 min left"


def test_a_search_is_timed_by_the_mean_of_its_steps() -> None:
    clock = Hands()
    pace = Pace(clock)
    assert pace.left(5) == ""
    for seconds in (60, 180):
        with pace.step():
            clock.now += seconds
        clock.now += 1000  # between two steps somebody else works
    assert pace.left(5) == ", about 10 min left"


def test_what_nobody_expected_counts_for_nothing_and_a_second_round_starts_anew() -> None:
    clock = Hands()
    tally = Tally(clock)
    tally.expect(1)
    tally.did()
    tally.did()
    assert str(tally) == ""
    clock.now += 1000
    tally.expect(2)
    clock.now += 10
    tally.did()
    assert str(tally) == "1 of 2, about 10 s left"


def test_a_silence_is_broken_after_five_seconds_and_ever_more_rarely() -> None:
    clock = Hands()
    silence = Silence(clock)
    spoke = []
    for second in range(1, 300):
        clock.now = 100 + second
        if silence.too_long:
            spoke.append(second)
    assert spoke == [5, 15, 35, 75, 135, 195, 255]
    silence.broken()
    clock.now += 5
    assert silence.too_long


def test_a_pipe_is_told_how_far_it_has_come_and_what_takes_so_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.judge.report.screen.LOOK_S", 0.001)
    monkeypatch.setattr(Silence, "FIRST_S", 0.05)
    monkeypatch.setattr(Silence, "LONGEST_S", 0.05)
    said = ""
    with Screen() as screen:
        screen.build("tiny-opencl", "queued", 0)
        screen.build("tiny-opencl", "building", 0)
        screen.build("tiny-opencl", "building: lower", 2)
        while "still: " not in said:
            said += capsys.readouterr().err
        screen.build("tiny-opencl", "built", 3)
        screen.begin(2)
        screen.step("tiny-opencl-float32-untuned", "first run")
        screen.done(a_record())
    said += capsys.readouterr().err
    assert "still: built 0 of 1; building tiny-opencl: lower\n" in said
    assert "built tiny-opencl in 3.0 s\n" in said
    assert "tiny-opencl-float32-untuned: ok (1 of 2, about " in said


def test_a_terminal_shows_what_the_device_is_at(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    with Screen() as screen:
        screen.begin(2)
        screen.step("tiny-opencl-float32-untuned", "first run")
        screen._live.refresh()
    said = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().err)
    assert "ran 0 of 2" in said
    assert "first run (the device" in said
    assert "kernels)" in said
    assert "…" not in said
    assert "0:00:0" in said
