"""The file of schedules: the best one of each task, reviewed like a baseline. JSON lines, ours to read safely.

    {"schema": 1, "tvm": "0.27.0.post1", "limits": {...}, "device": "...", "gpu": "..."}
    {"path": "opencl", "task": "9d0c...", "name": "fused_conv2d_relu", "ms": 0.41, ..., "trace": [...]}

The first line says where all of them come from: a schedule is TVM's trace, which no other release reads, and the task
that it is for is another one under other limits of images. One line is one record, so a diff shows which task changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from device_runner.device import Identity
from device_runner.disk import disk_full
from device_runner.files import what_else, write_whole
from harness.base.failures import UsageError
from harness.compile.schedules.trace import check

SCHEMA: Literal[1] = 1
LARGEST_FILE_BYTES = 32 << 20
_HINT = "`adreno-bench tune` writes such a file"
MOST_ITEMS, MOST_LOCAL_BYTES = 1024, 65_536
"""Most work-items and local memory of a work-group on any device."""


class TaskLimits(BaseModel):
    """What of a device decides which tasks a network has and which schedules they may take."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    image2d_max_width: int = Field(ge=1)
    image2d_max_height: int = Field(ge=1)
    image_max_array_layers: int = Field(ge=1)

    @classmethod
    def of(cls, identity: Identity) -> TaskLimits:
        """Return the limits of a device."""
        return cls(**{name: getattr(identity, name) for name in cls.model_fields})


@dataclass(frozen=True)
class ThreadLimits:
    """What a work-group may have. The defaults are those of TVM's target for Adreno, for a device that does not say."""

    items: int = 256
    local_bytes: int = 16_384

    @classmethod
    def of(cls, identity: Identity) -> ThreadLimits:
        """Return the limits of a device, and no more than any GPU has: OpenCL on CPUs reports thousands of items."""
        items, local_bytes = identity.work_group_items, identity.local_memory_bytes
        return cls(min(items, MOST_ITEMS) or cls.items, min(local_bytes, MOST_LOCAL_BYTES) or cls.local_bytes)


MOST_THREADS = ThreadLimits(MOST_ITEMS, MOST_LOCAL_BYTES)
"""Limits of a schedule that was right on some device."""


class ScheduleOrigin(BaseModel):
    """The first line: under what the schedules were found."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    tvm: str = Field(max_length=64)
    limits: TaskLimits
    work_group_items: int = Field(0, ge=0)
    """The largest work-groups that were tried; 0 if the file does not say."""
    local_memory_bytes: int = Field(0, ge=0)
    """The most of a work-group's memory; likewise."""
    device: str = Field("", max_length=200)
    """Key of the identity that they were measured on."""
    gpu: str = Field("", max_length=200)


class Schedule(BaseModel):
    """One task's best schedule, and what was measured of it: again, in fresh sessions, beside the untuned kernel."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    path: Literal["opencl", "texture"]
    task: str = Field(pattern=r"^[0-9a-f]{16}$")
    """Structural hash of the function before any schedule (`harness.compile.schedules.tasks`)."""
    name: str = Field(pattern=r"^\w{1,200}$")
    """What the network calls it, for people."""
    shapes: tuple[str, ...] = Field((), max_length=64)
    """Shapes of its parameters, with number format and memory scope, for people."""
    ms: float = Field(gt=0)
    """Time of its kernels in one call; median of the sessions that measured it again."""
    untuned_ms: float = Field(gt=0)
    """The same of TVM's own schedule, in the same sessions."""
    max_rel_err: float = Field(ge=0)
    """Against LLVM."""
    trials: int = Field(ge=1)
    """Candidates that were tried for this task."""
    trace: list[Any]

    @field_validator("trace")
    @classmethod
    def _can_be_read(cls, trace: list[Any]) -> list[Any]:
        return check(trace)

    @property
    def key(self) -> tuple[str, str]:
        """What there is one record of."""
        return self.path, self.task


