"""`adreno-bench inspect`: what a network is made of, and which path can take what, before anything is built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from device_runner.store import cache_root
from harness.base.case import Precision
from harness.base.failures import CompileFailure
from harness.base.outcome import ExitCode
from harness.base.tables import counted, grouped, table
from harness.cli import completion
from harness.cli.options import AsJson, Fixes, Shapes, Trust
from harness.compile.compiler.releases import host_operators, onnx_operators, versions
from harness.compile.models.outline import (
    contradiction,
    double_operators,
    nodes_by_kind,
    remedies,
    require_no_branch,
    unknown_operators,
)
from harness.compile.quirks import quirks_for
from harness.judge.report.screen import out, out_json

if TYPE_CHECKING:
    from harness.compile.models.sources import PreparedNetwork
    from harness.tools.ops.cells import CellVerdict
    from harness.tools.ops.operator_table import OperatorTable
    from harness.tools.ops.summary import NetworkSummary, Node, TensorEnd

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
    fix: Fixes = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Count the operators of a network, and show which path can run which.

    Builds nothing. Dynamic dimensions may stay open; with fixed ones, TVM imports the network. Names the operators that
    fail in ONNX's node tests with the installed release of TVM. Exit code 3 if no path runs an operator, because TVM's
    importer lacks it, refuses it, misreads it or computes it in Python, because it fails in all of its node tests, or
    because it computes in float64.
    """
    from harness.base.model import SUFFIXES, fixes_given, shapes_given
    from harness.tools.ops.import_trial import ImportTrial
    from harness.tools.ops.summary import summarize

    is_file = model.endswith(SUFFIXES)
    with ImportTrial(cache_root()) as trial:
        if is_file:
            trial.load()
        network, changes, _ = _opened(model, shapes_given(shape or ()), trust=trust, fixes=fixes_given(fix or ()))
        summary = summarize(network)
        lacking = unknown_operators(network, onnx_operators())
        host = nodes_by_kind(network, lambda node: node.op_type in host_operators())
        refusals = refusals_of(network)
        static = all(isinstance(extent, int) for end in summary.inputs for extent in end.shape)
        if is_file and static and not (lacking or host or summary.double or refusals):
            refusals |= {why: list(PATHS) for why in [trial.refusal_of(network)] if why}
    if as_json:
        out_json({**_plain(model, summary, changes, {**lacking, **host}), "refused": refusals})
    else:
        advice = ([why] if (why := contradiction(network)) else remedies(lacking)) if lacking else []
        out(_text(summary, changes, lacking, host, refusals, advice))
    none_runs = lacking or host or any(len(paths) == len(PATHS) for paths in refusals.values())
    none_runs = none_runs or bool(double_operators(network)) or any(_fails_everywhere(row) for row in _rows(summary))
    raise typer.Exit(ExitCode.WRONG_OR_BROKEN if none_runs else ExitCode.GOOD)


def _opened(name: str, shapes: Mapping[str, Any], *, trust: bool, fixes: Mapping[str, Any] | None) -> PreparedNetwork:
    """Open a user's file or a network of the zoo as it is compiled. Raises UsageError."""
    from harness.base.model import SUFFIXES
    from harness.compile.models.limited_fork import run_limited
    from harness.compile.models.sources import MODELS, PreparedNetwork, model_source, onnx_of, read_and_prepare

    if not name.endswith(SUFFIXES):
        return PreparedNetwork(model_source(name).outline(), [])
    import_module("onnx")  # here, and not in the fork and then here
    file, onnx = Path(name), onnx_of(Path(name), cache_root() / MODELS, trust=trust)
    return run_limited(file, lambda: read_and_prepare(file, onnx, shapes, may_stay_open=True, fixes=fixes))


def _fails_everywhere(row: dict[str, Any]) -> bool:
    """Return whether all node tests of an operator failed on each path."""
    from harness.tools.ops.operator_table import wrong_cases

    counts = [(sum(wrong_cases(cases).values()), sum(cases.values())) for cases in row["cases"].values()]
    return bool(counts) and all(wrong == count > 0 for wrong, count in counts)


def refusals_of(model: Any) -> dict[str, list[str]]:
    """Return why a build would refuse the network before it is compiled, with the paths on which it would."""
    paths: dict[Callable[[Any], None], list[str]] = {require_no_branch: ["clml"]}
    for path in PATHS:
        for quirk in quirks_for(path, Precision.FLOAT32, as_shipped=False):
            if quirk.edits.network:
                paths.setdefault(quirk.edits.network, []).append(path)
    refusals: dict[str, list[str]] = {}
    for look, some in paths.items():
        try:
            look(model)
        except CompileFailure as refusal:
            refusals[str(refusal)] = some
    return refusals


def _rows(summary: NetworkSummary) -> list[dict[str, Any]]:
    """Return a row for each kind of operator, the most costly first."""
    from harness.tools.ops.operator_table import OperatorTable
    from harness.tools.ops.summary import destination_of, total_macs

    results, readable = OperatorTable.find(versions()["tvm"]), onnx_operators() - host_operators()
    kinds = grouped(summary.nodes, lambda node: node.kind)
    rows = [
        {
            "operator": kind,
            "count": len(nodes),
            "macs": total_macs(nodes),
            "parameters": sum(node.parameters for node in nodes),
            "taken": {path: Counter(destination_of(path, node, readable) for node in nodes) for path in PATHS},
            "cases": _cases(results, kind, nodes) if results else {},
        }
        for kind, nodes in kinds.items()
    ]
    return sorted(rows, key=lambda row: (-(row["macs"] or 0), -row["parameters"], -row["count"], row["operator"]))


