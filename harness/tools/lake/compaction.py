"""Records files made into a dataset of Parquet: `<folder>/day=2026-03-02/<name>.parquet`.

A part has the records that one file has of one day, up to PART_BYTES of lines. Its name is a hash of the first of them,
so a file that has grown since gives its last part the same name again, which then gets the lines that it lacks; and a
file that was begun anew gets new parts. No part is ever removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from device_runner.failures import RigFailure
from device_runner.lifetime import die_with_parent
from harness.base.process import cores
from harness.measure.records.index_database import facts_of, series_of
from harness.measure.records.record import BUFFER_BYTES, NotARecord, lines_of, parse
from harness.tools.lake.parquet import FACTS, SUFFIX, TEXT, add_rows, needing_packages, table_of
from harness.tools.shared.full_disk import writing

PART_BYTES = 64 << 20
OPEN_BYTES = 192 << 20
"""Lines that a process holds at most: of a file whose days are mixed, the largest part is then written early."""
LOOK_EVERY_S = 1.0
NO_DAY = "unknown"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class Taken:
    """What was taken from one file, or from several."""

    records: int = 0
    skipped: tuple[str, ...] = ()
    """Lines that are no records, each with its place and the reason."""

    def __add__(self, other: Taken) -> Taken:
        return Taken(self.records + other.records, (*self.skipped, *other.skipped))


@dataclass
class _Part:
    """Records of one day that are not written yet."""

    name: str
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    size_bytes: int = 0


def compact(files: Sequence[Path], folder: Path, watch: Callable[[int], None]) -> Taken:
    """Add the records of files to a dataset. `watch` is told every second how many more files are done.

    Raises RigFailure for a file that cannot be read or a part that cannot be written, SetupMissing without pyarrow.
    What was written until then stays, and the same call again completes it.
    """
    total = Taken()
    with needing_packages(), _pool(min(cores(), len(files))) as pool:
        rest = {pool.submit(compact_file, file, folder) for file in files}
        while rest:
            done, rest = wait(rest, LOOK_EVERY_S)
            for job in done:
                try:
                    total += job.result()
                except BrokenProcessPool:
                    raise RigFailure("a process that compacts was killed", hint="run it again") from None
            watch(len(done))
    return total


def compact_file(file: Path, folder: Path) -> Taken:
    """Add the records of one file. Raises RigFailure, DiskFull."""
    skipped: list[str] = []
    records = 0
    try:
        for day, part in _parts(file, skipped):
            with writing(folder):
                add_rows(folder / f"day={day}" / f"{part.name}{SUFFIX}", table_of((*FACTS, TEXT), part.rows))
            records += len(part.rows)
    except OSError as error:
        raise RigFailure(f"{error.filename or file}: {error.strerror or error}") from error
    return Taken(records, tuple(skipped))


def _parts(file: Path, skipped: list[str]) -> Iterator[tuple[str, _Part]]:
    """Yield parts that are complete, and in the end those that are not, each with its day."""
    parts: dict[str, _Part] = {}
    open_bytes = 0
    with file.open("rb", buffering=BUFFER_BYTES) as stream:
        for number, _, line in lines_of(stream):
            try:
                record = parse(line)
            except NotARecord as problem:
                skipped.append(f"{file}:{number}: {problem}")
                continue
            text, day = line.rstrip(b"\n"), record.started_at[:10]
            day = day if _DAY.fullmatch(day) else NO_DAY
            part = parts.setdefault(day, _Part(hashlib.sha256(text).hexdigest()[:24]))
            part.rows.append((*series_of(record), *facts_of(record), text.decode()))
            part.size_bytes += len(text)
            open_bytes += len(text)
            if part.size_bytes >= PART_BYTES or open_bytes >= OPEN_BYTES:
                day = max(parts, key=lambda name: parts[name].size_bytes)
                open_bytes -= parts[day].size_bytes
                yield day, parts.pop(day)
    yield from parts.items()


@contextlib.contextmanager
def _pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Yield processes that end with the block, also in the middle of a file."""
    pool = ProcessPoolExecutor(processes, get_context("spawn"), initializer=_begin)
    try:
        yield pool
    except BaseException:
        for process in active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """End with the parent, and leave Ctrl-C to it."""
    die_with_parent(signal.SIGTERM)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