@dataclass(frozen=True)
class Schedules:
    """A file of schedules, read and checked."""

    origin: ScheduleOrigin
    records: tuple[Schedule, ...]
    sha256: str = ""
    """Hash of the file's content; empty if it was not read from a file."""

    def of(self, path: str) -> Mapping[str, Schedule]:
        """Return records for a path, by task."""
        return {record.task: record for record in self.records if record.path == path}

    @property
    def text(self) -> str:
        """The file's text, sorted so that a diff shows only what changed."""
        ordered = sorted(self.records, key=lambda record: (record.path, record.name, record.task))
        lines = [self.origin.model_dump(by_alias=True), *(record.model_dump() for record in ordered)]
        return "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)

    def write(self, file: Path) -> None:
        """Write the file whole or not at all. Raises DiskFull, and UsageError for a place that cannot be written."""
        try:
            write_whole(file, self.text)
        except OSError as error:
            why = f"cannot write the schedules {file}: {error.strerror}"
            raise disk_full(error, file.parent) or UsageError(why, hint="choose another file with --out") from error


def read(file: Path) -> Schedules:
    """Read a file of schedules. Raises UsageError with the line that is at fault."""
    return _parse(file, _content(file))


def read_as(file: Path, sha256: str) -> Schedules:
    """Read the schedules of a file, which must have this hash: a build reads what its key says. Raises UsageError."""
    schedules = read(file)
    if schedules.sha256 != sha256:
        raise UsageError(f"{file} was changed while this ran", hint="run again")
    return schedules


def _content(file: Path) -> bytes:
    if other := what_else(file):
        raise UsageError(f"the schedules {file} are {other}, not a file", hint=_HINT)
    try:
        if file.stat().st_size > LARGEST_FILE_BYTES:
            raise UsageError(f"{file} is larger than any file of schedules", hint=_HINT)
        return file.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"there is no file of schedules {file}", hint=_HINT) from None
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error


def _parse(file: Path, content: bytes) -> Schedules:
    lines = [(number, line) for number, line in enumerate(content.splitlines(), 1) if line.strip()]
    if not lines:
        raise UsageError(f"{file} is empty, and so no file of schedules", hint=_HINT)
    origin = _model(file, *lines[0], ScheduleOrigin)
    records: dict[tuple[str, str], Schedule] = {}
    for number, line in lines[1:]:
        record = _model(file, number, line, Schedule)
        if record.key in records:
            where = f"{file}:{number}: {record.name} on {record.path}"
            raise UsageError(f"{where} has a schedule already", hint="keep the better one")
        records[record.key] = record
    return Schedules(origin, tuple(records.values()), hashlib.sha256(content).hexdigest())


def _model(file: Path, number: int, line: bytes, form: type[Any]) -> Any:
    try:
        return form.model_validate_json(line)
    except (ValidationError, RecursionError) as error:
        problem: Any = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": "too deep"}
        where = ".".join(str(part) for part in problem["loc"]) or "line"
        raise UsageError(
            f"{file}:{number}: not a schedule of adreno-bench ({where}: {problem['msg']})", hint=_HINT
        ) from None


def require_limits(file: Path, schedules: Schedules, identity: Identity) -> None:
    """Raise UsageError, with the limit that differs, if the schedules are for another kind of device."""
    origin, here, threads = schedules.origin, TaskLimits.of(identity), ThreadLimits.of(identity)
    theirs, ours = origin.gpu or "unnamed", identity.gpu or identity.serial
    beyond = (
        ("work-items in a group", origin.work_group_items, threads.items),
        ("bytes of local memory", origin.local_memory_bytes, threads.local_bytes),
    )
    different = [
        f"may need {needed} {name} ({theirs}), and {ours} has {has}" for name, needed, has in beyond if needed > has
    ]
    different += [
        f"are for a device with {name} {there} ({theirs}), and {ours} has {has}: its networks are made of other tasks"
        for name in TaskLimits.model_fields
        if (there := getattr(origin.limits, name)) != (has := getattr(here, name))
    ]
    if different:
        hint = "tune on a device like this one, or leave the schedules out"
        raise UsageError(f"the schedules {file} {different[0]}", hint=hint)
