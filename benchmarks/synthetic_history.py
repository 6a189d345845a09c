"""Long histories as no device has run them: latencies that wander, steps, outliers, and times when a case was wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator

from harness.base.case import Case, Precision
from harness.base.outcome import Outcome
from harness.judge.history.asv_process import QUIRKS
from harness.judge.history.results import History, Point, Series

MACHINE = "SM8650-Adreno-750-example"
DAY_MS, FIRST_MS = 86_400_000, 1_500_000_000_000
PRECISIONS = (Precision.FLOAT32, Precision.FLOAT16_ACC32)
KINDS = [
    *((path, precision) for path in ("opencl", "texture") for precision in PRECISIONS),
    ("clml", Precision.FLOAT32),
]
BAD = (Outcome.WRONG_RESULT, Outcome.COMPILE_ERROR, Outcome.RUNTIME_ERROR)


def history(commits: int, series: int, seed: int = 1) -> History:
    """Return a history of so many commits and series, ten series for each model."""
    rng = random.Random(seed)
    hashes = [f"{rng.getrandbits(160):040x}" for _ in range(commits)]
    made = [_series(number, hashes, rng) for number in range(series)]
    machine = {"machine": MACHINE, "soc": "SM8650", "gpu": "Adreno 750", "driver": "example"}
    return History({MACHINE: machine}, made, {MACHINE: hashes})


def _series(number: int, hashes: list[str], rng: random.Random) -> Series:
    model, rest = divmod(number, len(KINDS) * len(QUIRKS))
    kind, quirks = divmod(rest, len(QUIRKS))
    case = Case(f"model_{model}", *KINDS[kind])
    return Series(MACHINE, case, QUIRKS[quirks], list(_points(hashes, rng)))


def _points(hashes: list[str], rng: random.Random) -> Iterator[Point]:
    level_ms, bad, left = rng.uniform(5, 500), None, 0
    for place, commit in enumerate(hashes):
        if left == 0:
            bad, left = (rng.choice(BAD), rng.randint(1, 40)) if rng.random() < 0.003 else (None, 1)
        left -= 1
        if rng.random() < 0.002:
            level_ms *= rng.choice((0.7, 0.85, 1.2, 1.4))
        level_ms *= rng.gauss(1, 0.001)
        date_ms = FIRST_MS + place * DAY_MS
        if bad:
            told = f"{bad.value} of a made-up history, as it would be told in one line of ordinary length"
            yield Point(commit, date_ms, bad, told, tvm="0.27.0")
        else:
            wall_ms = level_ms * rng.gauss(1, 0.01) * (2 if rng.random() < 0.0005 else 1)
            yield Point(commit, date_ms, Outcome.OK, "", wall_ms, wall_ms * 0.99, wall_ms * 1.01, tvm="0.27.0")
