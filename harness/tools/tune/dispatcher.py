"""The host's side of a search: hands candidates out to devices, takes the results, and keeps each as it happens.

<cache>/trials/<key>/trials.jsonl     of one network on one device: its tasks under one release, and one identity

A line for each trial, so that a search that was killed goes on where it was.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from device_runner.disk import disk_full
from device_runner.failures import Failure, RigFailure
from device_runner.files import append_lines
from device_runner.store import key_of
from harness.base.process import cores
from harness.compile.artifacts.artifact import Artifact
from harness.measure.correctness import Truth
from harness.tools.tune.search import THROTTLED, Search, Trial
from harness.tools.tune.workshop import Candidate, Workshop

ANY = 1_000_000
"""No limit but time."""


@dataclass(frozen=True)
class SearchBudget:
    """End of a search: a number of candidates, or of minutes."""

    trials: int | None = None
    minutes: float = 10.0

    def left(self, tried: int, began: float) -> int:
        """Return how many more candidates may come, of those tried since the monotonic time `began`."""
        if self.trials is not None:
            return max(0, self.trials - tried)
        return ANY if time.monotonic() - began < 60 * self.minutes else 0


@dataclass(frozen=True)
class TrialOrder:
    """A candidate, as a device takes it: all that is needed to try it. Plain values, which cross to another process."""

    task: str
    seed: int
    built: Artifact | Failure
    truth: Truth | Failure
    best_ms: float | None
    """Best time of its task so far."""

    def trial(self, outcome: str, message: str, device: str) -> Trial:
        """Return its outcome if it was not right."""
        return Trial(task=self.task, seed=self.seed, outcome=outcome, message=message[:200], device=device)


@dataclass(eq=False)
class Dispatcher:
    """Spends a budget. Candidates are built while devices run others: one for each core, and one for each device.

    A context manager: leaving it drops what was begun and no device took.
    """

    search: Search
    workshop: Workshop
    log: TrialLog
    budget: SearchBudget
    kernels_ms: float
    """Time of all kernels of an inference of the untuned network."""
    say: Callable[[str], None]
    devices: int = 1
    _began: float = field(default_factory=time.monotonic)
    _builds: dict[Candidate, Future[Any]] = field(default_factory=dict)
    _running: set[Candidate] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._tried_before = self.search.tried

    def __enter__(self) -> Dispatcher:
        return self

    def __exit__(self, *_: object) -> None:
        for future in self._builds.values():
            future.cancel()

    @property
    def over(self) -> bool:
        """Whether no more candidates come."""
        self._begin()
        return not self._builds or self._free <= 0

    def next(self) -> TrialOrder | None:
        """Return a candidate for a device, which has it until `keep`; None if none is built at the moment."""
        built = (
            None if self.over else next((candidate for candidate, build in self._builds.items() if build.done()), None)
        )
        if built is None:
            return None
        self._running.add(built)
        (task, seed), artifact = built, self._builds.pop(built).result()
        best = self.search.standings[task.task].best
        return TrialOrder(task.task, seed, artifact, self.workshop.truth(task), best.ms if best else None)

    @property
    def _free(self) -> int:
        """How many more candidates may come, those included that are being built."""
        return self.budget.left(self.search.tried - self._tried_before, self._began) - len(self._running)

    def _begin(self) -> None:
        count = min(cores() + 1 + self.devices, self._free) - len(self._builds)
        for candidate in self.search.next(max(0, count), [*self._builds, *self._running]):
            self._builds[candidate] = self.workshop.begin(candidate)

    def keep(self, trial: Trial) -> None:
        """Record a trial; it replaces an earlier one of the same candidate.

        It is kept before anything else happens, and then told to the terminal.
        """
        self.log.append(trial)
        self.search.add(trial)
        self._running.discard((self.search.standings[trial.task].task, trial.seed))
        if trial.outcome != THROTTLED:
            where = f" on {trial.device}" if self.devices > 1 else ""
            self.say(describe(self.search, trial, self.kernels_ms, where))


def describe(search: Search, trial: Trial, kernels_ms: float, where: str = "") -> str:
    """Describe a trial in one line: its result, and the network's time with the best schedules so far."""
    standing = search.standings[trial.task]
    which = f"trial {len(standing.trials)}{where}"
    came = trial.outcome if trial.ms is None else f"{trial.ms:.3g} ms"
    best = standing.best
    so_far = f" (best {best.ms:.3g} ms, {standing.gain:.3g} times as fast)" if best and best.ms else ""
    why = f": {trial.message}" if trial.message else ""
    network = f"{kernels_ms:.4g} -> {search.inference_ms(kernels_ms):.4g} ms"
    return f"{standing.task.name}: {which}: {came}{why}{so_far}; {search.tried} tried; the network's kernels {network}"


KIND = "trials"
FILE = "trials.jsonl"
LONGEST_LINE_BYTES = 16_384


class TrialLog:
    """The trials of one network on one device."""

    def __init__(self, cache: Path, tasks_key: str, identity_key: str, title: str) -> None:
        self._folder = cache / KIND / key_of({"tasks": tasks_key, "identity": identity_key})
        self._title = title

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Nobody else adds to it meanwhile. Raises RigFailure if somebody does."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / "title").write_text(f"{self._title}\n", encoding="utf-8")
            file = os.open(self._folder, os.O_RDONLY)
        except OSError as error:
            raise self._not_written(error) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise RigFailure(f"{self._title} is being tuned already", hint="wait for it, or end it") from None
        finally:
            os.close(file)

    def read(self) -> Iterator[Trial]:
        """Yield all trials so far. A line that was torn by a kill is left out: it is tried again."""
        file = self._folder / FILE
        if not file.exists():
            return
        with file.open("rb") as lines:
            for line in lines:
                if len(line) <= LONGEST_LINE_BYTES:
                    try:
                        yield Trial.model_validate_json(line)
                    except ValidationError:
                        continue

    def append(self, trial: Trial) -> None:
        """Keep a trial. Raises RigFailure if the disk refuses it."""
        try:
            append_lines(self._folder / FILE, trial.model_dump_json(exclude_defaults=True).encode() + b"\n")
        except OSError as error:
            raise self._not_written(error) from error

    def _not_written(self, error: OSError) -> RigFailure:
        return disk_full(error, self._folder.parent) or RigFailure(
            f"cannot keep trials in {self._folder}: {error.strerror}", hint="set ADRENO_BENCH_CACHE to another folder"
        )
