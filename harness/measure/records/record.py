"""One case, run once: the record, and the JSON-lines file it is kept in.

A record is one line, appended with a single write, so that a kill at any moment loses at most the case in flight.
docs/reference/records.md lists the fields; `SCHEMA` changes when one of them changes its meaning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, BinaryIO, Generic, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic import Field as field
from pydantic_core import from_json

from device_runner.device import Identity
from device_runner.disk import disk_full
from device_runner.failures import RigFailure
from device_runner.files import append_lines, require_writable, what_else
from device_runner.recovery.ladder import RecoveryStep
from harness.base.failures import UsageError
from harness.base.outcome import Outcome, Owner
from harness.measure.facts import Accuracy, Reference
from harness.measure.records.parts import Parts, read_part
from harness.measure.records.schema import upgraded

SCHEMA: Literal[2] = 2
NO_DEVICE = "none"
"""Name in place of a device where nothing runs."""
BEGINNING = b'{"schema":2,'
"""Of a line that `Record.line` made: of others it is looked first which schema they have."""
LONGEST_LINE_BYTES = 4 << 20
BUFFER_BYTES = 1 << 16
"""Some lines: reading them takes half the time that it takes with Python's own choice."""


T = TypeVar("T")


class Releases(BaseModel):
    """Releases that work together."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tvm: str
    ffi: str


class Record(BaseModel):
    """One run of a case on one device. Times in ms; samples in the order taken."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, ser_json_inf_nan="strings")

    schema_version: Literal[2] = field(SCHEMA, alias="schema")
    case: str
    model: str
    path: str
    precision: str
    tuning: str
    device: str
    """Value of `--device`."""
    identity: Identity
    identity_key: str
    emulated: tuple[str, ...]
    """Emulated parts of the device. Never compare such a latency with a phone's."""
    outcome: Outcome
    owner: Owner = field(default_factory=lambda values: values["outcome"].owner)
    """Who has to act on it; the outcome's usual owner if the record names none."""
    message: str = ""
    """One line: what went wrong. Empty for `ok`."""
    hint: str = ""
    evidence: str = ""
    """Tail of the log that proves it."""
    artifact: str = ""
    """Key of the artifact in the store."""
    network: str = ""
    """Hash of the model's file; empty of a case that was compiled for its machine code alone."""
    truth: str = ""
    """Key of the oracle's answers in the store; empty likewise."""
    quirks: tuple[str, ...] = ()
    """Defects of TVM that this build worked around."""
    effective_quirks: tuple[str, ...] | None = None
    """Those of `quirks` whose workaround changed what was built; None if that is not known."""
    model_changes: tuple[str, ...] = ()
    """What was changed in the model's own file before it was compiled (`harness.compile.models.preparation`)."""
    model_options: tuple[str, ...] = ()
    """Options of the command line that named the model or the suite file, if they are not the usual one."""
    as_shipped: bool = False
    quick: bool = False
    """A first look at an emulated device (`run --quick`): its few samples are never compared with others."""
    toggles: dict[str, str] = {}
    settings: dict[str, int] = {}
    """What the run chose on the device and a suite can pin, by its key there (`harness.measure.facts.RunSettings`)."""
    wall_ms: list[float] = []
    device_ms: list[float] = []
    device_clock: str = ""
    """What `device_ms` adds up: `kernels`, or `clml-events`, which is another quantity. Empty without any."""
    steadiness: dict[str, Any] = {}
    """Temperatures, clocks and battery around the samples, and what was set to hold them; docs/how-to/phones.md."""
    throttled_ms: list[float] = []
    """Samples of wall time of a run that the device did not hold its pace in; only with outcome `throttled`."""
    init_ms: float | None = None
    first_run_ms: float | None = None
    max_abs_err: float | None = None
    tolerance: float | None = None
    accuracy: Accuracy | None = None
    judge: str = ""
    """Program and version that gave the right answer; empty if no answer was compared."""
    unchecked: str = ""
    """Why no judge outside TVM could give it, so that LLVM did; empty if one could."""
    branches: tuple[str, ...] = ()
    """Which branch of each If was judged, as `then of NAME`; empty without an If."""
    vacuous: list[str] = []
    """For a right answer: the outputs that are right by chance, whatever the network computes, and why.
    Such an `ok` proves nothing (`harness.measure.correctness`)."""
    partly_vacuous: list[str] = []
    """Such outputs of an `ok` of which others prove something."""
    library_bytes: int | None = None
    compile_s: float | None = None
    compile_cpu_s: float | None = None
    """The same in seconds of processors, which a busy host does not change; None if nothing was compiled."""
    facts: dict[str, int] = {}
    """Noise-free numbers of the build: kernels, source bytes, texture tensors..."""
    schedules: dict[str, Any] | None = None
    """For a build with tuned schedules: hash of their file (`sha256`), and functions by name: those that took one
    (`took`), those of them whose kernels are others than without (`changed`), those that the file has none for
    (`without`), and those that could not take theirs, with why (`refused`)."""
    proofs: dict[str, Any] = {}
    """What the run's own process said of itself: programs built from binary or source, CLML's cache hits and misses."""
    reused: bool | None = None
    """Whether the artifact came from the store."""
    sent_bytes: int | None = None
    """Bytes pushed for this case; 0 if the device had the library already."""
    tvm: str
    ffi: str
    harness: str
    started_at: str
    """UTC, ISO 8601."""
    recovery: list[RecoveryStep] = []
    """Recovery steps for the device while this case ran, in order; docs/how-to/phones.md."""
    compiled_with: Releases | None = None
    """What compiled the artifact, if it is a baseline's that was run again to compare with: then `tvm` and `ffi` only
    ran it. None for what was built for this run, which they compiled, too."""
    run: str
    """Text common to all records of one run."""
    standalone: bool = False
    """Whether it is a series of its own that no command compares: a sustained run, or machine code."""
    parts: Parts = {}
    """Further values, by name (`harness.measure.records.parts`). Parts of tools are JSON values."""

    @property
    def compilers(self) -> Releases:
        """What compiled the artifact."""
        return self.compiled_with or Releases(tvm=self.tvm, ffi=self.ffi)

    @property
    def build(self) -> tuple[str, str, str]:
        """What ran: the artifact, the runtime that was brought to the device for it, and the settings; may be empty."""
        return self.artifact, self.identity.runtime, settings_text(self.settings)

    @property
    def is_own(self) -> bool:
        """Whether its artifact was built for this run; False for a baseline's that was run again."""
        return self.compiled_with is None

    @property
    def week(self) -> int:
        """Week of its start, by `week_of`; -1 if the time is unreadable."""
        return week_of(self.started_at)

    @property
    def started(self) -> str:
        """Start to the second; UTC, ISO 8601."""
        return self.started_at[:19]

    @property
    def recoveries(self) -> int:
        """Number of recovery steps for the device."""
        return len(self.recovery)

    @property
    def comparable_ms(self) -> list[float]:
        """The samples of wall time that may be compared with others': none of a quick look."""
        return [] if self.quick else self.wall_ms

    @property
    def clock_shares(self) -> Any:
        """Share of the samples' time at each clock of the GPU, by MHz, as `steadiness` has it; None without any."""
        return self.steadiness.get("clock_histogram")

    @property
    def reference(self) -> Reference | None:
        """The reference kernel's times; None if it was not timed."""
        return self.part(Reference)

    def part(self, kind: type[T]) -> T | None:
        """Return the part of this type; None without one. Raises UsageError for a value of another form."""
        return read_part(kind, self.parts, self.case)

    def line(self) -> str:
        """Return the record as one line of JSON, without the newline."""
        return self.model_dump_json(by_alias=True)


