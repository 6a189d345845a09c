"""One user for each device: a lock that dies with its holder, and a note that says who that is."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote, unquote

from device_runner.deadline import Deadline
from device_runner.failures import DeviceBusy
from device_runner.files import write_whole

POLL_S = 0.2
SHOWN_WITHIN_S = 2.0

LONGEST_COMMAND = 200
LONGEST_STEP = 200
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
    """Hold a device, whose lock lies in `folder`. `waiting` is told once who has it, if somebody has.

    Raises `DeviceBusy`, naming the holder, if it is not free within `timeout_s`.
    """
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(_lock_path(device, folder))
    note = _note_path(device, folder)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if waiting:
            waiting(f"{device} is in use by {_who(note)}; waiting")
        try:
            lock.acquire(timeout=timeout_s, poll_interval=POLL_S)
        except Timeout:
            message = f"{device} is still in use after {timeout_s:g} s, by {_who(note)}"
            raise DeviceBusy(message, hint="wait for it or end it; its lock ends with it") from None
    try:
        _write(note, _ourselves())  # first: until we are seen to hold the device, a note counts for nothing
        with _show_lock(_lock_path(device, folder)):
            yield
    finally:
        note.unlink(missing_ok=True)
        lock.release()


def tell(device: str, folder: Path, case: str, step: str) -> None:
    """Let others see what is being done on a device. Only its holder calls this."""
    note = _note_path(device, folder)
    with suppress(OSError):  # a full disk is no reason to end a measurement that nobody may be watching
        if holder := _read(note):
            _write(note, replace(holder, case=case[:LONGEST_STEP], step=step[:LONGEST_STEP], step_since=_now()))


def holder_of(device: str, folder: Path) -> Holder | None:
    """Who holds a device at this moment; None if nobody does. Asking never delays anybody who wants to take it."""
    taken, holder = _is_locked(_lock_path(device, folder)), _read(_note_path(device, folder))
    if taken is None and holder:
        taken = _lives(holder)
    return holder if taken else None  # a note of a free device was left by a process that was killed


def holders(folder: Path) -> dict[str, Holder]:
    """Who holds which device at this moment."""
    names = [unquote(note.stem) for note in sorted(folder.glob("*.json"))]
    return {name: holder for name in names if (holder := holder_of(name, folder))}


def _lives(holder: Holder) -> bool:
    """Whether the process is still there, and no later one with its number."""
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
    """Whether somebody holds `file`, be it this process; None if this system cannot tell.

    Whoever takes a lock in order to see whether it is free keeps others from it for that moment. The kernel tells of a
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
    """The kind of lock in what the kernel answers."""
    answer = fcntl.fcntl(fd, command, struct.pack(_FLOCK, kind, os.SEEK_SET, 0, 0, 0))
    found: int = struct.unpack(_FLOCK, answer)[0]
    return found


def _lock_path(device: str, folder: Path) -> Path:
    return folder / f"{quote(device, safe='')}.lock"


def _note_path(device: str, folder: Path) -> Path:
    return folder / f"{quote(device, safe='')}.json"


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
