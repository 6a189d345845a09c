"""One user for each device: a lock that dies with its holder, and a note that says who that is."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote

from device_runner.failures import DeviceBusy

POLL_S = 0.2


@dataclass(frozen=True)
class Owner:
    """Who holds a device."""

    pid: int
    command: str
    host: str
    since: str
    """ISO 8601, UTC."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} ({self.command}) since {self.since}"


@contextmanager
def lease(
    device: str, folder: Path, *, timeout_s: float, waiting: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Hold a device, whose lock lies in `folder`. `waiting` is told once who has it, if somebody has.

    Raises `DeviceBusy`, naming the owner, if it is not free within `timeout_s`.
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
        _write(note)
        yield
    finally:
        note.unlink(missing_ok=True)
        lock.release()


def owner_of(device: str, folder: Path) -> Owner | None:
    """Who holds a device at this moment; None if nobody does."""
    from filelock import FileLock, Timeout

    if not _lock_path(device, folder).exists():
        return None
    try:
        with FileLock(_lock_path(device, folder), timeout=0):
            return None  # a note that is still there was left by a process that was killed
    except Timeout:
        return _read(_note_path(device, folder))


def _lock_path(device: str, folder: Path) -> Path:
    return folder / f"{quote(device, safe='')}.lock"


def _note_path(device: str, folder: Path) -> Path:
    return folder / f"{quote(device, safe='')}.json"


def _write(note: Path) -> None:
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    owner = Owner(os.getpid(), " ".join(sys.argv)[:200], socket.gethostname(), now)
    temporary = note.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(asdict(owner)), encoding="utf-8")
    temporary.replace(note)


def _read(note: Path) -> Owner | None:
    try:
        return Owner(**json.loads(note.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None  # it is just being written or removed


def _who(note: Path) -> str:
    return str(_read(note) or "another run")
