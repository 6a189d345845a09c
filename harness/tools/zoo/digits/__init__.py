"""A small trained network, and handwritten digits that it has never seen: whether a compiler costs right answers.

`benchmarks/train_digits.py` made both files from scikit-learn's digits (E. Alpaydin and C. Kaynak, Optical Recognition
of Handwritten Digits, UCI Machine Learning Repository, CC BY 4.0; pixels divided by 16).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

NETWORK = Path(__file__).with_name("digits.onnx")
HELD_OUT = Path(__file__).with_name("held_out.npz")
"""Labelled data: 360 images that it was not trained on."""


class TrainedNetwork:
    """A network with its trained weights, as its file has them: input 1x1x8x8, output 1x10."""

    def to_bytes(self) -> bytes:
        """Return the model as an ONNX file."""
        return NETWORK.read_bytes()

    def outline(self) -> Any:
        """Return the model, for counting; its weights are small enough to stay."""
        import onnx

        return onnx.load(NETWORK)


def build() -> TrainedNetwork:
    """Return the network."""
    return TrainedNetwork()
