"""`adreno-bench init`: a suite file to begin with, every key with its default and what it means."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from device_runner.failures import RigFailure
from device_runner.store import cache_root
from harness.base.failures import UsageError
from harness.cli import completion
from harness.cli.options import DEFAULT_SUITE, require_path
from harness.judge.report.screen import out

if TYPE_CHECKING:
    from harness.base.model import OnnxModel


DEFAULT_MODELS = ["mobilenet_v1"]


PresetName = Literal["quick", "phone", "full"]


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.")] = DEFAULT_SUITE,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL",
            help="Model: a network of the zoo, or an .onnx file relative to the folder of FILE. Repeatable.",
            autocompletion=completion.models,
        ),
    ] = None,
    preset: Annotated[PresetName | None, typer.Option(help="Suite of zoo networks: quick, phone or full.")] = None,
    path: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH", help="Path: opencl, texture or clml. Repeatable.", autocompletion=completion.paths
        ),
    ] = None,
) -> None:
    """Write a suite file with every key and a comment on each. It never overwrites a file.

    Without --model and --preset it takes the .onnx files in the folder of FILE and below, and mobilenet_v1 if there are
    none. A dynamic batch becomes 1, a dynamic image 224 x 224. Names the phones that are attached.
    """
    from harness.base.model import SUFFIXES
    from harness.base.suite import DEFAULT_PATHS
    from harness.tools.init.search import find_models

    if model and preset:
        raise UsageError("--preset does not go with --model", hint="write the preset, and add your model to the file")
    if file.suffix in SUFFIXES:
        raise UsageError(f"{file} is a model, and FILE is the suite to be written", hint=f"pass --model {file}")
    if file.exists():
        raise _already_exists(file)
    for name in path or ():
        require_path(name)
    precisions, search = ["float32"], None
    models: Sequence[str | OnnxModel] = model or ()
    if preset:
        models, precisions = PRESETS[preset].models, list(PRESETS[preset].precisions)
    elif model:
        _require_models(model, file.parent)
    else:
        search = find_models(file.parent, cache_root())
        models = search.models or DEFAULT_MODELS
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(suite_text(models, path or DEFAULT_PATHS, precisions))
    except FileExistsError:
        raise _already_exists(file) from None
    except OSError as error:
        with contextlib.suppress(OSError):
            file.unlink()  # what a full disk cut off
        hint = "name a file in a folder of yours, on a disk with room"
        raise UsageError(f"cannot write {file}: {error.strerror}", hint=hint) from error
    suite = "" if file == DEFAULT_SUITE else f" --suite {shlex.quote(str(file))}"
    device, remarks = _phones()
    of = f" with {', '.join(str(model_file.onnx) for model_file in search.models)}" if search and search.models else ""
    out(
        f"wrote {file}{of}; now see its cases with `adreno-bench list{suite}` and run them with "
        f"`adreno-bench run{suite}{device}`"
    )
    for line in (*(f"left out {line}" for line in (search.left_out if search else ())), *remarks):
        out(line)


def _already_exists(file: Path) -> UsageError:
    return UsageError(f"{file} already exists", hint="name another file, or edit this one")


def _require_models(names: Sequence[str], folder: Path) -> None:
    """Raise UsageError for a file that does not exist, and for a network that the zoo does not have."""
    from harness.base.model import SUFFIXES
    from harness.compile.models.sources import model_source

    for name in names:
        if not name.endswith(SUFFIXES):
            model_source(name)
        elif not (folder / name).is_file():
            hint = "give its path from the folder of the suite file"
            raise UsageError(f"there is no file {folder / name}", hint=hint)


def _phones() -> tuple[str, list[str]]:
    """Words that make `run` use the attached phones, if any is ready, and what to know of them."""
    from device_runner.registry import list_devices

    try:
        phones = [entry for entry in list_devices(cache_root()) if entry.kind == "phone"]
    except RigFailure as failure:
        return "", [f"no phone was looked for: {failure}"]
    ready = [phone.name for phone in phones if phone.state in ("ready", "busy")]
    remarks = [f"{phone.name} is {phone.state}" for phone in phones if phone.name not in ready]
    remarks += [f"{name} is attached: `adreno-bench doctor --device {name}` says what it lacks" for name in ready]
    words = {0: "", 1: f" --device {ready[0]}" if ready else ""}
    return words.get(len(ready), " --device all"), remarks


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
