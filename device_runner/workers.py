"""One process for each device: it holds the device and does what it is ordered over a pipe.

A process for each, because TVM holds Python's interpreter lock in its calls, and because whatever takes such a process
down is then the loss of one device and no more. `harness.measure.runner` runs cases in this way, `harness.tools.tune`
candidates; what they order and answer is theirs. A tool may open devices of other hosts.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from device_runner.device import Device, Identity
from device_runner.failures import Failure, RigFailure
from device_runner.interrupt import end_at
from device_runner.lifetime import die_with_parent

if TYPE_CHECKING:
    from typing_extensions import Self

END_S = 30.0
"""Time for a worker to end its device's server and to put back settings."""
KILL_S = 5.0
SILENCE_S = 900.0
"""Longer than opening or recovering a device may take. A worker that is silent for so long beyond the deadlines
of its order hangs in a way that none of them caught."""
NO_LIMIT = float("inf")
"""Patience with a worker that waits for an order."""

Show = Callable[[str, str], None]
"""Shows a case and its step to those who watch the device."""
Say = Callable[[str], None]
"""Takes a line for a person."""


@dataclass(frozen=True)
class Line:
    """Message from a worker: a line for people."""

    text: str


@dataclass(frozen=True)
class SideNote:
    """Message from a worker that says nothing of its order: one that sends no other is silent."""


@dataclass(frozen=True)
class WorkerAnswer:
    """Message from a worker that then waits for an order. Base of all such messages."""


@dataclass(frozen=True)
class Arrival(WorkerAnswer):
    """Message from a worker: it holds its device, which records call `name`."""

    identity: Identity
    name: str


@dataclass(frozen=True)
class Loss:
    """Last message of a worker: it has no device. Also stands for the death of its process."""

    failure: Failure


class Channel:
    """A worker's end of the pipe."""

    def __init__(self, pipe: Connection, show: Show) -> None:
        self._pipe = pipe
        self._sending = threading.Lock()
        self.show = show

    def send(self, message: object) -> None:
        """Tell the host something. Several threads may."""
        with self._sending:
            self._pipe.send(message)

    def say(self, text: str) -> None:
        """Have the host tell a person something."""
        self.send(Line(text))

    def receive(self) -> Any:
        """Return the next order; waits for it. Raises EOFError when there will be no more."""
        return self._pipe.recv()

    def has_order(self, within_s: float) -> bool:
        """Return whether an order has come, or will within so many seconds."""
        return self._pipe.poll(within_s)


Work = Callable[[Device, Channel], None]
"""What a worker does with its device until the pipe ends. It crosses to another process, so it is a function of a
module, or a partial of one."""
Opener = Callable[[str, Path, Say], contextlib.AbstractContextManager[tuple[Device, Show]]]
"""Opens a device by the name of its worker. It is pickled for another process."""


class DeviceSource(Protocol):
    """Devices of other hosts."""

    def names(self, texts: Sequence[str], cache: Path, say: Say) -> list[str]:
        """Resolve names and labels to names of workers."""

    def open(self, name: str, cache: Path, say: Say) -> contextlib.AbstractContextManager[tuple[Device, Show]]:
        """Open the device of a worker, as an `Opener`."""


class WorkerHost:
    """Where workers live: each in a process of its own (`Processes`), or one in this process, which nothing kills."""

    def start(self, name: str) -> bool:
        """Start the worker of a device. False as long as an earlier one is still at its end."""
        return True

    def send(self, name: str, order: Any) -> None:
        """Order something. If the worker is dead, `receive` says so."""

    def receive(self, timeout_s: float) -> Iterator[tuple[str, Any]]:
        """Yield messages of workers, after at most `timeout_s` without one. The death of one is a `Loss`."""
        yield from ()

    def kill(self, name: str) -> None:
        """End a worker that hangs."""

    def drop(self, name: str) -> None:
        """Have nothing more to do with a worker. It ends by itself; what it is at, it is told to leave."""

    def end(self, *, at_once: bool) -> None:
        """End all for certain; `at_once` those too that are at something."""


