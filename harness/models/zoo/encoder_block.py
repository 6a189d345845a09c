"""One encoder layer of BERT base on 128 tokens (Devlin et al., 2018, arXiv:1810.04805): 768 features, 12 heads."""

from __future__ import annotations

from harness.models.graph import Network
from harness.models.graph_layers import SequenceGraph

LENGTH, FEATURES, HEADS, INNER = 128, 768, 12, 3072


def build() -> Network:
    """Return the network: input and output 1x128x768."""
    net = SequenceGraph("encoder_block")
    x = net.add_input("input", (1, LENGTH, FEATURES), channels=FEATURES)
    query, key, value = (net.heads(net.linear(x, FEATURES), HEADS) for _ in range(3))
    attended = net.join_heads(net.attention(query, key, value), HEADS)
    x = net.layer_norm(net.add(x, net.linear(attended, FEATURES)))
    inner = net.gelu(net.linear(x, INNER))
    return net.finish((net.layer_norm(net.add(x, net.linear(inner, FEATURES))), (1, LENGTH, FEATURES)))
