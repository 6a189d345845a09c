"""`adreno-bench init`: a suite file to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli import completion
from harness.cli.options import DEFAULT_SUITE

DEFAULT_MODELS = ["mobilenet_v1"]


def init(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="The file to write.")] = DEFAULT_SUITE,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="A network of the zoo, or an .onnx file by its path from FILE's folder. Repeatable.",
            autocompletion=completion.models,
        ),
    ] = None,
    path: Annotated[
        list[str] | None,
        typer.Option(
            "--path", metavar="PATH", help="opencl, texture or clml. Repeatable.", autocompletion=completion.paths
        ),
    ] = None,
) -> None:
    """Write a suite file with every key and a comment on each; an existing file is never touched."""
    from harness.cases.suite import DEFAULT_PATHS
    from harness.cases.template import suite_text
    from harness.cli.screen import out
    from harness.failures import UsageError

    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(suite_text(model or DEFAULT_MODELS, path or DEFAULT_PATHS))
    except FileExistsError:
        raise UsageError(f"{file} is there already", hint="name another file, or edit this one") from None
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}", hint="name a file in a folder of yours") from error
    suite = "" if file == DEFAULT_SUITE else f" --suite {file}"
    out(f"wrote {file}; now see its cases with `adreno-bench list{suite}` and run them with `adreno-bench run{suite}`")
