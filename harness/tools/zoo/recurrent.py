"""Two recurrent networks, as torch exports them: each is a layer of ONNX's that is unrolled before TVM sees it.

lstm: both ways over the columns of a line of text, and the letter of each (Shi et al., 2015, arXiv:1507.05717, figure
1, with a shorter line). gru: the gain of each band of sound over time, after two layers (Valin, 2018, arXiv:1709.08243,
figure 2, without its branches).
"""

from __future__ import annotations

from harness.tools.zoo.graph import Network
from harness.tools.zoo.graph_layers import SequenceGraph

COLUMNS, FEATURES, LETTERS = 12, 128, 37
FRAMES, BANDS = 10, 42


def lstm() -> Network:
    """Return the network: input 12x1x128, output 12x1x37."""
    net = SequenceGraph("lstm")
    x = net.add_input("input", (COLUMNS, 1, FEATURES), channels=FEATURES)
    x = net.recurrent("LSTM", x, 64, 4, both=True)
    return net.finish((net.linear(x, LETTERS), (COLUMNS, 1, LETTERS)))


def gru() -> Network:
    """Return the network: input 10x1x42, output 10x1x22."""
    net = SequenceGraph("gru")
    x = net.add_input("input", (FRAMES, 1, BANDS), channels=BANDS)
    for hidden in (48, 96):
        x = net.recurrent("GRU", x, hidden, 3, linear_before_reset=1)
    return net.finish((net.linear(x, 22), (FRAMES, 1, 22)))
