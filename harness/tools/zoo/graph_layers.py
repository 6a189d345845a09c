"""Layers of networks: of images, in NCHW, and of sequences, as `(1, length, features)`.

Batch-norm statistics are varied but mild, as in a trained network, so that a compiler which drops, folds or swaps one
of them gives a visibly wrong answer while activations stay around 1. Weights of sequences are normal with the inverse
root of what they sum over, for the same reason.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from harness.tools.zoo.graph import GraphBuilder, Network, Value

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
        """Return the block that most networks are made of: convolution without bias, batch norm, rectifier."""
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

    def sigmoid(self, x: Value) -> Value:
        """`1 / (1 + exp(-x))`."""
        return self._add("Sigmoid", [x.name], x.channels)

    def halves(self, x: Value) -> tuple[Value, Value]:
        """First and second half of the channels."""
        self._add("Split", [x.name], x.channels, axis=1)
        names = [f"{self._nodes[-1].output[0]}_{half}" for half in range(2)]
        self._nodes[-1].output[:] = names
        first, second = (Value(name, x.channels // 2) for name in names)
        return first, second

    def double(self, x: Value) -> Value:
        """Repeat every pixel in both directions."""
        scales = self._constant(np.array([1, 1, 2, 2], np.float32))
        modes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return self._add("Resize", [x.name, "", scales], x.channels, **modes)

    def expectation(self, x: Value, bins: int) -> Value:
        """Turn scores of bins, `(n, c, bins, l)`, into the mean of their numbers, `(n, c, l)`."""
        likely = self._add("Softmax", [x.name], x.channels, axis=2)
        numbers = self._constant(np.arange(bins, dtype=np.float32).reshape(1, 1, bins, 1))
        weighted = self._add("Mul", [likely.name, numbers], x.channels)
        return self._add("ReduceSum", [weighted.name, self._constant(np.array([2]))], x.channels, keepdims=0)

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
        """Return the network that ends in an average over all positions and a fully connected layer."""
        return self.finish((self.dense(self.flatten(self.global_average_pool(x)), classes), (1, classes)))


def _pair(size: Size) -> tuple[int, int]:
    return size if isinstance(size, tuple) else (size, size)


class SequenceGraph(GraphBuilder):
    """A network of one sequence."""

    OPSET = 17
    """The first with layer normalisation."""

    def linear(self, x: Value, features: int, *, bias: bool = True) -> Value:
        """Apply one fully connected layer at every position."""
        weight = self._normal("weight", (x.channels, features), 0.0, float(x.channels) ** -0.5)
        product = self._add("MatMul", [x.name, weight], features)
        if not bias:
            return product
        return self._add("Add", [product.name, self._normal("bias", (features,), 0.0, 0.1)], features)

    def layer_norm(self, x: Value) -> Value:
        """Ba et al., 2016, arXiv:1607.06450."""
        weights = [self._uniform("gamma", x.channels, 0.7, 1.3), self._normal("beta", (x.channels,), 0.0, 0.2)]
        return self._add("LayerNormalization", [x.name, *weights], x.channels, axis=-1, epsilon=1e-5)

    def rms_norm(self, x: Value) -> Value:
        """Zhang and Sennrich, 2019, arXiv:1910.07467, in operators that every release of TVM reads."""
        square = self.multiply(x, x)
        mean = self._add("ReduceMean", [square.name], 1, axes=[-1], keepdims=1)
        shifted = self._add("Add", [mean.name, self._constant(np.float32(1e-6))], 1)
        scaled = self._add("Div", [x.name, self._add("Sqrt", [shifted.name], 1).name], x.channels)
        return self._add("Mul", [scaled.name, self._uniform("gamma", x.channels, 0.7, 1.3)], x.channels)

    def gelu(self, x: Value) -> Value:
        """`x * (1 + erf(x / sqrt(2))) / 2` (Hendrycks and Gimpel, 2016, arXiv:1606.08415)."""
        scaled = self.scale(x, 0.5**0.5)
        raised = self._add("Add", [self._add("Erf", [scaled.name], x.channels).name, self._constant(np.float32(1))], 1)
        return self.scale(self.multiply(x, raised), 0.5)

    def scale(self, x: Value, factor: float) -> Value:
        """Multiply with a number."""
        return self._add("Mul", [x.name, self._constant(np.float32(factor))], x.channels)

    def heads(self, x: Value, count: int) -> Value:
        """`(1, length, count * features)` to `(1, count, length, features)`."""
        features = x.channels // count
        split = self.reshape(x, (1, -1, count, features))
        return self._add("Transpose", [split.name], features, perm=[0, 2, 1, 3])

    def join_heads(self, x: Value, count: int) -> Value:
        """Return the inverse of `heads`."""
        features = count * x.channels
        turned = self._add("Transpose", [x.name], x.channels, perm=[0, 2, 1, 3])
        return Value(self.reshape(turned, (1, -1, features)).name, features)

    def attention(self, query: Value, key: Value, value: Value, bias: Value | None = None) -> Value:
        """Scaled dot products, all with heads (Vaswani et al., 2017, arXiv:1706.03762, section 3.2.1).

        `bias` is added to the scores: a large negative number hides a position.
        """
        turned = self._add("Transpose", [key.name], key.channels, perm=[0, 1, 3, 2])
        scores = self.scale(self._add("MatMul", [query.name, turned.name], 1), float(query.channels) ** -0.5)
        scores = self.add(scores, bias) if bias else scores
        weights = self._add("Softmax", [scores.name], 1, axis=-1)
        return self._add("MatMul", [weights.name, value.name], value.channels)

    def repeat_heads(self, x: Value, heads: int, times: int, length: int) -> Value:
        """Repeat each head, because queries share keys and values (Ainslie et al., 2023, arXiv:2305.13245)."""
        split = self.reshape(x, (1, heads, 1, length, x.channels))
        shape = self._constant(np.array([1, heads, times, length, x.channels]))
        spread = self._add("Expand", [split.name, shape], x.channels)
        return self.reshape(spread, (1, heads * times, length, x.channels))

    def rotate(self, x: Value, cosine: Value, sine: Value) -> Value:
        """Rotary position embedding, halves apart (Su et al., 2021, arXiv:2104.09864)."""
        half = x.channels // 2
        first, second = (self._slice(x, start, start + half) for start in (0, half))
        minus = self._add("Neg", [second.name], half)
        turned = self.concat(minus, first, axis=-1)
        turned = Value(turned.name, x.channels)
        return self.add(self.multiply(x, cosine), self.multiply(turned, sine))

    def lookup(self, table: np.ndarray, position: Value) -> Value:
        """Return rows of a table of the network's structure."""
        return self._add("Gather", [self._constant(table.astype(np.float32)), position.name], table.shape[1], axis=0)

    def embed(self, tokens: Value, words: int, features: int) -> Value:
        """Return the row of a table of weights for each token."""
        table = self._normal("table", (words, features), 0.0, 1.0)
        return self._add("Gather", [table, tokens.name], features, axis=0)

    def hide(self, mask: Value) -> Value:
        """`(1, length)` of 1 and 0 to what is added to scores: 0, and -10000 at positions that are hidden."""
        visible = self.reshape(self._add("Cast", [mask.name], 1, to=TensorProto.FLOAT), (1, 1, 1, -1))
        return self.scale(self._add("Sub", [self._constant(np.float32(1)), visible.name], 1), -10_000)

    def recurrent(
        self, kind: str, x: Value, hidden: int, gates: int, *, both: bool = False, **attributes: int
    ) -> Value:
        """`(length, 1, features)` through a layer of LSTM or GRU, or `both` ways, as torch exports it."""
        count = 2 if both else 1
        deviation = float(hidden) ** -0.5
        weights = [
            self._normal("weight", (count, gates * hidden, x.channels), 0.0, float(x.channels) ** -0.5),
            self._normal("recurrent", (count, gates * hidden, hidden), 0.0, deviation),
            self._normal("bias", (count, 2 * gates * hidden), 0.0, 0.1),
        ]
        direction = "bidirectional" if both else "forward"
        states = self._add(kind, [x.name, *weights], hidden, hidden_size=hidden, direction=direction, **attributes)
        turned = self._add("Transpose", [states.name], hidden, perm=[0, 2, 1, 3])
        return self.reshape(turned, (-1, 1, count * hidden))

    def _slice(self, x: Value, start: int, end: int) -> Value:
        bounds = [self._constant(np.array([number])) for number in (start, end, -1)]
        return self._add("Slice", [x.name, *bounds], end - start)
