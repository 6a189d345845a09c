"""The folder that a reduction leaves: everything that whoever is to mend the defect needs."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from device_runner.files import write_whole
from harness.build.artifact import kernel_files
from harness.divergence.trial import npz
from harness.reduce.reduction import Reduction
from harness.reduce.script import needs, script

MODEL, INPUTS, EXPECTED, SCRIPT = "model.onnx", "inputs.npz", "expected.npz", "reproduce.py"
VERSIONS, REPORT, KERNELS = "versions.json", "report.md", "kernels"


def write_folder(found: Reduction, folder: Path, cache: Path) -> None:
    """Write all of it; files of an earlier reduction are replaced."""
    write_whole(folder / MODEL, found.network.model)
    write_whole(folder / INPUTS, npz(found.network.inputs))
    (folder / EXPECTED).unlink(missing_ok=True)
    if found.expected:
        names = [value.name for value in found.network.proto().graph.output]
        write_whole(folder / EXPECTED, npz(dict(zip(names, found.expected, strict=True))))
    write_whole(folder / SCRIPT, script(found.record))
    for old in (folder / KERNELS).glob("*.cl"):
        old.unlink()
    kernels = kernel_files(cache, found.record.artifact) or []
    for file in kernels:
        write_whole(folder / KERNELS / file.name, file.read_bytes())
    write_whole(folder / VERSIONS, json.dumps(versions(found), indent=1) + "\n")
    write_whole(folder / REPORT, report(found, bool(kernels)))


def versions(found: Reduction) -> dict[str, Any]:
    """What it was seen with."""
    record, identity = found.record, found.record.identity
    return {
        "apache-tvm": record.tvm,
        "apache-tvm-ffi": record.ffi,
        **{name: importlib.metadata.version(name) for name in ("onnx", "numpy")},
        "python": platform.python_version(),
        "adreno-bench": record.harness,
        "gpu": identity.gpu,
        "driver": identity.driver,
        "path": record.path,
        "precision": record.precision,
        "worked_around": [] if found.as_shipped else list(record.quirks),
    }


def report(found: Reduction, kernels: bool) -> str:
    """A text for the people upstream, in Markdown."""
    return "\n".join(_report(found, bool(kernels))) + "\n"


def _report(found: Reduction, kernels: bool) -> Iterator[str]:
    record = found.record
    yield f"# {record.outcome.value} on Adreno path `{record.path}`, TVM {record.tvm}"
    yield ""
    yield f"> {record.message}"
    yield ""
    yield f"The network below (`{MODEL}`, on `{INPUTS}`) is what is left of `{found.whole.model}`, reduced from"
    yield f"{found.operators} operators to {found.network.operators} while the outcome stayed the same."
    yield ""
    yield "```"
    yield from _lines(found)
    yield "```"
    yield ""
    yield "## To reproduce"
    yield ""
    if found.as_shipped:
        yield f"`python {SCRIPT}` in this folder, {needs(record.path)}."
        if found.expected:
            yield f"`{EXPECTED}` is what TVM's own `llvm` target answers."
    else:
        yield f"`{SCRIPT}` shows another defect first: this one is behind these, which were worked around:"
        yield ", ".join(f"`{quirk}`" for quirk in record.quirks) + "."
    if kernels:
        yield f"The generated OpenCL kernels are in `{KERNELS}`."
    yield ""
    yield "## Versions"
    yield ""
    yield from (f"* {name}: {value}" for name, value in versions(found).items() if value)


def _lines(found: Reduction) -> Iterator[str]:
    """The network in a few lines."""
    from onnx import helper

    graph = found.network.proto().graph
    yield from (f"input {name}: {array.dtype} {list(array.shape)}" for name, array in found.network.inputs.items())
    yield from (f"weight {tensor.name}: {list(tensor.dims)}" for tensor in graph.initializer)
    for node in graph.node:
        attributes = ", ".join(f"{one.name}={helper.get_attribute_value(one)}" for one in node.attribute)
        operands = "; ".join(filter(None, (", ".join(node.input), attributes)))
        yield f"{', '.join(node.output)} = {node.op_type}({operands})"
