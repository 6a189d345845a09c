"""DeepLab v3 for phones, 513 x 513: MobileNet V2 with an output stride of 16 and a head without atrous pyramid.

Sandler et al., 2018, arXiv:1801.04381, section 6.3 and table 7: the first stride of the last stages becomes a dilation
of 2, the last 1x1 convolution goes, and a global average stands beside a 1x1 convolution of 256 channels.
"""

from __future__ import annotations

from harness.tools.zoo.graph import Network
from harness.tools.zoo.graph_layers import ImageGraph
from harness.tools.zoo.mobilenet import STAGES, conv_bn_relu6, inverted_residual

SIZE, GRID, CLASSES, HEAD = 513, 33, 21, 256
DILATED_FROM = 5
"""Number of the stage from which on dilation takes the place of strides."""


def build() -> Network:
    """Return the network: input 1x3x513x513, output 1x21x513x513, a score of each class for each pixel."""
    net = ImageGraph("deeplab_v3", (1, 3, SIZE, SIZE))
    x = conv_bn_relu6(net, net.input, 32, 3, stride=2)
    for number, (expansion, channels, blocks, stride) in enumerate(STAGES):
        dilated = number >= DILATED_FROM
        for block in range(blocks):
            step = 1 if block or dilated else stride
            late = dilated and (block or number > DILATED_FROM)
            x = inverted_residual(net, x, expansion, channels, stride=step, dilation=2 if late else 1)
    image = net.conv_bn_relu(net.global_average_pool(x), HEAD, 1)
    both = net.concat(net.resize(image, GRID, GRID), net.conv_bn_relu(x, HEAD, 1))
    scores = net.conv(net.conv_bn_relu(both, HEAD, 1), CLASSES, 1)
    return net.finish((net.resize(scores, SIZE, SIZE), (1, CLASSES, SIZE, SIZE)))
