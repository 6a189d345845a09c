"""One layer of three transformers: of two encoders and a decoder.

encoder_block: one of BERT base on 128 tokens (Devlin et al., 2018, arXiv:1810.04805), 768 features, 12 heads.

masked_encoder: a small one of the same kind with its table of words, whose mask hides the padding of a short text.

decoder_layer: one of Qwen2.5-0.5B, as it makes one token after 127 others (Yang et al., 2024, arXiv:2412.15115). 896
features, 14 heads of queries that share 2 of keys and values, 4864 inner features. It reads the token's features, its
position, and the keys and values of the tokens before, and gives its own to be kept: several inputs and outputs, one
of them an integer.
"""

from __future__ import annotations

import numpy as np

from harness.base.model import Distribution
from harness.tools.zoo.graph import Network
from harness.tools.zoo.graph_layers import SequenceGraph

LENGTH, WIDTH = 128, 768
"""Tokens and features of the encoder."""


def encoder_block() -> Network:
    """Return the network: input and output 1x128x768."""
    heads, inner_width = 12, 3072
    net = SequenceGraph("encoder_block")
    x = net.add_input("input", (1, LENGTH, WIDTH), channels=WIDTH)
    query, key, value = (net.heads(net.linear(x, WIDTH), heads) for _ in range(3))
    attended = net.join_heads(net.attention(query, key, value), heads)
    x = net.layer_norm(net.add(x, net.linear(attended, WIDTH)))
    inner = net.gelu(net.linear(x, inner_width))
    return net.finish((net.layer_norm(net.add(x, net.linear(inner, WIDTH))), (1, LENGTH, WIDTH)))


WORDS, TOKENS, SMALL_WIDTH = 1000, 32, 128


def masked_encoder() -> Network:
    """Return the network: 32 tokens and a mask of those that count; output 1x32x128."""
    heads = 4
    net = SequenceGraph("masked_encoder")
    tokens, mask = (net.add_input(name, (1, TOKENS), channels=1, integers=True) for name in ("tokens", "mask"))
    x = net.layer_norm(net.embed(tokens, WORDS, SMALL_WIDTH))
    query, key, value = (net.heads(net.linear(x, SMALL_WIDTH), heads) for _ in range(3))
    attended = net.join_heads(net.attention(query, key, value, net.hide(mask)), heads)
    x = net.layer_norm(net.add(x, net.linear(attended, SMALL_WIDTH)))
    inner = net.gelu(net.linear(x, 4 * SMALL_WIDTH))
    return net.finish((net.layer_norm(net.add(x, net.linear(inner, SMALL_WIDTH))), (1, TOKENS, SMALL_WIDTH)))


MASKED_INPUTS = {"tokens": Distribution.parse(f"integers(0, {WORDS - 1})")}
"""What of the masked encoder is drawn in its own way."""

FEATURES, HEADS, SHARED, INNER = 896, 14, 2, 4864
HEAD = FEATURES // HEADS
BEFORE, POSITIONS, THETA = 127, 512, 1e6

DECODER_INPUTS = {"position": Distribution.parse(f"integers(0, {POSITIONS - 1})")}
"""What of the decoder is drawn in its own way."""


def decoder_layer() -> Network:
    """Return the network: a token of 896 features, its position, keys and values of 127 tokens; and the same again."""
    net = SequenceGraph("decoder_layer")
    x = net.add_input("input", (1, 1, FEATURES), channels=FEATURES)
    position = net.add_input("position", (1,), channels=1, integers=True)
    earlier = [net.add_input(name, (1, SHARED, BEFORE, HEAD), channels=HEAD) for name in ("keys", "values")]
    normal = net.rms_norm(x)
    query, key, value = (net.heads(net.linear(normal, count * HEAD), count) for count in (HEADS, SHARED, SHARED))
    cosine, sine = (net.lookup(table, position) for table in rotation())
    key = net.rotate(key, cosine, sine)
    keys, values = net.concat(earlier[0], key, axis=2), net.concat(earlier[1], value, axis=2)
    spread = [net.repeat_heads(heads, SHARED, HEADS // SHARED, BEFORE + 1) for heads in (keys, values)]
    attended = net.join_heads(net.attention(net.rotate(query, cosine, sine), *spread), HEADS)
    x = net.add(x, net.linear(attended, FEATURES, bias=False))
    normal = net.rms_norm(x)
    gate = net.silu(net.linear(normal, INNER, bias=False))
    x = net.add(x, net.linear(net.multiply(gate, net.linear(normal, INNER, bias=False)), FEATURES, bias=False))
    shape = (1, SHARED, BEFORE + 1, HEAD)
    return net.finish((x, (1, 1, FEATURES)), (keys, shape), (values, shape))


def rotation() -> tuple[np.ndarray, np.ndarray]:
    """Cosine and sine of each position and feature."""
    angles = np.outer(np.arange(POSITIONS), THETA ** (-np.arange(0, HEAD, 2) / HEAD))
    both = np.concatenate([angles, angles], axis=1)
    return np.cos(both), np.sin(both)
