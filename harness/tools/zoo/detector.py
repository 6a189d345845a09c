"""A small detector with the parts of YOLOv8 (Jocher et al., 2023, ultralytics 8.0), whose batch norms are folded.

Two levels of a pyramid with C2f blocks between which pixels are doubled, and a head for each that scores the distances
to the four sides of a box in bins, and the classes.
"""

from __future__ import annotations

from harness.tools.zoo.graph import Network, Value
from harness.tools.zoo.graph_layers import ImageGraph

SIDE, CLASSES, SIDES, BINS = 96, 10, 4, 16
PLACES = (SIDE // 4) ** 2 + (SIDE // 8) ** 2
"""Of both levels."""


def conv_silu(net: ImageGraph, x: Value, channels: int, kernel: int = 3, stride: int = 1) -> Value:
    """Convolve, with SiLU behind it."""
    return net.silu(net.conv(x, channels, kernel, stride=stride, pad=kernel // 2))


def c2f(net: ImageGraph, x: Value, channels: int) -> Value:
    """Half of the channels go through a bottleneck, and all parts are joined."""
    first, second = net.halves(conv_silu(net, x, channels, 1))
    inner = conv_silu(net, conv_silu(net, second, channels // 2), channels // 2)
    return conv_silu(net, net.concat(first, second, net.add(second, inner)), channels, 1)


def pool_pyramid(net: ImageGraph, x: Value) -> Value:
    """Max pools in a row, joined with what they began with (SPPF)."""
    pooled = [conv_silu(net, x, x.channels // 2, 1)]
    for _ in range(3):
        pooled.append(net.max_pool(pooled[-1], 5, stride=1, pad=2))
    return conv_silu(net, net.concat(*pooled), x.channels, 1)


def head(net: ImageGraph, x: Value, side: int) -> tuple[Value, Value]:
    """Scores of the bins of distances, and of the classes, at each place."""
    bins = net.conv(conv_silu(net, x, SIDES * BINS), SIDES * BINS, 1)
    classes = net.conv(conv_silu(net, x, 32), CLASSES, 1)
    shapes = ((1, level.channels, side * side) for level in (bins, classes))
    first, second = (net.reshape(level, shape, axis=1) for level, shape in zip((bins, classes), shapes, strict=True))
    return first, second


def build() -> Network:
    """Return the network: input 1x3x96x96, outputs 1x4x720 (distances) and 1x10x720 (classes)."""
    net = ImageGraph("detector", (1, 3, SIDE, SIDE))
    fine = c2f(net, conv_silu(net, conv_silu(net, net.input, 16, stride=2), 32, stride=2), 32)
    coarse = pool_pyramid(net, c2f(net, conv_silu(net, fine, 64, stride=2), 64))
    fine = c2f(net, net.concat(net.double(coarse), fine), 32)
    bins, classes = zip(head(net, fine, SIDE // 4), head(net, coarse, SIDE // 8), strict=True)
    scores = net.reshape(net.concat(*bins, axis=2), (1, SIDES, BINS, PLACES), axis=1)
    outputs = net.expectation(scores, BINS), net.sigmoid(net.concat(*classes, axis=2))
    return net.finish((outputs[0], (1, SIDES, PLACES)), (outputs[1], (1, CLASSES, PLACES)))
