"""Sessions that cannot carry a verdict, through the gate, the comparison of files and the history.

Whatever they are like, what comes out says what is missing, and is never a number that means nothing.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_records import sessions
from history_results import Folder, both
from typer.testing import CliRunner

from benchmarks.simulated_gate import run_gate
from harness.base.outcome import ExitCode
from harness.cli import app
from harness.judge.compare import Comparison
from harness.judge.history.events import events, short_series
from harness.judge.history.results import load
from harness.judge.report.summary import facts, lines
from harness.judge.verdict import Verdict
from harness.measure.records.record import Record

CASE = "tiny-opencl-float32-untuned"
BASE, HEAD = "2026-01-01", "2026-01-02"


def compared(tmp_path: Path, base: Sequence[Record], head: Sequence[Record]) -> tuple[int, dict[str, Any]]:
    """What `compare` says of two files: its exit code, and the one case."""
    files = [_written(tmp_path / name, records) for name, records in (("base.jsonl", base), ("head.jsonl", head))]
    done = CliRunner().invoke(app, ["compare", *map(str, files), "--json"])
    (case,) = json.loads(done.output)["cases"]
    return done.exit_code, case


def _written(file: Path, records: Sequence[Record]) -> Path:
    file.write_text("".join(record.line() + "\n" for record in records))
    return file


def at(moments: Sequence[str], records: Sequence[Record]) -> list[Record]:
    """The same sessions, begun then."""
    return [
        record.model_copy(update={"started_at": f"{moment}:00:00.000+00:00"})
        for record, moment in zip(records, moments, strict=True)
    ]


def in_turns(base: Sequence[Record], head: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    hours = [f"{BASE}T{hour:02d}" for hour in range(24)]
    return at(hours[0 : 2 * len(base) : 2], base), at(hours[1 : 2 * len(head) : 2], head)


# Fewer than two sessions, and sessions that are there twice.


def test_one_session_of_each_file_says_to_run_more(tmp_path: Path) -> None:
    code, case = compared(tmp_path, sessions(10, 1), sessions(13, 1, seed=1, artifact="b"))
    assert (code, case["verdict"]) == (ExitCode.UNDECIDED, "inconclusive")
    assert "1 session against 1: too few to measure the noise between them: run more" in str(case["reasons"])
    assert case["low"] is None


def test_a_session_that_is_in_a_file_several_times_counts_once(tmp_path: Path) -> None:
    base, head = in_turns(sessions(10, 2), sessions(10.6, 2, seed=3, artifact="b"))
    once = compared(tmp_path, base, head)
    assert once == compared(tmp_path, base * 6, head * 6)
    assert once[1]["verdict"] == "inconclusive"


# Samples that are all alike, no numbers, or of a clock that is too coarse.


@pytest.mark.parametrize("bad", [20.0, math.nan, 0.0, -1.0, math.inf])
def test_a_device_whose_samples_say_nothing_gets_no_verdict_and_no_number(bad: float) -> None:
    case = run_gate(lambda chance: Spoilt(chance, bad), 0.0, 1)
    assert case.verdict is Verdict.INCONCLUSIVE
    assert case.change
    assert math.isnan(case.change.relative)
    assert any("the clock is too coarse" in reason or "no times" in reason for reason in case.reasons)


@pytest.mark.parametrize("bad", [math.nan, 0.0])
def test_sessions_without_a_time_are_left_out_and_named(tmp_path: Path, bad: float) -> None:
    base, head = in_turns(sessions(10, 6), sessions(12, 6, seed=1, artifact="b"))
    torn = [record.model_copy(update={"wall_ms": [bad] * 10}) for record in head[:2]] + head[2:]
    _, case = compared(tmp_path, base, torn)
    assert (case["verdict"], case["sessions"]) == ("slower", [6, 4])
    assert str(case["reasons"]).count("10 of 10 samples are no times") == 2
    none = [record.model_copy(update={"wall_ms": [bad] * 10}) for record in head]
    code, case = compared(tmp_path, base, none)
    assert (code, case["verdict"], case["relative"]) == (ExitCode.NOTHING_MEASURED, "inconclusive", None)


@pytest.mark.parametrize(("within", "between"), [(0.01, 0.005), (0.005, 0.003)])
def test_ticks_coarser_than_what_is_relevant_exclude_nothing_and_invent_nothing(within: float, between: float) -> None:
    """A clock of 1 ms under a latency of 20 to 21, whose sessions it rounds alike."""
    stepped, still = (judged(lambda chance: Coarse(chance, within, between), step, 25) for step in (0.03, 0.0))
    assert not any(case.verdict is Verdict.SAME for case in (*stepped, *still))
    assert not any(case.verdict.changed for case in still)
    open_still = [case for case in still if case.change and math.isfinite(case.change.relative)]
    assert open_still
    told = ("the clock ticks by", "too few to measure the noise", "can be used")
    assert all(any(one in str(case.reasons) for one in told) for case in open_still)
    assert not any(case.change and case.change.sees <= 0.03 for case in open_still)


# A clock that jumped, and sessions out of order.


def test_a_device_that_jumps_to_another_clock_once_or_for_a_while_is_no_build_that_changed() -> None:
    for size in (0.1, 0.3):
        found = Counter(case.verdict for case in judged(partial(Jumping, size=size), 0.0, 30))
        assert found[Verdict.SLOWER] + found[Verdict.FASTER] <= 1, f"{size}: 1 % for both"


@pytest.mark.parametrize("jumped", ["1970-01-01T00", "2031-01-01T00"])
def test_a_clock_that_was_not_set_puts_no_session_of_another_day_in_turns(tmp_path: Path, jumped: str) -> None:
    hours = [f"T{hour:02d}" for hour in range(6)]
    base = at([BASE + hour for hour in hours], sessions(10, 6))
    head = at([HEAD + hour for hour in hours[:5]] + [jumped], sessions(11, 6, seed=3, artifact="b"))
    code, case = compared(tmp_path, base, head)
    assert (code, case["verdict"]) == (ExitCode.UNDECIDED, "inconclusive")
    assert "days of this device lie 2.0% apart by themselves" in str(case["reasons"])


def test_where_a_file_is_out_of_order_nobody_knows_the_latest_build(tmp_path: Path) -> None:
    hours = [f"T{hour:02d}" for hour in range(4)]
    old, new = (
        at([day + hour for hour in hours], sessions(ms, artifact=build))
        for day, ms, build in ((BASE, 10, "a"), (HEAD, 12, "b"))
    )
    assert compared(tmp_path, old, old + new)[1]["head"]["artifact"] == "b"
    code, case = compared(tmp_path, old, new + old)
    assert (code, case["verdict"]) == (ExitCode.NOTHING_MEASURED, "inconclusive")
    assert f"is of {BASE}T03:00:00, and another build ran at {HEAD}T03:00:00: sort its records" in str(case["reasons"])
    assert case["sees"] is None


# Histories.


def history_of(tmp_path: Path, latencies: Sequence[float], *, records: bool = True) -> Folder:
    folder = Folder(tmp_path)
    for number, ms in enumerate(latencies):
        folder.commit(both(CASE, ms, ms), records=records, artifact=f"artifact {number}" if records else "")
    return folder


def test_a_history_of_few_commits_says_that_it_is_too_short(tmp_path: Path) -> None:
    history = load(history_of(tmp_path, [20.0, 20.1, 26.0], records=False).path)
    assert not events(history)
    assert len(short_series(history)) == 2
    assert any("2 series: fewer than 6 commits with a latency" in line for line in lines(history, markdown=False))
    assert len(facts(history)["machines"][0]["too_short"]) == 2


def test_where_the_machines_noise_is_known_a_short_history_is_judged(tmp_path: Path) -> None:
    assert not short_series(load(history_of(tmp_path, [20.0, 20.1, 26.0]).path))


@pytest.mark.parametrize("records", [True, False])
@pytest.mark.parametrize("bad", [math.nan, 0.0, -3.0])
def test_points_that_are_no_times_are_no_points(tmp_path: Path, bad: float, records: bool) -> None:
    chance = np.random.default_rng(1)
    latencies = [float(20 * (1.2 if place >= 20 else 1) * math.exp(0.005 * chance.normal())) for place in range(32)]
    latencies[7] = latencies[20] = bad
    history = load(history_of(tmp_path, latencies, records=records).path)
    (series, *_) = history.series
    assert {place for place, point in enumerate(series.points) if point.wall_ms is None} == {7, 20}
    found = [event for event in events(history) if event.series is series and event.step]
    assert [event.verdict for event in found] == [Verdict.SLOWER]
    assert found[0].step
    assert 1 + found[0].step.relative == pytest.approx(1.2, abs=0.02)


def judged(make: Callable[[np.random.Generator], Rig], step: float, trials: int) -> list[Comparison]:
    return [run_gate(make, step, trial, day_sd=0.0) for trial in range(trials)]


class Rig:
    """A device of 20 ms."""

    def __init__(self, chance: np.random.Generator) -> None:
        self.chance = chance

    def session(self, step: float = 0.0) -> list[float]:
        return self.around(20 * (1 + step), 0.01, 0.02)

    def around(self, ms: float, between: float, within: float) -> list[float]:
        logs = between * self.chance.normal() + within * self.chance.normal(size=10)
        return [float(one) for one in ms * np.exp(logs)]


class Spoilt(Rig):
    """After the session that was blessed, its clock says nothing any more."""

    def __init__(self, chance: np.random.Generator, bad: float) -> None:
        super().__init__(chance)
        self.next = self.around(20, 0.01, 0.02)
        self.bad = [bad] * 10

    def session(self, step: float = 0.0) -> list[float]:
        samples, self.next = self.next, self.bad
        return samples


class Coarse(Rig):
    """Its clock ticks once in a millisecond."""

    def __init__(self, chance: np.random.Generator, within: float, between: float) -> None:
        super().__init__(chance)
        self.within, self.between, self.ms = within, between, 20 + chance.uniform()

    def session(self, step: float = 0.0) -> list[float]:
        return [float(round(ms)) for ms in self.around(self.ms * (1 + step), self.between, self.within)]


class Jumping(Rig):
    """From some session on, perhaps for three sessions only, everything takes longer, or less."""

    def __init__(self, chance: np.random.Generator, size: float) -> None:
        super().__init__(chance)
        self.log, self.taken = size * chance.choice([-1, 1]), 0
        self.begins = int(chance.integers(2, 14))
        self.ends = self.begins + int(chance.choice([3, 1000]))

    def session(self, step: float = 0.0) -> list[float]:
        jumped = self.begins <= self.taken < self.ends
        self.taken += 1
        return self.around(20 * (1 + step) * math.exp(self.log if jumped else 0.0), 0.01, 0.02)