class Processes(WorkerHost):
    """The processes of the workers, each at the other end of a pipe."""

    def __init__(self, cache: Path, work: Work, opener: Opener | None = None) -> None:
        """Start the pool. `opener` opens devices of other hosts; without it they are of this host."""
        self._life = partial(_live, cache=cache, work=work, opener=opener or open_here)
        self._pipes: dict[str, Connection] = {}
        self._processes: dict[str, BaseProcess] = {}

    def start(self, name: str) -> bool:
        """Start the worker of a device. False as long as an earlier one is still at its end."""
        if name in self._processes and self._processes[name].is_alive():
            return False
        context = multiprocessing.get_context("spawn")  # a fork would copy our threads' locks and TVM's state
        ours, theirs = context.Pipe()
        process = context.Process(target=self._life, args=(theirs, name), name=f"device {name}")
        process.start()
        theirs.close()
        self._pipes[name], self._processes[name] = ours, process
        return True

    def send(self, name: str, order: object) -> None:
        """Order something. If the worker is dead, `receive` says so."""
        with contextlib.suppress(OSError):
            self._pipes[name].send(order)

    def receive(self, timeout_s: float) -> Iterator[tuple[str, Any]]:
        """Yield what the workers have said, after at most `timeout_s` without a word. The death of one is a `Loss`."""
        ready = wait(self._pipes.values(), timeout_s)
        for name, pipe in list(self._pipes.items()):
            if pipe in ready:
                yield name, self._received(name, pipe)

    def kill(self, name: str) -> None:
        """End a worker that hangs."""
        self._processes[name].kill()

    def drop(self, name: str) -> None:
        """Have nothing more to do with a worker. It ends by itself; what it is at, it is told to leave."""
        if pipe := self._pipes.pop(name, None):
            pipe.close()
            self._processes[name].terminate()

    def end(self, *, at_once: bool) -> None:
        """End all for certain; `at_once` those too that are at something."""
        for pipe in self._pipes.values():
            pipe.close()
        if at_once:
            for process in self._processes.values():
                process.terminate()
        end = time.monotonic() + END_S
        for process in self._processes.values():
            process.join(max(0.0, end - time.monotonic()))
        for process in self._processes.values():
            if process.exitcode is None:
                process.kill()
                process.join(KILL_S)

    def _received(self, name: str, pipe: Connection) -> Any:
        try:
            return pipe.recv()
        except (EOFError, OSError):
            process = self._processes[name]
            process.join(KILL_S)
            return Loss(RigFailure(f"the process that works on {name} {_ending(process)}"))


@dataclass
class _Member:
    """One worker, as its host sees it."""

    identity: Identity | None = None
    """Identity of its device; None until it holds it."""
    heard: float = field(default_factory=time.monotonic)
    patience_s: float = SILENCE_S
    """Seconds of silence after which it counts as hanging."""


