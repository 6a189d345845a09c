"""A network for tests: every kind of operator that the zoo has, on 32 x 32, in a fraction of a second."""

from __future__ import annotations

from harness.tools.zoo.graph import Network
from harness.tools.zoo.graph_layers import ImageGraph
from harness.tools.zoo.resnet import basic_block
from harness.tools.zoo.squeezenet1_1 import fire


def build() -> Network:
    """Return the network: input 1x3x32x32, output 1x10."""
    net = ImageGraph("tiny", (1, 3, 32, 32))
    x = net.conv_bn_relu(net.input, 16, 3, stride=2, pad=1)
    x = net.conv_bn_relu(x, 16, 3, pad=1, groups=16)
    x = net.conv_bn_relu(x, 32, 1)
    x = net.max_pool(x, 3, stride=2, pad=1)
    x = basic_block(net, x, 32, 1)
    x = fire(net, x, 8, 16)
    x = net.average_pool(x, 2, stride=2)
    return net.classifier(x, 10)
