"""EfficientNet-Lite0, 224 x 224 (Tan and Le, 2019, arXiv:1905.11946, table 1, without squeeze and excitation).

`tensorflow/tpu` `models/official/efficientnet/lite` says how Lite differs: relu6 in place of swish, no squeeze and
excitation, a stem and a head of fixed width. Padded alike on opposite sides.
"""

from __future__ import annotations

from harness.tools.zoo.graph import Network
from harness.tools.zoo.graph_layers import ImageGraph
from harness.tools.zoo.mobilenet import conv_bn_relu6, inverted_residual

STAGES = (
    (1, 3, 16, 1, 1),
    (6, 3, 24, 2, 2),
    (6, 5, 40, 2, 2),
    (6, 3, 80, 3, 2),
    (6, 5, 112, 3, 1),
    (6, 5, 192, 4, 2),
    (6, 3, 320, 1, 1),
)
"""Expansion, kernel, channels, blocks and stride of the first block of each stage."""


def build() -> Network:
    """Return the network: input 1x3x224x224, output 1x1000."""
    net = ImageGraph("efficientnet_lite0", (1, 3, 224, 224))
    x = conv_bn_relu6(net, net.input, 32, 3, stride=2)
    for expansion, kernel, channels, blocks, stride in STAGES:
        for block in range(blocks):
            x = inverted_residual(net, x, expansion, channels, kernel=kernel, stride=1 if block else stride)
    return net.classifier(conv_bn_relu6(net, x, 1280, 1))
