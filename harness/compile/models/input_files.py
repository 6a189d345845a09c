"""The arrays of a user: `.npz` files with one array for each input of a model, read with suspicion.

A file may come from anywhere: it is never unpickled, and nothing is read before its header says that it is an array of
the model's own shape and number format, so a file that lies about its size costs no memory.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from device_runner.device import Array
from device_runner.names import suggestion
from harness.base.failures import ModelError
from harness.compile.models.spec import InputSpec

LARGEST_HEADER_BYTES = 4_096
"""Largest header of an array; that of a tensor takes about 100 bytes."""
OVERHEAD_BYTES = 1 << 20
"""What the file may take beyond its arrays."""
SUFFIX = ".npy"


def load_inputs(file: Path, specs: Sequence[InputSpec], *, finite: bool = True) -> dict[str, Array]:
    """Return the arrays of the model's inputs, by name and in the model's order. Raises `ModelError`."""
    with npz_errors(file):
        _require_small(file, specs)
        with zipfile.ZipFile(file) as archive:
            members = {name.removesuffix(SUFFIX): name for name in archive.namelist() if name.endswith(SUFFIX)}
            _require_names(file, list(members), [spec.name for spec in specs])
            arrays = {spec.name: _array(file, archive, members[spec.name], spec) for spec in specs}
    if finite:
        _require_finite(file, arrays)
    return arrays


@contextmanager
def npz_errors(file: Path) -> Iterator[None]:
    """Turn what goes wrong while an `.npz` file is read into `ModelError`."""
    try:
        if not file.is_file():
            problem = "is not a file" if file.exists() else "does not exist"
            raise ModelError(f"{file} {problem}", hint="correct `inputs` or `labelled` of the model in the suite")
        yield
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise ModelError(f"{file} is not an .npz file: {error}", hint="`numpy.savez` writes one") from error
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror or error}") from error


def _require_small(file: Path, specs: Sequence[InputSpec]) -> None:
    expected = sum(np.dtype(spec.dtype).itemsize * int(np.prod(spec.shape)) for spec in specs)
    size = file.stat().st_size
    if size > expected + OVERHEAD_BYTES:
        raise ModelError(f"{file} is too large: {size} bytes, and the model's inputs take {expected}")


def _require_names(file: Path, arrays: Sequence[str], names: Sequence[str]) -> None:
    for name in arrays:
        if name not in names:
            hint = suggestion(name, names, otherwise="its inputs:")
            raise ModelError(f"{file} holds {name!r}, and the model has no such input", hint=hint)
    for name in names:
        if name not in arrays:
            hint = f"it holds {', '.join(arrays) or 'no arrays'}"
            raise ModelError(f"{file} has no array for the input {name!r}", hint=hint)


def _array(file: Path, archive: zipfile.ZipFile, member: str, spec: InputSpec) -> Array:
    with archive.open(member) as stream:
        shape, transposed, dtype = read_header(file, stream, spec.name)
        expected = np.dtype(spec.dtype)
        if (shape, dtype) != (spec.shape, expected):
            if spec.name == ANY_INPUT:
                raise _unfit_pictures(shape[1:], spec)
            raise ModelError(
                f"{file}: {spec.name!r} is {dtype} {list(shape)}, and the model takes {expected} {list(spec.shape)}",
                hint="inputs are real numbers" if "complex" in str(dtype) else _to_save(shape, spec),
            )
        length = expected.itemsize * int(np.prod(shape))
        data = stream.read(length)
    if len(data) != length:
        raise ModelError(f"{file}: {spec.name!r} is cut short: {len(data)} of {length} bytes")
    array: Array = np.frombuffer(data, expected).reshape(shape, order="F" if transposed else "C").copy(order="C")
    return array


def _to_save(shape: tuple[int, ...], spec: InputSpec) -> str:
    """Return what to save in place of an array of another shape or number format."""
    if math.prod(shape) == math.prod(spec.shape):
        return f"save it as array.astype({spec.dtype!r}).reshape({list(spec.shape)})"
    return f"save an array of {math.prod(spec.shape)} numbers, not of {math.prod(shape)}"


def _unfit_pictures(shape: tuple[int, ...], spec: InputSpec) -> ModelError:
    """Return what is wrong with the options of a folder of pictures: the person never saw the file made of them."""
    takes = f"the model takes {spec.dtype} {list(spec.shape[1:])}"
    hint = "set crop to its height and width, and give mean and deviation a number for each channel"
    return ModelError(f"a labelled picture becomes float32 {list(shape)}, and {takes}", hint=hint)


def _require_finite(file: Path, arrays: Mapping[str, Array]) -> None:
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelError(f"{file}: {name!r} holds NaN or infinity", hint="no answer to it could be judged")


def read_header(file: Path, stream: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, object]:
    """Shape, whether it is stored column by column, and number format."""
    try:
        version = npy.read_magic(stream)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        return read(stream, max_header_size=LARGEST_HEADER_BYTES)
    except (ValueError, KeyError, TypeError, SyntaxError) as error:
        raise ModelError(f"{file}: {name!r} is not an array that numpy wrote", evidence=str(error)) from error


LABELS, ANY_INPUT = "labels", "any input"
"""Names of arrays: the classes, and inputs that were made for no model in particular."""
