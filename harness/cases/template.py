"""The text of a new suite file: every key with its default, and what it means."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.cases.model import OnnxModel

_TEXT = """\
# What adreno-bench measures: every model on every path, in every precision and tuning.
# `adreno-bench list` shows the cases that this makes. A key that is commented out has the value that it shows.

# A network of the zoo by its name: mobilenet_v1, mobilenet_v2, mobilenet_v3_small, efficientnet_lite0, squeezenet1_1,
# resnet18, resnet50, densenet121, inception_v3, deeplab_v3, encoder_block, decoder_layer, digits, tiny; or one of your
# own by its file, from this folder: "models/mine.onnx", or, where its shapes are dynamic or you call it otherwise,
# { onnx = "models/mine.onnx", name = "mine", shapes = { input = [1, 3, 224, 224] } }
# Named extents do as well, shapes = { batch = 1 }. It is run on inputs of your own with inputs = "models/mine.npz", or
# on such as are drawn as you say, inputs = { tokens = "integers(0, 9)" }. What an exporter leaves is taken out, but
# for clean = false. With labelled = "models/held-out.npz" it is asked how many labelled inputs it gets right. A program
# of torch.export, "models/mine.pt2", is loaded without executing anything in it, but for trust = true.
models = [MODELS]

# How Adreno is reached: plain OpenCL buffers, image2d textures, or Qualcomm's OpenCL ML library.
paths = [PATHS]

# precisions = ["float32"]    # also "float16", and "float16_acc32": stored in half precision, summed in single
# tunings = ["untuned"]       # also "tuned": CLML's tuning file, or program binaries
# schedules = "schedules.jsonl"   # of `adreno-bench tune`: cases on opencl and texture are measured with it, too
# budget_s = 20               # seconds of warm-up and sampling for each case
# samples = 30                # samples of a case that are kept; at least ten are taken, however long they last

# How far an answer may be off, relative to the right one. A network that magnifies rounding is allowed more by default;
# what stands here holds as it is.
# [tolerance]
# float32 = 1e-5
# float16 = 2e-2
# float16_acc32 = 1e-2

# The same for single cases, with the reason, which is repeated wherever such a case fails.
# [[tolerances]]
# case = "mine-*-float16-*"
# relative = 5e-2
# reason = "sums 4096 products per output: half precision loses six bits"

# [limits]
# build_s = 600               # deadline of one compilation
# build_memory_gb = 8         # memory of one compiler process
# run_s = 300                 # deadline of one call to the device

# How cool, idle and charged a phone has to be before each case.
# [steady]
# gpu_c = 45                  # degrees Celsius
# battery_c = 40
# thermal_status = 0          # Android's: 0 none, 1 light, 2 moderate, 3 severe
# gpu_busy_percent = 10       # what its GPU may have to do for others
# battery_percent = 20        # with less charge nothing is timed, and the case is `throttled`
# wait_s = 120                # after this it is measured although it is hot, with the note "hot start"

# Where one device differs; its serial is what `adreno-bench devices` shows.
# [steady.devices.SERIAL]
# gpu_c = 55
"""


@dataclass(frozen=True)
class Preset:
    """Models and precisions that are often wanted together."""

    models: tuple[str, ...]
    precisions: tuple[str, ...] = ("float32",)


_PHONE = (
    "mobilenet_v1", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_lite0", "squeezenet1_1", "resnet18",
    "deeplab_v3", "encoder_block", "decoder_layer", "digits",
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
