"""What a history wants of a record. The rest of a line is not looked at: it is most of it, and there are a million."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from harness.run.contradiction import wrong_claim
from harness.run.outcome import Outcome
from harness.run.record import Loaded, Record, RecordFile, parse


class RecordView(msgspec.Struct, frozen=True, gc=False):
    """Fields of a record (`harness.run.record`)."""

    case: str
    path: str
    emulated: tuple[str, ...]
    outcome: Outcome
    tvm: str
    ffi: str
    harness: str
    schema: Literal[1] = 1
    message: str = ""
    artifact: str = ""
    quirks: tuple[str, ...] = ()
    as_shipped: bool = False
    quick: bool = False
    wall_ms: list[float] = []
    max_abs_err: float | None = None
    tolerance: float | None = None
    vacuous: list[str] = []
    facts: dict[str, int] = {}

    def __post_init__(self) -> None:
        """Leave what cannot be to pydantic, as all that msgspec cannot read."""
        if why := wrong_claim(self):
            raise ValueError(why)


_decoder = msgspec.json.Decoder(RecordView)
_SHARED = [name for name in RecordView.__struct_fields__ if name in Record.model_fields]


def _parse(line: bytes) -> RecordView:
    """Return the fields of a line. Raises NotARecord.

    msgspec walks over the rest of it in half of the time that pydantic takes. What it cannot read is left to pydantic,
    which knows the texts that a record has for numbers that JSON lacks, and says what is wrong.
    """
    try:
        return _decoder.decode(line)
    except msgspec.MsgspecError:
        record = parse(line)
        return RecordView(**{name: getattr(record, name) for name in _SHARED})


def load_views(file: Path) -> Loaded[RecordView]:
    """Return the views of a file of records; nothing if there is none. Raises RigFailure, UsageError.

    All lines are read in one call. Only where that fails they are read one by one, which tells the torn from the sound.
    """
    records = RecordFile(file)
    records.require_file()
    try:
        return Loaded(_decoder.decode_lines(file.read_bytes()), [])
    except (OSError, msgspec.MsgspecError):
        return records.load_as(_parse)


def comparable_ms(view: RecordView) -> list[float]:
    """Return the samples to compare, in ms: none for a quick look."""
    return [] if view.quick else view.wall_ms
