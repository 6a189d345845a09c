"""Read from a file the records that a command is about, and their device."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from device_runner.names import suggestion
from harness.base.failures import UsageError
from harness.base.plan import SUSTAINED
from harness.base.terminal import tell
from harness.cli.options import DEFAULT_DEVICE
from harness.judge.report.screen import Screen

if TYPE_CHECKING:
    from device_runner.device import Identity
    from harness.base.model import OnnxModel
    from harness.judge.sides import SeriesKey, Session, Side
    from harness.measure.records.index import RecordSource
    from harness.measure.records.record import Record
    from harness.measure.workbench import Request

Covers = Callable[[str], bool]
"""Whether the records of a case, by its id, are wanted."""
MAKES_RECORDS = "`adreno-bench run` makes some"


def open_index(place: Path | str) -> RecordSource:
    """Return the records of a place, by question. Lines that are not records are named on standard error.

    Raises UsageError if there are only such lines.
    """
    from harness.measure.records.index import skipped_lines
    from harness.measure.records.places import open_records

    index = open_records(place, tell)
    if index.skipped and not index.cases:
        others = f" ({len(index.skipped)} such lines)" if len(index.skipped) > 1 else ""
        raise UsageError(f"there are no records in {place}: {index.skipped[0]}{others}", hint=MAKES_RECORDS)
    for line in skipped_lines(index.skipped):
        tell(line)
    return index


def no_records(glob: str | None, records: str, index: RecordSource, *, sustained: bool = False) -> UsageError:
    """Return the error for a glob that matches no records of a place."""
    cases = index.cases
    if glob and not any(fnmatch.fnmatchcase(case, glob) for case in cases):
        return UsageError(f"no record of {glob!r} in {records}", hint=_nearest_case(glob, cases))
    if sustained:
        return UsageError(f"no sustained run in {records}", hint="`adreno-bench run --sustain 600` makes one")
    if cases:
        others = "`adreno-bench sustained` and `adreno-bench isa --against FILE` read these"
        return UsageError(f"only sustained runs or machine code in {records}", hint=others)
    return UsageError(f"there are no records in {records}", hint=MAKES_RECORDS)


def _nearest_case(glob: str, cases: Sequence[str]) -> str:
    """Return what to write in place of a glob that matches no case."""
    if any(case.startswith(f"{glob}-") for case in cases):
        return f"did you mean '{glob}-*'?"
    return suggestion(glob, cases) if cases else MAKES_RECORDS


def read_builds(place: Path | str, covers: Covers, device: str | None = None) -> Iterator[list[Record]]:
    """Yield all records of the latest build of each wanted series.

    Raises UsageError if there are no such files, or if they have no record of the named device.
    """
    with _open_index_of(place, device) as index:
        yield from index.newest_builds(covers, device)


def read_sessions(place: Path | str, covers: Covers, device: str | None = None) -> Iterator[Sequence[Session]]:
    """Yield the same as `read_builds`, with only the fields that a verdict needs. Raises the same."""
    with _open_index_of(place, device) as index:
        yield from index.newest_sessions(covers, device)


def read_sides(place: Path | str, covers: Covers, device: str | None = None) -> dict[SeriesKey, Side]:
    """Return the side of each wanted series in records. Raises as `read_builds` does."""
    from harness.judge.sides import side_of

    return {side.key: side for side in map(side_of, read_sessions(place, covers, device))}


@contextmanager
def _open_index_of(place: Path | str, device: str | None) -> Iterator[RecordSource]:
    """Yield the records of a place."""
    from harness.measure.records.places import require_records

    require_records(place)
    with open_index(place) as index:
        if device and device not in index.devices:
            raise _other_device(place, index.devices, device)
        yield index


def load_sides(source: Path | str, covers: Covers) -> dict[SeriesKey, Side]:
    """Return the sides of records or of a folder of baselines. Raises UsageError if there are none."""
    from harness.judge import baseline
    from harness.measure.records.places import has_records

    folder = Path(source)
    blessed = folder.is_dir() and (baseline.files_in(folder) != [] or not has_records(folder))
    sides = baseline.sides_in(folder.absolute(), covers) if blessed else read_sides(source, covers)
    if not sides:
        raise UsageError(f"{source} has no records of these cases", hint="`adreno-bench show` lists a file's records")
    return sides


def sustained_records(place: Path | str, covers: Covers) -> list[Record]:
    """Return the newest record of each series that ran without a pause, which are compared with nothing."""
    with open_index(place) as index:
        records = index.newest(covers, sustained=True)
        return [record for record in records if SUSTAINED in record.parts]


def device_of_records(request: Request, device: str | None, file: Path, screen: Screen, *, is_named: bool) -> str:
    """Return the name of the one device that is meant: that of the records in `file`, unless `--device` names another.

    Raises UsageError if the records are of several and none is named, or if they are of another than the one that is
    named while the file `is_named` as well. Raises AmbiguousDevice, UnknownDevice.
    """
    from harness.measure.records.index import RecordIndex

    with RecordIndex(file, screen.say) as index:
        there = index.devices
    if device is None and len(there) > 1:
        raise UsageError(f"{file} has records of {', '.join(there)}", hint="name one of them with --device")
    name = request.one_device(device or (there or [DEFAULT_DEVICE])[0], screen)
    if is_named and there and name not in there:
        raise _other_device(file, there, name)
    return name


def models_of_runs(file: Path, covers: Covers) -> tuple[list[str], list[str | OnnxModel]]:
    """Return the cases of a file whose runs named their models on the command line, and these models.

    Nothing else is taken from a record, which may be foreign: no `--trust`.
    """
    from harness.base.model import model_name
    from harness.judge.report.facts import naming_options
    from harness.measure.records.index import RecordIndex

    with RecordIndex(file, tell) as index:
        records = [record for record in index.newest(covers) if naming_options(record.model_options)]
    named = dict.fromkeys(record.model_options for record in records)
    models = {model_name(model): model for options in named for model in models_of(options)}
    return list(dict.fromkeys(record.case for record in records)), list(models.values())


def models_of(model_options: Sequence[str]) -> list[str | OnnxModel]:
    """Return the models that a run named on its command line, by what its record says of it."""
    from harness.base.model import models_given
    from harness.judge.report.facts import NAMING, naming_options

    words = naming_options(model_options)
    return models_given(*([value for name, value in words if name == option] for option in NAMING))


def _other_device(place: Path | str, there: Sequence[str], device: str) -> Exception:
    of = f"has records of {', '.join(there)}" if there else "has no records"
    return UsageError(f"{place} {of}, and --device names {device}", hint="leave one of the two out")


def identity_like(source: str, cache: Path) -> Identity:
    """Return the identity of the last record in a file, or of a device that was opened before. Raises UsageError."""
    from device_runner.selection import recall_identity
    from harness.measure.records.record import RecordFile

    file = Path(source)
    if not file.is_file():
        identity = recall_identity(source, cache)
        if identity is None:
            hint = "name a file of records or of schedules, or a device that `adreno-bench devices` lists"
            raise UsageError(f"{source} is neither a file nor a device that was opened before", hint=hint)
        return identity
    records = RecordFile(file).load().records
    if not records:
        raise UsageError(f"{source} has no records, and no schedules either", hint="`adreno-bench run` writes records")
    return records[-1].identity
