"""Weights in safetensors files: a length, a header in JSON, and numbers. Nothing in them is executed.

Format: https://huggingface.co/docs/safetensors, "Format". Every offset is checked against the file before use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from device_runner.foreign_json import read_json
from harness.base.failures import ModelError
from harness.tools.llm.foreign import DOWNLOAD_AGAIN, Foreign, file_beside, problem_of, read_foreign
from harness.tools.llm.formats import NUMBER_BYTES

if TYPE_CHECKING:
    from device_runner.device import Array

INDEX, USUAL = "model.safetensors.index.json", "model.safetensors"
LONGEST_HEADER_BYTES = 100_000_000
"""Limit of the format's own reader."""
OTHER_WEIGHTS = "give the config.json that belongs to these weights"
_NUMBERS = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
"""Number format of each kind that can be read."""
_LENGTH_BYTES = 8
_Whole = Annotated[int, Field(strict=True, ge=0)]


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies."""

    file: Path
    dtype: str
    shape: tuple[int, ...]
    begin: int
    """Offset in the file, in bytes."""

    def read(self) -> Array:
        """Return the numbers; bfloat16 as float32, of which it is the upper half."""
        import numpy as np

        half = self.dtype == "bfloat16"
        raw: Any = np.fromfile(self.file, "uint16" if half else self.dtype, math.prod(self.shape), offset=self.begin)
        numbers: Array = ((raw.astype("uint32") << 16).view("float32") if half else raw).reshape(self.shape)
        return numbers


def list_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Return the tensors of a Hugging Face folder by name. Raises ModelError."""
    tensors: dict[str, StoredTensor] = {}
    for file in _files(folder):
        try:
            tensors.update(_tensors_of(file))
        except ValidationError as error:
            raise ModelError(f"{file} is not a safetensors file: {problem_of(error)}", hint=DOWNLOAD_AGAIN) from error
        except (OSError, ValueError) as error:
            raise ModelError(
                f"{file} is not a safetensors file, or not a whole one: {error}", hint=DOWNLOAD_AGAIN
            ) from error
    return tensors


class _Index(Foreign):
    weight_map: dict[str, str] = Field(min_length=1)
    """The file of each tensor."""


def _files(folder: Path) -> list[Path]:
    """Return the files that the index names. Without one there is the usual file, or all count."""
    if not folder.is_dir():
        raise ModelError(f"there is no folder {folder}", hint="`seed` draws weights")
    index = folder / INDEX
    if index.exists():
        names = read_foreign(index, _Index, DOWNLOAD_AGAIN).weight_map.values()
        return [file_beside(index, name) for name in sorted(set(names))]
    files = sorted(file for file in folder.glob("*.safetensors") if file.is_file())
    if not files:
        raise ModelError(f"{folder} has no *.safetensors", hint="pickled weights are not read: convert them first")
    return [file for file in files if file.name == USUAL] or files


class _Entry(Foreign):
    dtype: str
    shape: tuple[_Whole, ...]
    data_offsets: tuple[_Whole, _Whole]


_HEADER = TypeAdapter(dict[str, _Entry])


def _tensors_of(file: Path) -> dict[str, StoredTensor]:
    size = file.stat().st_size
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
        base = _LENGTH_BYTES + length
        if length > LONGEST_HEADER_BYTES or base > size:
            raise ValueError(f"its header has {length} bytes, and the file {size}")
        header = read_json(stream.read(length))
    if isinstance(header, dict):
        header.pop("__metadata__", None)
    entries = _HEADER.validate_python(header)
    _require_whole(entries, size - base)
    return {
        name: StoredTensor(file, _NUMBERS.get(entry.dtype, entry.dtype), entry.shape, base + entry.data_offsets[0])
        for name, entry in entries.items()
    }


def _require_whole(entries: dict[str, _Entry], size: int) -> None:
    """Raise ValueError unless the tensors lie one behind the other in this many bytes, as the format says."""
    place = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].data_offsets):
        begin, end = entry.data_offsets
        if end > size:
            raise ValueError(f"{name} ends at {end} bytes of numbers, and the file has {size}")
        wide = NUMBER_BYTES.get(_NUMBERS.get(entry.dtype, ""), 0)
        if begin != place or begin > end or (wide and end - begin != wide * math.prod(entry.shape)):
            raise ValueError(f"{name} of shape {list(entry.shape)} cannot lie at {begin} to {end}")
        place = end


def require_readable(name: str, tensor: StoredTensor, shape: tuple[int, ...]) -> None:
    """Raise ModelError unless the tensor is a floating-point one of this shape."""
    if tensor.dtype not in _NUMBERS.values():
        raise ModelError(f"{name} in {tensor.file} is {tensor.dtype}", hint=f"supported: {', '.join(_NUMBERS)}")
    if tensor.shape != shape:
        why = f"{name} in {tensor.file} has shape {list(tensor.shape)}, and config.json says {list(shape)}"
        raise ModelError(why, hint=OTHER_WEIGHTS)
