"""A network of two convolutions, where `tiny` has nine: as shipped it compiles with every release, for textures too."""

from pathlib import Path

from harness.tools.zoo.graph_layers import ImageGraph


def write_plain_onnx(folder: Path) -> None:
    """Write `plain.onnx`: no depthwise convolution, which `tiny` has and no release compiles for textures."""
    net = ImageGraph("plain", (1, 3, 16, 16))
    x = net.conv_bn_relu(net.input, 16, 3, stride=2, pad=1)
    x = net.flatten(net.global_average_pool(net.conv_bn_relu(x, 32, 3, pad=1)))
    (folder / "plain.onnx").write_bytes(net.finish((net.dense(x, 10), (1, 10))).to_bytes())
