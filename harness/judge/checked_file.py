"""Files for review as a diff: JSON, one key to a line, one for each case and identity, with a checksum.

They come from version control, so they are not trusted: names never lead out of their folder, and the checksum shows
whether a file was edited by hand.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import msgspec
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic import Field as field
from pydantic_core import from_json

from device_runner.disk import disk_full
from device_runner.failures import RigFailure
from device_runner.files import require_name, write_whole
from harness.base.case import require_case_id
from harness.base.failures import UsageError

SCHEMA: Literal[1] = 1
LARGEST_BYTES = 1 << 20
DIGITS = 6
"""Significant digits of a number: enough for any verdict, and a diff that can be read."""

T = TypeVar("T", bound="CheckedFile")
_text, _sorted_text = json.JSONEncoder().encode, json.JSONEncoder(sort_keys=True).encode
_short_text = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_EXPONENT = re.compile(rb"e-(?=\d[],}])")
"""Python writes 1e-05, msgspec 1e-5."""


class CheckedFile(BaseModel):
    """Content of such a file."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    what: ClassVar[str]
    """Kind of the file: `baseline`."""
    mended_by: ClassVar[str]
    """Hint for a damaged file."""

    schema_version: Literal[1] = field(SCHEMA, alias="schema")
    case: str
    identity_key: str

    def text(self) -> str:
        """Return the content of its file: the same for the same facts."""
        facts = self.model_dump(mode="json", by_alias=True)
        return _lines({**facts, "sha256": _checksum(facts)})

    def save(self, folder: Path) -> bool:
        """Write it below `folder`; whether its file changed. Raises RigFailure."""
        file, text = self.file(folder, self.identity_key, self.case), self.text()
        try:
            if file.exists() and file.read_text(encoding="utf-8") == text:
                return False
            write_whole(file, text)
        except OSError as error:
            full = disk_full(error, file.parent, otherwise="or pass --baselines DIR")
            raise full or RigFailure(f"cannot write {file}: {error.strerror}", hint="pass --baselines DIR") from error
        return True

    @classmethod
    def file(cls, folder: Path, identity_key: str, case: str) -> Path:
        """Return path of the file.

        Raises UsageError if a name, which may come from a foreign file, would lead elsewhere.
        """
        try:
            return folder / require_name(identity_key) / f"{require_name(case)}.json"
        except ValueError as error:
            raise UsageError(str(error), hint="this record was not written by adreno-bench") from None

    @classmethod
    def find(cls: type[T], folder: Path, identity_key: str, case: str) -> T | None:
        """Read the file of a case on an identity; None if there is none. Raises UsageError for an invalid file."""
        file = cls.file(folder, identity_key, case)
        return cls.read(file) if file.exists() else None

    @classmethod
    def read(cls: type[T], file: Path) -> T:
        """Return the content of a file. Raises UsageError if it is not good, RigFailure if it cannot be read."""
        hint = cls.mended_by
        try:
            with file.open("rb", buffering=0) as stream:
                text = stream.read(min(os.fstat(stream.fileno()).st_size, LARGEST_BYTES) + 1)
            if len(text) > LARGEST_BYTES:
                raise UsageError(f"{file} is larger than any {cls.what}", hint=hint)
            facts = from_json(text)
            checksum = facts.pop("sha256", None) if isinstance(facts, dict) else None
            read = cls.model_validate(facts)
        except OSError as error:
            raise RigFailure(f"cannot read {file}: {error.strerror}") from error
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(map(str, problem["loc"])) or "content"
            raise UsageError(
                f"{file} is no {cls.what} of schema {SCHEMA} ({where}: {problem['msg']})", hint=hint
            ) from None
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{file} is no {cls.what} ({error})", hint=hint) from None
        quick = checksum_of(msgspec.json.encode(facts, order="sorted"))  # in a third of the time
        if checksum != quick and checksum != _checksum(read.model_dump(mode="json", by_alias=True)):
            raise UsageError(f"{file} was edited by hand since it was written", hint=hint)
        if (read.identity_key, f"{read.case}.json") != (file.parent.name, file.name):
            raise UsageError(f"{file} is the {cls.what} of {read.case} on {read.identity_key}", hint="move it back")
        require_case_id(read.case)
        return read


def round_digits(number: float) -> float:
    """Round to the number of digits that a file keeps."""
    return float(f"{number:.{DIGITS}g}")


def _checksum(facts: dict[str, Any]) -> str:
    return hashlib.sha256(_short_text(facts).encode()).hexdigest()


def checksum_of(text: bytes) -> str:
    """Return the checksum of what msgspec wrote sorted; it differs if a text looks like the end of a small number."""
    return hashlib.sha256(_EXPONENT.sub(b"e-0", text)).hexdigest()


def _lines(facts: dict[str, Any]) -> str:
    parts = [f' "{name}": {_value(value)}' for name, value in facts.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _value(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(f"  {_text(item)}" for item in value) + "\n ]"
    return _sorted_text(value) if isinstance(value, dict) else _text(value)
