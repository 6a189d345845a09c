"""Files that others wrote: JSON, which is read within bounds and checked before use, and numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from device_runner.device import Array
from device_runner.files import is_name
from device_runner.foreign_json import read_json
from harness.base.failures import ModelError, reason_alone

DOWNLOAD_AGAIN = "download the folder again"
LONGEST_FILE_BYTES = 64 << 20
"""The list of the weights of the largest models has a few."""


class Foreign(BaseModel):
    """What others wrote: fields that are not ours are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


Content = TypeVar("Content", bound=Foreign)


def read_object(text: str | bytes) -> dict[str, Any]:
    """Return a JSON object by its keys. Raises ValueError for anything else."""
    if isinstance(content := read_json(text), dict):
        return content
    raise ValueError("its content is not a JSON object")


def read_foreign(file: Path, kind: type[Content], hint: str) -> Content:
    """Return the content of a file. Raises ModelError with the key at fault, and with the hint what file is meant."""
    try:
        with file.open("rb") as stream:
            text = stream.read(LONGEST_FILE_BYTES + 1)
        if len(text) > LONGEST_FILE_BYTES:
            raise ValueError(f"more than {LONGEST_FILE_BYTES >> 20} MiB")
        return kind.model_validate(read_object(text))
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot read {file}: {reason_alone(error)}", hint=hint) from error


def file_beside(listing: Path, name: str) -> Path:
    """Return the file that a list in the same folder names. Raises ModelError unless it is there."""
    file = listing.parent / name
    if not is_name(name) or not file.is_file():
        raise ModelError(f"{listing} names {name!r}, which is not a file beside it", hint=DOWNLOAD_AGAIN)
    return file


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies."""

    file: Path
    dtype: str
    shape: tuple[int, ...]
    begin: int
    """Offset in the file, in bytes."""
    halved: bool = False
    """Whether only the upper half of each number is stored, as of every bfloat16."""

    def read(self) -> Array:
        """Return the numbers, those in halves as float32. Raises ValueError or TypeError for what cannot be read."""
        import numpy as np

        half = self.halved or self.dtype == "bfloat16"
        raw: Any = np.fromfile(self.file, "uint16" if half else self.dtype, math.prod(self.shape), offset=self.begin)
        numbers: Array = ((raw.astype("uint32") << 16).view("float32") if half else raw).reshape(self.shape)
        return numbers
