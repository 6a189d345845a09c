"""Everything under the cache root that can be made again: what it is, how large, when it was used, and removing it.

Each use of an entry gives it the time of that use. Nothing is removed that may be in use now: what somebody makes, or
keeps as long as its process lives (`device_runner.store.keep`); a device that is held; and, while any device is held,
whatever was used since the first of its holders took it. What a person built (`adreno-bench runtime`) is listed and
never removed; unknown files are listed, and removed only with everything else.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from device_runner import registry
from device_runner.failures import DeviceBusy
from device_runner.files import SCRATCH_SUFFIX
from device_runner.lease import lease
from harness.base.tool import CacheKind, tools

DEVICES = "devices"
LEFT_BEHIND = "left by a process that was killed"
JUST_WRITTEN_S = 60.0
"""How long a file that is being written may take until it counts as left behind."""
_COMPANIONS = (".log", ".json", ".onnx")
"""Endings of files that belong to the entry of the same name, or are one themselves."""


MAIN_JOB = (
    CacheKind("artifacts", "compiled case, or the compiler's error"),
    CacheKind("oracles", "inputs and right answers of a model, and answers of TVM probes"),
    CacheKind("models", "an ONNX file"),
    CacheKind("received", "a file that another host sent to have built"),
    CacheKind("tunings", "tuning cache for tuned runs"),
    CacheKind("toolchains", "a revision of TVM, installed"),
    CacheKind("releases", "the repository of TVM's releases"),
    CacheKind("harness", "a copy of this harness, for revisions of TVM to run"),
    CacheKind("opencl_runtime", "TVM's OpenCL runtime, compiled for the installed TVM"),
    CacheKind("opencl_layer", "limits of the virtual GPU, compiled"),
    CacheKind("clml_runtime", "the functional model of CLML, compiled for the installed TVM"),
    CacheKind("runner", "bundle runner, compiled for a kind of processor"),
    CacheKind("probe", "OpenCL probe, compiled for a kind of processor"),
    CacheKind("peak_rates", "what measures peak rates, compiled for a kind of processor"),
    CacheKind("peaks", "peak rates measured on a device"),
    CacheKind("record_indexes", "index of a records file"),
    CacheKind("identities", "identity of a device when it was last opened"),
    CacheKind(DEVICES, "files of a device of this host"),
)
ADDED = CacheKind("phone-runtime", "added by a person: `adreno-bench runtime remove` removes it")
UNKNOWN = CacheKind("unknown", "unknown to this version of adreno-bench")
LEASES = "leases"


def kinds() -> tuple[CacheKind, ...]:
    """Return the kinds of entries of the main job and of every tool."""
    return (*MAIN_JOB, *(kind for tool in tools() for kind in tool.cache_kinds))


@dataclass(frozen=True)
class CacheEntry:
    """One entry of the cache."""

    kind: str
    key: str
    size_bytes: int
    used_at: float
    """Seconds since the epoch."""
    title: str
    paths: tuple[Path, ...] = ()


@dataclass
class PruneResult:
    """Entries that were removed, and those in use."""

    removed: list[CacheEntry] = field(default_factory=list)
    in_use: list[CacheEntry] = field(default_factory=list)
    """What would have been removed, had nobody used it."""


def entries(root: Path) -> list[CacheEntry]:
    """Return all entries, kind by kind, of each kind the latest used first."""
    every = (*kinds(), ADDED, UNKNOWN)
    cached = [_entry(kind, key, paths) for kind in every for key, paths in _paths(root, kind.name).items()]
    order = [kind.name for kind in every]
    return sorted(cached, key=lambda entry: (order.index(entry.kind), -entry.used_at))


def prune(root: Path, unused_for_s: float = 0.0, *, everything: bool = False) -> PruneResult:
    """Remove entries that were not used for that long, except those in use; `everything` also removes unknown files.

    Unknown files stay in a folder that is, or holds, the home or the working directory: that is no mere cache.
    """
    now, held_since = time.time(), _first_hold(root)
    holds_more = any(place.resolve().is_relative_to(root.resolve()) for place in (Path.home(), Path.cwd()))
    spared = {ADDED.name} if everything and not holds_more else {ADDED.name, UNKNOWN.name}
    pruned = PruneResult()
    for entry in entries(root):
        if entry.kind in spared or max(0.0, now - entry.used_at) < unused_for_s:  # a clock may have been set back
            continue
        free = entry.used_at < held_since and _remove(root, entry)
        (pruned.removed if free else pruned.in_use).append(entry)
    if everything:
        _sweep(root)
    return pruned


def _sweep(root: Path) -> None:
    """Remove locks that nobody holds, each while it is ours, and folders that are empty then."""
    names = [kind.name for kind in kinds()] + [LEASES]
    for folder in [folder for kind in names for folder in (root / kind / ".locks", root / kind)]:
        for lock in folder.glob("*.lock"):
            with contextlib.suppress(Timeout, OSError), FileLock(lock, timeout=0):
                if folder.name == LEASES:  # what a holder who was killed noted
                    lock.with_suffix(".json").unlink(missing_ok=True)
                lock.unlink()
        with contextlib.suppress(OSError):
            folder.rmdir()


def _first_hold(root: Path) -> float:
    """Return when the earliest device lock of now was taken, in seconds since the epoch; infinite without one."""
    holders = registry.in_use(root).values()
    return min((datetime.fromisoformat(holder.since).timestamp() for holder in holders), default=float("inf"))


def _paths(root: Path, kind: str) -> dict[str, list[Path]]:
    """Return what belongs to each key of a kind."""
    if kind == DEVICES:
        return {name: [root / name] for name in _names(root) if registry.is_built_in(name)}
    if kind == UNKNOWN.name:
        ours = {LEASES, ADDED.name, *(kind.name for kind in kinds())}
        return {name: [root / name] for name in _names(root) if name not in ours and not registry.is_built_in(name)}
    paths: dict[str, list[Path]] = {}
    for name in _names(root / kind):
        path = root / kind / name
        if name != ".locks" and path.suffix != ".lock":
            key = path.stem if path.suffix in _COMPANIONS and not name.startswith(".") else name
            paths.setdefault(key, []).append(path)
    return paths


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _entry(kind: CacheKind, key: str, paths: list[Path]) -> CacheEntry:
    size = sum(_size_bytes(path) for path in paths)
    used_at = max(_used_at(path, deep=kind.name == DEVICES) for path in paths)
    title = LEFT_BEHIND if key.startswith(".") else _title(paths) or kind.holds
    return CacheEntry(kind.name, key, size, used_at, title, tuple(paths))


def _used_at(path: Path, *, deep: bool) -> float:
    """Return the time of the last use. A device's folder keeps its own time while files in it change."""
    return max(map(_touched_at, [path, *path.iterdir()] if deep else [path]))


