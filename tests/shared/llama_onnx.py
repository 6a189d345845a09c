"""The decoder of `harness.tools.llm` as an ONNX network, written apart from the judge: a prompt without a cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from harness.tools.llm.config import LlmConfig


class LlamaGraph:
    """Collects the nodes of a network."""

    def __init__(self, config: LlmConfig, tensor: Callable[[str], Any], count: int) -> None:
        self.config, self.tensor, self.count = config, tensor, count
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def constant(self, name: str, value: Any) -> str:
        self.constants.setdefault(name, numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def weight(self, name: str) -> str:
        return self.constant(name, self.tensor(name))

    def node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"{kind}_{len(self.nodes)}_{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def sizes(self, *extents: int) -> str:
        return self.constant("sizes_" + "_".join(map(str, extents)), np.array(extents, np.int64))

    def product(self, x: str, name: str, *, bias: bool = False) -> str:
        made: str = self.node("MatMul", x, self.node("Transpose", self.weight(f"{name}.weight"), perm=[1, 0]))
        return self.node("Add", made, self.weight(f"{name}.bias")) if bias else made

    def norm(self, x: str, name: str) -> str:
        square = self.node("ReduceMean", self.node("Mul", x, x), self.sizes(-1), keepdims=1)
        root = self.node("Sqrt", self.node("Add", square, self.constant("eps", np.float32(self.config.eps))))
        return str(self.node("Mul", self.node("Div", x, root), self.weight(name)))

    def turn(self, x: str) -> str:
        """Rotate heads (heads, positions, size) by complex numbers: halves are real and imaginary parts."""
        half = self.config.head_dim // 2
        turns = self.config.rope_theta ** (-np.arange(half) / half)
        angles = np.outer(np.arange(self.count), turns)
        cos = self.constant("cos", np.cos(angles).astype("float32"))
        sin = self.constant("sin", np.sin(angles).astype("float32"))
        real, imaginary = self.node("Split", x, self.sizes(half, half), outputs=2, axis=-1)
        first = self.node("Sub", self.node("Mul", real, cos), self.node("Mul", imaginary, sin))
        second = self.node("Add", self.node("Mul", imaginary, cos), self.node("Mul", real, sin))
        return str(self.node("Concat", first, second, axis=-1))

    def attend(self, x: str, prefix: str) -> str:
        c = self.config
        qkv = self.product(x, f"{prefix}qkv", bias=c.qkv_bias)
        widths = self.sizes(c.heads * c.head_dim, c.kv_heads * c.head_dim, c.kv_heads * c.head_dim)
        q, k, v = self.node("Split", qkv, widths, outputs=3, axis=-1)
        q, k, v = (
            self.node("Transpose", self.node("Reshape", part, self.sizes(self.count, -1, c.head_dim)), perm=[1, 0, 2])
            for part in (q, k, v)
        )
        if c.head_norms:
            q, k = self.norm(q, f"{prefix}q_norm.weight"), self.norm(k, f"{prefix}k_norm.weight")
        owners = self.constant("owners", np.arange(c.heads, dtype=np.int64) * c.kv_heads // c.heads)
        k, v = (self.node("Gather", part, owners, axis=0) for part in (self.turn(k), v))
        scores = self.node("MatMul", self.turn(q), self.node("Transpose", k, perm=[0, 2, 1]))
        scores = self.node("Mul", scores, self.constant("scale", np.float32(c.head_dim**-0.5)))
        later = np.triu(np.full((self.count, self.count), -1e9, np.float32), 1)
        shares = self.node("Softmax", self.node("Add", scores, self.constant("later", later)), axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", shares, v), perm=[1, 0, 2])
        return self.product(self.node("Reshape", mixed, self.sizes(self.count, -1)), f"{prefix}o", bias=c.output_bias)

    def model(self) -> Any:
        c = self.config
        x = self.node("Gather", self.weight("embed.weight"), "tokens", axis=0)
        for layer in range(c.layers):
            prefix = f"layers.{layer}."
            x = self.node("Add", x, self.attend(self.norm(x, f"{prefix}norm1.weight"), prefix))
            both = self.product(self.norm(x, f"{prefix}norm2.weight"), f"{prefix}gate_up")
            gate, up = self.node("Split", both, self.sizes(c.intermediate, c.intermediate), outputs=2, axis=-1)
            gated = self.node("Mul", self.node("Mul", gate, self.node("Sigmoid", gate)), up)
            x = self.node("Add", x, self.product(gated, f"{prefix}down"))
        logits = self.product(self.norm(x, "norm.weight"), "embed" if c.tied else "head")
        self.nodes.append(helper.make_node("Identity", [logits], ["logits"]))
        tokens = helper.make_tensor_value_info("tokens", TensorProto.INT64, [self.count])
        answer = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [self.count, c.vocabulary])
        graph = helper.make_graph(self.nodes, "llama", [tokens], [answer], list(self.constants.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
        onnx.checker.check_model(model)
        return model
