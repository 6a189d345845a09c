"""What `inspect` forecasts of paths, against what TVM's own passes decide; no code is generated and nothing is run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from defects.clml import partition_module

from harness.base.case import Precision
from harness.base.request import CompileRequest
from harness.compile.artifacts.compile import import_request, target_of
from harness.compile.compiler.compat import operator_name
from harness.compile.compiler.pass_runner import run_passes
from harness.compile.compiler.passes import adreno_relax_passes, names_of
from harness.compile.compiler.releases import onnx_operators
from harness.compile.compiler.tir import with_work
from harness.compile.paths.base import edit_relax
from harness.compile.paths.clml.offload import offload_of
from harness.compile.quirks import quirks_for, quirks_of
from harness.tools.ops.summary import NetworkSummary, destination_of, summarize
from harness.tools.zoo.graph_layers import ImageGraph

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


def forecast_of(summary: NetworkSummary) -> dict[str, int]:
    """What `inspect` says of a network."""
    known = onnx_operators()
    offloaded = [node for node in summary.nodes if destination_of("clml", node, known) == "clml"]
    counts = Counter(node.kind for node in offloaded if node.kind in COMPOSITES)
    images = sum(destination_of("texture", node, known) == "image" for node in summary.nodes)
    return {IMAGES: images, **counts, MACS: sum(node.macs or 0 for node in offloaded)}


def made(file: Path) -> dict[str, int]:
    """What TVM makes of it."""
    return {IMAGES: _in_images(file), **_offloaded(file)}


def _in_images(file: Path) -> int:
    request = _request(file, "texture")
    (mod, _), target = import_request(request), target_of(request)
    passes = edit_relax(with_work(adreno_relax_passes(target)), quirks_of(request.quirks))
    after = passes[names_of(passes).index("ConvertLayout") + 1 :]
    with target:
        converted = run_passes(passes[: len(passes) - len(after)], mod)
    return sum(
        operator_name(call) == "relax.nn.conv2d" and str(call.attrs.data_layout) == "NCHW4c"
        for call in _calls(converted)
    )


def _calls(mod: Any) -> Iterator[Any]:
    for block in mod["main"].body.blocks:
        yield from (binding.value for binding in block.bindings if hasattr(binding.value, "op"))


def _offloaded(file: Path) -> dict[str, int]:
    request = _request(file, "clml")
    mod, _ = import_request(request)
    report = offload_of(partition_module(mod, target_of(request), quirks_of(request.quirks)))
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


def of_channels(read: int, written: int) -> bytes:
    """A convolution and a pool."""
    net = ImageGraph("net", (1, read, 8, 8))
    end = net.max_pool(net.relu(net.conv(net.input, written, 3, pad=1)), 2, stride=2)
    return net.finish((end, (1, written, 4, 4))).to_bytes()


@pytest.mark.parametrize(("read", "written", "in_images"), [(8, 16, 1), (3, 16, 0), (8, 6, 0)])
def test_the_forecast_comes_true(tmp_path: Path, read: int, written: int, in_images: int) -> None:
    file = tmp_path / "net.onnx"
    file.write_bytes(of_channels(read, written))
    said, came = forecast_of(summarize(onnx.load(file))), made(file)
    assert {name: said.get(name, 0) for name in (IMAGES, *COMPOSITES, MACS)} == {
        name: came.get(name, 0) for name in (IMAGES, *COMPOSITES, MACS)
    }
    assert came[IMAGES] == in_images
    assert came["Conv"] == 1
