"""One user for each device: a lock that dies with its holder, a note that says who that is, and a queue of the others.

A process takes a ticket, a file that it locks, and may take the device when no ticket before its own is
locked. The kernel drops the lock with the process, however that ends, so a waiter that was killed keeps no place.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from device_runner.deadline import Deadline
from device_runner.failures import DeviceBusy
from device_runner.files import SCRATCH_SUFFIX, write_whole

if TYPE_CHECKING:
    from filelock import FileLock

POLL_S = 0.2
SHOWN_WITHIN_S = 2.0

LONGEST_COMMAND = 200
LONGEST_STEP = 200
_TICKET_SUFFIX = ".ticket"
_FLOCK = "hhqqi"
"""`struct flock`: type, whence, start, length (0 is all), process."""


@dataclass(frozen=True)
class Holder:
    """Who holds a device."""

    pid: int
    command: str
    host: str
    since: str
    """ISO 8601, UTC."""
    case: str = ""
    """What it is doing: a case and its step, since `step_since` (ISO 8601, UTC). Empty between two cases."""
    step: str = ""
    step_since: str = ""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} ({self.command}) since {self.since}"


@contextmanager
def lease(
    device: str, folder: Path, *, timeout_s: float, waiting: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Hold a device, whose lock lies in `folder`. Those who want it get it in the order in which they came.

    `waiting` is told who has it and our place in the queue, again when either changes. Raises `DeviceBusy`, naming the
    holder, if it is not free within `timeout_s`.
    """
    from filelock import FileLock

    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(_lock_path(device, folder))
    note = _note_path(device, folder)
    with _ticket(device, folder) as ticket:
        _take_in_turn(lock, ticket, timeout_s, waiting)
    try:
        _write(note, _ourselves())  # first: until we are seen to hold the device, a note counts for nothing
        with _show_lock(_lock_path(device, folder)):
            yield
    finally:
        note.unlink(missing_ok=True)
        lock.release()


def _take_in_turn(lock: FileLock, ticket: _Ticket, timeout_s: float, waiting: Callable[[str], None] | None) -> None:
    """Take the lock as soon as it is free and nobody came before. Raises `DeviceBusy` after `timeout_s`."""
    from filelock import Timeout

    message, device = "", ticket.device
    for _ in Deadline(timeout_s).attempts(POLL_S):
        before = ticket.before()
        with suppress(Timeout):
            if not before:
                lock.acquire(timeout=0)
                return
        holder = holder_of(device, ticket.folder)
        now = f"{holder or _who(ticket.note)}; waiting, place {len(before) + 1} in the queue"
        if waiting and now != message and (holder or not message):  # between two holders there is nothing new to tell
            waiting(f"{device} is in use by {now}")
            message = now
    first = f", and process {before[0].pid} is next in the queue" if before and before[0] else ""
    raise DeviceBusy(
        f"{device} is still in use after {timeout_s:g} s, by {_who(ticket.note)}{first}",
        hint="wait for it or end it; its lock ends with it",
    )


@dataclass(frozen=True)
class _Ticket:
    """A place in the queue for a device."""

    device: str
    folder: Path
    file: Path

    @property
    def note(self) -> Path:
        return _note_path(self.device, self.folder)

    def before(self) -> list[Holder | None]:
        """Who came before and waits; None is somebody whose ticket cannot be read."""
        return [holder for file, holder in _queue(self.device, self.folder) if file.name < self.file.name]


@contextmanager
def _ticket(device: str, folder: Path) -> Iterator[_Ticket]:
    """Stand in the queue for a device until the context ends."""
    _remove_stale_tickets(device, folder)
    # The monotonic clock is the same for all processes of a host, and does not go back while any of them lives.
    file = folder / f"{_ticket_prefix(device)}{time.monotonic_ns():020d}-{secrets.token_hex(4)}{_TICKET_SUFFIX}"
    scratch = file.with_name(f".{file.name}{SCRATCH_SUFFIX}")
    try:
        write_whole(scratch, json.dumps(asdict(_ourselves())))
        with _show_lock(scratch):
            scratch.replace(file)  # nobody sees a ticket that is not locked yet
            try:
                yield _Ticket(device, folder, file)
            finally:
                file.unlink(missing_ok=True)
    finally:
        scratch.unlink(missing_ok=True)


def _queue(device: str, folder: Path) -> Iterator[tuple[Path, Holder | None]]:
    """Yield the tickets of those who wait, in order. A stopped process (Ctrl-Z) is passed by, and keeps its place."""
    for file in sorted(folder.glob(f"{_ticket_prefix(device)}*{_TICKET_SUFFIX}")):
        locked, holder = _is_locked(file), _read(file)
        if (locked or (locked is None and holder and _lives(holder))) and not (holder and _is_stopped(holder)):
            yield file, holder


