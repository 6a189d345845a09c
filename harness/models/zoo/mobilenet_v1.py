"""MobileNet V1, width 1.0, 224 x 224 (Howard et al., 2017, arXiv:1704.04861, table 1), without the softmax."""

from __future__ import annotations

from harness.models.graph import Network
from harness.models.graph_layers import ImageGraph

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


def build() -> Network:
    """Return the network: input 1x3x224x224, output 1x1000."""
    net = ImageGraph("mobilenet_v1", (1, 3, 224, 224))
    x = net.conv_bn_relu(net.input, 32, 3, stride=2, pad=1)
    for channels, stride in BLOCKS:
        x = net.conv_bn_relu(x, x.channels, 3, stride=stride, pad=1, groups=x.channels)
        x = net.conv_bn_relu(x, channels, 1)
    return net.classifier(x)
