"""The text of a new suite file: every key with its default, and what it means."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.base.model import OnnxModel

_TEXT = """\
# What adreno-bench measures: every model on every path, in every precision and tuning.
# `adreno-bench list` shows the cases. A key that is commented out shows its default.

# A model is a network of the zoo: mobilenet_v1, mobilenet_v2, mobilenet_v3_small, efficientnet_lite0, squeezenet1_1,
# resnet18, resnet50, bottlenecks, densenet121, inception_v3, deeplab_v3, detector, encoder_block, decoder_layer,
# masked_encoder, lstm, gru, digits, tiny;
# or a file of yours, relative to this folder: "models/mine.onnx", or "models/mine.pt2" of torch.export.
# Write a table to say more:
# { onnx = "models/mine.onnx", name = "mine", shapes = { input = [1, 3, 224, 224] } }
#   shapes   = { batch = 1 }                         fixes a dynamic dimension
#   inputs   = "models/mine.npz"                     runs the model on your inputs
#   inputs   = { tokens = "integers(0, 9)" }         draws inputs
#   labelled = "models/held-out.npz"                 counts how many labelled inputs the model gets right
#   labelled = { folder = "val", resize = 256, crop = 224 }   the same for pictures, a folder for each class
#   score    = "metrics:mean_average_precision"     scores the outputs with your function (trusted code), not by classes
#   fix      = { sr = 16000 }                        makes an input part of the network
#   clean    = false                                 compiles the file without preparing it
#   trust    = true                                  loads a .pt2 file that contains code
models = [MODELS]

# Paths to Adreno: plain OpenCL buffers, image2d textures, or Qualcomm's OpenCL ML library.
paths = [PATHS]

# precisions = ["float32"]    # also "float16", and "float16_acc32": stored in half precision, summed in single
# tunings = ["untuned"]       # also "tuned": CLML's tuning file, or program binaries
# schedules = "schedules.jsonl"   # of `adreno-bench tune`: also measures opencl and texture with these schedules
# budget_s = 20               # seconds of warm-up and sampling for each case
# samples = 30                # samples of a case that are kept; at least ten are taken, however long they last

# Largest error of an answer, relative to the right one. A network that magnifies rounding may be off by more;
# a value here holds for every network.
# [tolerance]
# float32 = 1e-5
# float16 = 2e-2
# float16_acc32 = 1e-2

# The same for single cases, with a reason, which adreno-bench prints where such a case fails.
# [[tolerances]]
# case = "mine-*-float16-*"
# relative = 5e-2
# reason = "sums 4096 products per output: half precision loses six bits"

# [limits]
# build_s = 600               # deadline of one compilation
# build_memory_gb = 8         # memory of one compiler process
# run_s = 300                 # deadline of one call to the device

# How cool, idle and charged a phone must be before each case.
# [steady]
# gpu_c = 45                  # degrees Celsius
# battery_c = 40
# thermal_status = 0          # Android's: 0 none, 1 light, 2 moderate, 3 severe
# gpu_busy_percent = 10       # load of its GPU by other programs
# battery_percent = 20        # with less charge, the case is `throttled` and nothing is timed
# wait_s = 120                # then adreno-bench measures a hot phone too, and notes "hot start"

# Exceptions for one device, by the serial that `adreno-bench devices` shows.
# [steady.devices.SERIAL]
# gpu_c = 55
"""


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
    text = _TEXT.replace("[MODELS]", _models_text(models)).replace("[PATHS]", json.dumps(list(paths)))
    if list(precisions) == ["float32"]:
        return text
    return text.replace('# precisions = ["float32"]   ', f"precisions = {json.dumps(list(precisions))}")


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
