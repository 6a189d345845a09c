"""The networks in a folder that can be measured as they are, for a suite that nobody has written yet."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from device_runner.failures import Failure
from harness.base.failures import ModelError
from harness.base.model import OnnxModel, model_name
from harness.compile.models.limited_fork import run_limited
from harness.compile.models.onnx_inputs import inputs_of
from harness.compile.models.onnx_read import parse
from harness.compile.models.sources import MODELS, OnnxFile

SUFFIX = ".onnx"
MOST_MODELS = 20
MOST_ENTRIES = 20_000
"""Files and folders that a search looks at: somebody may have asked in a home folder."""
FOREIGN_FOLDERS = {"node_modules", "site-packages", "__pycache__"}
BATCH, IMAGE_EXTENT = 1, 224
IMAGE_RANK, MOST_CHANNELS = 4, 4


@dataclass(frozen=True)
class ModelSearch:
    """What lies below a folder."""

    models: tuple[OnnxModel, ...]
    """By paths from the folder, with shapes for what the files leave open."""
    left_out: tuple[str, ...] = ()
    """What cannot be measured as it is, each with the reason, for a person."""


def find_models(folder: Path, cache: Path) -> ModelSearch:
    """Return the networks below a folder, none of which is run. Prepared copies go to `cache`."""
    files = list(_files(folder))
    models: list[OnnxModel] = []
    left_out = [f"{file}: only the first {MOST_MODELS} are taken" for file in files[MOST_MODELS:]]
    for file in files[:MOST_MODELS]:
        name = _free_name(file, {model_name(model) for model in models})
        try:
            shapes = _guess_shapes(folder / file)
            OnnxFile(name, folder / file, shapes).prepare(cache / MODELS)
        except Failure as failure:
            left_out.append(f"{file}: {failure}")
        else:
            models.append(OnnxModel(onnx=file, name="" if name == model_name(str(file)) else name, shapes=shapes))
    return ModelSearch(tuple(models), tuple(left_out))


def _free_name(file: Path, others: Collection[str]) -> str:
    """Return the name of a file as a model; if another has it, with its folders, and then with a number."""
    whole = model_name(str(file).replace(os.sep, "_"))
    names = (model_name(str(file)), whole, *(f"{whole}_{number}" for number in range(2, MOST_MODELS + 1)))
    return next(name for name in names if name not in others)


def _files(folder: Path) -> Iterator[Path]:
    """Yield .onnx files below a folder, as paths from it, the nearest first."""
    count, matches = 0, list[Path]()
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in FOREIGN_FOLDERS)
        matches += [Path(place, name).relative_to(folder) for name in files if name.lower().endswith(SUFFIX)]
        count += len(folders) + len(files)
        if count > MOST_ENTRIES:
            break
    yield from sorted(matches, key=lambda file: (len(file.parts), str(file)))


def _guess_shapes(file: Path) -> dict[str, list[int] | int]:
    """Shapes for the inputs that a file leaves open: one image of 224 x 224, or a batch of one. Raises `ModelError`."""
    import_module("onnx")  # here, and not anew in each fork
    return run_limited(file, lambda: dict(_open_shapes(parse(file))))


def _open_shapes(model: Any) -> Iterator[tuple[str, list[int]]]:
    for value in inputs_of(model):
        tensor = value.type.tensor_type
        declared = [dim.dim_value if dim.dim_value > 0 else None for dim in tensor.shape.dim]
        if all(declared) and tensor.HasField("shape"):
            continue
        shape = [extent or _extent(declared, at) for at, extent in enumerate(declared)]
        if not shape or not all(shape):
            names = [str(dim.dim_value or dim.dim_param or "?") for dim in tensor.shape.dim]
            hint = (
                f'add it to the suite with its size, such as shapes = {{ "{value.name}" = {[n or 1 for n in shape]} }}'
            )
            raise ModelError(f"input {value.name!r} has the dynamic shape [{', '.join(names)}]", hint=hint)
        yield value.name, shape


def _extent(declared: list[int | None], at: int) -> int:
    """Return what an open extent is for sure, or usually; 0 if nobody can know."""
    if at == 0:
        return BATCH
    if len(declared) != IMAGE_RANK:
        return 0
    last = declared[3]
    of_image = (1, 2) if last and last <= MOST_CHANNELS else (2, 3)  # NHWC, NCHW
    return IMAGE_EXTENT if at in of_image else 0
