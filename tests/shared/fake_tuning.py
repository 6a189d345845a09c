"""A search for schedules on a device whose candidates behave as a test says."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, cast

import numpy as np
from fake_device import ANSWER, FakeDevice, FakeProgram, FakeSession, a_plan
from fake_schedules import TRACE

from device_runner.device import Launch, Loadable, Steadiness, Toggles
from device_runner.failures import Failure, RigFailure
from device_runner.workers import Loss, Processes, WorkerPool, serve
from harness.compile.artifacts.artifact import Artifact, CompileResult
from harness.measure.correctness import Truth
from harness.tools.tune.candidate import TRACE as TRACE_FILE
from harness.tools.tune.devices import Devices
from harness.tools.tune.dispatcher import Dispatcher, SearchBudget, TrialLog
from harness.tools.tune.search import UNTUNED, Search, Task
from harness.tools.tune.search_worker import obey
from harness.tools.tune.winners import Winner, confirm_best

WAIT_S = 20
CHEAP, DEAR = (Task(letter * 16, f"conv_{letter}", 1, (), cost) for letter, cost in (("a", 10.0), ("b", 90.0)))
GIVEN = Truth([np.zeros((1, 3), np.float32)], [ANSWER], 1e-3)


@dataclass(frozen=True)
class Behaviour:
    """What a candidate does on the device."""

    ms: float = 1.0
    error: float = 0.0
    raises: Failure | None = None
    again_ms: float | None = None
    """In later sessions than the first; None for the same."""
    unseen: bool = False
    """Whether the probe sees none of its launches."""


@dataclass
class Program(FakeProgram):
    behaviour: Behaviour = field(default_factory=Behaviour)

    def run(self, inputs: Sequence[Any], *, timeout_s: float) -> tuple[list[Any], float]:
        if self.behaviour.raises:
            raise self.behaviour.raises
        return [ANSWER + self.behaviour.error], 1.0

    def launches(self, repeat: int, *, timeout_s: float) -> list[list[Launch]]:
        assert not self.behaviour.error, "a wrong answer was timed"
        if self.behaviour.unseen:
            return []
        again = self.behaviour.again_ms
        ms = again if again is not None and self.device.steps.count("session") > 1 else self.behaviour.ms
        task = Launch("task_kernel", (1, 1, 1), (1, 1, 1), 0, 0, 0, int(ms * 1e6))
        copy = Launch("copy_kernel", (1, 1, 1), (1, 1, 1), 0, 0, 0, 10**9)
        return [[copy, task]] * repeat


@dataclass
class Session(FakeSession):
    behaviours: dict[str, Behaviour] = field(default_factory=dict)

    def load(self, loadable: Loadable, *, timeout_s: float) -> FakeProgram:
        return Program(self.device, behaviour=self.behaviours[loadable.sha256])


@dataclass
class Device(FakeDevice):
    behaviours: dict[str, Behaviour] = field(default_factory=dict)

    @contextlib.contextmanager
    def session(self, toggles: Toggles, *, timeout_s: float) -> Iterator[FakeSession]:
        self.met("session")
        yield Session(self, toggles, self.behaviours)

    def dropped(self) -> None:
        """Nobody has anything to do with it any more."""

    def reopened(self) -> None:
        """It is opened once more after it was lost."""


class Threads:
    """`Processes`, with threads."""

    def __init__(self, devices: Sequence[Device], folder: Path) -> None:
        self._devices = {device.name: device for device in devices}
        self._folder = folder
        self._pipes: dict[str, Connection] = {}
        self._threads: dict[str, threading.Thread] = {}

    def start(self, name: str) -> bool:
        device = self._devices[name]
        if name in self._threads:
            if self._threads[name].is_alive():
                return False
            device.reopened()
        self._pipes[name], theirs = Pipe()
        self._threads[name] = threading.Thread(target=self._live, args=(theirs, device), daemon=True)
        self._threads[name].start()
        return True

    def _live(self, theirs: Connection, device: Device) -> None:
        work = partial(obey, self._folder, False)
        with theirs as pipe:
            serve(pipe, device.name, self._folder, work, lambda *_: contextlib.nullcontext((device, print)))

    def send(self, name: str, order: Any) -> None:
        with contextlib.suppress(OSError):
            self._pipes[name].send(order)

    def receive(self, timeout_s: float) -> Iterator[tuple[str, Any]]:
        ready = wait(self._pipes.values(), min(timeout_s, 0.05))
        for name, pipe in list(self._pipes.items()):
            if pipe in ready:
                try:
                    yield name, pipe.recv()
                except EOFError:
                    yield name, Loss(RigFailure(f"the process that works on {name} died"))

    def drop(self, name: str) -> None:
        if pipe := self._pipes.pop(name, None):
            pipe.close()
        self._devices[name].dropped()

    def end(self, *, at_once: bool) -> None:
        for name in list(self._pipes):
            self.drop(name)
        for thread in self._threads.values():
            thread.join(WAIT_S)
            assert not thread.is_alive()


@dataclass
class Shop:
    """Builds nothing: a candidate is its name, and what does not build is told."""

    folder: Path
    fails: dict[str, Failure] = field(default_factory=dict)
    asked: list[tuple[str, int]] = field(default_factory=list)

    def truth(self, task: Task) -> Truth:
        return GIVEN

    def begin(self, candidate: tuple[Task, int]) -> Future[Artifact | Failure]:
        self.asked.append((candidate[0].name, candidate[1]))
        name, future = name_of(candidate), Future[Artifact | Failure]()
        future.set_result(self.fails.get(name) or self._artifact(name))
        return future

    def build(self, candidates: Sequence[tuple[Task, int]]) -> list[Artifact | Failure]:
        return [self.begin(candidate).result() for candidate in candidates]

    def _artifact(self, name: str) -> Artifact:
        place = self.folder / name
        place.mkdir(exist_ok=True)
        (place / TRACE_FILE).write_text(json.dumps(TRACE))
        return Artifact(
            name, Loadable(place / "lib.so", name, 1), CompileResult("lib.so", 1, [], 1, [], {}, 0.0), 1, False
        )


def name_of(candidate: tuple[Task, int]) -> str:
    return f"{candidate[0].name}{candidate[1]}"


@dataclass
class Bench:
    """A search on a device where candidates behave as told."""

    folder: Path
    behaviours: dict[str, Behaviour]
    fails: dict[str, Failure] = field(default_factory=dict)
    steadiness: Steadiness = field(default_factory=Steadiness)

    def __post_init__(self) -> None:
        self.device = Device(behaviours=self.behaviours, steadiness=self.steadiness)
        self.shop = Shop(self.folder, self.fails)
        self.said: list[str] = []
        processes = cast(Processes, Threads([self.device], self.folder))
        self.devices = Devices(
            WorkerPool([self.device.name], processes, self.said.append).__enter__(), self.said.append
        )
        self.log = TrialLog(self.folder, "tasks", "identity", "tiny on G")

    def search(self, trials: int, tasks: Sequence[Task] = (DEAR,)) -> Search:
        found = Search(tasks, self.log.read())
        how: Any = (self.log, SearchBudget(trials), 100.0, self.said.append)
        with self.log.lock(), Dispatcher(found, self.shop, *how) as dispatcher:  # type: ignore[arg-type]
            self.devices.search(a_plan().thermal_limits, dispatcher)
        return found

    def winners(self, search: Search) -> list[Winner]:
        return confirm_best("opencl", search, self.shop, self.devices)  # type: ignore[arg-type]


def candidates(task: Task, untuned: Behaviour, *tried: Behaviour) -> dict[str, Behaviour]:
    return {name_of((task, seed)): behaviour for seed, behaviour in enumerate((untuned, *tried), UNTUNED)}
