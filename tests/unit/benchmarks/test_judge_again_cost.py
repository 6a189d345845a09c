"""The cost of judging again, as its page cites it."""

from __future__ import annotations

from pathlib import Path

from benchmarks.judge_again_cost import HEADERS, cost_row
from harness.tools.shared.markdown import unpadded_markdown

PAGE = Path("docs/data/accuracy.md")


def test_the_page_cites_what_the_command_prints() -> None:
    rows = [
        cost_row("tiny-opencl-float32-untuned", 0.1268, 14.6),
        cost_row("digits-opencl-float32-untuned", 0.0756, 9.0),
        cost_row("lstm-opencl-float32-untuned", 0.0879, 11.952),
        cost_row("mobilenet_v1-opencl-float32-untuned", 0.0030, 88.0),
        cost_row("resnet18-opencl-float32-untuned", 0.0032, 58.7),
    ]
    assert unpadded_markdown(rows, HEADERS) in PAGE.read_text("utf-8")
