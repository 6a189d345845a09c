"""The text of a new suite file: every key with its default, and what it means."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.base.model import OnnxModel

TEMPLATE = Path(__file__).with_name("suite.toml")
MODELS, PATHS, PRECISIONS = '["mobilenet_v1"]', '["opencl", "texture", "clml"]', '# precisions = ["float32"]   '
"""What the template has in the places of models, paths and precisions."""


@dataclass(frozen=True)
class Preset:
    """Models and precisions that are often wanted together."""

    models: tuple[str, ...]
    precisions: tuple[str, ...] = ("float32",)


_PHONE = (
    "mobilenet_v1", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_lite0", "squeezenet1_1", "resnet18", "detector",
    "bottlenecks", "deeplab_v3", "encoder_block", "decoder_layer", "masked_encoder", "lstm", "gru", "digits",
)  # fmt: skip
PRESETS = {
    "quick": Preset(("tiny", "squeezenet1_1", "mobilenet_v2")),
    "phone": Preset(_PHONE, ("float32", "float16")),
    "full": Preset((*_PHONE, "resnet50", "densenet121", "inception_v3"), ("float32", "float16", "float16_acc32")),
}
"""The presets: a first look, what phones usually run, and the whole zoo."""


def suite_text(
    models: Sequence[str | OnnxModel], paths: Sequence[str], precisions: Sequence[str] = ("float32",)
) -> str:
    """Return a suite file of these models, paths and precisions, as TOML with a comment on each key."""
    text = TEMPLATE.read_text(encoding="utf-8")
    text = text.replace(PATHS, json.dumps(list(paths))).replace(MODELS, _models_text(models))
    if list(precisions) == ["float32"]:
        return text
    return text.replace(PRECISIONS, f"precisions = {json.dumps(list(precisions))}")


def _models_text(models: Sequence[str | OnnxModel]) -> str:
    """TOML of a list of models: on one line if all are plain names or files."""
    entries = [_model_text(model) for model in models]
    if any(entry.startswith("{") for entry in entries):
        return "[\n" + "".join(f"  {entry},\n" for entry in entries) + "]"
    return f"[{', '.join(entries)}]"


def _model_text(model: str | OnnxModel) -> str:
    if isinstance(model, str):
        return _quoted(model)
    shapes = ", ".join(f"{_quoted(name)} = {json.dumps(shape)}" for name, shape in model.shapes.items())
    if not model.name and not shapes:
        return _quoted(str(model.onnx))
    keys = [f"onnx = {_quoted(str(model.onnx))}"]
    keys += [f"name = {_quoted(model.name)}"] if model.name else []
    keys += [f"shapes = {{ {shapes} }}"] if shapes else []
    return f"{{ {', '.join(keys)} }}"


def _quoted(text: str) -> str:
    """Return a string of TOML, which a string of JSON is."""
    return json.dumps(text)
