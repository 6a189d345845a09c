"""A model by name: a network of the zoo, or a file that the suite names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from device_runner.names import suggestion
from device_runner.store import cache_root
from harness.cases.model import SUFFIXES
from harness.failures import UsageError
from harness.models.onnx_inputs import Shapes
from harness.models.onnx_model import OnnxFile, read_and_prepare
from harness.models.spec import Inputs, ModelSource

if TYPE_CHECKING:
    from harness.models.zoo import ZooModel

MODELS = "models"
"""Folder of the cache in which models are made."""


def look(name: str, shapes: Shapes, *, trust: bool = False) -> tuple[Any, list[str]]:
    """A file of a person's own, or a network of the zoo, to be looked at as it is compiled, and what was changed in it.

    Raises UsageError.
    """
    if name.endswith(SUFFIXES):
        return read_and_prepare(Path(name), shapes, cache_root() / MODELS, may_stay_open=True, trust=trust)
    return _of_the_zoo(name).outline(), []


def model_source(
    name: str,
    *,
    onnx: Path | None = None,
    shapes: Shapes | None = None,
    inputs: Path | Inputs | None = None,
    clean: bool = True,
    labelled: Path | None = None,
    trust: bool = False,
) -> ModelSource:
    """Where the model comes from. Raises UsageError, with the nearest known name, if there is none."""
    if onnx is not None:
        return OnnxFile(name, onnx, shapes or {}, inputs or {}, clean, labelled, trust)
    return _of_the_zoo(name)


def _of_the_zoo(name: str) -> ZooModel:
    from harness.models.zoo import ZOO

    known = {model.name: model for model in ZOO}
    if name not in known:
        hint = suggestion(name, known, otherwise="the zoo has")
        raise UsageError(f"there is no model {name!r}", hint=f"{hint} A file of your own ends in .onnx or .pt2")
    return known[name]
