"""A store that hosts share, behind the local one: a bucket, or whatever else fsspec reaches.

    <url>/<kind>/<key>-<machine>.json    an entry: the hash of each of its files
    <url>/objects/<sha256>               a file, under the hash of its content

Entries are read through and written back, one by one: nothing is listed, and expiry is the bucket's. What comes from
there is used only if it has the hash under which it was asked for. A store that fails costs one line and no run.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from device_runner.failures import RigFailure
from device_runner.files import require_name
from device_runner.foreign_json import read_json
from device_runner.store import SUMS, key_of, sha256_of
from harness.tools.shared.remote import BadObject, RemoteFolder, reason_of

PAUSE_S = 300.0
"""How long a store that failed is left out."""
LARGEST_ENTRY_BYTES = 1 << 16
LARGEST_FILE_BYTES = 4 << 30
_SHA256 = re.compile("[0-9a-f]{64}")


def entry_text(name: str, files: Mapping[str, str]) -> str:
    """Return an entry as it is kept: its name, the SHA-256 of each file by name, and a hash over both."""
    facts = {"entry": name, "files": dict(files)}
    return json.dumps({**facts, "hash": key_of(facts)})


def read_entry(text: bytes, name: str) -> dict[str, str]:
    """Return the SHA-256 of each file of an entry by name. Raises BadObject for what `entry_text` never writes."""
    try:
        facts = read_json(text)
        files = {require_name(str(file)): str(sha256) for file, sha256 in facts["files"].items()}
        whole = json.loads(entry_text(name, files)) == facts
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise BadObject(str(error)) from None
    if not whole or not all(map(_SHA256.fullmatch, files.values())):
        raise BadObject("its content does not match its hash")
    return files


class ObjectStore:
    """The second level of the store. Any thread may use it."""

    def __init__(self, url: str, say: Callable[[str], object]) -> None:
        """Open a store without asking it anything. `say` is told what is wrong with it, in a line.

        Raises UsageError for an URL that fsspec does not know, SetupMissing without the package for it.
        """
        self.url = url
        self._say = say
        self._folder = RemoteFolder(url)
        self._wrong: set[str] = set()
        """Objects that had another hash, which are written anew."""
        self._lock = threading.Lock()
        self._paused_until = 0.0
        self._writable = True

    def fetch(self, kind: str, key: str, folder: Path) -> bool:
        """Fill an empty folder with the files of an entry; whether there was one."""
        part = folder / ".fetched"
        try:
            return self._unless_broken(lambda: self._fetch(_name(kind, key), part))
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def _fetch(self, name: str, part: Path) -> bool:
        part.mkdir()
        entry = part / ".entry"
        try:
            with self._naming(f"{name}.json"):
                self._folder.copy(self._folder.at(f"{name}.json"), entry, LARGEST_ENTRY_BYTES)
                files = read_entry(entry.read_bytes(), name)
            entry.unlink()
            for file, sha256 in files.items():
                self.get(sha256, part / file)
        except FileNotFoundError:
            return False
        for fetched in part.iterdir():
            fetched.rename(part.with_name(fetched.name))
        return True

    def publish(self, kind: str, key: str, folder: Path) -> bool:
        """Write an entry of the local store back; whether it was. Of hosts that do it at once the last one wins."""
        return self._unless_broken(lambda: self._publish(_name(kind, key), folder))

    def _publish(self, name: str, folder: Path) -> bool:
        files = json.loads((folder / SUMS).read_text(encoding="utf-8"))
        try:
            for file, sha256 in files.items() if self._writable else ():
                self.put(folder / file, sha256)
            if self._writable:
                self._folder.call("pipe_file", self._folder.at(f"{name}.json"), entry_text(name, files).encode())
        except PermissionError as error:
            self._writable = False
            self._say(f"the store {self.url} is read, and not written to: {reason_of(error)}")
        return self._writable

    def send(self, file: Path, sha256: str) -> bool:
        """Write a file that is no entry's under its hash; whether it is there."""
        return self._unless_broken(lambda: self.put(file, sha256))

    def receive(self, sha256: str, file: Path) -> None:
        """Read a file that is no entry's. Raises RigFailure if it cannot be had."""
        if not self._unless_broken(lambda: self.get(sha256, file)):
            raise RigFailure(
                f"the store {self.url} does not have {_object(sha256)}", hint="is it the same on both hosts?"
            )

    def put(self, file: Path, sha256: str) -> None:
        """Write a file under its hash unless it is there. Raises what fsspec raises."""
        if sha256 in self._wrong or not file.stat().st_size or not self._has(sha256):
            self._folder.call("put_file", str(file), self._folder.at(_object(sha256)))
            self._wrong.discard(sha256)

    def get(self, sha256: str, file: Path) -> None:
        """Read a file by its hash. Raises BadObject if it has another one, and what fsspec raises."""
        with self._naming(_object(sha256)):
            self._folder.copy(self._folder.at(_object(sha256)), file, LARGEST_FILE_BYTES)
            if sha256_of(file) != sha256:
                self._wrong.add(sha256)
                raise BadObject("its content does not match its hash")

    def _has(self, sha256: str) -> bool:
        try:
            self._folder.call("cat_file", self._folder.at(_object(sha256)), start=0, end=1)
        except FileNotFoundError:
            return False
        return True

    @contextmanager
    def _naming(self, name: str) -> Iterator[None]:
        """Say which object is refused."""
        try:
            yield
        except BadObject as error:
            self._say(f"refused {self.url}/{name}: {error}")
            raise

    def _unless_broken(self, work: Callable[[], bool | None]) -> bool:
        """Return False if `work` does, or if the store fails, which leaves it out for a while and is said once."""
        if time.monotonic() < self._paused_until:
            return False
        try:
            return work() is not False
        except BadObject:
            return False
        except Exception as error:  # each kind of storage has errors of its own
            with self._lock:
                if time.monotonic() >= self._paused_until:
                    self._paused_until = time.monotonic() + PAUSE_S
                    self._say(f"the store {self.url} is left out for {PAUSE_S / 60:.0f} min: {reason_of(error)}")
            return False


def _name(kind: str, key: str) -> str:
    """Return the name of an entry. What is made for a host's own processor differs with the processor."""
    return f"{kind}/{require_name(key)}-{platform.machine()}"


def _object(sha256: str) -> str:
    return f"objects/{sha256}"
