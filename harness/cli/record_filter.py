"""What commands take from a file of records: the records that are meant, and the device that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.options import DEFAULT_DEVICE

if TYPE_CHECKING:
    from harness.cli.screen import Screen
    from harness.run.record import Record
    from harness.workbench import Request


def wanted(case: str, globs: Sequence[str] | None) -> bool:
    """Whether a case id matches any of the globs; without globs every one does."""
    import fnmatch

    return not globs or any(fnmatch.fnmatchcase(case, glob) for glob in globs)


def read_records(file: Path, globs: Sequence[str] | None, device: str | None = None) -> list[Record]:
    """The records that are asked for; lines that are not records are named on standard error.

    Raises UsageError if there is no such file, or if it has nothing of a device that is named.
    """
    import sys

    from harness.failures import UsageError
    from harness.run.record import RecordFile

    if not file.exists():
        raise UsageError(f"there is no {file}", hint="`adreno-bench run` makes records")
    loaded = RecordFile(file).load()
    for skipped in loaded.skipped:
        sys.stderr.write(f"skipped {skipped}\n")
    there = devices_of(loaded.records)
    if device and device not in there:
        raise _other_device(file, there, device)
    return [
        record for record in loaded.records if wanted(record.case, globs) and (not device or record.device == device)
    ]


def device_of_records(request: Request, device: str | None, file: Path, screen: Screen, *, given: bool) -> str:
    """The name of the one device that is meant: that of the records in `file`, unless `--device` names another.

    Raises UsageError if the records are of several and none is named, or if they are of another than the one that is
    named, and the file was given too. Raises AmbiguousDevice, UnknownDevice.
    """
    from harness.failures import UsageError
    from harness.run.record import RecordFile

    there = devices_of(RecordFile(file).load().records)
    if device is None and len(there) > 1:
        raise UsageError(f"{file} has records of {', '.join(there)}", hint="name one of them with --device")
    name = request.one_device(device or (there or [DEFAULT_DEVICE])[0], screen)
    if given and there and name not in there:
        raise _other_device(file, there, name)
    return name


def devices_of(records: Sequence[Record]) -> list[str]:
    """The devices that records name, each once."""
    return list(dict.fromkeys(record.device for record in records))


def _other_device(file: Path, there: Sequence[str], device: str) -> Exception:
    from harness.failures import UsageError

    of = f"has records of {', '.join(there)}" if there else "has no records"
    return UsageError(f"{file} {of}, and --device names {device}", hint="leave one of the two out")
