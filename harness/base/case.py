"""The vocabulary of what is measured: Model x Path x Precision x Tuning = Case.

These words are the same everywhere. docs/reference/glossary.md is their home.
"""

from __future__ import annotations

import fnmatch
import functools
from dataclasses import dataclass, replace
from enum import Enum

from harness.base.failures import UsageError


class Precision(str, Enum):
    """Number format of storage and accumulation."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    FLOAT16_ACC32 = "float16_acc32"
    """fp16 storage, fp32 accumulation."""


RELATIVE_TOLERANCE = {"float32": 1e-5, "float16": 2e-2, "float16_acc32": 1e-2}
"""Tolerance relative to the oracle's scale, by precision, of a network that does not magnify rounding.

docs/data/accuracy.md derives that of float32, docs/reference/settings.md those of half precision."""

RESOLUTION = {Precision.FLOAT32: 2.0**-23, Precision.FLOAT16: 2.0**-10, Precision.FLOAT16_ACC32: 2.0**-10}
"""Relative distance of neighbouring numbers (IEEE 754). A finer tolerance would ask for what the format cannot hold."""

ROUNDING_FACTOR = {"float32": 8.0, "float16": 4.0, "float16_acc32": 2.0}
"""How much further than rounding moves the outside answer a path's may lie (docs/data/accuracy.md)."""


class Tuning(str, Enum):
    """State of the tuning cache when the case is run, and whether its kernels have tuned schedules."""

    UNTUNED = "untuned"
    TUNED = "tuned"
    SCHEDULED = "scheduled"
    """Untuned, but for the schedules that the suite names."""
    SCHEDULED_TUNED = "scheduled_tuned"
    """Both."""

    @property
    def scheduled(self) -> bool:
        """Whether it is built with the schedules that the suite names."""
        return self in (Tuning.SCHEDULED, Tuning.SCHEDULED_TUNED)

    @property
    def cached(self) -> bool:
        """Whether it is given what a session of tuning left: program binaries, or CLML's cache."""
        return self in (Tuning.TUNED, Tuning.SCHEDULED_TUNED)

    @property
    def with_schedules(self) -> Tuning:
        """The same with the suite's schedules."""
        return Tuning.SCHEDULED_TUNED if self.cached else Tuning.SCHEDULED

    @property
    def without_schedules(self) -> Tuning:
        """The same with TVM's own schedules."""
        return Tuning.TUNED if self.cached else Tuning.UNTUNED


@dataclass(frozen=True, order=True)
class Case:
    """One thing to measure. Its id is stable text: `mobilenet_v1-texture-float16-untuned`.

    Model and path names are made of `[a-z0-9_]`, so the id splits without doubt.
    """

    model: str
    path: str
    precision: Precision = Precision.FLOAT32
    tuning: Tuning = Tuning.UNTUNED

    @property
    def id(self) -> str:
        """Stable text, used in records, file names, test ids and asv parameters."""
        return f"{self.model}-{self.path}-{self.precision.value}-{self.tuning.value}"

    @property
    def by_default(self) -> Case:
        """The same case with TVM's own schedules: itself, if it has no others."""
        return replace(self, tuning=self.tuning.without_schedules)

    @classmethod
    def parse(cls, text: str) -> Case:
        """Parse an `id`. Raises ValueError with the expected form."""
        try:
            model, path, precision, tuning = text.split("-")
            return cls(model, path, Precision(precision), Tuning(tuning))
        except ValueError:
            raise ValueError(f"{text!r} is not a case id; one reads mobilenet_v1-texture-float32-untuned") from None

    def matches(self, pattern: str) -> bool:
        """Return whether the id matches a shell glob."""
        return fnmatch.fnmatchcase(self.id, pattern)


@dataclass(frozen=True)
class Axes:
    """Paths, precisions and tunings that stand in place of those of a suite; empty for its own."""

    paths: tuple[str, ...] = ()
    precisions: tuple[Precision, ...] = ()
    tunings: tuple[Tuning, ...] = ()

    def __bool__(self) -> bool:
        return self != Axes()

    def cover(self, case: Case) -> bool:
        """Return whether a case has one of these on each axis that has any."""
        tuning = case.tuning.without_schedules
        pairs = ((case.path, self.paths), (case.precision, self.precisions), (tuning, self.tunings))
        return all(not values or value in values for value, values in pairs)


NO_AXES = Axes()


@functools.lru_cache(1 << 12)
def require_case_id(text: str) -> None:
    """Raise UsageError unless the text is a case id; it came from a file of others."""
    try:
        Case.parse(text)
    except ValueError as error:
        raise UsageError(str(error), hint="this record was not written by adreno-bench") from None
