"""The decoder in TVM's `relax.frontend.nn`, over its paged cache of keys and values, and the functions of its library.

Each function of the library is one step as an application takes it: begin_forward, the layers, the answer to the host,
end_forward. So a step costs one call over RPC, and its time by the device's own clock holds nothing of RPC.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from harness.compile.compiler.compat import call_packed, relax, tirx
from harness.compile.paths.lowered_module import to_host
from harness.tools.llm.config import LlmConfig
from harness.tools.llm.weights import GROUP, PER_WORD, ZERO, Format, is_packed, is_transposed

CREATE = "create_paged_kv_cache"
LENGTH = "seq_len"
"""Name of the number of tokens in a step, whose limit the memory plan needs."""
CHUNK = 512
"""Most tokens of a step."""
PAGE = 16
"""Tokens of a page of the cache; TVM's kernels have it built in."""


@dataclass(frozen=True)
class Step:
    """A function of the library: tokens, cache and weights to logits on the host."""

    name: str
    body: str
    """The method of the network."""
    tokens: int = 0
    """How many it takes; 0 for any number."""
    forgets: bool = False
    """Whether it takes its tokens out of the cache again, so that it can be repeated."""


SCORE = Step("score", "all_positions")
"""Logits of every position, and what leaves each layer."""
PREFILL = Step("prefill", "last_position")
"""Logits of the last position, as applications take them."""
PREFILL_AGAIN = Step("prefill_again", "last_position", forgets=True)
DECODE = Step("decode", "next_token", tokens=1)
DECODE_LAYERS = Step("decode_layers", "next_token_layers", tokens=1)
"""The same, and what leaves each layer, to name the layer that is wrong."""
STEPS = (SCORE, PREFILL, PREFILL_AGAIN, DECODE, DECODE_LAYERS)


def build_module(config: LlmConfig, form: Format, target: Any) -> tuple[Any, list[tuple[str, list[int], str]]]:
    """Return the module of all functions, and name, shape and number format of its parameters in their order.

    The names are those of `library_tensors`.
    """
    with target:
        network = _decoder()(config, form, target)
        mod, parameters = network.export_tvm(spec=network.spec())[:2]
        for step in STEPS:
            mod = _add_step(mod, step)
    return mod, [(name, [int(extent) for extent in value.shape], str(value.dtype)) for name, value in parameters]


def _add_step(mod: Any, step: Step) -> Any:
    body = mod.get_global_var(step.body)
    _, cache_type, weights_type = (parameter.ty for parameter in mod[body].params)
    length = tirx.IntImm("int64", 1) if step.tokens else tirx.Var(LENGTH, "int64")
    tokens = relax.Var("tokens", relax.TensorType([length], "int32"))
    state, weights = relax.Var("cache", cache_type), relax.Var("weights", weights_type)
    builder = relax.BlockBuilder(mod)
    with builder.function(step.name, [tokens, state, weights], pure=False):
        _effect(builder, "begin_forward", state, relax.ShapeExpr([0]), relax.ShapeExpr([length]))
        result = builder.emit(relax.Call(body, [tokens, state, weights]))
        _effect(builder, "end_forward", state)
        if step.forgets:
            _effect(builder, "popn", state, relax.prim_value(0), relax.prim_value(length))
        builder.emit_func_output(to_host(builder, result))
    return builder.finalize()


def _effect(builder: Any, name: str, *arguments: Any) -> None:
    builder.emit(call_packed(f"vm.builtin.kv_state_{name}", *arguments, result=relax.TupleType([])))


