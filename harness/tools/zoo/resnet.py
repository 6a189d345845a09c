"""ResNet-18 and ResNet-50, 224 x 224 (He et al., 2015, arXiv:1512.03385, table 1; projection shortcuts, option B).

ResNet-50 has the stride in the 3x3 convolution: that is version 1.5, which frameworks call resnet50.
"""

from __future__ import annotations

from harness.tools.zoo.graph import Network, Value
from harness.tools.zoo.graph_layers import ImageGraph

STAGES_18 = ((64, 1), (128, 2), (256, 2), (512, 2))
"""Channels of each stage and stride of its first block; every stage has two blocks."""


def basic_block(net: ImageGraph, x: Value, channels: int, stride: int) -> Value:
    """Two 3x3 convolutions and a shortcut, which is a 1x1 convolution where the shape changes."""
    branch = net.conv_bn_relu(x, channels, 3, stride=stride, pad=1)
    # Eight branches add up: a small gain, as training gives it, keeps the sum around 1.
    branch = net.batch_norm(net.conv(branch, channels, 3, pad=1, bias=False), gain=0.3)
    if stride != 1 or x.channels != channels:
        x = net.batch_norm(net.conv(x, channels, 1, stride=stride, bias=False))
    return net.relu(net.add(branch, x))


def resnet18() -> Network:
    """Return the network: input 1x3x224x224, output 1x1000."""
    net = ImageGraph("resnet18", (1, 3, 224, 224))
    x = net.conv_bn_relu(net.input, 64, 7, stride=2, pad=3)
    x = net.max_pool(x, 3, stride=2, pad=1)
    for channels, stride in STAGES_18:
        x = basic_block(net, x, channels, stride)
        x = basic_block(net, x, channels, 1)
    return net.classifier(x)


STAGES_50 = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""Inner channels, blocks and stride of the first block of each stage."""


def bottleneck(net: ImageGraph, x: Value, channels: int, stride: int) -> Value:
    """1x1, 3x3 and 1x1, with a shortcut, which is a 1x1 convolution where the shape changes."""
    branch = net.conv_bn_relu(net.conv_bn_relu(x, channels, 1), channels, 3, stride=stride, pad=1)
    branch = net.batch_norm(net.conv(branch, 4 * channels, 1, bias=False), gain=0.3)
    if stride != 1 or x.channels != 4 * channels:
        x = net.batch_norm(net.conv(x, 4 * channels, 1, stride=stride, bias=False))
    return net.relu(net.add(branch, x))


def bottlenecks() -> Network:
    """Return the first stage of ResNet-50 without batch norms: input 1x64x56x56, output 1x256x56x56.

    Exporters fold them into the convolutions, so nothing stands between the last one of a block and the sum.
    """
    net = ImageGraph("bottlenecks", (1, 64, 56, 56))
    x = net.input
    for _block in range(3):
        branch = net.relu(net.conv(x, 64, 1))
        branch = net.relu(net.conv(branch, 64, 3, pad=1))
        branch = net.conv(branch, 256, 1)
        x = net.relu(net.add(branch, x if x.channels == branch.channels else net.conv(x, 256, 1)))
    return net.finish((x, (1, 256, 56, 56)))


def resnet50() -> Network:
    """Return the network: input 1x3x224x224, output 1x1000."""
    net = ImageGraph("resnet50", (1, 3, 224, 224))
    x = net.max_pool(net.conv_bn_relu(net.input, 64, 7, stride=2, pad=3), 3, stride=2, pad=1)
    for channels, blocks, stride in STAGES_50:
        for block in range(blocks):
            x = bottleneck(net, x, channels, 1 if block else stride)
    return net.classifier(x)
