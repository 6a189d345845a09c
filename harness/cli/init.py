"""`adreno-bench init`: a suite file to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from harness.cases.template import PRESETS, Preset, suite_text
from harness.cli import completion
from harness.cli.options import DEFAULT_SUITE
from harness.cli.screen import out
from harness.failures import UsageError

DEFAULT_MODELS = ["mobilenet_v1"]


PresetName = Literal["quick", "phone", "full"]


def init(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="File to write.")] = DEFAULT_SUITE,
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
    """Write a suite file with every key and a comment on each. It never overwrites a file."""
    from harness.cases.suite import DEFAULT_PATHS

    if model and preset:
        raise UsageError("--preset does not go with --model", hint="write the preset, and add your model to the file")
    chosen = PRESETS[preset] if preset else Preset(tuple(model or DEFAULT_MODELS))
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(suite_text(chosen.models, path or DEFAULT_PATHS, chosen.precisions))
    except FileExistsError:
        raise UsageError(f"{file}already exists", hint="name another file, or edit this one") from None
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}", hint="name a file in a folder of yours") from error
    suite = "" if file == DEFAULT_SUITE else f" --suite {file}"
    out(f"wrote {file}; now see its cases with `adreno-bench list{suite}` and run them with `adreno-bench run{suite}`")
