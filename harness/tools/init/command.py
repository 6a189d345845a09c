"""`adreno-bench init`: a suite file to begin with."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from device_runner.failures import RigFailure
from device_runner.store import cache_root
from harness.base.failures import UsageError
from harness.cli import completion
from harness.cli.options import DEFAULT_SUITE, require_path
from harness.judge.report.screen import out
from harness.tools.init.template import PRESETS, suite_text

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
        raise UsageError(f"cannot write {file}: {error.strerror}", hint="name a file in a folder of yours") from error
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
