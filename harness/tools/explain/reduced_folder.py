"""The folder that a reduction leaves: everything that is needed to mend the defect.

Its script shows the defect with TVM alone. A wheel of TVM shows compile errors, the generated kernels, and what LLVM
answers; then the script says in one line that the rest needs an OpenCL runtime. On path `clml` TVM must have been built
with CLML and OpenCL. Where it was not, the script takes what adreno-bench has in their place.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from device_runner.files import write_whole
from harness.base.outcome import Owner
from harness.compile.paths import PATHS
from harness.compile.paths.base import ImageLimits
from harness.compile.paths.opencl import OpenCLPath
from harness.measure.records.record import Record
from harness.tools.explain.kernel_files import kernel_files
from harness.tools.explain.reduction import Reduction
from harness.tools.explain.trial import npz

PARTS = Path(__file__).with_name("reproduce")
"""Folder with the parts of the script."""
_DISPATCH = "*adreno.library_dispatch_passes(target), "


def script(record: Record) -> str:
    """Return the text of the script."""
    device, path, clml = record.identity, PATHS[record.path], record.path == "clml"
    assert isinstance(path, OpenCLPath), "nothing else is reduced"
    limits = ImageLimits(device.image2d_max_width, device.image2d_max_height, device.image_max_array_layers)
    build = _part("build").format(
        title=f"{record.outcome.value.capitalize()} on Adreno path {record.path}",
        tvm=record.tvm,
        ffi=record.ffi,
        target=path.attributes(limits),
        stand_in=_part("clml_stand_in") if clml else "",
        dispatch=_DISPATCH if clml else "",
    )
    if record.outcome.owner is Owner.COMPILER:
        return build
    return "".join((build, *map(_part, ("without_device", "opencl_stand_in" if clml else "needs_opencl", "run"))))


def _part(name: str) -> str:
    return (PARTS / f"{name}.txt").read_text(encoding="utf-8")


MODEL, INPUTS, EXPECTED, SCRIPT = "model.onnx", "inputs.npz", "expected.npz", "reproduce.py"
VERSIONS, REPORT, KERNELS = "versions.json", "report.md", "kernels"


def write_folder(reduction: Reduction, folder: Path, cache: Path) -> None:
    """Write all of it; files of an earlier reduction are replaced."""
    write_whole(folder / MODEL, reduction.network.model)
    write_whole(folder / INPUTS, npz(reduction.network.inputs))
    (folder / EXPECTED).unlink(missing_ok=True)
    if reduction.expected:
        names = [value.name for value in reduction.network.proto().graph.output]
        write_whole(folder / EXPECTED, npz(dict(zip(names, reduction.expected, strict=True))))
    write_whole(folder / SCRIPT, script(reduction.record))
    for old in (folder / KERNELS).glob("*.cl"):
        old.unlink()
    kernels = kernel_files(cache, reduction.record.artifact) or []
    for file in kernels:
        write_whole(folder / KERNELS / file.name, file.read_bytes())
    write_whole(folder / VERSIONS, json.dumps(versions(reduction), indent=1) + "\n")
    write_whole(folder / REPORT, "\n".join(_report(reduction, bool(kernels))) + "\n")


def versions(reduction: Reduction) -> dict[str, Any]:
    """Return what it was seen with."""
    record, identity = reduction.record, reduction.record.identity
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
        "worked_around": [] if reduction.as_shipped else list(record.quirks),
    }


def _report(reduction: Reduction, kernels: bool) -> Iterator[str]:
    """Yield a text for the people upstream, in Markdown."""
    record = reduction.record
    yield f"# {record.outcome.value} on Adreno path `{record.path}`, TVM {record.tvm}"
    yield ""
    yield f"> {record.message}"
    yield ""
    yield f"The network below (`{MODEL}`, on `{INPUTS}`) is what is left of `{reduction.whole.model}`, reduced from"
    yield f"{reduction.operators} operators to {reduction.network.operators} while the outcome stayed the same."
    yield ""
    yield "```"
    yield from _lines(reduction)
    yield "```"
    yield ""
    yield "## To reproduce"
    yield ""
    if reduction.as_shipped:
        clml = "with a TVM that has CLML, or with TVM's wheels and adreno-bench"
        opencl = "with a TVM that has OpenCL; TVM's wheels show the kernels and what LLVM answers"
        alone = "with TVM alone" if record.outcome.owner is Owner.COMPILER else opencl
        yield f"`python {SCRIPT}` in this folder, {clml if record.path == 'clml' else alone}."
        if reduction.expected:
            judge = record.judge or "TVM's own `llvm` target"
            yield f"`{EXPECTED}` is what {judge} answers."
    else:
        yield f"`{SCRIPT}` shows another defect first: this one is behind these, which were worked around:"
        yield ", ".join(f"`{quirk}`" for quirk in record.quirks) + "."
    if kernels:
        yield f"The generated OpenCL kernels are in `{KERNELS}`."
    yield ""
    yield "## Versions"
    yield ""
    yield from (f"* {name}: {value}" for name, value in versions(reduction).items() if value)


def _lines(reduction: Reduction) -> Iterator[str]:
    """Yield the network in a few lines."""
    from onnx import helper

    graph = reduction.network.proto().graph
    yield from (f"input {name}: {array.dtype} {list(array.shape)}" for name, array in reduction.network.inputs.items())
    yield from (f"weight {tensor.name}: {list(tensor.dims)}" for tensor in graph.initializer)
    for node in graph.node:
        attributes = ", ".join(f"{field.name}={helper.get_attribute_value(field)}" for field in node.attribute)
        operands = "; ".join(filter(None, (", ".join(node.input), attributes)))
        yield f"{', '.join(node.output)} = {node.op_type}({operands})"
