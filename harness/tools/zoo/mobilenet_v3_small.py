"""MobileNet V3-Small, width 1.0, 224 x 224 (Howard et al., 2019, arXiv:1905.02244, table 2)."""

from __future__ import annotations

from harness.tools.zoo.graph import Network, Value
from harness.tools.zoo.graph_layers import ImageGraph

BLOCKS = (
    (3, 16, 16, True, False, 2),
    (3, 72, 24, False, False, 2),
    (3, 88, 24, False, False, 1),
    (5, 96, 40, True, True, 2),
    (5, 240, 40, True, True, 1),
    (5, 240, 40, True, True, 1),
    (5, 120, 48, True, True, 1),
    (5, 144, 48, True, True, 1),
    (5, 288, 96, True, True, 2),
    (5, 576, 96, True, True, 1),
    (5, 576, 96, True, True, 1),
)
"""Kernel, expanded channels, channels, squeeze and excitation, hard swish (else a rectifier), stride."""


def squeeze_and_excite(net: ImageGraph, x: Value) -> Value:
    """Channels weighted by what their averages say; squeezed to a quarter, in eights."""
    quarter = max(8, int(x.channels / 4 + 4) // 8 * 8)
    weight = net.relu(net.conv(net.global_average_pool(x), quarter, 1))
    return net.multiply(x, net.hard_sigmoid(net.conv(weight, x.channels, 1)))


def conv_bn(net: ImageGraph, x: Value, channels: int, kernel: int, *, stride: int = 1, groups: int = 1) -> Value:
    """Return a convolution that keeps the size but for its stride."""
    conv = net.conv(x, channels, kernel, stride=stride, pad=kernel // 2, groups=groups, bias=False)
    return net.batch_norm(conv, epsilon=1e-3)


def build() -> Network:
    """Return the network: input 1x3x224x224, output 1x1000."""
    net = ImageGraph("mobilenet_v3_small", (1, 3, 224, 224))
    x = net.hard_swish(conv_bn(net, net.input, 16, 3, stride=2))
    for kernel, expanded, channels, excited, swish, stride in BLOCKS:
        activate = net.hard_swish if swish else net.relu
        y = activate(conv_bn(net, x, expanded, 1)) if expanded != x.channels else x
        y = activate(conv_bn(net, y, expanded, kernel, stride=stride, groups=expanded))
        y = conv_bn(net, squeeze_and_excite(net, y) if excited else y, channels, 1)
        x = net.add(x, y) if stride == 1 and x.channels == channels else y
    x = net.hard_swish(conv_bn(net, x, 576, 1))
    x = net.hard_swish(net.dense(net.flatten(net.global_average_pool(x)), 1024))
    return net.finish((net.dense(x, 1000), (1, 1000)))
