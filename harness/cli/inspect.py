"""`adreno-bench inspect`: what a network is made of, and which path can take what, before anything is built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import completion
from harness.cli.options import AsJson, Shapes, Trust
from harness.cli.screen import out, out_json
from harness.compiler.installed import onnx_operators
from harness.models.outline import unknown_operators
from harness.run.outcome import ExitCode
from harness.tables import table

if TYPE_CHECKING:
    from harness.models.summary import End, Node, Summary

PATHS = ("opencl", "texture", "clml")
HEADERS = ("operator", "count", "MACs", "parameters", *PATHS)
WORDS = {"opencl": "kernel", "texture": "image", "clml": "clml"}
"""What a path does with an operator that it was made for."""


def inspect(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="Model: an .onnx or .pt2 file, or a network of the zoo.",
            autocompletion=completion.models,
        ),
    ],
    shape: Shapes = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Count the operators of a network, and show which path can take which.

    Builds nothing. Dynamic dimensions may stay open. Exit code 3 if TVM's importer lacks an operator.
    """
    from harness.cases.model import shapes_given
    from harness.models.sources import open_model
    from harness.models.summary import summarize

    seen, changes = open_model(model, shapes_given(shape or ()), trust=trust)
    summary, known = summarize(seen), onnx_operators()
    lacking = unknown_operators(seen, known)
    if as_json:
        out_json(_plain(model, summary, changes, lacking))
    else:
        out(_text(summary, changes, lacking))
    raise typer.Exit(ExitCode.WRONG_OR_BROKEN if lacking else ExitCode.GOOD)


def _rows(summary: Summary) -> list[dict[str, Any]]:
    """A row for each kind of operator, the most costly first."""
    from harness.paths.predict import destination_of

    kinds: dict[str, list[Node]] = {}
    for node in summary.nodes:
        kinds.setdefault(node.kind, []).append(node)
    rows = [
        {
            "operator": kind,
            "count": len(nodes),
            "macs": sum(node.macs for node in nodes),
            "parameters": sum(node.parameters for node in nodes),
            "taken": {path: Counter(destination_of(path, node, onnx_operators()) for node in nodes) for path in PATHS},
        }
        for kind, nodes in kinds.items()
    ]
    return sorted(rows, key=lambda row: (-row["macs"], -row["parameters"], -row["count"], row["operator"]))


def _text(summary: Summary, changes: Sequence[str], lacking: dict[str, list[str]]) -> str:
    rows = [
        (
            row["operator"],
            row["count"],
            _short(row["macs"]),
            _short(row["parameters"]),
            *(_cell(path, row["taken"][path]) for path in PATHS),
        )
        for row in _rows(summary)
    ]
    lines = [
        *(f"input {_end(end)}" for end in summary.inputs),
        *(f"output {_end(end)}" for end in summary.outputs),
        f"{len(summary.nodes)} operators, {_short(summary.macs) or 0} multiply-accumulates, "
        f"{_short(summary.parameters) or 0} parameters, {summary.weight_bytes / 1e6:.3g} MB of weights",
        *([f"prepared: {'; '.join(changes)}"] if changes else []),
        "",
        table(rows, HEADERS, right=HEADERS[1:4]),
        "",
        *(f"TVM's ONNX importer does not know {kind}: {', '.join(names)}" for kind, names in lacking.items()),
        *_double(summary),
        "image: laid out for images; clml: offloaded; else an OpenCL kernel. What a build makes of it, `adreno-bench "
        "build` says.",
    ]
    return "\n".join(lines)


def _double(summary: Summary) -> list[str]:
    """That a network with float64 runs on no phone."""
    if not summary.double:
        return []
    kinds = ", ".join(f"{kind} ({count})" for kind, count in summary.double.items())
    return [f"no Adreno computes in float64: {kinds}; such a case is `unsupported`. Export the model in float32."]


def _cell(path: str, taken: Counter[str]) -> str:
    """`image` if all are, `13 of 27 image` if some are, else `kernel`; `no` if TVM cannot read it."""
    word, count = WORDS[path], taken.total()
    if taken["no"]:
        return "no"
    return word if taken[word] == count else f"{taken[word]} of {count} {word}" if taken[word] else "kernel"


def _short(number: int) -> str:
    """Three digits and a prefix; nothing for nothing."""
    for prefix, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.4g} {prefix}"
    return str(number) if number else ""


def _end(end: End) -> str:
    return f"{end.name} {end.dtype} [{', '.join(map(str, end.shape))}]"


def _plain(model: str, summary: Summary, changes: Sequence[str], lacking: dict[str, list[str]]) -> dict[str, object]:
    def ends(of: Sequence[End]) -> list[dict[str, object]]:
        return [{"name": end.name, "shape": list(end.shape), "dtype": end.dtype} for end in of]

    return {
        "model": Path(model).name,
        "inputs": ends(summary.inputs),
        "outputs": ends(summary.outputs),
        "macs": summary.macs,
        "parameters": summary.parameters,
        "weight_bytes": summary.weight_bytes,
        "changes": list(changes),
        "operators": _rows(summary),
        "unknown": lacking,
        "float64": summary.double,
    }
