"""Where `inspect` and `run` disagree about ONNX's node tests.

    adreno-bench ops --set onnx --mode workarounds --json > cells.json
    python -m benchmarks.inspect_agreement cells.json

Prints a line for each case and path on which they disagree, and the counts. `noted` are cases whose operator
`inspect` names with the number of its node tests that fail on this path. A network in float64 is left out: a
host may compute it, and no Adreno does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from device_runner.files import scratch_folder
from device_runner.store import cache_root
from harness.base.failures import CompileFailure, ModelError
from harness.compile.compiler.releases import host_operators, onnx_operators, versions
from harness.compile.models.outline import double_operators, nodes_by_kind, unknown_operators
from harness.compile.models.sources import read_and_prepare
from harness.tools.ops.catalogue import MODEL, catalogue
from harness.tools.ops.cells import CellVerdict
from harness.tools.ops.import_trial import import_network, request_for
from harness.tools.ops.inspect_command import PATHS, refusals_of
from harness.tools.ops.operator_table import RIGHT, SILENT, OperatorTable, wrong_cases
from harness.tools.ops.summary import summarize


def answers(file: Path, table: OperatorTable) -> dict[str, str]:
    """Return what `inspect` says of a network on each path: `yes`, `noted` or `no`; nothing of one in float64."""
    try:
        network = read_and_prepare(file, file, {}).model
    except ModelError:
        return dict.fromkeys(PATHS, "no")
    if double_operators(network):
        return {}
    if unknown_operators(network, onnx_operators()) or nodes_by_kind(
        network, lambda node: node.op_type in host_operators()
    ):
        return dict.fromkeys(PATHS, "no")
    refused = {path for paths in refusals_of(network).values() for path in paths}
    refused = refused or ({*PATHS} if _is_refused(network) else set())
    return {path: "no" if path in refused else _of_table(network, table, path) for path in PATHS}


def _is_refused(network: Any) -> bool:
    """Return whether TVM refuses a network, asked in this process."""
    with scratch_folder() as folder:
        (folder / MODEL).write_bytes(network.SerializeToString())
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # the importer prints each operator that it cannot read
                import_network({"request": dataclasses.asdict(request_for(folder / MODEL))}, folder)
        except CompileFailure:
            return True
    return False


def _of_table(network: Any, table: OperatorTable, path: str) -> str:
    said = "yes"
    for node in summarize(network).nodes:
        cases = table.cases(node.kind, [node.dtype], path)
        wrong = sum(wrong_cases(cases).values())
        if wrong and wrong == cases.total():
            return "no"
        said = "noted" if wrong else said
    return said


def main(file: Path) -> int:
    """Compare, and return the exit code: 1 if they disagree anywhere."""
    cells: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    table, cases = OperatorTable.find(versions()["tvm"]), catalogue("onnx", cache_root())
    assert table, "there is a table for the installed TVM"
    said = {case.name: answers(cases.file(case, MODEL), table) for case in cases.cases}
    counts: Counter[tuple[str, str]] = Counter()
    for cell in cells:
        verdict, name = CellVerdict(cell["verdict"]), cell["name"]
        if verdict not in SILENT and cell["path"] in said.get(name, {}):
            pair = (said[name][cell["path"]], "yes" if verdict in RIGHT else "no")
            counts[pair] += 1
            if pair in (("yes", "no"), ("no", "yes")):
                print(f"inspect says {pair[0]}, run {pair[1]}: {name} on {cell['path']}: {cell['message'][:100]}")
    print(", ".join(f"inspect {inspect}, run {run}: {count}" for (inspect, run), count in sorted(counts.items())))
    return 1 if counts["yes", "no"] or counts["no", "yes"] else 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