def _touched_at(path: Path) -> float:
    """Return the time of the last use: a folder's mtime, of a file the later of mtime and atime."""
    try:
        status = path.lstat()
    except OSError:
        return 0.0  # it was removed while we looked
    return status.st_mtime if stat.S_ISDIR(status.st_mode) else max(status.st_mtime, status.st_atime)


def _size_bytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() and not path.is_symlink() else [path]
    total = 0
    with contextlib.suppress(OSError):  # a user of it may remove files while we count
        for file in files:
            with contextlib.suppress(OSError):
                status = file.lstat()
                total += 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    return total


def _title(paths: list[Path]) -> str:
    """Return what a person calls the entry, as its maker wrote it."""
    for path in paths:
        with contextlib.suppress(OSError):
            return (path / "title").read_text(encoding="utf-8").strip()
    return ""


def _remove(root: Path, entry: CacheEntry) -> bool:
    """Remove an entry unless it is in use; return whether it is gone."""
    try:
        if entry.kind == DEVICES:
            with lease(entry.key, registry.leases(root), timeout_s=0):
                shutil.rmtree(root / entry.key)
        else:
            with _alone(root if entry.kind == UNKNOWN.name else root / entry.kind, entry):
                for path in entry.paths:
                    _delete(path)
    except (Timeout, BlockingIOError, DeviceBusy):
        return False
    return True


@contextlib.contextmanager
def _alone(folder: Path, entry: CacheEntry) -> Iterator[None]:
    """Hold every lock of an entry. Raises Timeout or BlockingIOError if somebody else makes or keeps it."""
    being_written = entry.key.startswith(".") and entry.key.endswith(SCRATCH_SUFFIX)
    if being_written and time.time() - entry.used_at < JUST_WRITTEN_S:
        raise BlockingIOError
    key = entry.key.split(".")[1] if entry.key.startswith(".") else entry.key
    with contextlib.ExitStack() as stack:
        for lock in (folder / ".locks" / f"{key}.lock", folder / f"{key}.lock"):
            if lock.exists():
                stack.enter_context(FileLock(lock, timeout=0))
        for path in entry.paths:
            if path.is_dir() and not path.is_symlink():
                handle = os.open(path, os.O_RDONLY)
                stack.callback(os.close, handle)
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def _delete(path: Path) -> None:
    """Remove a file or folder. A folder vanishes in one step, so that nobody finds half of it."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    doomed = path if path.name.startswith(".") else path.rename(path.with_name(f".{path.name}.pruned"))
    shutil.rmtree(doomed, ignore_errors=True)
