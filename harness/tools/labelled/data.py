"""Labelled data: many of a model's inputs in one array, and under `labels` the class of each, or what a function takes.

A model of one input, whose first extent is the batch, is asked batch by batch. The file may come from anywhere
(`harness.compile.models.input_files`).
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from device_runner.device import Array
from device_runner.store import sha256_of
from harness.base.failures import ModelError
from harness.base.model import ImageFolder
from harness.base.tables import counted
from harness.compile.models.input_files import ANY_INPUT, LABELS, SUFFIX, load_inputs, npz_errors, read_header
from harness.compile.models.spec import InputSpec
from harness.tools.labelled.score import digest_of, load_function

BEST = 5
"""Classes of an input that are looked at: top-5."""
LARGEST_LABELS_BYTES = 1 << 28
MOST = 100_000
"""Most labelled inputs; more take a device hours."""


ASKER = "harness.tools.labelled.truth:write_answers"


@dataclass(frozen=True)
class LabelledFile:
    """A `harness.compile.models.spec.LabelledData`: the file, and the place of the function that scores the outputs."""

    file: Path
    score: str = ""

    def load_inputs(self, specs: Sequence[InputSpec]) -> Array:
        """Return the inputs. Raises `ModelError` for what does not fit a model with these, or cannot be scored."""
        inputs = load_labelled(self.file, specs, scored=bool(self.score)).inputs
        if self.score:
            load_function(self.score)
        return inputs

    @property
    def digests(self) -> Mapping[str, str]:
        """Hashes of the file and the function."""
        score = {"score": digest_of(self.score)} if self.score else {}
        return {"labelled": sha256_of(self.file), **score}

    @property
    def question(self) -> Mapping[str, str]:
        """Fields of the job that asks the oracle."""
        return {"labelled": str(self.file), "score": self.score, "asker": ASKER}


def open_data(data: Path | ImageFolder, score: str, cache: Path) -> LabelledFile:
    """Return labelled data of a file or of a folder of pictures, which are prepared in `cache`.

    Raises ModelError for pictures that cannot be used, SetupMissing without Pillow.
    """
    if isinstance(data, ImageFolder):
        from harness.tools.labelled.pictures import labelled_file

        data = labelled_file(data, cache)
    return LabelledFile(data, score)


@dataclass(frozen=True)
class LabelledArrays:
    """`inputs` has as many rows as `labels` has classes, a whole number of the model's batches."""

    inputs: Array
    labels: Array


def load_labelled(file: Path, specs: Sequence[InputSpec], *, scored: bool = False) -> LabelledArrays:
    """Return the data for a model with these inputs. Raises `ModelError` for what does not fit.

    The labels are classes or, where a function scores the outputs, numbers of any shape.
    """
    if len(specs) != 1 or not specs[0].shape:
        raise ModelError(f"{file} cannot be used: the model has {len(specs)} inputs, and labelled data are for one")
    (spec,) = specs
    (shape, dtype), arrays_there, batch = *_labels(file), spec.shape[0]
    count = shape[0] if shape and (scored or len(shape) == 1) else 0
    if not 0 < count <= MOST or count % batch:
        raise ModelError(
            f"{file} has {count} labels", hint=f"the model takes {batch} at once: give a multiple of it, {MOST} at most"
        )
    name = ANY_INPUT if ANY_INPUT in arrays_there else spec.name
    if (rows := arrays_there.get(name, shape)[:1]) and rows != (count,):
        what = f"{file} has {counted(rows[0], 'input')} and {counted(count, 'label')}"
        raise ModelError(what, hint="save as many labels as inputs")
    whole = InputSpec(name, (count, *spec.shape[1:]), spec.dtype)
    labels = InputSpec(LABELS, shape, dtype) if scored else InputSpec(LABELS, (count,), "int64")
    arrays = load_inputs(file, [whole, labels])
    return LabelledArrays(arrays[name], arrays[LABELS])


def _labels(file: Path) -> tuple[tuple[tuple[int, ...], str], dict[str, tuple[int, ...]]]:
    """Return shape and number format of the labels, and the shapes of all arrays; nothing but headers is read."""
    with npz_errors(file), zipfile.ZipFile(file) as archive:
        headers = {}
        for member in archive.namelist():
            with archive.open(member) as stream:
                name = member.removesuffix(SUFFIX)
                headers[name] = read_header(file, stream, name)
    if LABELS not in headers:
        raise ModelError(f"{file} has no array {LABELS!r}", hint="one whole number, int64, for each input")
    shape, _, label_type = headers[LABELS]
    dtype = np.dtype(cast(Any, label_type))
    if dtype.kind not in "biuf" or math.prod(shape) * dtype.itemsize > LARGEST_LABELS_BYTES:
        raise ModelError(f"{file}: {LABELS!r} is {dtype} {list(shape)}", hint="labels are numbers, and 256 MB at most")
    return (shape, dtype.name), {name: header[0] for name, header in headers.items()}


def best_classes(ask: Callable[[Array], Sequence[Array]], inputs: Array, batch: int) -> Array:
    """Return the classes with the largest scores, `BEST` at most, of inputs that `ask` answers in batches of so many.

    int64, a row for each input, the largest score first; of equal scores the first class.

    Raises ModelError if the first output has not one row of scores for each input.
    """
    return np.concatenate([_classes(ask(inputs[at : at + batch])[0], batch) for at in range(0, len(inputs), batch)])


def _classes(scores: Array, batch: int) -> Array:
    if scores.ndim < 2 or scores.shape[0] != batch:
        raise ModelError(
            f"the first output has the shape {list(scores.shape)}, and labelled data need {batch} rows of scores",
            hint="leave `labelled` out, or let the model's first output be its scores",
        )
    classes: Array = np.negative(scores.reshape(batch, -1)).argsort(axis=1, kind="stable")[:, :BEST]
    return classes