def _cases(results: OperatorTable, kind: str, nodes: Sequence[Node]) -> dict[str, Counter[CellVerdict]]:
    """Return the results of an operator's node tests on each path, in the number formats of these nodes."""
    return {path: results.cases(kind, [node.dtype for node in nodes], path) for path in PATHS}


Nodes = Mapping[str, Sequence[str]]
"""Names of nodes by operator."""


def _text(
    summary: NetworkSummary,
    changes: Sequence[str],
    lacking: Nodes,
    host: Nodes,
    refusals: Mapping[str, Sequence[str]],
    advice: Sequence[str],
) -> str:
    rows = _rows(summary)
    lines = [
        *(f"input {_end(end)}" for end in summary.inputs),
        *(f"output {_end(end)}" for end in summary.outputs),
        f"{counted(len(summary.nodes), 'operator')}, {_macs(summary)}, "
        f"{_short(summary.parameters) or 0} parameters, {summary.weight_bytes / 1e6:.3g} MB of weights",
        *([f"prepared: {'; '.join(changes)}"] if changes else []),
        "",
        table([_line(row) for row in rows], HEADERS, right=HEADERS[1:4]),
        "",
        *(f"TVM's ONNX importer does not know {kind}: {', '.join(names)}" for kind, names in lacking.items()),
        *advice,
        *(f"refused on {', '.join(paths)}: {refusal}" for refusal, paths in refusals.items()),
        *_double(summary),
        *(f"TVM computes {kind} in Python, which no device has: {', '.join(names)}" for kind, names in host.items()),
        *(line for row in rows for line in _failed_cases(row)),
        "image: laid out for images; clml: offloaded; else an OpenCL kernel. What a build makes of it, `adreno-bench "
        "build` says.",
    ]
    return "\n".join(lines)


def _double(summary: NetworkSummary) -> list[str]:
    """Return a warning that a network with float64 runs on no phone."""
    if not summary.double:
        return []
    kinds = ", ".join(f"{kind} ({count})" for kind, count in summary.double.items())
    return [f"no Adreno computes in float64: {kinds}; such a case is `unsupported`. Export the model in float32."]


def _macs(summary: NetworkSummary) -> str:
    if summary.macs is not None:
        return f"{_short(summary.macs) or 0} multiply-accumulates"
    extents = dict.fromkeys(extent for end in summary.inputs for extent in end.shape if isinstance(extent, str))
    nameless = (end for end in summary.inputs if "?" in end.shape)
    shapes = [f"{extent}=1" for extent in extents if extent != "?"]
    shapes += [f"{end.name}={'x'.join('1' if isinstance(n, str) else str(n) for n in end.shape)}" for end in nameless]
    hint = f"give {' '.join(f'--shape {shape}' for shape in shapes)}" if shapes else "a shape depends on the numbers"
    return f"unknown multiply-accumulates ({hint})"


def _line(row: dict[str, Any]) -> tuple[object, ...]:
    macs = "unknown" if row["macs"] is None else _short(row["macs"])
    cells = (_cell(path, row["taken"][path], row["cases"].get(path, {})) for path in PATHS)
    return (row["operator"], row["count"], macs, _short(row["parameters"]), *cells)


def _cell(path: str, places: Counter[str], cases: Mapping[CellVerdict, int]) -> str:
    """`image` if all are, `13 of 27 image` if some are, else `kernel`; `no` if no path runs it.

    If no case of the operator was right on the path, the outcome of most of them.
    """
    from harness.tools.ops.operator_table import wrong_cases

    word, count = WORDS[path], places.total()
    if places["no"]:
        return "no"
    wrong = wrong_cases(cases)
    if wrong and sum(wrong.values()) == sum(cases.values()):
        return next(iter(wrong)).value
    if places["unknown"]:
        return "unknown"
    return word if places[word] == count else f"{places[word]} of {count} {word}" if places[word] else "kernel"


def _failed_cases(row: dict[str, Any]) -> Iterator[str]:
    """Yield the failed node tests of an operator, with paths of one result in one line."""
    from harness.tools.ops.cells import CellVerdict
    from harness.tools.ops.operator_table import wrong_cases

    words = {
        CellVerdict.WRONG: ("is wrong", "are wrong"),
        CellVerdict.NOT_BUILT: ("does not build", "do not build"),
        CellVerdict.CRASH: ("crashes", "crash"),
    }
    groups: dict[str, list[str]] = {}
    for path, cases in row["cases"].items():
        counts = ", ".join(counted(count, *words[verdict]) for verdict, count in wrong_cases(cases).items())
        if counts and not row["taken"][path]["no"]:
            groups.setdefault(f"of {counted(sum(cases.values()), 'node test')} {counts}", []).append(path)
    for result, paths in groups.items():
        yield f"{row['operator']} on {', '.join(paths)}: {result}"


def _short(number: int) -> str:
    """Three digits and a prefix; nothing for nothing."""
    for prefix, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.4g} {prefix}"
    return str(number) if number else ""


def _end(end: TensorEnd) -> str:
    return f"{end.name} {end.dtype} [{', '.join(map(str, end.shape))}]"


def _plain(model: str, summary: NetworkSummary, changes: Sequence[str], unknown: Nodes) -> dict[str, object]:
    return {
        "model": Path(model).name,
        "inputs": list(map(asdict, summary.inputs)),
        "outputs": list(map(asdict, summary.outputs)),
        "macs": summary.macs,
        "parameters": summary.parameters,
        "weight_bytes": summary.weight_bytes,
        "changes": list(changes),
        "operators": _rows(summary),
        "unknown": unknown,
        "float64": summary.double,
    }
