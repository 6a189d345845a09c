"""Where `--records` may point: at a file, a folder, a glob, or a URL.

One file of JSON lines is read here; a tool reads what else there is (`Tool.record_sources`).
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePath

from device_runner.names import load
from harness.base.failures import UsageError
from harness.base.tool import MANY_FILES, URL, places
from harness.measure.records.index import RecordIndex, RecordSource

LINES = ".jsonl"
_SCHEME = re.compile(rf"[a-z0-9+]+{URL}")


def open_records(place: str | Path, say: Callable[[str], None] = lambda _: None) -> RecordSource:
    """Return the queries on the records of a place. `say` gets the progress of a large file.

    Raises UsageError for a folder, glob or URL without records, and what the two classes raise.
    """
    if is_url(place):
        source: RecordSource = load(_sources()[URL])(str(place), say)
        return source
    return open_files(record_files(place), say)


def open_files(files: Sequence[Path], say: Callable[[str], None] = lambda _: None) -> RecordSource:
    """Return the queries on the records of files. Raises as `open_records` does."""
    suffixes = {file.suffix for file in files} | ({MANY_FILES} if len(files) > 1 else set())
    if foreign := next((place for key, place in _sources().items() if key in suffixes), None):
        source: RecordSource = load(foreign)(files, say)
        return source
    return RecordIndex(files[0], say)


def record_files(place: str | Path) -> list[Path]:
    """Return the files of a place: itself, or those below it. Raises UsageError if there are none."""
    text, path = str(place), Path(place)
    if path.is_dir():
        inside = [file.relative_to(path) for file in path.rglob("*")]
        below = [path / file for file in inside if not any(part.startswith(".") for part in file.parts)]
    elif glob.has_magic(text) and not path.exists():
        below = list(_matches(text))
    else:
        return [path]
    files = sorted(file for file in below if is_record_file(file) and file.is_file())
    if not files:
        raise UsageError(f"there are no records in {text}", hint=hint())
    return files


def is_url(place: str | Path) -> bool:
    """Return whether a place is a URL."""
    return bool(_SCHEME.match(str(place)))


def is_place(word: str) -> bool:
    """Return whether a word names records: a URL, or files that are there."""
    return is_url(word) or Path(word).exists() or (glob.has_magic(word) and any(_matches(word)))


def require_records(place: str | Path) -> None:
    """Raise UsageError if a file is missing."""
    if not (is_place(str(place)) or glob.has_magic(str(place))):
        raise UsageError(f"there is no {place}", hint="`adreno-bench run` makes records")


def has_records(folder: Path) -> bool:
    """Return whether a folder has files of records; that of baselines may have some of machine code."""
    return folder.is_dir() and any(map(is_record_file, folder.rglob("*")))


def is_record_file(file: PurePath | str) -> bool:
    """Return whether a file has records, by its suffix."""
    return PurePath(file).suffix in _suffixes()


def hint() -> str:
    """Return the hint for a place without records."""
    return f"name a file, a folder or a glob of {' and '.join(_suffixes())} files"


def _sources() -> dict[str, str]:
    return dict(places("record_sources"))


def _suffixes() -> list[str]:
    return [LINES, *(key for key in _sources() if key not in (MANY_FILES, URL))]


def _matches(pattern: str) -> Iterator[Path]:
    anchor = Path(pattern).anchor
    return Path(anchor).glob(pattern.removeprefix(anchor))
