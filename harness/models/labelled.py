"""Labelled data: an `.npz` file with many of the model's inputs in one array, and the class of each under `labels`.

A model of one input, whose first extent is the batch, is asked batch by batch. The file may come from anywhere, and is
read with the suspicion of `harness.models.given_inputs`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.failures import ModelError
from harness.models.given_inputs import SUFFIX, load_inputs, read_header, reading
from harness.models.spec import InputSpec

if TYPE_CHECKING:
    from harness.models.spec import Array

LABELS = "labels"
MOST = 100_000
"""Of labelled inputs; answering for more takes a device hours."""


@dataclass(frozen=True)
class LabelledData:
    """`inputs` has as many rows as `labels` has classes, a whole number of the model's batches."""

    inputs: Array
    labels: Array


def load_labelled(file: Path, specs: Sequence[InputSpec]) -> LabelledData:
    """The data for a model with these inputs. Raises `ModelError` for what does not fit."""
    if len(specs) != 1 or not specs[0].shape:
        raise ModelError(f"{file} cannot be used: the model has {len(specs)} inputs, and labelled data are for one")
    (spec,) = specs
    count, batch = _count(file), spec.shape[0]
    if not 0 < count <= MOST or count % batch:
        raise ModelError(
            f"{file} has {count} labels", hint=f"the model takes {batch} at once: give a multiple of it, {MOST} at most"
        )
    whole = InputSpec(spec.name, (count, *spec.shape[1:]), spec.dtype)
    arrays = load_inputs(file, [whole, InputSpec(LABELS, (count,), "int64")])
    return LabelledData(arrays[spec.name], arrays[LABELS])


def _count(file: Path) -> int:
    """How many labels the file says that it has; nothing but a header is read."""
    with reading(file), zipfile.ZipFile(file) as archive:
        if LABELS + SUFFIX not in archive.namelist():
            raise ModelError(f"{file} has no array {LABELS!r}", hint="one whole number, int64, for each input")
        with archive.open(LABELS + SUFFIX) as stream:
            shape, _, _ = read_header(file, stream, LABELS)
    return shape[0] if len(shape) == 1 else 0
