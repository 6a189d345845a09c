"""An SQLite database that says of each line of a file of records where it begins, and what commands choose it by.

It is kept in the cache and brought up to date when it is opened: what was appended is added to it; a file that was
replaced, cut or edited gets a new one. Where none can be kept (no space, not ours to write, somebody else is making
it), there is one in memory, which takes as long as reading all records.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from device_runner.files import write_whole
from device_runner.store import cache_root, keep, key_of
from harness.measure.records.record import NotARecord, Record, lines_of, parse

KIND = "record_indexes"
SMALL_BYTES = 1 << 20
"""Reading a smaller file takes no longer than opening an index of it."""
BLOCKS, BLOCK_BYTES = 256, 4096
"""What is looked at to see whether a file is still the same: all of a small one."""
LOCKED_S = 5.0
"""Seconds that another process may write to the index before this one makes its own."""
SAY_EVERY_S = 5.0

SERIES = ("case", "identity_key", "as_shipped", "standalone", "device", "identity.serial")
"""The attributes of a record that tell its series, which are the columns of the table `series`."""
LINE = ("artifact", "quick", "is_own", "outcome.conclusive", "outcome", "week", "recoveries", "started")
"""The others that commands choose a record by: the columns of the table `line`."""
series_of, facts_of = attrgetter(*SERIES), attrgetter(*LINE)
"""The values of these columns, of a record."""


def columns(attributes: Sequence[str]) -> list[str]:
    """Return the names of columns, quoted: the last part of each attribute's."""
    return [f'"{attribute.rpartition(".")[2]}"' for attribute in attributes]


_SERIES, _LINE = ", ".join(columns(SERIES)), ", ".join(columns(LINE))
TABLES = (
    f"CREATE TABLE series (id INTEGER PRIMARY KEY, {_SERIES}, UNIQUE ({_SERIES}))",
    f"CREATE TABLE line (series INTEGER, at INTEGER, {_LINE}, PRIMARY KEY (series, at)) WITHOUT ROWID",
    "CREATE TABLE foreign_line (at INTEGER PRIMARY KEY, why TEXT)",
    "CREATE TABLE state (inode INTEGER, size INTEGER, mtime_ns INTEGER, whole INTEGER, lines INTEGER, digest BLOB)",
)


class State(NamedTuple):
    """The file as it was when the index was last written."""

    inode: int
    size: int
    mtime_ns: int
    whole: int
    """Start of the last line if it is incomplete, else the end of the file."""
    lines: int
    """Number of lines that end before that place."""
    digest: bytes
    """Digest of the file before that place."""


