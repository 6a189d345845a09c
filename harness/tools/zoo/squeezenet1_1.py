"""SqueezeNet 1.1, 224 x 224 (Iandola et al., 2016, arXiv:1602.07360; release 1.1 of DeepScale/SqueezeNet).

Without dropout, which does nothing in inference, and without the softmax.
"""

from __future__ import annotations

from harness.tools.zoo.graph import Network, Value
from harness.tools.zoo.graph_layers import ImageGraph

FIRE_STAGES = (((16, 64), (16, 64)), ((32, 128), (32, 128)), ((48, 192), (48, 192), (64, 256), (64, 256)))
"""Squeezed and expanded channels of each fire module; a max pool stands before every stage."""


def fire(net: ImageGraph, x: Value, squeezed: int, expanded: int) -> Value:
    """Return a 1x1 convolution that squeezes, then 1x1 and 3x3 side by side, concatenated."""
    squeeze = net.relu(net.conv(x, squeezed, 1))
    left = net.relu(net.conv(squeeze, expanded, 1))
    right = net.relu(net.conv(squeeze, expanded, 3, pad=1))
    return net.concat(left, right)


def build() -> Network:
    """Return the network: input 1x3x224x224, output 1x1000."""
    net = ImageGraph("squeezenet1_1", (1, 3, 224, 224))
    x = net.relu(net.conv(net.input, 64, 3, stride=2))
    for stage in FIRE_STAGES:
        x = net.max_pool(x, 3, stride=2)
        for squeezed, expanded in stage:
            x = fire(net, x, squeezed, expanded)
    x = net.relu(net.conv(x, 1000, 1))
    return net.finish((net.flatten(net.global_average_pool(x)), (1, 1000)))
