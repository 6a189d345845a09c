"""Weights in safetensors files: a length, a header in JSON, and numbers. Nothing in them is executed.

Format: https://huggingface.co/docs/safetensors, "Format". Every offset is checked against the file before use.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from device_runner.foreign_json import read_json
from harness.base.failures import ModelError

if TYPE_CHECKING:
    from device_runner.device import Array

LONGEST_HEADER_BYTES = 100_000_000
"""Limit of the format's own reader."""
_NUMBERS = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}
"""How numpy reads each kind."""


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies."""

    file: Path
    kind: str
    shape: tuple[int, ...]
    begin: int
    """Offset in the file, in bytes."""

    def read(self) -> Array:
        """Return the numbers as float32."""
        import numpy as np

        stored = np.dtype(_NUMBERS[self.kind])
        with self.file.open("rb") as stream:
            stream.seek(self.begin)
            raw: Any = np.frombuffer(stream.read(math.prod(self.shape) * stored.itemsize), stored).reshape(self.shape)
        if self.kind == "BF16":  # the upper half of a float32
            raw = (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
        numbers: Array = raw.astype(np.float32)
        return numbers


def list_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Return the tensors in all `*.safetensors` files of a folder, by name. Raises ModelError."""
    if not folder.is_dir():
        raise ModelError(f"there is no folder {folder}", hint="`seed` draws weights")
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ModelError(f"{folder} has no *.safetensors", hint="pickled weights are not read: convert them first")
    tensors: dict[str, StoredTensor] = {}
    for file in files:
        try:
            tensors.update(_tensors_of(file))
        except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
            raise ModelError(f"{file} is not a safetensors file: {error}") from error
    return tensors


def _tensors_of(file: Path) -> dict[str, StoredTensor]:
    size = file.stat().st_size
    with file.open("rb") as stream:
        length = struct.unpack("<Q", stream.read(8))[0]
        if length > min(LONGEST_HEADER_BYTES, size - 8):
            raise ValueError(f"its header has {length} bytes, and the file {size}")
        header = read_json(stream.read(length))
    if not isinstance(header, dict):
        raise TypeError("its header is no object")
    entries = ((name, entry) for name, entry in header.items() if name != "__metadata__")
    return {name: _tensor(file, name, entry, 8 + length, size) for name, entry in entries}


def _tensor(file: Path, name: str, entry: Any, base: int, size: int) -> StoredTensor:
    shape, (begin, end), kind = tuple(entry["shape"]), entry["data_offsets"], str(entry["dtype"])
    if not all(type(extent) is int and extent >= 0 for extent in (*shape, begin, end)):
        raise ValueError("a shape or an offset is no whole number")
    wide = int(_NUMBERS[kind][-1]) if kind in _NUMBERS else 0
    if base + end > size:
        raise ValueError(f"{name} ends at {base + end} bytes, and the file has {size}")
    if begin > end or (wide and end - begin != wide * math.prod(shape)):
        raise ValueError(f"a tensor of shape {list(shape)} cannot lie at {begin} to {end}")
    return StoredTensor(file, kind, shape, base + begin)


def require_readable(name: str, tensor: StoredTensor, shape: tuple[int, ...]) -> None:
    """Raise ModelError unless the tensor is a floating-point one of this shape."""
    if tensor.kind not in _NUMBERS:
        raise ModelError(f"{name} in {tensor.file} is {tensor.kind}", hint=f"supported: {', '.join(_NUMBERS)}")
    if tensor.shape != shape:
        raise ModelError(f"{name} in {tensor.file} has shape {list(tensor.shape)}, and config.json says {list(shape)}")
