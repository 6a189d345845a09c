"""Records behind a URL that fsspec knows: their files are copied into the cache, and again when they have changed."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from device_runner.failures import Failure, RigFailure
from device_runner.store import Store, cache_root, key_of
from harness.base.failures import UsageError
from harness.measure.records.index import RecordSource
from harness.measure.records.places import hint, is_record_file, is_url, open_files, record_files
from harness.tools.shared.remote import DEADLINE_S, BadObject, RemoteFolder, reason_of

COPIES = "record_copies"
LARGEST_COPY_BYTES = 16 << 30
"""Four million records as lines."""


def open_url(url: str, say: Callable[[str], None]) -> RecordSource:
    """Return the records behind a URL, by question. Raises UsageError if there are none, RigFailure, SetupMissing."""
    return open_files(copy_files(url, say), say)


def files_of(place: str, say: Callable[[str], None]) -> list[Path]:
    """Return the files of a place, or copies of those of a URL. Raises UsageError if there are none, RigFailure."""
    return copy_files(place, say) if is_url(place) else record_files(place)


def copy_files(url: str, say: Callable[[str], None]) -> list[Path]:
    """Return copies of the files of a URL in the cache; what has changed there since is copied again.

    Raises UsageError if there are none, RigFailure if it cannot be read.
    """
    folder, store = RemoteFolder(url), Store(cache_root(), COPIES)
    try:
        there = folder.call("glob" if glob.has_magic(url) else "find", folder.at(""), detail=True)
        names = {_key(name, facts): name for name, facts in sorted(there.items()) if is_record_file(name)}
        if not there:  # which is also what an address says that does not answer: `ls` raises there
            with suppress(FileNotFoundError):
                folder.call("ls", folder.at(""))
        missing = [key for key in names if store.find(key) is None]
        for number, key in enumerate(missing, 1):
            say(f"copying {names[key]}, {number} of {len(missing)}")
            store.obtain(key, partial(_fetch, folder, names[key]), DEADLINE_S)
    except Failure:
        raise
    except Exception as error:  # each kind of storage has errors of its own
        raise RigFailure(f"cannot read {url}: {reason_of(error)}", hint="check the URL and the credentials") from error
    if not names:
        raise UsageError(f"there are no records in {url}", hint=hint())
    return [_copy(store.folder / key, name) for key, name in names.items()]


def _key(name: str, facts: Mapping[str, Any]) -> str:
    """Return a key that differs with the version of a file."""
    version = {about: str(facts.get(about)) for about in ("size", "ETag", "etag", "LastModified", "mtime", "md5Hash")}
    return key_of({"name": name, **version})


def _fetch(remote: RemoteFolder, name: str, folder: Path) -> None:
    """Copy a file into a folder. Raises RigFailure for one that is too large."""
    try:
        remote.copy(name, _copy(folder, name), LARGEST_COPY_BYTES)
    except BadObject as error:
        raise RigFailure(f"refused {name}: {error}", hint="split it: `adreno-bench records compact` does") from None


def _copy(folder: Path, name: str) -> Path:
    return folder / f"records{PurePosixPath(name).suffix}"
