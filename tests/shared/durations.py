"""The seconds that each test took, in `tests/durations.json`: the order of a run, and a table of the longest.

Only the proportions count: another machine needs other seconds, and about the same order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from places import ROOT

FILE = ROOT / "tests" / "durations.json"
LEAST_S = 0.5
"""Shorter tests are left out: there are thousands, and they change no order."""


def load_durations(file: Path = FILE) -> dict[str, float]:
    """Seconds by test; empty without a file."""
    durations: dict[str, float] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return durations


def store_durations(seconds: Mapping[str, float], file: Path = FILE) -> None:
    """Store the seconds of tests that have just run; those of other tests stay, as long as their files exist."""
    old = {test: s for test, s in load_durations(file).items() if (ROOT / test.partition("::")[0]).exists()}
    long = {test: round(s, 1) for test, s in seconds.items() if s >= LEAST_S}
    durations = {test: s for test, s in old.items() if test not in seconds} | long
    file.write_text(json.dumps(dict(sorted(durations.items())), indent=0) + "\n", "utf-8")


def seconds_by_file(tests: list[str], durations: Mapping[str, float]) -> dict[str, float]:
    """Seconds that these tests need, by file."""
    sums: dict[str, float] = {}
    for test in tests:
        file = test.partition("::")[0]
        sums[file] = sums.get(file, 0.0) + durations.get(test, 0.0)
    return sums