class IndexDatabase:
    """The index of one file, of which `file` is open. `say` gets the progress of a large one."""

    def __init__(self, path: Path, file: BinaryIO, say: Callable[[str], None]) -> None:
        self._path = path
        self._file = file
        self._say = say
        self._kept_at: Path | None = None

    def open(self) -> sqlite3.Connection:
        """Return a connection to an index of all lines that are there now: the kept one, or else one in memory."""
        if os.fstat(self._file.fileno()).st_size > SMALL_BYTES:
            with contextlib.suppress(OSError, sqlite3.Error):
                return self._in_cache()
        return self._up_to_date(":memory:")

    def open_anew(self) -> sqlite3.Connection:
        """Rebuild the index in memory and remove the kept one, which was wrong."""
        self._discard()
        return self._up_to_date(":memory:")

    def _in_cache(self) -> sqlite3.Connection:
        """Return the index in the cache. Raises OSError or sqlite3.Error if there can be none."""
        file = self._path.resolve()
        folder = cache_root() / KIND / key_of({"file": str(file), "form": _form()})
        folder.mkdir(parents=True, exist_ok=True)
        keep(folder)
        with contextlib.suppress(OSError):  # what was made before may be read where nobody may write
            write_whole(folder / "title", str(file))
        self._kept_at = folder / "index.sqlite"
        try:
            return self._up_to_date(self._kept_at)
        except sqlite3.OperationalError:  # locked, not ours to write, no space: it may be good
            raise
        except sqlite3.DatabaseError:
            self._discard()
            return self._up_to_date(self._kept_at)

    def _discard(self) -> None:
        """Leave a bad index to nobody. A process that has it open keeps it."""
        if self._kept_at:
            with contextlib.suppress(OSError):
                self._kept_at.unlink()

    def _up_to_date(self, place: Path | str) -> sqlite3.Connection:
        db = sqlite3.connect(place, timeout=LOCKED_S, isolation_level=None)
        try:
            stat = os.fstat(self._file.fileno())
            state = self._state(db, stat)
            if not state or state.whole < stat.st_size:
                db.execute("BEGIN IMMEDIATE")
                self._extend(db, self._state(db, stat), stat)
                db.execute("COMMIT")
        except BaseException:
            db.close()
            raise
        return db

    def _state(self, db: sqlite3.Connection, stat: os.stat_result) -> State | None:
        """Return the state of an index of this very file; None if it is of another. Raises sqlite3.DatabaseError."""
        tables = db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
        if not tables:
            return None
        if tuple(sql for (sql,) in tables) != TABLES:
            raise sqlite3.DatabaseError("not an index of records")
        state = State(*db.execute("SELECT * FROM state").fetchone())
        grown = state.size < stat.st_size
        same = state.size == stat.st_size and state.mtime_ns == stat.st_mtime_ns
        if state.inode != stat.st_ino or not (grown or same) or state.digest != self._digest(state.whole):
            return None
        return state

    def _digest(self, size: int) -> bytes:
        """Hash the file's first bytes: all if they are few, else their end and blocks from all over them."""
        digest = hashlib.blake2b(digest_size=16)
        for at in (*range(0, size, max(BLOCK_BYTES, size // BLOCKS)), max(0, size - BLOCK_BYTES)):
            digest.update(os.pread(self._file.fileno(), min(BLOCK_BYTES, size - at), at))
        return digest.digest()

    def _extend(self, db: sqlite3.Connection, old: State | None, stat: os.stat_result) -> None:
        """Add the lines that are not known, in the caller's transaction."""
        if old is None:
            for name in ("series", "line", "foreign_line", "state"):
                db.execute(f"DROP TABLE IF EXISTS {name}")
            for table in TABLES:
                db.execute(table)
            old = State(stat.st_ino, 0, 0, 0, 0, b"")
        elif old.whole < old.size:
            for name in ("line", "foreign_line"):
                db.execute(f"DELETE FROM {name} WHERE at >= ?", (old.whole,))
            db.execute("DELETE FROM series WHERE id NOT IN (SELECT series FROM line)")
        lines, whole = old.lines, old.whole
        number_of = _numbers(db)

        def rows() -> Iterator[tuple[Any, ...]]:
            nonlocal lines, whole
            for number, at, line in self._with_progress(lines_of(self._file, whole, lines, stat.st_size), stat.st_size):
                if line.endswith(b"\n"):
                    lines, whole = number, at + len(line)
                try:
                    record = parse(line)
                except NotARecord as problem:
                    db.execute("INSERT INTO foreign_line VALUES (?, ?)", (at, f"{number}: {problem}"))
                else:
                    yield number_of(*series_of(record)), at, *facts_of(record)

        db.executemany(f"INSERT INTO line VALUES (?, ?{', ?' * len(LINE)})", rows())
        db.execute("DELETE FROM state")
        state = State(stat.st_ino, stat.st_size, stat.st_mtime_ns, whole, lines, self._digest(whole))
        db.execute("INSERT INTO state VALUES (?, ?, ?, ?, ?, ?)", state)

    def _with_progress(self, lines: Iterator[tuple[int, int, bytes]], size: int) -> Iterator[tuple[int, int, bytes]]:
        """Yield the same lines, and now and then a word of how far they have come."""
        due = time.monotonic() + SAY_EVERY_S
        for line in lines:
            if time.monotonic() > due:
                due = time.monotonic() + SAY_EVERY_S
                self._say(f"reading all of {self._path} this once: {line[1] / size:.0%}")
            yield line


@functools.cache
def _form() -> str:
    """Return a text that changes with the schema of records."""
    return key_of(Record.model_json_schema())


def _numbers(db: sqlite3.Connection) -> Callable[..., int]:
    """Return what gives a series its number."""
    places, where = ", ".join("?" * len(SERIES)), " AND ".join(f"{column} = ?" for column in columns(SERIES))

    @functools.lru_cache(1 << 14)
    def number_of(*series: str | bool) -> int:
        db.execute(f"INSERT OR IGNORE INTO series ({_SERIES}) VALUES ({places})", series)
        number: int = db.execute(f"SELECT id FROM series WHERE {where}", series).fetchone()[0]
        return number

    return number_of