def settings_text(settings: Mapping[str, int]) -> str:
    """Return settings as a person reads them; empty without any."""
    return ", ".join(f"{key} = {value}" for key, value in settings.items())


FIRST_MONDAY = date(1969, 12, 29).toordinal()


def week_of(started_at: str) -> int:
    """Return the week of a time in ISO 8601, counted from the one that 1970 begins in, each from Monday on.

    Returns -1 for no time.
    """
    try:
        return (date.fromisoformat(started_at[:10]).toordinal() - FIRST_MONDAY) // 7
    except ValueError:
        return -1


@dataclass(frozen=True)
class Loaded(Generic[T]):
    """Records of a file, and the lines that could not be read (torn by a kill, or foreign)."""

    records: list[T]
    skipped: list[str]


class RecordFile:
    """An append-only file of records."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def require_writable(self) -> None:
        """Raise RigFailure if records cannot be kept here, UsageError if it is no file of records; nothing is made."""
        self.require_file()
        try:
            require_writable(self.path)
            with suppress(FileNotFoundError), self.path.open("rb") as file:
                if file.read(1) not in b"{\n":  # a model, say, which a line at its end would destroy
                    raise UsageError(f"{self.path} is not a file of records", hint="name another one, or a new one")
        except OSError as error:
            raise self._not_written(error) from error

    def append(self, *records: Record) -> None:
        """Write records durably. Raises RigFailure if the disk refuses it, UsageError for one too long to be read."""
        lines = [record.line().encode() + b"\n" for record in records]
        for record, line in zip(records, lines, strict=True):
            if len(line) > LONGEST_LINE_BYTES:
                message = f"the record of {record.case} takes {len(line) >> 20} MB, and a line of records has at most 4"
                raise UsageError(message, hint="is it a record of adreno-bench?")
        try:
            append_lines(self.path, b"".join(lines), durable=True)
        except OSError as error:
            raise self._not_written(error) from error

    def require_file(self) -> None:
        """Raise UsageError for what only looks like a file: a FIFO would block us, a device swallow the records."""
        if other := what_else(self.path):
            raise UsageError(f"{self.path} is {other}, not a file", hint="records are kept in a file: name one")

    def _not_written(self, error: OSError) -> RigFailure:
        return disk_full(error, self.path.parent, otherwise="or pass --records") or RigFailure(
            f"cannot write the record to {self.path}: {error.strerror}", hint="pass --records"
        )

    def load(self, begin: int = 0) -> Loaded[Record]:
        """Read all records, for files that are known to be small; `harness.measure.records.index` asks the others.

        With `begin`, those that were appended since the file had so many bytes; lines are counted from there.

        A line that is not a record is skipped and named, never fatal. Raises RigFailure, UsageError.
        """
        return self.load_as(parse, begin)

    def load_as(self, parse: Callable[[bytes], T], begin: int = 0) -> Loaded[T]:
        """Read all lines with `parse`, which may make less than a record of one and so take less time.

        It raises NotARecord.
        """
        self.require_file()
        if not self.path.exists():
            return Loaded([], [])
        records, skipped = [], []
        try:
            with self.path.open("rb", buffering=BUFFER_BYTES) as file:
                for number, _, line in lines_of(file, begin):
                    try:
                        records.append(parse(line))
                    except NotARecord as problem:
                        skipped.append(f"{self.path}:{number}: {problem}")
        except OSError as error:
            raise RigFailure(f"cannot read {self.path}: {error.strerror}") from error
        return Loaded(records, skipped)


class NotARecord(ValueError):
    """A line is not a record; the message has the reason."""


_read_line = Record.__pydantic_validator__.validate_json
"""What `model_validate_json` calls, without the microsecond that it takes itself."""


def parse(line: bytes) -> Record:
    """Return the record that a line is, of any schema. Raises NotARecord, also if it calls a wrong answer right."""
    try:
        record: Record = _read_line(line) if line.startswith(BEGINNING) else _of_any_schema(line)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"]) or "line"
        raise NotARecord(f"not a record of schema {SCHEMA} ({where}: {problem['msg']})") from None
    if why := wrong_claim_in(record):
        raise NotARecord(why)
    return record


def _of_any_schema(line: bytes) -> Record:
    """Return the record of a line. Raises ValidationError; NotARecord for a schema that is newer than ours."""
    try:
        fields = from_json(line)
    except ValueError as error:
        raise NotARecord(f"not a record of schema {SCHEMA} (line: {error})") from None
    return record_of(fields)


def record_of(fields: Any) -> Record:
    """Return the record of these fields. Raises ValidationError; NotARecord for a schema that is newer than ours."""
    schema = fields.get("schema", SCHEMA) if isinstance(fields, dict) else 0
    if isinstance(schema, int) and schema > SCHEMA:
        raise NotARecord(f"a record of schema {schema}, and this adreno-bench reads {SCHEMA}: upgrade it")
    return Record.model_validate(upgraded(fields) if schema == 1 else fields)


def wrong_claim_in(record: Record) -> str:
    """Return why an answer that the record calls right cannot be right; empty if it can."""
    if record.outcome is Outcome.OK and record.accuracy and not record.accuracy.right:
        return "`ok` with an answer that is not right"
    return wrong_claim(record.outcome, record.max_abs_err, record.tolerance)


def wrong_claim(outcome: Outcome, max_abs_err: float | None, tolerance: float | None) -> str:
    """Return why an answer that is called right cannot be right; empty if it can."""
    if outcome is not Outcome.OK or max_abs_err is None or tolerance is None:
        return ""
    if max_abs_err <= tolerance:  # false of NaN
        return ""
    return f"`ok` with an error of {max_abs_err:g}, and {tolerance:g} is tolerated"


def lines_of(
    file: BinaryIO, begin: int = 0, number: int = 0, end: float = math.inf
) -> Iterator[tuple[int, int, bytes]]:
    """Yield the lines between two places in a file: number, beginning, and text with its newline.

    `number` lines end before `begin`. Blank ones are counted and left out.
    """
    file.seek(begin)
    while line := file.readline(int(min(LONGEST_LINE_BYTES, end - begin))):
        number += 1
        if not line.isspace():
            yield number, begin, line
        begin += len(line)


class ResumeKey(NamedTuple):
    """Properties that make a second run of a case unnecessary if they are equal."""

    case: str
    identity: str
    artifact: str
    as_shipped: bool
    quick: bool = False
