"""New schedules in a file that has some."""

from __future__ import annotations

from fake_schedules import ORIGIN, a_schedule

from harness.compile.schedules.database import Schedules
from harness.tools.tune.tune import with_newer


def test_a_task_has_one_schedule_and_the_newer_one_takes_its_place() -> None:
    first, better = a_schedule(ms=2.0), a_schedule(ms=1.0)
    assert with_newer(Schedules(ORIGIN, (first,)), [better]).records == (better,)
