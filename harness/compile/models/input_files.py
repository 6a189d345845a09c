"""The arrays of a user: `.npz` files of a model's inputs, and of labelled data, read with suspicion.

A file of inputs has one array for each input of the model. Labelled data are many of the model's inputs in one array,
and the class of each under `labels`; a model of one input, whose first extent is the batch, is asked batch by batch.

A file may come from anywhere: it is never unpickled, and nothing is read before its header says that it is an array of
the model's own shape and number format, so a file that lies about its size costs no memory.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from device_runner.names import suggestion
from harness.base.failures import ModelError
from harness.compile.models.spec import InputSpec

if TYPE_CHECKING:
    from harness.compile.models.spec import Array


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
    import numpy as np

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
            raise ModelError(f"{file} has no array for the input {name!r}", hint=f"it holds {', '.join(arrays) or '-'}")


def _array(file: Path, archive: zipfile.ZipFile, member: str, spec: InputSpec) -> Array:
    import numpy as np

    with archive.open(member) as stream:
        shape, transposed, dtype = read_header(file, stream, spec.name)
        expected = np.dtype(spec.dtype)
        if (shape, dtype) != (spec.shape, expected):
            if spec.name == ANY_INPUT:
                raise _unfit_pictures(shape[1:], spec)
            raise ModelError(
                f"{file}: {spec.name!r} is {dtype} {list(shape)}, and the model takes {expected} {list(spec.shape)}",
                hint=f"save it as array.astype({expected.name!r}).reshape({list(spec.shape)})",
            )
        length = expected.itemsize * int(np.prod(shape))
        data = stream.read(length)
    if len(data) != length:
        raise ModelError(f"{file}: {spec.name!r} is cut short: {len(data)} of {length} bytes")
    array: Array = np.frombuffer(data, expected).reshape(shape, order="F" if transposed else "C").copy(order="C")
    return array


def _unfit_pictures(shape: tuple[int, ...], spec: InputSpec) -> ModelError:
    """Return what is wrong with the options of a folder of pictures: the person never saw the file made of them."""
    takes = f"the model takes {spec.dtype} {list(spec.shape[1:])}"
    hint = "set crop to its height and width, and give mean and deviation a number for each channel"
    return ModelError(f"a labelled picture becomes float32 {list(shape)}, and {takes}", hint=hint)


def _require_finite(file: Path, arrays: Mapping[str, Array]) -> None:
    import numpy as np

    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelError(f"{file}: {name!r} holds NaN or infinity", hint="no answer to it could be judged")


def read_header(file: Path, stream: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, object]:
    """Shape, whether it is stored column by column, and number format."""
    from numpy.lib import format as npy

    try:
        version = npy.read_magic(stream)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        return read(stream, max_header_size=LARGEST_HEADER_BYTES)
    except (ValueError, KeyError, TypeError, SyntaxError) as error:
        raise ModelError(f"{file}: {name!r} is no array that numpy wrote", evidence=str(error)) from error


LABELS, ANY_INPUT = "labels", "any input"
"""Names of arrays: the classes, and inputs that were made for no model in particular."""
BEST = 5
"""Classes of an input that are looked at: top-5."""
LARGEST_LABELS_BYTES = 1 << 28
MOST = 100_000
"""Most labelled inputs; more take a device hours."""


@dataclass(frozen=True)
class LabelledData:
    """`inputs` has as many rows as `labels` has classes, a whole number of the model's batches."""

    inputs: Array
    labels: Array


def load_labelled(file: Path, specs: Sequence[InputSpec], *, scored: bool = False) -> LabelledData:
    """Return the data for a model with these inputs. Raises `ModelError` for what does not fit.

    The labels are classes or, where a function scores the outputs, numbers of any shape.
    """
    if len(specs) != 1 or not specs[0].shape:
        raise ModelError(f"{file} cannot be used: the model has {len(specs)} inputs, and labelled data are for one")
    (spec,) = specs
    (shape, dtype), members, batch = *_labels(file), spec.shape[0]
    count = shape[0] if shape and (scored or len(shape) == 1) else 0
    if not 0 < count <= MOST or count % batch:
        raise ModelError(
            f"{file} has {count} labels", hint=f"the model takes {batch} at once: give a multiple of it, {MOST} at most"
        )
    name = ANY_INPUT if ANY_INPUT in members else spec.name
    whole = InputSpec(name, (count, *spec.shape[1:]), spec.dtype)
    labels = InputSpec(LABELS, shape, dtype) if scored else InputSpec(LABELS, (count,), "int64")
    arrays = load_inputs(file, [whole, labels])
    return LabelledData(arrays[name], arrays[LABELS])


def _labels(file: Path) -> tuple[tuple[tuple[int, ...], str], list[str]]:
    """Return shape and number format of the labels, as the file says, and its arrays; nothing but a header is read."""
    import numpy as np

    with npz_errors(file), zipfile.ZipFile(file) as archive:
        members = [name.removesuffix(SUFFIX) for name in archive.namelist()]
        if LABELS not in members:
            raise ModelError(f"{file} has no array {LABELS!r}", hint="one whole number, int64, for each input")
        with archive.open(LABELS + SUFFIX) as stream:
            shape, _, label_type = read_header(file, stream, LABELS)
    dtype = np.dtype(cast(Any, label_type))
    if dtype.kind not in "biuf" or math.prod(shape) * dtype.itemsize > LARGEST_LABELS_BYTES:
        raise ModelError(f"{file}: {LABELS!r} is {dtype} {list(shape)}", hint="labels are numbers, and 256 MB at most")
    return (shape, dtype.name), members


def best_classes(ask: Callable[[Array], Sequence[Array]], inputs: Array, batch: int) -> Array:
    """Return the classes with the largest scores, `BEST` at most, of inputs that `ask` answers in batches of so many.

    int64, a row for each input, the largest score first; of equal scores the first class.

    Raises ModelError if the first output has not one row of scores for each input.
    """
    import numpy as np

    return np.concatenate([_classes(ask(inputs[at : at + batch])[0], batch) for at in range(0, len(inputs), batch)])


def _classes(scores: Array, batch: int) -> Array:
    if scores.ndim < 2 or scores.shape[0] != batch:
        raise ModelError(
            f"the first output has the shape {list(scores.shape)}, and labelled data need {batch} rows of scores",
            hint="leave `labelled` out, or let the model's first output be its scores",
        )
    import numpy as np

    classes: Array = np.negative(scores.reshape(batch, -1)).argsort(axis=1, kind="stable")[:, :BEST]
    return classes
