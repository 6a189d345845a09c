"""MobileNet V1 and V2, width 1.0, 224 x 224.

V1 without the softmax (Howard et al., 2017, arXiv:1704.04861, table 1); V2 (Sandler et al., 2018, arXiv:1801.04381,
table 2).
"""

from __future__ import annotations

from harness.tools.zoo.graph import Network, Value
from harness.tools.zoo.graph_layers import ImageGraph

BLOCKS = (
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    *[(512, 1)] * 5,
    (1024, 2),
    (1024, 1),
)
"""Channels and stride of each depthwise separable block."""


def mobilenet_v1() -> Network:
    """Return the network: input 1x3x224x224, output 1x1000."""
    net = ImageGraph("mobilenet_v1", (1, 3, 224, 224))
    x = net.conv_bn_relu(net.input, 32, 3, stride=2, pad=1)
    for channels, stride in BLOCKS:
        x = net.conv_bn_relu(x, x.channels, 3, stride=stride, pad=1, groups=x.channels)
        x = net.conv_bn_relu(x, channels, 1)
    return net.classifier(x)


STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels, blocks and stride of the first block of each stage."""


def conv_bn_relu6(
    net: ImageGraph, x: Value, channels: int, kernel: int, *, stride: int = 1, groups: int = 1, dilation: int = 1
) -> Value:
    """Return a convolution that keeps the size but for its stride."""
    pad = (kernel - 1) // 2 * dilation
    conv = net.conv(x, channels, kernel, stride=stride, pad=pad, groups=groups, dilation=dilation, bias=False)
    return net.relu6(net.batch_norm(conv))


def inverted_residual(
    net: ImageGraph, x: Value, expansion: int, channels: int, *, kernel: int = 3, stride: int = 1, dilation: int = 1
) -> Value:
    """Expand by a 1x1, filter by a depthwise convolution, project without an activation, and add."""
    y = conv_bn_relu6(net, x, x.channels * expansion, 1) if expansion != 1 else x
    y = conv_bn_relu6(net, y, y.channels, kernel, stride=stride, groups=y.channels, dilation=dilation)
    short = stride == 1 and x.channels == channels
    y = net.batch_norm(net.conv(y, channels, 1, bias=False), gain=0.5 if short else 1.0)
    return net.add(x, y) if short else y


def mobilenet_v2() -> Network:
    """Return the network: input 1x3x224x224, output 1x1000."""
    net = ImageGraph("mobilenet_v2", (1, 3, 224, 224))
    x = conv_bn_relu6(net, net.input, 32, 3, stride=2)
    for expansion, channels, blocks, stride in STAGES:
        for block in range(blocks):
            x = inverted_residual(net, x, expansion, channels, stride=1 if block else stride)
    return net.classifier(conv_bn_relu6(net, x, 1280, 1))
