"""What `inspect` forecasts of paths, against what TVM's own passes decide."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from benchmarks.forecast import COMPOSITES, IMAGES, MACS, compared, foreseen, made
from harness.models.graph_images import ImageGraph
from harness.models.summary import summarize


def of_channels(read: int, written: int) -> bytes:
    """A convolution and a pool."""
    net = ImageGraph("net", (1, read, 8, 8))
    end = net.max_pool(net.relu(net.conv(net.input, written, 3, pad=1)), 2, stride=2)
    return net.finish((end, (1, written, 4, 4))).to_bytes()


@pytest.mark.parametrize(("read", "written", "in_images"), [(8, 16, 1), (3, 16, 0), (8, 6, 0)])
def test_the_forecast_comes_true(tmp_path: Path, read: int, written: int, in_images: int) -> None:
    file = tmp_path / "net.onnx"
    file.write_bytes(of_channels(read, written))
    said, came = foreseen(summarize(onnx.load(file))), made(file)
    assert {name: said.get(name, 0) for name in (IMAGES, *COMPOSITES, MACS)} == {
        name: came.get(name, 0) for name in (IMAGES, *COMPOSITES, MACS)
    }
    assert came[IMAGES] == in_images
    assert came["Conv"] == 1


def test_a_forecast_that_did_not_come_true_is_shown_as_such() -> None:
    said, came = {IMAGES: 3, "Conv": 2, MACS: 2_000_000}, {IMAGES: 2, "Conv": 2, MACS: 2_000_000}
    assert compared(said, came) == ["3, not 2", "2", "0", "0", "0", "0", "0", "2"]
