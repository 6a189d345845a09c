"""What a place has to say: the records of its latest builds, or its baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.failures import UsageError
from harness.base.terminal import tell

if TYPE_CHECKING:
    from harness.judge.sides import SeriesKey, Side
    from harness.measure.records.places import RecordSource
    from harness.measure.records.record import Record

Covers = Callable[[str], bool]
"""Whether the records of a case, by its id, are asked for."""


def open_index(place: Path | str) -> RecordSource:
    """Return the records of a place, by question. Lines that are not records are named on standard error.

    Raises UsageError if there are only such lines.
    """
    from harness.measure.records.index import skipped_lines
    from harness.measure.records.places import open_records

    index = open_records(place, tell)
    if index.skipped and not index.cases:
        others = f" ({len(index.skipped)} such lines)" if len(index.skipped) > 1 else ""
        raise UsageError(f"there are no records in {place}: {index.skipped[0]}{others}")
    for line in skipped_lines(index.skipped):
        tell(line)
    return index


def read_builds(place: Path | str, covers: Covers, device: str | None = None) -> Iterator[list[Record]]:
    """Yield all records of the latest build of each series that is asked for.

    Raises UsageError if there are no such files, or if they have nothing of a device that is named.
    """
    with _open_index_of(place, device) as index:
        yield from index.newest_builds(covers, device)


def read_sides(place: Path | str, covers: Covers, device: str | None = None) -> dict[SeriesKey, Side]:
    """Return what records say of each series that is asked for. Raises as `read_builds` does."""
    from harness.judge.sides import side_of

    with _open_index_of(place, device) as index:
        builds = index.newest_sessions(covers, device)
        return {side.key: side for side in map(side_of, builds)}


@contextmanager
def _open_index_of(place: Path | str, device: str | None) -> Iterator[RecordSource]:
    """Yield the records of a place."""
    from harness.measure.records.places import require_records

    require_records(place)
    with open_index(place) as index:
        if device and device not in index.devices:
            raise other_device(place, index.devices, device)
        yield index


def load_sides(source: Path | str, covers: Covers) -> dict[SeriesKey, Side]:
    """Return what records or a folder of baselines say. Raises UsageError if they say nothing."""
    from harness.judge import baseline
    from harness.measure.records.places import has_records

    folder = Path(source)
    blessed = folder.is_dir() and (baseline.files_in(folder) != [] or not has_records(folder))
    sides = baseline.sides(baseline.load(folder.absolute())) if blessed else read_sides(source, covers)
    chosen = {key: side for key, side in sides.items() if covers(key.case)}
    if not chosen:
        raise UsageError(f"{source} has nothing on these cases", hint="`adreno-bench show` lists a file's records")
    return chosen


def other_device(place: Path | str, there: Sequence[str], device: str) -> UsageError:
    """Return the error for a device that a place has no records of."""
    of = f"has records of {', '.join(there)}" if there else "has no records"
    return UsageError(f"{place} {of}, and --device names {device}", hint="leave one of the two out")