def _remove_stale_tickets(device: str, folder: Path) -> None:
    """Remove what processes that were killed left of their places."""
    for file in folder.glob(f"*{_ticket_prefix(device)}*{_TICKET_SUFFIX}*"):
        holder = _read(file)
        if _is_locked(file) is False and not (holder and _lives(holder)):
            file.unlink(missing_ok=True)


def queue_length(device: str, folder: Path) -> int:
    """Return how many wait for a device at this moment."""
    return len(list(_queue(device, folder)))


def tell(device: str, folder: Path, case: str, step: str) -> None:
    """Let others see what is being done on a device. Only its holder calls this."""
    note = _note_path(device, folder)
    with suppress(OSError):  # a full disk is no reason to end a measurement that nobody may be watching
        if holder := _read(note):
            _write(note, replace(holder, case=case[:LONGEST_STEP], step=step[:LONGEST_STEP], step_since=_now()))


def holder_of(device: str, folder: Path) -> Holder | None:
    """Who holds a device at this moment; None if nobody does. Asking never delays anybody who wants to take it."""
    holder = _read(_note_path(device, folder))
    # A note of a free device was left by a process that was killed. Of a process of another container only the lock
    # is seen; of one whose lock could not be shown in time, only the process.
    return holder if holder and (_is_locked(_lock_path(device, folder)) or _lives(holder)) else None


def holders(folder: Path) -> dict[str, Holder]:
    """Who holds which device at this moment."""
    names = [unquote(note.stem) for note in sorted(folder.glob("*.json"))]
    return {name: holder for name in names if (holder := holder_of(name, folder))}


def _is_stopped(holder: Holder) -> bool:
    import psutil

    try:
        return bool(psutil.Process(holder.pid).status() == psutil.STATUS_STOPPED) and _lives(holder)
    except psutil.Error:
        return False


def _lives(holder: Holder) -> bool:
    """Return whether the process is still there, and no later one with its number."""
    import psutil

    try:
        process = psutil.Process(holder.pid)
        since_s = datetime.fromisoformat(holder.since).timestamp()  # whole seconds
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() < since_s + 1
    except (psutil.Error, ValueError, TypeError):
        return False


@contextmanager
def _show_lock(file: Path) -> Iterator[None]:
    """Show others that we hold `file`, which exists, until the context ends: this lock excludes nobody.

    A child that was forked while the holder before us held it keeps that lock until it runs another program. So we wait
    for the lock a moment, and give it up by name instead of by closing our end of it.
    """
    fd = os.open(file, os.O_RDWR)
    try:
        for _ in Deadline(SHOWN_WITHIN_S).attempts(0.01):
            try:
                _query_lock(fd, fcntl.F_OFD_SETLK, fcntl.F_WRLCK)
            except (BlockingIOError, PermissionError):  # EAGAIN, EACCES: somebody has it still
                continue
            except (OSError, AttributeError):
                pass  # without such locks `_is_locked` cannot tell
            break
        yield
    finally:
        with suppress(OSError, AttributeError):
            _query_lock(fd, fcntl.F_OFD_SETLK, fcntl.F_UNLCK)
        os.close(fd)


def _is_locked(file: Path) -> bool | None:
    """Return whether somebody holds `file`, be it this process; None if this system cannot tell.

    A process that takes a lock to see whether it is free keeps others from it for that moment. The kernel tells of a
    lock of an open file description without that (fcntl(2), F_OFD_GETLK), and drops it with the process that has it.
    """
    try:
        fd = os.open(file, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return _query_lock(fd, fcntl.F_OFD_GETLK, fcntl.F_RDLCK) != fcntl.F_UNLCK
    except (OSError, AttributeError):
        return None
    finally:
        os.close(fd)


def _query_lock(fd: int, command: int, kind: int) -> int:
    """Return the kind of lock in what the kernel answers."""
    answer = fcntl.fcntl(fd, command, struct.pack(_FLOCK, kind, os.SEEK_SET, 0, 0, 0))
    answer_kind: int = struct.unpack(_FLOCK, answer)[0]
    return answer_kind


def _lock_path(device: str, folder: Path) -> Path:
    return folder / f"{quote(device, safe='')}.lock"


def _note_path(device: str, folder: Path) -> Path:
    return folder / f"{quote(device, safe='')}.json"


def _ticket_prefix(device: str) -> str:
    return f"{quote(device, safe='')}@"  # no other device's name begins with it, for `@` is quoted


def _ourselves() -> Holder:
    return Holder(os.getpid(), " ".join(sys.argv)[:LONGEST_COMMAND], socket.gethostname(), _now())


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _write(note: Path, holder: Holder) -> None:
    write_whole(note, json.dumps(asdict(holder)))


def _read(note: Path) -> Holder | None:
    try:
        return Holder(**json.loads(note.read_text(encoding="utf-8", errors="replace")))
    except (OSError, ValueError, TypeError):
        return None  # it is just being written or removed


def _who(note: Path) -> str:
    return str(_read(note) or "another run")
