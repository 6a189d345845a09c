"""The store: what was made once, kept under the hash of all that went in.

    <cache>/artifacts/<key>/lib.so, manifest.json     one compiled case
    <cache>/artifacts/<key>/failure.json              or what the compiler said, which it would say again
    <cache>/oracles/<key>/inputs.npz, outputs.npz     the inputs of a model and the right answers to them
    <cache>/opencl_runtime/<key>/, probe/<key>/, ...  libraries for devices (`device_runner.runtimes`)

An entry is made in a temporary folder and renamed into place, so it is whole or not there; a lock per key makes two
runs at once build a thing once.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from device_runner.disk import disk_full
from device_runner.failures import RigFailure
from device_runner.files import require_name

if TYPE_CHECKING:
    from filelock import FileLock

log = logging.getLogger("store")


def cache_root() -> Path:
    """Folder of everything that can be made again: `$ADRENO_BENCH_CACHE`, else the user's cache folder."""
    if chosen := os.environ.get("ADRENO_BENCH_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "adreno-bench"


def key_of(facts: Mapping[str, Any]) -> str:
    """Hash of JSON-able facts, the same on every machine."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def digest_of(words: Iterable[str], folders: Iterable[Path]) -> str:
    """Hash of these words, and of the names and contents of all files in these folders."""
    files = [
        (file.relative_to(folder).as_posix(), sha256_of(file))
        for folder in dict.fromkeys(folders)
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    ]
    return key_of({"words": list(words), "files": files})


def sha256_of(file: Path) -> str:
    """SHA-256 of a file, in hex."""
    with file.open("rb") as stream:
        digest = hashlib.sha256()
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


_handles: dict[Path, int] = {}


def keep(folder: Path) -> None:
    """Let nobody prune a folder as long as this process lives: a revision's environment, say, between two sessions."""
    if folder not in _handles:
        with contextlib.suppress(OSError):  # a file system without such locks
            handle = os.open(folder, os.O_RDONLY)
            _handles[folder] = handle
            fcntl.flock(handle, fcntl.LOCK_SH)


SUMS = ".sha256.json"
"""File of an entry with the hash of each of its other files."""
_confirmed: dict[Path, tuple[int, int, int]] = {}
"""Files whose hash was right: inode, size and time of the last change."""


def _write_sums(folder: Path) -> None:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    sums = {file.relative_to(folder).as_posix(): sha256_of(file) for file in files}
    (folder / SUMS).write_text(json.dumps(sums, indent=1), encoding="utf-8")


def _damaged_file(folder: Path) -> Path | None:
    """Return a file of an entry that changed since it was made; None if there is none, or no hash.

    Each is read once by a process, and again when it was changed.
    """
    try:
        sums = json.loads((folder / SUMS).read_text(encoding="utf-8"))
        return next((file for name, sha256 in sums.items() if not is_confirmed(file := folder / name, sha256)), None)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError):
        return folder / SUMS


def is_confirmed(file: Path, sha256: str) -> bool:
    """Return whether a file has this hash. It is read once by a process, and again when it was changed."""
    try:
        stat = file.stat()
        stamp = stat.st_ino, stat.st_size, stat.st_mtime_ns
        if _confirmed.get(file) != stamp and sha256_of(file) == sha256:
            _confirmed[file] = stamp
    except OSError:
        return False
    return _confirmed.get(file) == stamp


class Store:
    """Folders under keys, made whole or not at all."""

    def __init__(self, root: Path, kind: str, *, sums: bool = True) -> None:
        """Open a store. Without `sums`, entries are not verified, for example a whole repository."""
        self.folder = root / kind
        self.kind = kind
        self._sums = sums

    def find(self, key: str) -> Path | None:
        """Return the folder of a key, marked as used now; None if it is not there, as for what can be no key.

        One whose files are not what was kept is named in the log and discarded, so that it is made again.
        """
        try:
            folder = self.folder / require_name(key)
        except ValueError:  # of a record that somebody else wrote
            return None
        if not folder.is_dir():
            return None
        if self._sums and (damaged := _damaged_file(folder)):
            log.warning("%s was damaged in the store: the store makes %s again", damaged, folder)
            self._discard(folder)
            return None
        with contextlib.suppress(OSError):  # a read-only store is still a store
            os.utime(folder)
        return folder

    def obtain(self, key: str, make: Callable[[Path], object], timeout_s: float) -> Path:
        """Return the folder of a key, which `make` fills if it is not there; of several who ask at once, one makes it.

        Raises what `making` raises and what `make` raises.
        """
        if folder := self.find(key):
            return folder
        with self.making(key, timeout_s) as scratch:
            if self.find(key) is None:  # another run may have made it while this one waited
                make(scratch)
        if folder := self.find(key):
            return folder
        raise RigFailure(f"the store lost {key} while it was read", hint="run again")

    @contextlib.contextmanager
    def making(self, key: str, timeout_s: float) -> Iterator[Path]:
        """Yield an empty folder that becomes the key's entry if the block ends well; hold the key's lock meanwhile.

        Ask `find` again inside: another run may have made it while this one waited. Raises RigFailure after
        `timeout_s`, or when the disk refuses, DiskFull if it is full.
        """
        from filelock import Timeout

        try:
            with self._lock(key, timeout_s):
                # What is there was left by a process that was killed, or it would hold the lock.
                for left in self.folder.glob(f".{key}.{'[0-9a-f]' * 8}"):
                    shutil.rmtree(left, ignore_errors=True)
                scratch = self.folder / f".{key}.{uuid.uuid4().hex[:8]}"
                scratch.mkdir()
                try:
                    yield scratch
                    if self._sums and any(scratch.iterdir()):
                        _write_sums(scratch)
                    if any(scratch.iterdir()) and not (self.folder / key).exists():
                        scratch.rename(self.folder / key)
                finally:
                    shutil.rmtree(scratch, ignore_errors=True)
        except Timeout:
            raise RigFailure(
                f"another process has been building {key} for {timeout_s:.0f} s", hint="wait for it, or end it"
            ) from None
        except OSError as error:
            raise disk_full(error, self.folder) or RigFailure(
                f"cannot write to the store {self.folder}: {error.strerror or error}",
                hint="set ADRENO_BENCH_CACHE to a folder that can be written to",
            ) from error

    def _discard(self, folder: Path) -> None:
        """Remove an entry. Raises RigFailure if the disk refuses."""
        try:
            gone = folder.rename(folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}"))
        except OSError as error:
            message = f"{folder} was damaged in the store, and cannot be removed: {error.strerror}"
            raise RigFailure(message, hint="remove it") from error
        shutil.rmtree(gone, ignore_errors=True)

    def _lock(self, key: str, timeout_s: float) -> FileLock:
        from filelock import FileLock

        locks = self.folder / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        return FileLock(locks / f"{key}.lock", timeout=timeout_s)
