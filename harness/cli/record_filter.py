"""What commands take from a file of records: the records that are meant, and the device that they are of."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from device_runner.names import suggestion
from harness.base.failures import UsageError
from harness.base.plan import SUSTAINED
from harness.cli.options import DEFAULT_DEVICE, matches_globs
from harness.judge.record_reader import Covers, open_index, other_device
from harness.judge.report.screen import Screen

if TYPE_CHECKING:
    from device_runner.device import Identity
    from harness.measure.records.places import RecordSource
    from harness.measure.records.record import Record
    from harness.measure.workbench import Request


def newest_records(place: str, glob: str | None) -> list[Record]:
    """Return the latest record of each series that matches, without sustained runs. Raises UsageError for none."""
    with open_index(place) as index:
        records = list(index.newest(lambda case: matches_globs(case, [glob] if glob else None)))
        if not records:
            raise no_records(glob, place, index)
        return records


def no_records(glob: str | None, records: str, index: RecordSource, *, sustained: bool = False) -> UsageError:
    """Return the error for a glob that matches no records of a place."""
    known = index.cases
    if glob and not any(fnmatch.fnmatchcase(case, glob) for case in known):
        hint = suggestion(glob, known) if known else "`adreno-bench run` makes some"
        return UsageError(f"no record of {glob!r} in {records}", hint=hint)
    if sustained:
        return UsageError(f"no sustained run in {records}", hint="`adreno-bench run --sustain 600` makes one")
    if known:
        others = "`adreno-bench sustained` and `adreno-bench isa --against FILE` read these"
        return UsageError(f"only sustained runs, or machine code of no run, in {records}", hint=others)
    return UsageError(f"there are no records in {records}", hint="`adreno-bench run` makes some")


def sustained_records(place: Path | str, covers: Covers) -> list[Record]:
    """Return the newest record of each series that ran without a pause, which are compared with nothing."""
    with open_index(place) as index:
        found = index.newest(covers, sustained=True)
        return [record for record in found if SUSTAINED in record.parts]


def device_of_records(request: Request, device: str | None, file: Path, screen: Screen, *, given: bool) -> str:
    """Return the name of the one device that is meant: that of the records in `file`, unless `--device` names another.

    Raises UsageError if the records are of several and none is named, or if they are of another than the one that is
    named, and the file was given too. Raises AmbiguousDevice, UnknownDevice.
    """
    from harness.measure.records.index import RecordIndex

    with RecordIndex(file, screen.say) as index:
        there = index.devices
    if device is None and len(there) > 1:
        raise UsageError(f"{file} has records of {', '.join(there)}", hint="name one of them with --device")
    name = request.one_device(device or (there or [DEFAULT_DEVICE])[0], screen)
    if given and there and name not in there:
        raise other_device(file, there, name)
    return name


def identity_like(like: str, cache: Path) -> Identity:
    """Return the identity of the last record in a file, or of a device that was opened before. Raises UsageError."""
    from device_runner.selection import recall_identity
    from harness.measure.records.record import RecordFile

    file = Path(like)
    if not file.is_file():
        found = recall_identity(like, cache)
        if found is None:
            hint = "name a file of records or of schedules, or a device that `adreno-bench devices` knows"
            raise UsageError(f"{like} is neither a file nor a device that was opened before", hint=hint)
        return found
    records = RecordFile(file).load().records
    if not records:
        raise UsageError(f"{like} has no records, and no schedules either", hint="`adreno-bench run` writes records")
    return records[-1].identity