@cache
def _decoder() -> Any:
    """Return the class of the network. It derives from TVM's, which takes seconds to import."""
    from tvm import te
    from tvm.relax.frontend import nn
    from tvm.relax.frontend.nn import op
    from tvm.relax.frontend.nn.llm.kv_cache import PagedKVCache, RopeMode, TIRPagedKVCache

    class PackedMatrix(nn.Module):  # type: ignore[misc]
        # 4-bit numbers, unpacked by an expression that the passes fuse into whatever reads it
        def __init__(self, outputs: int, inputs: int, dtype: str, transposed: bool, bias: bool) -> None:
            super().__init__()
            self.dtype, self.transposed = dtype, transposed

            def extents(packed: int) -> tuple[int, int]:
                return (inputs // packed, outputs) if transposed else (outputs, inputs // packed)

            self.extents = [tirx.IntImm("int64", extent) for extent in extents(1)]
            self.words, self.scale = nn.Parameter(extents(PER_WORD), "uint32"), nn.Parameter(extents(GROUP), dtype)
            self.bias = nn.Parameter((outputs,), dtype) if bias else None

        def number(self, words: Any, scale: Any, i: Any, j: Any) -> Any:
            place = i if self.transposed else j

            def at(tensor: Any, packed: int) -> Any:
                return tensor(i // packed, j) if self.transposed else tensor(i, j // packed)

            shift = ((place % PER_WORD) * 4).astype("uint32")
            nibble = tirx.bitwise_and(tirx.shift_right(at(words, PER_WORD), shift), tirx.const(15, "uint32"))
            return (nibble.astype(self.dtype) - tirx.const(ZERO, self.dtype)) * at(scale, GROUP)

        def forward(self, x: Any) -> Any:
            def unpack(words: Any, scale: Any) -> Any:
                return te.compute(self.extents, lambda i, j: self.number(words, scale, i, j), name="dequantize")

            matrix = op.tensor_expr_op(unpack, name_hint="dequantize", args=[self.words, self.scale])
            product = op.matmul(x, matrix if self.transposed else op.permute_dims(matrix))
            return product if self.bias is None else product + self.bias

        def rows(self, tokens: Any) -> Any:
            def take(words: Any, scale: Any, chosen: Any) -> Any:
                shape = (chosen.shape[0], self.extents[1])
                return te.compute(shape, lambda i, j: self.number(words, scale, chosen(i), j), name="take")

            return op.tensor_expr_op(take, name_hint="dequantize_take", args=[self.words, self.scale, tokens])

    class PlainMatrix(nn.Linear):  # type: ignore[misc]
        def rows(self, tokens: Any) -> Any:
            return op.take(self.weight, tokens, axis=0)

    def module(c: LlmConfig, form: Format, name: str) -> Any:
        weight, bias = f"{name}.weight", f"{name}.bias" in c.shapes
        if "norm" in name:
            return nn.RMSNorm(*c.shapes[weight], -1, c.eps, bias=False, dtype=form.dtype)
        outputs, inputs = c.shapes[weight]
        if is_packed(weight, form):
            return PackedMatrix(outputs, inputs, form.dtype, is_transposed(weight, form), bias)
        return PlainMatrix(inputs, outputs, bias, form.dtype)

    class Layer(nn.Module):  # type: ignore[misc]
        def __init__(self, c: LlmConfig, form: Format) -> None:
            super().__init__()
            self.c = c
            for name in dict.fromkeys(weight.partition(".")[0] for weight in c.layer_shapes):
                setattr(self, name, module(c, form, f"layers.0.{name}"))

        def forward(self, x: Any, state: Any, index: int) -> Any:
            c = self.c
            batch, count, _ = x.shape
            qkv = op.reshape(self.qkv(self.norm1(x)), (batch, count, c.heads + 2 * c.kv_heads, c.head_dim))
            if c.head_norms:
                q, k, v = op.split(qkv, [c.heads, c.heads + c.kv_heads], axis=2)
                qkv = op.concat([self.q_norm(q), self.k_norm(k), v], dim=2)
            mixed = state.attention_with_fused_qkv(index, qkv, c.heads, sm_scale=c.head_dim**-0.5)
            x = x + self.o(op.reshape(mixed, (batch, count, c.heads * c.head_dim)))
            gate, up = op.split(self.gate_up(self.norm2(x)), 2, axis=-1)
            return x + self.down(op.silu(gate) * up)

    class Decoder(nn.Module):  # type: ignore[misc]
        # its methods are the bodies of steps
        def __init__(self, c: LlmConfig, form: Format, target: Any) -> None:
            super().__init__()
            self.c, self.form, self.target = c, form, target
            self.embed = module(c, form, "embed")
            self.layers = nn.ModuleList([Layer(c, form) for _ in range(c.layers)])
            self.norm = module(c, form, "norm")
            self.head = None if c.tied else module(c, form, "head")

        def _states(self, tokens: Any, state: Any) -> list[Any]:
            x = op.unsqueeze(self.embed.rows(tokens), 0)
            states = []
            for index, layer in enumerate(self.layers):
                x = layer(x, state, index)
                states.append(x)
            return states

        def _logits(self, x: Any) -> Any:
            return (self.head or self.embed)(self.norm(x)).astype("float32")

        def all_positions(self, tokens: Any, state: Any) -> Any:
            states = self._states(tokens, state)
            return (self._logits(states[-1]), *states)

        def last_position(self, tokens: Any, state: Any) -> Any:
            def last(x: Any) -> Any:
                return te.compute((1, 1, x.shape[2]), lambda i, _, k: x[i, x.shape[1] - 1, k], name="last")

            return self._logits(op.tensor_expr_op(last, name_hint="last", args=[self._states(tokens, state)[-1]]))

        def next_token(self, tokens: Any, state: Any) -> Any:
            return self._logits(self._states(tokens, state)[-1])

        next_token_layers = all_positions  # under its own name, which has a length of its own

        def create_paged_kv_cache(self, batch: Any, total: Any, chunk: Any, page: Any, window: Any) -> Any:
            c = self.c
            return TIRPagedKVCache(
                "mha", batch, total, chunk, page, window, relax.ShapeExpr([0, c.layers]), c.layers, c.heads, c.kv_heads,
                **dict.fromkeys(("qk_head_dim", "v_head_dim", "rotary_dim"), c.head_dim),
                **dict.fromkeys(("mla_original_qk_head_dim", "mla_original_v_head_dim"), 0),
                rope_mode=RopeMode.NORMAL,
                rope_scale=1,
                rope_theta=c.rope_theta,
                rope_scaling={"rope_type": "llama3", **asdict(c.scaling)} if c.scaling else {},
                rope_ext_factors=relax.prim_value(0),
                enable_disaggregation=False,
                dtype=self.form.dtype,
                target=self.target,
            )  # fmt: skip

        def spec(self) -> dict[str, Any]:
            def step(count: int | str) -> dict[str, Any]:
                arguments = {"tokens": nn.spec.Tensor([count], "int32"), "state": nn.spec.Object(PagedKVCache)}
                return {**arguments, "$": {"param_mode": "packed", "effect_mode": "none"}}

            sizes = dict.fromkeys(("batch", "total", "chunk", "page", "window"), int)
            create = {**sizes, "$": {"param_mode": "none", "effect_mode": "none"}}
            return {**{body.body: step(body.tokens or LENGTH) for body in STEPS}, CREATE: create}

    return Decoder
