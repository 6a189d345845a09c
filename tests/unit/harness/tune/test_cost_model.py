"""What chooses candidates: at random while little is known, and by what was learned afterwards."""

from __future__ import annotations

import sys
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from device_runner.failures import RigFailure, SetupMissing
from harness.build.artifact import FEATURES, Answers
from harness.tune.boosted import EXPLORE, POOL, WARM, Boosted
from harness.tune.cost_model import CostModel
from harness.tune.search import Search, Task, Trial, in_order

TASK = Task("a" * 16, "conv", 1, (), 10.0)
FASTEST = 20
"""The seed that a table calls best."""


class Linear:
    """Stands in for xgboost: what is near the best row that it has seen is good."""

    class DMatrix:
        def __init__(self, rows: Any, scores: Any = None) -> None:
            self.rows, self.scores = rows, scores

    @staticmethod
    def train(settings: Any, told: Any, rounds: int) -> Any:
        best = told.rows[told.scores.argmax()]
        return SimpleNamespace(predict=lambda asked: -np.abs(asked.rows - best).sum(1))


def described(folder: Path, *, rows: bool = True) -> Any:
    """Rows that say how far a seed is from the fastest; there is none for every seventh."""
    asked: list[range] = []

    def describe(task: Task, seeds: range) -> Future[Any]:
        asked.append(seeds)
        table = np.array([[abs(seed - FASTEST)] if seed % 7 else [np.nan] for seed in seeds], np.float32)
        place = folder / str(seeds.start)
        place.mkdir()
        np.save(place / FEATURES, table)
        future = Future[Any]()
        future.set_result(Answers(place, reused=False) if rows else RigFailure("no"))
        return future

    describe.asked = asked  # type: ignore[attr-defined]
    return describe


def tried(search: Search, *seeds: int) -> None:
    for seed in seeds:
        search.add(Trial(task=TASK.task, seed=seed, outcome="ok", ms=1.0 + abs(seed - FASTEST)))


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> Search:
    monkeypatch.setitem(sys.modules, "xgboost", Linear)
    return Search([TASK])


def test_until_enough_is_known_candidates_are_drawn_at_random(search: Search, tmp_path: Path) -> None:
    search.choose = Boosted(search, described(tmp_path))
    assert [seed for _, seed in search.next(WARM)] == list(range(WARM))


def test_what_was_learned_chooses_a_seed_that_a_schedule_belongs_to(search: Search, tmp_path: Path) -> None:
    choose = Boosted(search, described(tmp_path))
    tried(search, *range(1, WARM), 19, 30)
    standing = search.standings[TASK.task]
    assert choose(standing, set()) in {18, 20, 22}  # 21 is as good as 19, and has no schedule
    assert choose(standing, {18, 20}) == 22


def test_now_and_then_one_is_drawn_at_random_all_the_same(search: Search, tmp_path: Path) -> None:
    choose = Boosted(search, described(tmp_path))
    tried(search, *range(1, 3 * EXPLORE + 1))
    assert choose(search.standings[TASK.task], set()) == 0


def test_more_seeds_are_described_when_half_of_them_are_used_up(search: Search, tmp_path: Path) -> None:
    describe = described(tmp_path)
    choose = Boosted(search, describe)
    choose(search.standings[TASK.task], set())
    tried(search, *range(POOL // 2))
    choose(search.standings[TASK.task], set())
    assert describe.asked == [range(POOL), range(POOL, 2 * POOL)]


def test_a_task_that_could_not_be_described_is_left_to_chance(search: Search, tmp_path: Path) -> None:
    choose = Boosted(search, described(tmp_path, rows=False))
    tried(search, *range(1, WARM + 2))
    standing = search.standings[TASK.task]
    assert choose(standing, set()) == in_order(standing, set()) == 0


def test_without_xgboost_the_command_that_installs_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.tune.cost_model.find_spec", lambda name: None)
    CostModel.RANDOM.require()
    with pytest.raises(SetupMissing, match=r"needs xgboost: pip install 'adreno-bench\[xgb\]'"):
        CostModel.XGB.require()
