"""What verdicts take: one of them, a suite of many series, and the steps of many histories. Processor time of one core.

    OMP_NUM_THREADS=1 python -m benchmarks.verdict_speed [SERIES] [SESSIONS] [COMMITS]

A suite is compared as two files are (`harness.judge.compare`), half of the sessions on each side; one verdict in turns
is the engine's at every look (`harness.judge.stats.engine`). A history's steps are found as a site does
(`harness.judge.history.events`): every series looked at, with what all of them tell of each other. Prints Markdown.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from harness.base.case import Case, Precision
from harness.base.outcome import Outcome
from harness.base.request import WITH_WORKAROUNDS
from harness.base.tables import markdown_table
from harness.judge.compare import compare_sides
from harness.judge.history.events import events
from harness.judge.history.results import History, Point, Series
from harness.judge.sides import SeriesKey, Side
from harness.judge.stats.engine import TurnPlan, judge_turns, turns_of
from harness.judge.stats.turns import order

MACHINE = "phone"
WITHIN, BETWEEN = 0.02, 0.012
SAMPLES = 12
LOOKED_AT = 50
"""Series of a history of each length; the time of a thousand is that of these, times so many."""


def main(series: str = "1000", sessions: str = "64", commits: str = "2000") -> None:
    """Print the table."""
    count, taken, long = int(series), int(sessions), int(commits)
    rows = [("one verdict in turns, 32 sessions", f"{1e3 * _verdict():.2f} ms", "≤ 5 ms")]
    suite = _of(lambda: compare_sides(*_suite(count, taken)), less=lambda: _suite(count, taken))
    rows.append((f"{count:,} series of {taken} sessions, compared", f"{suite:.1f} s", "≤ 10 s"))
    for what, step, drift in HISTORIES:
        for length in (long // 4, long // 2, long, 2 * long):
            history = _history(LOOKED_AT, length, step, drift)
            spent = _of(partial(events, history)) * count / LOOKED_AT
            goal = "≤ 60 s" if length == long else ""
            rows.append((f"{count:,} series of {length:,} commits, {what}", f"{spent:.1f} s", goal))
    print(markdown_table(rows, ("what", "processor time", "goal")))


HISTORIES = (
    ("one in ten with a step", 0.06, 0.0),
    ("all drift", 0.0, 0.0002),
    ("all drift, all with a step", 0.06, 0.0002),
)
"""The step, and the drift in a commit: 40 % in 2,000."""


def _of(work: Callable[[], object], less: Callable[[], object] = lambda: None) -> float:
    """Processor seconds of this process, less what preparing it takes."""
    moments = [time.process_time()]
    for one in (less, work):
        one()
        moments.append(time.process_time())
    before, there, done = moments
    return done - there - (there - before)


def _verdict() -> float:
    """Seconds of one verdict, sessions summarised, on the average over all looks of a plan."""
    chance, plan = np.random.default_rng(1), TurnPlan()
    arms = [arm for arm, _ in zip(order("speed"), range(plan.most_sessions), strict=False)]
    taken = list(zip(arms, _sessions(chance, len(arms)), strict=True))
    judge_turns(turns_of(taken), plan)  # imports scipy
    looks = range(4, len(taken) + 1, 4)
    return _of(lambda: [judge_turns(turns_of(taken[:end]), plan) for end in looks]) / len(looks)


def _sessions(chance: np.random.Generator, count: int) -> list[list[float]]:
    logs = BETWEEN * chance.normal(size=(count, 1)) + WITHIN * chance.normal(size=(count, SAMPLES))
    sessions: list[list[float]] = (20 * np.exp(logs)).tolist()
    return sessions


def _suite(series: int, sessions: int) -> tuple[dict[SeriesKey, Side], dict[SeriesKey, Side]]:
    chance = np.random.default_rng(2)
    keys = [SeriesKey(MACHINE, case.id) for case in _cases(series)]
    sides: list[dict[SeriesKey, Side]] = [
        {
            key: Side(key, Outcome.OK, sessions=tuple(map(tuple, _sessions(chance, sessions // 2))), artifact=artifact)
            for key in keys
        }
        for artifact in ("base", "head")
    ]
    return sides[0], sides[1]


def _cases(series: int) -> list[Case]:
    return [Case(f"m{number}", "opencl", Precision.FLOAT32) for number in range(series)]


def _history(series: int, commits: int, step: float, drift: float) -> History:
    """Of one machine. Every commit builds another artifact."""
    chance, names = np.random.default_rng(3), [f"{number:040x}" for number in range(commits)]
    places = np.arange(commits)
    found = []
    for number, case in enumerate(_cases(series)):
        logs = BETWEEN * chance.normal(size=commits) + drift * places
        logs += step * (places > 0.6 * commits) * (number % 10 == 0 or drift > 0)
        found.append(Series(MACHINE, case, WITH_WORKAROUNDS, _points(names, (20 * np.exp(logs)).tolist())))
    return History({MACHINE: {}}, found, {MACHINE: names})


def _points(commits: Sequence[str], latencies: Sequence[float]) -> list[Point]:
    return [
        Point(commit, number, Outcome.OK, wall_ms=ms, artifact=commit)
        for number, (commit, ms) in enumerate(zip(commits, latencies, strict=True))
    ]


if __name__ == "__main__":
    main(*sys.argv[1:])
