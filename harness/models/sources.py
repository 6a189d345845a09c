"""A model by name: a network of the zoo, or a file that the suite names."""

from __future__ import annotations

from pathlib import Path

from device_runner.names import suggestion
from harness.failures import UsageError
from harness.models.onnx_inputs import Shapes
from harness.models.onnx_model import OnnxFile
from harness.models.spec import Inputs, ModelSource


def model_source(
    name: str,
    *,
    onnx: Path | None = None,
    shapes: Shapes | None = None,
    inputs: Path | Inputs | None = None,
    clean: bool = True,
) -> ModelSource:
    """Where the model comes from. Raises UsageError, with the nearest known name, if there is none."""
    from harness.models.zoo import ZOO

    if onnx is not None:
        return OnnxFile(name, onnx, shapes or {}, inputs or {}, clean)
    known = {model.name: model for model in ZOO}
    if name not in known:
        hint = suggestion(name, known, otherwise="the zoo has")
        raise UsageError(f"there is no model {name!r}", hint=f"{hint} A file of your own ends in .onnx")
    return known[name]