class WorkerPool:
    """One worker for each device. A context manager: leaving it ends every worker, however it is left."""

    def __init__(self, names: Sequence[str], host: WorkerHost, say: Say) -> None:
        self._names = names
        self._host = host
        self._say = say
        self._members: dict[str, _Member] = {}
        self._titles = dict(zip(names, names, strict=True))
        self.lost: dict[str, Failure] = {}
        """Workers that have no device (any more), and why."""
        self._lost_at: dict[str, float] = {}

    def __enter__(self) -> Self:
        try:
            for name in self._names:
                self._start(name)
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._host.end(at_once=kind is not None)  # else one in the middle of an order would first end that

    def display_name(self, name: str) -> str:
        """Return the name of a worker's device; the worker's own name until it is opened."""
        return self._titles[name]

    @property
    def opening(self) -> list[str]:
        """Workers that do not hold their device yet."""
        return [name for name, member in self._members.items() if member.identity is None]

    @property
    def idle(self) -> list[str]:
        """Workers that wait for an order, in the order of asking."""
        return [name for name in self.identities if self._members[name].patience_s == NO_LIMIT]

    @property
    def identities(self) -> dict[str, Identity]:
        """Identities of the workers that hold their device, in the order of asking."""
        members = ((name, self._members.get(name)) for name in self._names)
        return {name: member.identity for name, member in members if member and member.identity}

    def order(self, name: str, order: object, patience_s: float = SILENCE_S) -> None:
        """Tell a worker what to do. One that is silent for longer than `patience_s` before its answer is ended."""
        member = self._members[name]
        member.heard, member.patience_s = time.monotonic(), patience_s
        self._host.send(name, order)

    def hear(self, timeout_s: float) -> list[tuple[str, Any]]:
        """Return what the workers have said, after at most `timeout_s` without a word.

        Lines for people are passed on.
        """
        heard = [(name, message) for name, message in self._host.receive(timeout_s) if name in self._members]
        for name, message in heard:
            self._note(name, message)
        now = time.monotonic()
        for name, member in self._members.items():
            if now - member.heard > member.patience_s:
                self._host.kill(name)  # its death is heard like any other
        return heard

    def _note(self, name: str, message: object) -> None:
        member = self._members[name]
        if not isinstance(message, SideNote):
            member.heard = time.monotonic()
        if isinstance(message, WorkerAnswer):
            member.patience_s = NO_LIMIT
        if isinstance(message, Arrival):
            member.identity, self._titles[name] = message.identity, message.name
            self.lost.pop(name, None)
        elif isinstance(message, Loss):
            self.give_up(name, message.failure)
        elif isinstance(message, Line):
            self._say(f"{self.display_name(name)}: {message.text}")

    def give_up(self, name: str, failure: Failure, *, for_good: bool = False) -> None:
        """Do without a worker; `for_good`, also when lost ones are opened again."""
        self._host.drop(name)
        self._members.pop(name, None)
        self._lost_at[name] = NO_LIMIT if for_good else time.monotonic()
        if name not in self.lost:
            self._say(f"{self.display_name(name)} is out: {failure.message}")
            self.lost[name] = failure

    def reopen(self, after_s: float) -> None:
        """Start workers that were lost so long ago once more, unless an old process is still at its end."""
        for name, at in self._lost_at.items():
            if time.monotonic() - at >= after_s and name in self.lost and name not in self._members:
                self._start(name)

    def _start(self, name: str) -> None:
        if self._host.start(name):
            self._members[name] = _Member()


def _ending(process: BaseProcess) -> str:
    code = process.exitcode
    if code is None:
        return "closed its pipe"
    return f"died of signal {-code}" if code < 0 else f"ended with code {code}"


def _live(pipe: Connection, name: str, cache: Path, work: Work, opener: Opener) -> None:
    """Live as a worker. Ends when the other end of the pipe is closed or its process dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to us all; our parent ends us
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with end_at(signal.SIGTERM):  # the device's server is ended, its settings are put back, its lease is free
        die_with_parent(signal.SIGTERM)
        serve(pipe, name, cache, work, opener)


def serve(pipe: Connection, name: str, cache: Path, work: Work, opener: Opener) -> None:
    """Hold a device and work with it until the pipe ends."""
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):  # nobody is there to work for
        try:
            with opener(name, cache, lambda text: pipe.send(Line(text))) as (device, show):
                pipe.send(Arrival(device.identity, device.name))
                work(device, Channel(pipe, show))
        except Failure as failure:
            pipe.send(Loss(failure))


@contextlib.contextmanager
def open_here(name: str, cache: Path, say: Callable[[str], None]) -> Iterator[tuple[Device, Show]]:
    """Hold a device of this host. Raises what opening one raises."""
    from device_runner.registry import open_device, tell
    from device_runner.selection import remember_identity

    with open_device(name, cache, say=say) as device:
        remember_identity(name, device.identity, cache)
        yield device, lambda case, step: tell(name, cache, case, step)
