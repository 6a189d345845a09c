"""Chooses the next schedule of a task by what was learned of those that were tried.

The model is gradient-boosted trees (Chen and Guestrin 2016) over TVM's features of a schedule, as in
MetaSchedule's own `XGBModel`. That one learns nothing from fewer than a hundred trials and wants TVM's modules in the
process that searches; ours are described by workers, beside the builds.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.build.artifact import FEATURES, Answers
from harness.tune.search import in_order

if TYPE_CHECKING:
    from harness.tune.search import Search, Standing, Task

Describe = Callable[["Task", range], "Future[Any]"]
"""Begins to describe the schedules of some seeds of a task."""

POOL = 32
"""Seeds of a task that the model chooses from; so many more when they are used up."""
WARM = 8
"""Trials, of all tasks, before it is asked."""
EXPLORE = 4
"""Of so many candidates of a task one is drawn at random, or the model would only see what it likes."""
ROUNDS = 40
SETTINGS = {"max_depth": 5, "eta": 0.2, "min_child_weight": 0, "nthread": 1, "seed": 1}


@dataclass
class _Pool:
    """The seeds of one task that were, or are being, described."""

    asked: int = 0
    begun: dict[int, Future[Any]] = field(default_factory=dict)
    """What was not read yet, by its first seed."""
    rows: dict[int, Any] = field(default_factory=dict)
    """Of the seeds that a schedule belongs to."""

    def read(self) -> None:
        """Take what is done. What could not be described is left to chance."""
        import numpy as np

        for first in [first for first, future in self.begun.items() if future.done()]:
            made = self.begun.pop(first).result()
            if isinstance(made, Answers):
                table = np.load(made.folder / FEATURES, allow_pickle=False)
                self.rows.update({first + at: row for at, row in enumerate(table) if np.isfinite(row).all()})


class Boosted:
    """Chooses the seed that trees over the features of all that was tried call the best. It is a `Chooser`."""

    def __init__(self, search: Search, describe: Describe) -> None:
        self._search = search
        self._describe = describe
        self._pools: dict[str, _Pool] = {}
        """By task."""
        self._learned = 0
        """From so many trials."""
        self._trees: Any = None

    def __call__(self, standing: Standing, pending: Set[int]) -> int:
        """As `Chooser` says: while nothing is known, and now and then later, as if there were no model."""
        taken = pending | standing.trials.keys()
        rows = self._described(standing.task)
        free = [seed for seed in rows if seed not in taken]
        if self._search.tried < WARM or len(taken) % EXPLORE == 0 or not free:
            return in_order(standing, pending)
        self._learn()
        return self._best(rows, free)

    def _described(self, task: Task) -> dict[int, Any]:
        """What is known of a task's seeds by now; more are asked for when half of them are used up."""
        pool = self._pools.setdefault(task.task, _Pool())
        if 2 * len(self._search.standings[task.task].trials) >= pool.asked:
            pool.begun[pool.asked] = self._describe(task, range(pool.asked, pool.asked + POOL))
            pool.asked += POOL
        pool.read()
        return pool.rows

    def _learn(self) -> None:
        """Learn from what was tried, if there is more of it than before: how near each came to the best of its task."""
        import numpy as np
        import xgboost

        if self._trees is not None and self._learned == self._search.tried:
            return
        self._learned = self._search.tried
        known: list[tuple[Any, float]] = []
        for task, standing in self._search.standings.items():
            rows, best = self._pools[task].rows if task in self._pools else {}, standing.best
            for seed, trial in standing.trials.items():
                if seed in rows:
                    known.append((rows[seed], best.ms / trial.ms if best and best.ms and trial.ms else 0.0))
        if known:
            told = xgboost.DMatrix(np.array([row for row, _ in known]), np.array([score for _, score in known]))
            self._trees = xgboost.train(SETTINGS, told, ROUNDS)

    def _best(self, rows: dict[int, Any], free: list[int]) -> int:
        import numpy as np
        import xgboost

        if self._trees is None:
            return min(free)
        return free[int(self._trees.predict(xgboost.DMatrix(np.array([rows[seed] for seed in free]))).argmax())]
