"""Layers of networks that look at images, in NCHW.

Batch-norm statistics are varied but mild, as in a trained network, so that a compiler which drops, folds or swaps one
of them gives a visibly wrong answer while activations stay around 1.
"""

from __future__ import annotations

import numpy as np

from harness.models.graph import GraphBuilder, Network, Value

Size = int | tuple[int, int]
"""Height and width, or one number for both."""


class ImageGraph(GraphBuilder):
    """A network of one image."""

    def __init__(self, name: str, input_shape: tuple[int, int, int, int]) -> None:
        super().__init__(name)
        self.input = self.add_input("input", input_shape, channels=input_shape[1])

    def conv(
        self,
        x: Value,
        channels: int,
        kernel: Size,
        *,
        stride: int = 1,
        pad: Size = 0,
        groups: int = 1,
        dilation: int = 1,
        bias: bool = True,
    ) -> Value:
        """2D convolution, padded by the same on opposite sides."""
        height, width = _pair(kernel)
        shape = (channels, x.channels // groups, height, width)
        inputs = [x.name, self._he_normal("weight", shape, x.channels // groups * height * width)]
        if bias:
            inputs.append(self._normal("bias", (channels,), 0.0, 0.1))
        spread = {"dilations": [dilation] * 2} if dilation != 1 else {}
        attributes = {"strides": [stride] * 2, "pads": [*_pair(pad)] * 2, "kernel_shape": [height, width]}
        return self._add("Conv", inputs, channels, **attributes, **spread, group=groups)

    def batch_norm(self, x: Value, *, gain: float = 1.0, epsilon: float = 1e-5) -> Value:
        """Batch normalisation for inference; `gain` scales gamma (small at the end of a residual branch)."""
        weights = [
            self._uniform("gamma", x.channels, 0.7, 1.3, gain),
            self._normal("beta", (x.channels,), 0.0, 0.2),
            self._normal("mean", (x.channels,), 0.0, 0.2),
            self._uniform("variance", x.channels, 0.6, 1.6),
        ]
        return self._add("BatchNormalization", [x.name, *weights], x.channels, epsilon=epsilon)

    def relu(self, x: Value) -> Value:
        """Rectifier."""
        return self._add("Relu", [x.name], x.channels)

    def relu6(self, x: Value) -> Value:
        """Rectifier that ends at 6."""
        bounds = [self._constant(np.float32(bound)) for bound in (0, 6)]
        return self._add("Clip", [x.name, *bounds], x.channels)

    def hard_sigmoid(self, x: Value) -> Value:
        """`relu6(x + 3) / 6`."""
        return self._add("HardSigmoid", [x.name], x.channels, alpha=1 / 6, beta=0.5)

    def hard_swish(self, x: Value) -> Value:
        """`x * hard_sigmoid(x)`."""
        return self.multiply(x, self.hard_sigmoid(x))

    def conv_bn_relu(
        self, x: Value, channels: int, kernel: Size, *, stride: int = 1, pad: Size = 0, groups: int = 1
    ) -> Value:
        """The block that most networks are made of: convolution without bias, batch norm, rectifier."""
        conv = self.conv(x, channels, kernel, stride=stride, pad=pad, groups=groups, bias=False)
        return self.relu(self.batch_norm(conv))

    def max_pool(self, x: Value, kernel: int, *, stride: int, pad: int = 0) -> Value:
        """Maximum over a square window."""
        return self._add(
            "MaxPool", [x.name], x.channels, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4
        )

    def average_pool(self, x: Value, kernel: int, *, stride: int, pad: int = 0) -> Value:
        """Average over a square window; what is padded counts as zeros."""
        padded = {"pads": [pad] * 4, "count_include_pad": 1} if pad else {}
        return self._add("AveragePool", [x.name], x.channels, kernel_shape=[kernel] * 2, strides=[stride] * 2, **padded)

    def global_average_pool(self, x: Value) -> Value:
        """Average over all positions."""
        return self._add("GlobalAveragePool", [x.name], x.channels)

    def resize(self, x: Value, height: int, width: int) -> Value:
        """Bilinear interpolation to another size; an image of one pixel is spread over it."""
        sizes = self._constant(np.array([1, x.channels, height, width]))
        return self._add(
            "Resize", [x.name, "", "", sizes], x.channels, mode="linear", coordinate_transformation_mode="half_pixel"
        )

    def flatten(self, x: Value) -> Value:
        """`(n, c, 1, 1)` to `(n, c)`."""
        return self._add("Flatten", [x.name], x.channels, axis=1)

    def dense(self, x: Value, channels: int) -> Value:
        """Fully connected layer on a flattened tensor."""
        weight = self._he_normal("weight", (channels, x.channels), x.channels)
        bias = self._normal("bias", (channels,), 0.0, 0.1)
        return self._add("Gemm", [x.name, weight, bias], channels, transB=1)

    def classifier(self, x: Value, classes: int = 1000) -> Network:
        """The network that ends in an average over all positions and a fully connected layer."""
        return self.finish((self.dense(self.flatten(self.global_average_pool(x)), classes), (1, classes)))


def _pair(size: Size) -> tuple[int, int]:
    return size if isinstance(size, tuple) else (size, size)
