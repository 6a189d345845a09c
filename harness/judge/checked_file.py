"""Files for review as a diff: JSON, one key to a line, one for each case and identity, with a checksum.

They come from version control, so they are not trusted: names never lead out of their folder, and the checksum shows
whether a file was edited by hand.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from typing_extensions import Self

from device_runner.disk import disk_full
from device_runner.failures import RigFailure
from device_runner.files import require_name, write_whole
from harness.base.case import require_case_id
from harness.base.failures import UsageError

SCHEMA = 1
LARGEST_BYTES = 1 << 20
DIGITS = 6
"""Significant digits of a number: enough for any verdict, and a diff that can be read."""

_text, _sorted_text = json.JSONEncoder().encode, json.JSONEncoder(sort_keys=True).encode
_short_text = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_EXPONENT = re.compile(rb"e-(?=\d[],}])")
"""Python writes 1e-05, msgspec 1e-5."""


class CheckedFile(
    msgspec.Struct,
    frozen=True,
    gc=False,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="schema",
    tag=SCHEMA,
):
    """Content of such a file. What is as by default is left out of it."""

    what: ClassVar[str]
    """Kind of the file: `baseline`."""
    mended_by: ClassVar[str]
    """Hint for a damaged file."""

    case: str
    identity_key: str
    sha256: str = ""
    """Checksum in the file; empty of what was read and is intact."""

    def text(self) -> str:
        """Return the content of its file: the same for the same facts."""
        facts = msgspec.to_builtins(self)
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
    def find(cls, folder: Path, identity_key: str, case: str) -> Self | None:
        """Read the file of a case on an identity; None if there is none. Raises UsageError for an invalid file."""
        file = cls.file(folder, identity_key, case)
        return cls.read(file) if file.exists() else None

    @classmethod
    def read(cls, file: Path | str) -> Self:
        """Return the content of a file. Raises UsageError if it is not good, RigFailure if it cannot be read."""
        hint = cls.mended_by
        try:
            text = _beginning_of(file)
            if len(text) > LARGEST_BYTES:
                raise UsageError(f"{file} is larger than any {cls.what}", hint=hint)
            signed = msgspec.json.decode(text, type=cls)
        except OSError as error:
            raise RigFailure(f"cannot read {file}: {error.strerror}") from error
        except msgspec.ValidationError as error:
            raise UsageError(f"{file} is no {cls.what} of schema {SCHEMA} ({error})", hint=hint) from None
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{file} is no {cls.what} ({error})", hint=hint) from None
        read = msgspec.structs.replace(signed, sha256="")
        if signed.sha256 not in _checksums(read, text):
            raise UsageError(f"{file} was edited by hand since it was written", hint=hint)
        if [read.identity_key, f"{read.case}.json"] != str(file).split("/")[-2:]:
            raise UsageError(f"{file} is the {cls.what} of {read.case} on {read.identity_key}", hint="move it back")
        require_case_id(read.case)
        return read


def round_digits(number: float) -> float:
    """Round to the number of digits that a file keeps."""
    return float(f"{number:.{DIGITS}g}")


def _checksum(facts: dict[str, Any]) -> str:
    return hashlib.sha256(_short_text(facts).encode()).hexdigest()


def _checksums(read: CheckedFile, text: bytes) -> Iterator[str]:
    """Yield the checksum that a file should have, by what takes a third of the time first.

    That differs if a text looks like the end of a small number, and for numbers from 1e16 on.
    """
    yield hashlib.sha256(_EXPONENT.sub(b"e-0", msgspec.json.encode(read, order="sorted"))).hexdigest()
    facts = json.loads(text)
    yield _checksum({name: value for name, value in facts.items() if name != "sha256"})


def _beginning_of(file: Path | str) -> bytes:
    """Return the content of a file, or one byte more than any has."""
    with open(file, "rb", buffering=0) as stream:  # noqa: PTH123 -- a path for each of 100,000 takes half a second
        return stream.read(min(os.fstat(stream.fileno()).st_size, LARGEST_BYTES) + 1)


def _lines(facts: dict[str, Any]) -> str:
    parts = [f' "{name}": {_value(value)}' for name, value in facts.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(f"  {_text(item)}" for item in value) + "\n ]"
    return _sorted_text(value) if isinstance(value, dict) else _text(value)
