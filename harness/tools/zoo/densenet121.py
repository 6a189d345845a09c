"""DenseNet-121, growth 32, 224 x 224 (Huang et al., 2016, arXiv:1608.06993, table 1)."""

from __future__ import annotations

from harness.tools.zoo.graph import Network, Value
from harness.tools.zoo.graph_layers import ImageGraph

BLOCKS, GROWTH = (6, 12, 24, 16), 32
"""Layers of each dense block; channels that a layer adds."""


def dense_layer(net: ImageGraph, x: Value) -> Value:
    """Batch norm, rectifier, 1x1, and again with 3x3; its result stands beside all that came before."""
    y = net.conv(net.relu(net.batch_norm(x)), 4 * GROWTH, 1, bias=False)
    y = net.conv(net.relu(net.batch_norm(y)), GROWTH, 3, pad=1, bias=False)
    return net.concat(x, y)


def build() -> Network:
    """Return the network: input 1x3x224x224, output 1x1000."""
    net = ImageGraph("densenet121", (1, 3, 224, 224))
    x = net.max_pool(net.conv_bn_relu(net.input, 64, 7, stride=2, pad=3), 3, stride=2, pad=1)
    for number, layers in enumerate(BLOCKS):
        if number:
            x = net.conv(net.relu(net.batch_norm(x)), x.channels // 2, 1, bias=False)
            x = net.average_pool(x, 2, stride=2)
        for _ in range(layers):
            x = dense_layer(net, x)
    return net.classifier(net.relu(net.batch_norm(x)))
