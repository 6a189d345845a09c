"""Trains the digits network of the zoo and writes its `digits.onnx` and `held_out.npz`. Needs scikit-learn.

    python -m benchmarks.train_digits

Two convolutions and a dense layer (the forms of LeCun et al., 1998), trained with Adam (Kingma and Ba, 2015,
arXiv:1412.6980) on four fifths of scikit-learn's digits; the last fifth is held out and never looked at. About ten
seconds. The files are kept, because another BLAS may round otherwise; this is how they came to be.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from harness.tools.zoo.digits import NETWORK

SEED = 14
HELD_OUT = 360
EPOCHS = 30
Arrays = dict[str, Any]


def columns(x: Any) -> Any:
    """Windows of 3 x 3 around each place, `(n, c, h, w)` to `(n, h, w, c * 9)`."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(*x.shape[:1], *x.shape[2:], -1)


def convolve(x: Any, weight: Any, bias: Any) -> Any:
    """Return a 3 x 3 convolution that keeps height and width."""
    return (columns(x) @ weight.reshape(len(weight), -1).T + bias).transpose(0, 3, 1, 2)


def convolve_back(x: Any, weight: Any, gradient: Any) -> tuple[Any, Any, Any]:
    """Gradients of a convolution: of its input, its weight and its bias."""
    flat = gradient.transpose(0, 2, 3, 1).reshape(-1, len(weight))
    of_weight = (flat.T @ columns(x).reshape(len(flat), -1)).reshape(weight.shape)
    turned = weight.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1]
    return convolve(gradient, turned, 0.0), of_weight, flat.sum(axis=0)


def pool(x: Any) -> Any:
    """Return the maximum of each 2 x 2."""
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


def spread(x: Any, pooled: Any, gradient: Any) -> Any:
    """Gradient of `pool`: to whichever was the maximum."""
    twice = [np.repeat(np.repeat(array, 2, axis=2), 2, axis=3) for array in (pooled, gradient)]
    return twice[1] * (x == twice[0])


def forward(p: Arrays, images: Any) -> Arrays:
    """Return all that the network computes."""
    first = np.maximum(convolve(images, p["w1"], p["b1"]), 0)
    pooled = pool(first)
    second = np.maximum(convolve(pooled, p["w2"], p["b2"]), 0)
    flat = second.reshape(len(images), -1)
    return {"first": first, "pooled": pooled, "second": second, "flat": flat, "scores": flat @ p["w3"].T + p["b3"]}


def gradients(p: Arrays, images: Any, labels: Any) -> Arrays:
    """Gradients of the mean cross-entropy."""
    made = forward(p, images)
    shares = np.exp(made["scores"] - made["scores"].max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    off = (shares - np.eye(10, dtype=np.float32)[labels]) / np.float32(len(labels))
    of_second = (off @ p["w3"]).reshape(made["second"].shape) * (made["second"] > 0)
    of_pooled, w2, b2 = convolve_back(made["pooled"], p["w2"], of_second)
    of_first = spread(made["first"], made["pooled"], of_pooled) * (made["first"] > 0)
    _, w1, b1 = convolve_back(images, p["w1"], of_first)
    return {"w1": w1, "b1": b1, "w2": w2, "b2": b2, "w3": off.T @ made["flat"], "b3": off.sum(axis=0)}


def train(images: Any, labels: Any, random: np.random.Generator) -> Arrays:
    """Return the weights."""

    def normal(*shape: int) -> Any:
        return (random.standard_normal(shape) * (2.0 / np.prod(shape[1:])) ** 0.5).astype(np.float32)

    weights = {"w1": normal(16, 1, 3, 3), "w2": normal(32, 16, 3, 3), "w3": normal(10, 512)}
    p = weights | {f"b{place}": np.zeros(len(weights[f"w{place}"]), np.float32) for place in (1, 2, 3)}
    mean, square = ({name: np.zeros_like(value) for name, value in p.items()} for _ in range(2))
    step = 0
    for _ in range(EPOCHS):
        for chosen in np.array_split(random.permutation(len(images)), len(images) // 32):
            step += 1
            for name, gradient in gradients(p, images[chosen], labels[chosen]).items():
                mean[name] += 0.1 * (gradient - mean[name])
                square[name] += 0.001 * (gradient**2 - square[name])
                rate = 0.002 * (1 - 0.999**step) ** 0.5 / (1 - 0.9**step)
                p[name] = (p[name] - rate * mean[name] / (np.sqrt(square[name]) + 1e-8)).astype(np.float32)
    return p


def as_onnx(p: Arrays) -> bytes:
    """Return the network with its weights: input `(1, 1, 8, 8)` from 0 to 1, output ten scores."""
    from onnx import TensorProto, helper, numpy_helper

    from harness.tools.zoo.graph import IR_VERSION, GraphBuilder

    def conv(source: str, place: int, name: str) -> Any:
        weights = [f"w{place}", f"b{place}"]
        return helper.make_node("Conv", [source, *weights], [name], name, kernel_shape=[3, 3], pads=[1, 1, 1, 1])

    nodes = [
        conv("images", 1, "conv_1"),
        helper.make_node("Relu", ["conv_1"], ["relu_1"], "relu_1"),
        helper.make_node("MaxPool", ["relu_1"], ["pool"], "pool", kernel_shape=[2, 2], strides=[2, 2], pads=[0] * 4),
        conv("pool", 2, "conv_2"),
        helper.make_node("Relu", ["conv_2"], ["relu_2"], "relu_2"),
        helper.make_node("Flatten", ["relu_2"], ["flat"], "flat", axis=1),
        helper.make_node("Gemm", ["flat", "w3", "b3"], ["scores"], "dense", transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(p[name], name) for name in sorted(p)],
    )
    opsets = [helper.make_opsetid("", GraphBuilder.OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="adreno-bench")
    return bytes(model.SerializeToString(deterministic=True))


def main(folder: Path = NETWORK.parent) -> None:
    """Train, write both files, say how many are right."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = (digits.images[:, None] / 16).astype(np.float32)
    random = np.random.default_rng(SEED)
    order = random.permutation(len(images))
    held, rest = order[:HELD_OUT], order[HELD_OUT:]
    p = train(images[rest], digits.target[rest], random)
    (folder / "digits.onnx").write_bytes(as_onnx(p))
    np.savez_compressed(folder / "held_out.npz", images=images[held], labels=digits.target[held].astype(np.int64))
    for name, part in (("trained on", rest), ("held out", held)):
        right = int((forward(p, images[part])["scores"].argmax(axis=1) == digits.target[part]).sum())
        print(f"{name}: {right} of {len(part)} right")


if __name__ == "__main__":
    main()
