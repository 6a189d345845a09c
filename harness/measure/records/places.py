"""Where `--records` may point: at a file, a folder, a glob, or a URL that fsspec knows."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from device_runner.failures import Failure, RigFailure
from device_runner.store import Store, cache_root, key_of
from harness.base.failures import UsageError
from harness.base.remote import DEADLINE_S, BadObject, RemoteFolder, reason_of
from harness.measure.records.index import RecordIndex
from harness.tools.lake.parquet import SUFFIX

if TYPE_CHECKING:
    from harness.tools.lake.dataset import RecordDataset

LINES = ".jsonl"
COPIES = "record_copies"
LARGEST_COPY_BYTES = 16 << 30
"""Four million records as lines."""
HINT = f"name a file, a folder or a glob of {LINES} and {SUFFIX} files"
_URL = re.compile(r"[a-z0-9+]+://")


def open_records(place: str | Path, say: Callable[[str], None] = lambda _: None) -> RecordIndex | RecordDataset:
    """Return the records of a place, by question. `say` hears how far the reading of a large file has come.

    Raises UsageError for a folder, glob or URL without records, and what the two classes raise.
    """
    files = record_files(place, say)
    if len(files) == 1 and files[0].suffix != SUFFIX:
        return RecordIndex(files[0], say)
    from harness.tools.lake.dataset import RecordDataset

    return RecordDataset(files, say)


def record_files(place: str | Path, say: Callable[[str], None] = lambda _: None) -> list[Path]:
    """Return the files of a place: itself, those below it, or copies of those of a URL. Raises UsageError if none."""
    text, path = str(place), Path(place)
    if _URL.match(text):
        return _copies(text, say)
    if path.is_dir():
        found = [file for file in path.rglob("*") if _is_visible(file.relative_to(path))]
    elif glob.has_magic(text) and not path.exists():
        found = list(_matches(text))
    else:
        return [path]
    files = sorted(file for file in found if file.suffix in (LINES, SUFFIX) and file.is_file())
    if not files:
        raise UsageError(f"there are no records in {text}", hint=HINT)
    return files


def is_place(word: str) -> bool:
    """Return whether a word names records: a URL, or files that are there."""
    return bool(_URL.match(word) or Path(word).exists() or (glob.has_magic(word) and any(_matches(word))))


def require_records(place: str | Path) -> None:
    """Raise UsageError if a file is asked for that is not there."""
    if not (is_place(str(place)) or glob.has_magic(str(place))):
        raise UsageError(f"there is no {place}", hint="`adreno-bench run` makes records")


def has_records(folder: Path) -> bool:
    """Return whether a folder has files of records; that of baselines may have some of machine code."""
    return folder.is_dir() and any(file.suffix in (LINES, SUFFIX) for file in folder.rglob("*"))


def _matches(pattern: str) -> Iterator[Path]:
    anchor = Path(pattern).anchor
    return Path(anchor).glob(pattern.removeprefix(anchor))


def _is_visible(file: Path) -> bool:
    return not any(part.startswith(".") for part in file.parts)


def _copies(url: str, say: Callable[[str], None]) -> list[Path]:
    """Return copies of the files of a URL in the cache; what has changed there since is copied again.

    Raises RigFailure if it cannot be read.
    """
    folder, store = RemoteFolder(url), Store(cache_root(), COPIES)
    try:
        there = folder.call("glob" if glob.has_magic(url) else "find", folder.at(""), detail=True)
        names = {_key(name, facts): name for name, facts in sorted(there.items()) if _is_of_records(name)}
        missing = [key for key in names if store.find(key) is None]
        for number, key in enumerate(missing, 1):
            say(f"copying {names[key]}, {number} of {len(missing)}")
            store.obtain(key, partial(_fetch, folder, names[key]), DEADLINE_S)
    except Failure:
        raise
    except Exception as error:  # each kind of storage has errors of its own
        raise RigFailure(f"cannot read {url}: {reason_of(error)}", hint="check the URL and the credentials") from error
    if not names:
        raise UsageError(f"there are no records in {url}", hint=HINT)
    return [_copy(store.folder / key, name) for key, name in names.items()]


def _is_of_records(name: str) -> bool:
    return PurePosixPath(name).suffix in (LINES, SUFFIX)


def _key(name: str, facts: Mapping[str, Any]) -> str:
    """Return a key that differs with what is there."""
    version = {about: str(facts.get(about)) for about in ("size", "ETag", "etag", "LastModified", "mtime", "md5Hash")}
    return key_of({"name": name, **version})


def _fetch(remote: RemoteFolder, name: str, folder: Path) -> None:
    try:
        remote.copy(name, _copy(folder, name), LARGEST_COPY_BYTES)
    except BadObject as error:
        raise RigFailure(f"refused {name}: {error}", hint="split it: `adreno-bench records compact` does") from None


def _copy(folder: Path, name: str) -> Path:
    return folder / f"records{PurePosixPath(name).suffix}"
