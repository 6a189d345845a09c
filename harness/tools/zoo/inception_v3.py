"""Inception v3, 299 x 299 (Szegedy et al., 2015, arXiv:1512.00567, table 1 and figures 5 to 7).

Without the auxiliary classifier, which is for training.
"""

from __future__ import annotations

from harness.tools.zoo.graph import Network, Value
from harness.tools.zoo.graph_layers import ImageGraph, Size


def conv(net: ImageGraph, x: Value, channels: int, kernel: Size, *, stride: int = 1, pad: Size = 0) -> Value:
    """Convolution, batch norm with this network's epsilon, rectifier."""
    convolved = net.conv(x, channels, kernel, stride=stride, pad=pad, bias=False)
    return net.relu(net.batch_norm(convolved, epsilon=1e-3))


def pooled(net: ImageGraph, x: Value, channels: int) -> Value:
    """Return the branch of an average and a 1x1 convolution."""
    return conv(net, net.average_pool(x, 3, stride=1, pad=1), channels, 1)


def block_35(net: ImageGraph, x: Value, pool_channels: int) -> Value:
    """Figure 5, on 35 x 35."""
    five = conv(net, conv(net, x, 48, 1), 64, 5, pad=2)
    three = conv(net, conv(net, conv(net, x, 64, 1), 96, 3, pad=1), 96, 3, pad=1)
    return net.concat(conv(net, x, 64, 1), five, three, pooled(net, x, pool_channels))


def reduce_35(net: ImageGraph, x: Value) -> Value:
    """Reduce 35 x 35 to 17 x 17."""
    three = conv(net, conv(net, conv(net, x, 64, 1), 96, 3, pad=1), 96, 3, stride=2)
    return net.concat(conv(net, x, 384, 3, stride=2), three, net.max_pool(x, 3, stride=2))


def block_17(net: ImageGraph, x: Value, inner: int) -> Value:
    """Figure 6, on 17 x 17: 7x7 as 1x7 and 7x1."""

    def row(x: Value, channels: int) -> Value:
        return conv(net, x, channels, (1, 7), pad=(0, 3))

    def column(x: Value, channels: int) -> Value:
        return conv(net, x, channels, (7, 1), pad=(3, 0))

    pointwise = conv(net, x, 192, 1)
    once = column(row(conv(net, x, inner, 1), inner), 192)
    twice = row(column(row(column(conv(net, x, inner, 1), inner), inner), inner), 192)
    return net.concat(pointwise, once, twice, pooled(net, x, 192))


def reduce_17(net: ImageGraph, x: Value) -> Value:
    """Reduce 17 x 17 to 8 x 8."""
    three = conv(net, conv(net, x, 192, 1), 320, 3, stride=2)
    seven = conv(net, conv(net, conv(net, x, 192, 1), 192, (1, 7), pad=(0, 3)), 192, (7, 1), pad=(3, 0))
    return net.concat(three, conv(net, seven, 192, 3, stride=2), net.max_pool(x, 3, stride=2))


def block_8(net: ImageGraph, x: Value) -> Value:
    """Figure 7, on 8 x 8: 1x3 and 3x1 side by side."""

    def both(x: Value) -> Value:
        return net.concat(conv(net, x, 384, (1, 3), pad=(0, 1)), conv(net, x, 384, (3, 1), pad=(1, 0)))

    once = both(conv(net, x, 384, 1))
    twice = both(conv(net, conv(net, x, 448, 1), 384, 3, pad=1))
    return net.concat(conv(net, x, 320, 1), once, twice, pooled(net, x, 192))


def build() -> Network:
    """Return the network: input 1x3x299x299, output 1x1000."""
    net = ImageGraph("inception_v3", (1, 3, 299, 299))
    x = conv(net, conv(net, conv(net, net.input, 32, 3, stride=2), 32, 3), 64, 3, pad=1)
    x = conv(net, conv(net, net.max_pool(x, 3, stride=2), 80, 1), 192, 3)
    x = net.max_pool(x, 3, stride=2)
    for pool_channels in (32, 64, 64):
        x = block_35(net, x, pool_channels)
    x = reduce_35(net, x)
    for inner in (128, 160, 160, 192):
        x = block_17(net, x, inner)
    x = reduce_17(net, x)
    return net.classifier(block_8(net, block_8(net, x)))
