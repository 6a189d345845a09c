"""The vocabulary of what is measured: Model x Path x Precision x Tuning = Case.

These words are the same everywhere. docs/glossary.md is their home.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from enum import Enum

from harness.failures import UsageError


class Precision(str, Enum):
    """Number format of storage and accumulation."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    FLOAT16_ACC32 = "float16_acc32"
    """fp16 storage, fp32 accumulation."""


class Tuning(str, Enum):
    """State of the tuning cache when the case is run."""

    UNTUNED = "untuned"
    TUNED = "tuned"


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

    @classmethod
    def parse(cls, text: str) -> Case:
        """Inverse of `id`. Raises ValueError with the expected form."""
        try:
            model, path, precision, tuning = text.split("-")
            return cls(model, path, Precision(precision), Tuning(tuning))
        except ValueError:
            raise ValueError(f"{text!r} is not a case id; one reads mobilenet_v1-texture-float32-untuned") from None

    def matches(self, pattern: str) -> bool:
        """Whether the id matches a shell glob."""
        return fnmatch.fnmatchcase(self.id, pattern)


def require_case_id(text: str) -> None:
    """Raise UsageError unless the text is a case id; it came from a file of others."""
    try:
        Case.parse(text)
    except ValueError as error:
        raise UsageError(str(error), hint="this record was not written by adreno-bench") from None
