"""Which task is tried next: a function of what is known, so that a search that was stopped goes on as it would have.

Trials go where the time is: a task gets its next one when what it still costs in an inference, shared among the trials
that it has had, is the most. A task that a trial made ten times as fast falls back by as much.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

THROTTLED = "throttled"
"""Outcome of a trial whose time was taken back, as heat slowed the device down."""
UNTUNED = -1
"""Stands in place of a seed for TVM's own schedule, which is the base of comparisons and no trial."""
CONTENDERS, NEAR = 3, 1.2
"""Most candidates of a task to measure again, and the most that one may take, relative to the best."""


@dataclass(frozen=True)
class Task:
    """One function of a network that a schedule is looked for."""

    task: str
    """Structural hash of the task."""
    name: str
    calls: int
    """Number of its calls in an inference."""
    shapes: tuple[str, ...]
    cost_ms: float
    """All its calls in an inference of the untuned network, by the profile."""

    @property
    def untuned_ms(self) -> float:
        """One call, by the profile."""
        return self.cost_ms / self.calls


class Trial(BaseModel):
    """Result of one candidate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str = Field(pattern=r"^[0-9a-f]{16}$")
    seed: int = Field(ge=0)
    outcome: str
    """`ok`, or whose fault it is that it is not (`harness.base.outcome`)."""
    message: str = ""
    """One line: why it is not `ok`."""
    ms: float | None = None
    """Median time of its kernels in one call; only if it is right."""
    max_rel_err: float | None = None
    device: str = ""
    """What a person types for the device that measured it."""
    kind: Literal["trial"] = "trial"

    @property
    def right(self) -> bool:
        """Whether it was judged right, and timed."""
        return self.ms is not None


@dataclass
class TaskStanding:
    """What is known of one task so far."""

    task: Task
    trials: dict[int, Trial] = field(default_factory=dict)

    @property
    def best(self) -> Trial | None:
        """The fastest that is right; None if none is."""
        right = [trial for trial in self.trials.values() if trial.ms is not None]
        return min(right, key=lambda trial: trial.ms or 0.0, default=None)

    @property
    def contenders(self) -> list[Trial]:
        """The best, and those so near it that another measurement may turn them round."""
        right = sorted((trial.ms, trial.seed) for trial in self.trials.values() if trial.ms is not None)
        return [self.trials[seed] for ms, seed in right[:CONTENDERS] if ms <= NEAR * right[0][0]]

    @property
    def gain(self) -> float:
        """How many times as fast the best is as TVM's own schedule; at least 1, as nothing slower is taken."""
        best = self.best
        return max(1.0, self.task.untuned_ms / best.ms) if best and best.ms else 1.0

    @property
    def cost_ms(self) -> float:
        """What it costs in an inference with the best so far, by the profile of the untuned network."""
        return self.task.cost_ms / self.gain


class Search:
    """All tasks of a network, and what was tried."""

    def __init__(self, tasks: Iterable[Task], trials: Iterable[Trial] = ()) -> None:
        self.standings = {task.task: TaskStanding(task) for task in tasks}
        for trial in trials:
            self.add(trial)

    def add(self, trial: Trial) -> None:
        """Take account of a trial; one of a task that is not here says nothing."""
        if standing := self.standings.get(trial.task):
            standing.trials[trial.seed] = trial

    @property
    def tried(self) -> int:
        """Candidates so far."""
        return sum(len(standing.trials) for standing in self.standings.values())

    def next(self, number: int, begun: Iterable[tuple[Task, int]] = ()) -> list[tuple[Task, int]]:
        """Return the next candidates after those that are `begun`, as task and seed."""
        pending: dict[str, set[int]] = {key: set() for key in self.standings}
        for task, seed in begun:
            pending[task.task].add(seed)
        chosen: list[tuple[Task, int]] = []
        for _ in range(number if self.standings else 0):
            standing = max(
                self.standings.values(),
                key=lambda task: task.cost_ms / (1 + len(task.trials) + len(pending[task.task.task])),
            )
            mine = pending[standing.task.task]
            seed = next(seed for seed in count() if seed not in standing.trials and seed not in mine)
            mine.add(seed)
            chosen.append((standing.task, seed))
        return chosen

    def inference_ms(self, kernels_ms: float) -> float:
        """Return what an inference would take with the best of each task, if the untuned one takes `kernels_ms`."""
        saved = sum(standing.task.cost_ms - standing.cost_ms for standing in self.standings.values())
        return kernels_ms - saved


def commonest_reason(trials: Sequence[Trial]) -> str:
    """Return why most of the trials that were not right were not, for people; empty if all were."""
    reasons = [trial.message or trial.outcome for trial in trials if not trial.right]
    if not reasons:
        return ""
    most = max(dict.fromkeys(reasons), key=reasons.count)
    return f"{reasons.count(most)} of {len(trials)}: {most}"
