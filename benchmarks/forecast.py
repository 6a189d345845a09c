"""What `adreno-bench inspect` forecasts of paths, beside what TVM does: of the nine light models, or of others.

    python -m benchmarks.forecast [MODEL...]     networks of the zoo, .onnx files, or names of light models

A row in Markdown for each network: convolutions that are laid out for images on path `texture`, and what goes to CLML
on path `clml`, by kind of operator and in multiply-accumulates. `12` is a forecast that came true, `12, not 10` one
that said 12 where TVM made it 10. TVM's own passes are run, with all known defects worked around, up to the point at
which each is decided; no code is generated and nothing is run.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.light_models import NAMES, write
from harness.build.compile import imported, target_of
from harness.cases.case import Precision
from harness.cases.request import CompileRequest
from harness.compiler.importer import onnx_operators
from harness.compiler.passes import adreno_relax_passes, passes_through_first
from harness.compiler.running import run_passes
from harness.models.sources import MODELS, model_source
from harness.models.summary import Summary, summarize
from harness.paths.clml.codegen import op_name
from harness.paths.clml.offload import offload_of
from harness.paths.clml.path import partitioned
from harness.paths.foresight import taken
from harness.paths.workaround import edit_relax
from harness.quirks import quirks_for, quirks_of
from harness.store import cache_root

COMPOSITES = {
    "Conv": "nn.conv2d",
    "ConvTranspose": "nn.conv2d_transpose",
    "MaxPool": "nn.max_pool2d",
    "AveragePool": "nn.avg_pool2d",
    "GlobalAveragePool": "nn.global_avg_pool2d",
    "Softmax": "nn.softmax",
}
"""How names of CLML's composites end, by the kind of operator that they are of. Others fold into these, or split."""
IMAGES = "images"
MACS = "MACs"
LIMITS = (16_384, 16_384, 2_048)
"""Of an Adreno's images."""


def foreseen(summary: Summary) -> dict[str, int]:
    """What `inspect` says of a network."""
    known = onnx_operators()
    offloaded = [node for node in summary.nodes if taken("clml", node, known) == "clml"]
    counts = Counter(node.kind for node in offloaded if node.kind in COMPOSITES)
    images = sum(taken("texture", node, known) == "image" for node in summary.nodes)
    return {IMAGES: images, **counts, MACS: sum(node.macs for node in offloaded)}


def made(file: Path) -> dict[str, int]:
    """What TVM makes of it."""
    return {IMAGES: _in_images(file), **_offloaded(file)}


def _in_images(file: Path) -> int:
    request = _request(file, "texture")
    (mod, _), target = imported(request), target_of(request)
    passes = edit_relax(adreno_relax_passes(target), quirks_of(request.quirks))
    with target:
        converted = run_passes(passes_through_first(passes, "ConvertLayout"), mod)
    return sum(
        op_name(call) == "relax.nn.conv2d" and str(call.attrs.data_layout) == "NCHW4c" for call in _calls(converted)
    )


def _calls(mod: Any) -> Iterator[Any]:
    for block in mod["main"].body.blocks:
        yield from (binding.value for binding in block.bindings if hasattr(binding.value, "op"))


def _offloaded(file: Path) -> dict[str, int]:
    request = _request(file, "clml")
    mod, _ = imported(request)
    report = offload_of(partitioned(mod, target_of(request), quirks_of(request.quirks)))
    assert report is not None
    counts: Counter[str] = Counter()
    for part in report["subgraphs"]:
        for composite, times in part["composites"].items():
            kind = next((kind for kind, ending in COMPOSITES.items() if composite.endswith(ending)), None)
            if kind:
                counts[kind] += times * part["calls"]
    return {**counts, MACS: report["macs_offloaded"]}


def _request(file: Path, path: str) -> CompileRequest:
    quirks = [quirk.id for quirk in quirks_for(path, Precision.FLOAT32, as_shipped=False)]
    return CompileRequest(str(file), path, "float32", quirks, None, *LIMITS)


def compared(said: Mapping[str, int], came: Mapping[str, int]) -> list[str]:
    """A cell for each column."""

    def cell(column: str) -> str:
        forecast, true = said.get(column, 0), came.get(column, 0)
        scale = 1e6 if column == MACS else 1
        told = f"{forecast / scale:.4g}"
        return told if told == f"{true / scale:.4g}" else f"{told}, not {true / scale:.4g}"

    return [cell(column) for column in (IMAGES, *COMPOSITES, MACS)]


def main(names: Sequence[str]) -> None:
    """Print the table."""
    import onnx

    heads = ["network", "Conv in images", *(f"{kind} to CLML" for kind in COMPOSITES), "million MACs to CLML"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    with tempfile.TemporaryDirectory() as folder:
        light = [name for name in names if name in NAMES]
        write(Path(folder), light)
        for name in names:
            given = Path(folder) / f"light_{name}.onnx" if name in light else Path(name)
            source = model_source(name, onnx=given if given.suffix == ".onnx" else None)
            file = source.onnx_file(cache_root() / MODELS)
            cells = compared(foreseen(summarize(onnx.load(file))), made(file))
            print(f"| {' | '.join([given.stem.removeprefix('light_'), *cells])} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or NAMES)
