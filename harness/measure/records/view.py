"""Views of records: a few fields of each, for reading very many. The rest of a line is skipped."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from harness.base.outcome import Outcome
from harness.measure.records.record import Loaded, NotARecord, RecordFile, parse, settings_text, wrong_claim


class RecordView(msgspec.Struct, frozen=True, gc=False):
    """Fields of a record that a history needs (`harness.measure.records.record`)."""

    case: str
    path: str
    emulated: tuple[str, ...]
    outcome: Outcome
    tvm: str
    ffi: str
    harness: str
    schema: Literal[1, 2] = 2
    """A record of schema 1 has these fields, too."""
    message: str = ""
    artifact: str = ""
    quirks: tuple[str, ...] = ()
    as_shipped: bool = False
    quick: bool = False
    wall_ms: list[float] = []
    max_abs_err: float | None = None
    tolerance: float | None = None
    vacuous: list[str] = []
    partly_vacuous: list[str] = []
    facts: dict[str, int] = {}
    settings: dict[str, int] = {}

    def __post_init__(self) -> None:
        """Leave what cannot be to pydantic, as all that msgspec cannot read."""
        if why := wrong_claim(self.outcome, self.max_abs_err, self.tolerance):
            raise ValueError(why)

    @property
    def comparable_ms(self) -> list[float]:
        """The samples to compare, in ms: none of a quick look."""
        return [] if self.quick else self.wall_ms


class _Runtime(msgspec.Struct, frozen=True, gc=False):
    runtime: str = ""


class _Claim(msgspec.Struct, frozen=True, gc=False):
    right: bool


class _Releases(msgspec.Struct, frozen=True, gc=False):
    tvm: str
    ffi: str


class _Reference(msgspec.Struct, frozen=True, gc=False):
    kernel: str
    ms: list[float]
    slowed_ms: list[float]


class _Steadiness(msgspec.Struct, frozen=True, gc=False):
    clock_histogram: Any = None


class _Parts(msgspec.Struct, frozen=True, gc=False):
    reference: _Reference | None = None


class SessionView(RecordView, frozen=True, gc=False, kw_only=True):
    """Fields of a record that a verdict (`harness.judge.sides`) and a baseline (`harness.judge.baseline`) need."""

    schema: Literal[2] = 2
    identity_key: str
    identity: _Runtime
    started_at: str
    run: str
    network: str = ""
    truth: str = ""
    unchecked: str = ""
    device_ms: list[float] = []
    steadiness: _Steadiness = _Steadiness()
    parts: _Parts = _Parts()
    accuracy: _Claim | None = None
    compiled_with: _Releases | None = None

    def __post_init__(self) -> None:
        """Leave what cannot be to pydantic."""
        if self.outcome is Outcome.OK and self.accuracy and not self.accuracy.right:
            raise ValueError
        super().__post_init__()

    @property
    def clock_shares(self) -> Any:
        """Share of the samples' time at each clock of the GPU, by MHz; None without any."""
        return self.steadiness.clock_histogram

    @property
    def reference(self) -> _Reference | None:
        """The reference kernel's times; None if it was not timed."""
        return self.parts.reference

    @property
    def compilers(self) -> _Releases:
        """What compiled the artifact."""
        return self.compiled_with or _Releases(self.tvm, self.ffi)

    @property
    def build(self) -> tuple[str, str, str]:
        """What ran: the artifact, the runtime that was brought to the device for it, and the settings."""
        return self.artifact, self.identity.runtime, settings_text(self.settings)


T = TypeVar("T", bound=RecordView)


def view_parser(form: type[T]) -> Callable[[bytes], T]:
    """Return a parser of lines into a view. It raises NotARecord.

    msgspec skips the other fields in a third of the time that pydantic takes. Lines that it cannot read go to pydantic,
    which knows the texts for numbers that JSON lacks, and names errors.
    """
    decode = msgspec.json.Decoder(form).decode

    def parse_view(line: bytes) -> T:
        try:
            return decode(line)
        except msgspec.MsgspecError:
            record = parse(line)
        try:
            return msgspec.convert(record.model_dump(by_alias=True), form, strict=False)
        except msgspec.MsgspecError as error:
            raise NotARecord(f"not a record ({error})") from None

    return parse_view


@contextlib.contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Switch Python's garbage collection off, which takes a third of the time of reading very many records.

    Later collections skip these objects, too: one pass over them takes a second for 100,000 series.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was:
            gc.enable()


_decoder, _parse = msgspec.json.Decoder(RecordView), view_parser(RecordView)


def load_views(file: Path) -> Loaded[RecordView]:
    """Return the views of a file of records; empty if there is none. Raises RigFailure, UsageError.

    Reads all lines in one call. If that fails, it reads them one by one to find the torn ones.
    """
    records = RecordFile(file)
    records.require_file()
    try:
        return Loaded(_decoder.decode_lines(file.read_bytes()), [])
    except (OSError, msgspec.MsgspecError):
        return records.load_as(_parse)


class Counted(NamedTuple):
    """Number of records of one phone and week with one outcome."""

    phone: str
    week: int
    outcome: str
    sustained: bool
    records: int
    recovered: int
    """Number of runs for which a lost phone had to be recovered."""
