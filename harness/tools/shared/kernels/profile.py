"""A profile: what the operators of one case took on one device, and what they had to do."""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
from pydantic import BaseModel, ConfigDict, Field, field_validator

from device_runner.device import Launch
from harness.base.case import Precision
from harness.base.failures import UsageError, reason_alone
from harness.base.tables import grouped
from harness.compile.compiler.tir import OperatorWork
from harness.compile.paths.kernels import kernels as kernels_of
from harness.measure.facts import Batches
from harness.tools.shared.kernels.operators import OperatorKind, kind_of

ENDING = ".kernels.gz"
"""Ending of a file of profiles beside a file of records."""
SCHEMA = 1
HASH_DIGITS = 16
LARGEST_FILE_BYTES = 64 << 20
MOST_WORK = 1 << 63
"""Most bytes or operations of one call."""
NS_DIGITS = 6
"""Digits of a time in ms: devices report nanoseconds."""
_KERNEL = re.compile(r"_kernel(_\d+)?$")


class Operator(BaseModel):
    """One compiled function, over all its launches in an inference."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    function: str
    kernels: tuple[str, ...] = Field(min_length=1)
    launches: int = Field(ge=1)
    ms: float = Field(ge=0)
    """Sum of its kernels' times; the median over inferences."""
    threads: int = Field(ge=1)
    """Work-items of its largest launch."""
    work: OperatorWork | None = None
    """Work of one call; None if the compiler did not report it."""
    source: str = ""
    """Hash of its kernels' source (`hashes_of`); empty if the source is not known."""

    @field_validator("work")
    @classmethod
    def _require_possible(cls, work: OperatorWork | None) -> OperatorWork | None:
        numbers = (work.bytes, work.flops or 0, work.scheduled_flops or 0) if work else ()
        if not all(0 <= number <= MOST_WORK for number in numbers):
            raise ValueError(f"more work than {MOST_WORK}, or less than none")
        return work

    @property
    def flops(self) -> int | None:
        """Operations that all its calls need."""
        calls = self.launches // len(self.kernels)
        return None if self.work is None or self.work.flops is None else self.work.flops * calls

    @property
    def bytes(self) -> int | None:
        """Least number of bytes that all its calls move."""
        return None if self.work is None else self.work.bytes * (self.launches // len(self.kernels))

    @property
    def redone(self) -> float:
        """How many times the needed operations its schedule's loops have; 1 if that is not known."""
        work = self.work
        return work.scheduled_flops / work.flops if work and work.flops and work.scheduled_flops else 1.0


class Peaks(BaseModel):
    """What a device can do at best, as measured on it; None where it could not be measured."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    copy_gb_s: float | None = Field(default=None, ge=0)
    """Read and written bytes of a copy from buffer to buffer."""
    image_gb_s: float | None = Field(default=None, ge=0)
    """Read bytes of an RGBA image of 32-bit numbers."""
    float32_gflop_s: float | None = Field(default=None, ge=0)
    float16_gflop_s: float | None = Field(default=None, ge=0)


class Roof(NamedTuple):
    """What limits the operators of a case: memory, and arithmetic in its number format. None: not measured."""

    gb_s: float | None = None
    gflop_s: float | None = None
    arithmetic: str = "float32"

    def at(self, intensity: float) -> float | None:
        """Return the most GFLOP/s at these operations for each byte; None if a peak is not known."""
        return min(self.gflop_s, intensity * self.gb_s) if self.gb_s and self.gflop_s else None

    def line(self, low: float, high: float) -> list[tuple[float, float]]:
        """Return the roof over these intensities and beyond the ridge; nothing if a peak is not known."""
        if not self.gb_s or not self.gflop_s:
            return []
        ridge = self.gflop_s / self.gb_s  # from there on arithmetic limits an operator
        xs = sorted({min(low, ridge), ridge, max(high, ridge * 2)})
        return [(x, min(self.gflop_s, x * self.gb_s)) for x in xs]


class Profile(BaseModel):
    """Time of one case's inference, by operator."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    schema_: int = Field(default=SCHEMA, alias="schema", ge=1, le=SCHEMA)
    case: str
    precision: Precision = Precision.FLOAT32
    identity_key: str
    gpu: str
    tvm: str
    artifact: str
    as_shipped: bool = False
    """Whether only the essential quirks were worked around."""
    operators: tuple[Operator, ...]
    """The longest first."""
    kernels_ms: float
    """Sum of all kernels of an inference; the median."""
    span_ms: float
    """Time from the first kernel's start to the last one's end while the launches were watched; median."""
    wall_ms: float
    """One inference to the answer in host memory, by the device's host clock, not watched; the median."""
    peaks: Peaks = Peaks()
    batch: int | None = None
    """Inferences of a batch; None if none was timed."""
    batched_ms: tuple[float, ...] = ()
    """One inference of a batch that is waited for once, and below, of one in which each is."""
    synced_ms: tuple[float, ...] = ()

    @property
    def roof(self) -> Roof:
        """The device's best for this case: peaks of float16 if it computes in that, and they were measured."""
        peaks = self.peaks
        if self.precision == Precision.FLOAT16 and peaks.float16_gflop_s:
            return Roof(peaks.copy_gb_s, peaks.float16_gflop_s, "float16")
        return Roof(peaks.copy_gb_s, peaks.float32_gflop_s)

    @property
    def launches(self) -> int:
        """Kernels launched in an inference."""
        return sum(operator.launches for operator in self.operators)

    @property
    def by_kind(self) -> dict[OperatorKind, list[Operator]]:
        """Its operators, those of one kind together."""
        return grouped(self.operators, lambda operator: kind_of(operator.function, operator.work))

    @property
    def batches(self) -> Batches | None:
        """Its batches; None if none was timed."""
        if self.batch is None:
            return None
        return Batches(self.batch, [*self.batched_ms], [*self.synced_ms], self.launches)

    @classmethod
    def read(cls, file: Path) -> Profile:
        """Return a kept profile. Raises UsageError if the file is none."""
        try:
            if file.stat().st_size > LARGEST_FILE_BYTES:
                raise ValueError("too large")
            return cls.model_validate_json(file.read_bytes())
        except (OSError, ValueError) as error:
            message = reason_alone(error)
            hint = "`adreno-bench profile --json` writes one"
            raise UsageError(f"{file} is not a profile: {message}", hint=hint) from error


class Head(msgspec.Struct, frozen=True, gc=False):
    """Which profile a line is, without reading the rest of it."""

    case: str
    artifact: str
    as_shipped: bool = False


_HEAD = msgspec.json.Decoder(Head)


def kernels_file(records: Path) -> Path:
    """File of the profiles of a records file."""
    return records.with_suffix(ENDING)


def read_profiles(file: Path, matches: Callable[[Head], bool]) -> Iterator[Profile]:
    """Yield the wanted profiles of a file, oldest first. Raises OSError, ValueError of a torn or foreign file."""
    for line in _unpacked(file).splitlines():
        if matches(_HEAD.decode(line)):
            yield Profile.model_validate_json(line)


def _unpacked(file: Path) -> bytes:
    """Return what a file holds. It comes from others, and a few bytes can be packed that fill the memory."""
    try:
        with gzip.open(file) as stream:
            content = stream.read(LARGEST_FILE_BYTES + 1)
    except (EOFError, zlib.error) as error:
        raise ValueError(f"torn: {error}") from error
    if len(content) > LARGEST_FILE_BYTES:
        raise ValueError(f"more than {LARGEST_FILE_BYTES >> 20} MB")
    return content


def function_of(kernel: str) -> str:
    """Return the compiled function that a kernel belongs to."""
    return _KERNEL.sub("", kernel)


def operators_of(
    inferences: Sequence[Sequence[Launch]], work: Sequence[OperatorWork], source: str = ""
) -> tuple[Operator, ...]:
    """Return the operators of inferences that launch the same kernels in the same order, the longest first.

    `source` is all that the device compiles, if it is known.
    """
    work_by_name = {operator.function: operator for operator in work}
    hashes = hashes_of(source)
    places = grouped(range(len(inferences[0])), lambda place: function_of(inferences[0][place].kernel))
    rows = [_operator(name, mine, inferences, work_by_name.get(name), hashes) for name, mine in places.items()]
    return tuple(sorted(rows, key=lambda operator: -operator.ms))


def _operator(
    name: str,
    places: list[int],
    inferences: Sequence[Sequence[Launch]],
    work: OperatorWork | None,
    hashes: Mapping[str, str],
) -> Operator:
    mine = [inferences[0][place] for place in places]
    kernels = tuple(dict.fromkeys(launch.kernel for launch in mine))
    return Operator(
        function=name,
        kernels=kernels,
        launches=len(mine),
        ms=round(
            median(sum(map(ms_of, (inference[place] for place in places))) for inference in inferences), NS_DIGITS
        ),
        threads=max(x * y * z for x, y, z in (launch.threads for launch in mine)),
        work=work,
        source=hash_of(kernels, hashes),
    )


def hashes_of(source: str) -> dict[str, str]:
    """Return the hash of each kernel's code by its name; neither its own name nor its parameters' count.

    So it says whether the source is the same in two builds, whatever TVM calls it there.
    """
    return {kernel.name: _hash(kernel.code) for kernel in kernels_of(source)}


def hash_of(names: Sequence[str], hashes: Mapping[str, str]) -> str:
    """Return the hash of several kernels, in their order; empty if the source of one is not known."""
    parts = [hashes.get(name, "") for name in names]
    return _hash(" ".join(parts)) if all(parts) else ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


def ms_of(launch: Launch) -> float:
    """Return how long a kernel ran."""
    return (launch.end_ns - launch.start_ns) / 1e6


def span_ms(inference: Sequence[Launch]) -> float:
    """Time from the first start to the last end of an inference's kernels."""
    starts, ends = ((launch.start_ns for launch in inference), (launch.end_ns for launch in inference))
    return (max(ends) - min(starts)) / 1e6


@dataclass(frozen=True)
class Launches:
    """The kernels of each inference that was watched, in the order in which they were launched."""

    inferences: Sequence[Sequence[Launch]]
