"""The worker processes of a fleet: started together, heard together, ended for certain."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import TYPE_CHECKING, Any

from device_runner.failures import RigFailure
from harness.fleet.messages import Gone, Orders
from harness.fleet.worker import work

if TYPE_CHECKING:
    from typing_extensions import Self

END_S = 30.0
"""So long may a worker take to end its device's server and to put back what it set there."""
KILL_S = 5.0

Work = Callable[[Connection, str, Orders], None]


class WorkerPool:
    """One worker for each device. A context manager: leaving it ends every worker, however it is left.

    What is ordered and what is said is between whoever has the pool and its `work`.
    """

    def __init__(self, names: Iterable[str], orders: Orders, work: Work = work) -> None:
        self._names = list(names)
        self._orders = orders
        self._work = work
        self._pipes: dict[str, Connection] = {}
        self._processes: dict[str, BaseProcess] = {}

    def __enter__(self) -> Self:
        try:
            for name in self._names:
                self._start(name)
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def _start(self, name: str) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy our threads' locks and TVM's state
        ours, theirs = context.Pipe()
        process = context.Process(target=self._work, args=(theirs, name, self._orders), name=f"fleet {name}")
        process.start()
        theirs.close()
        self._pipes[name], self._processes[name] = ours, process

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pipe in self._pipes.values():
            pipe.close()
        if kind:  # a worker in the middle of a case would first end that
            for process in self._processes.values():
                process.terminate()
        end = time.monotonic() + END_S
        for process in self._processes.values():
            process.join(max(0.0, end - time.monotonic()))
        for process in self._processes.values():
            if process.exitcode is None:
                process.kill()
                process.join(KILL_S)

    def order(self, name: str, order: Any) -> None:
        """Tell a worker what to do. If it is dead, `hear` says so."""
        with suppress(OSError):
            self._pipes[name].send(order)

    def hear(self, timeout_s: float) -> Iterator[tuple[str, Any]]:
        """What the workers have said, after at most `timeout_s` without a word. The death of one is a `Gone`."""
        ready = wait(self._pipes.values(), timeout_s)
        for name, pipe in list(self._pipes.items()):
            if pipe in ready:
                yield name, self._received(name, pipe)

    def kill(self, name: str) -> None:
        """End a worker that hangs."""
        self._processes[name].kill()

    def dismiss(self, name: str) -> None:
        """Have nothing more to do with a worker. It ends by itself; what it is at, it is told to leave."""
        if pipe := self._pipes.pop(name, None):
            pipe.close()
            self._processes[name].terminate()

    def revive(self, name: str) -> bool:
        """Start a worker anew that was dismissed. False as long as the old one is still at its end."""
        if self._processes[name].is_alive():
            return False
        self._start(name)
        return True

    def _received(self, name: str, pipe: Connection) -> Any:
        try:
            return pipe.recv()
        except (EOFError, OSError):
            process = self._processes[name]
            process.join(KILL_S)
            return Gone(RigFailure(f"the process that works on {name} {_ending(process)}"))


def _ending(process: BaseProcess) -> str:
    code = process.exitcode
    if code is None:
        return "closed its pipe"
    return f"died of signal {-code}" if code < 0 else f"ended with code {code}"
