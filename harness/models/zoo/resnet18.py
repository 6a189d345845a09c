"""ResNet-18, 224 x 224 (He et al., 2015, arXiv:1512.03385, table 1; projection shortcuts, option B)."""

from __future__ import annotations

from harness.models.graph import Network, Value
from harness.models.graph_layers import ImageGraph

STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))
"""Channels of each stage and stride of its first block; every stage has two blocks."""


def basic_block(net: ImageGraph, x: Value, channels: int, stride: int) -> Value:
    """Two 3x3 convolutions and a shortcut, which is a 1x1 convolution where the shape changes."""
    branch = net.conv_bn_relu(x, channels, 3, stride=stride, pad=1)
    # Eight branches add up: a small gain, as training gives it, keeps the sum around 1.
    branch = net.batch_norm(net.conv(branch, channels, 3, pad=1, bias=False), gain=0.3)
    if stride != 1 or x.channels != channels:
        x = net.batch_norm(net.conv(x, channels, 1, stride=stride, bias=False))
    return net.relu(net.add(branch, x))


def build() -> Network:
    """Return the network: input 1x3x224x224, output 1x1000."""
    net = ImageGraph("resnet18", (1, 3, 224, 224))
    x = net.conv_bn_relu(net.input, 64, 7, stride=2, pad=3)
    x = net.max_pool(x, 3, stride=2, pad=1)
    for channels, stride in STAGES:
        x = basic_block(net, x, channels, stride)
        x = basic_block(net, x, channels, 1)
    return net.classifier(x)
