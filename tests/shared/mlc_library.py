"""A library with the functions and the metadata that mlc-llm gives its own, of our network; and its folder of weights.

mlc-llm itself is in no package index. Names and signatures are those of its cpp/serve/function_table.cc.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.compile.artifacts.compile import export
from harness.compile.paths.base import Workaround
from harness.tools.llm.config import LlmConfig
from harness.tools.llm.lowering import MLC, build_executable, target_of
from harness.tools.llm.network import CHUNK, _decoder
from harness.tools.llm.weights import FORMATS, SeededWeights, library_tensors

LIBRARY, WEIGHTS = "model.so", "weights"


def write_mlc(
    folder: Path, config: LlmConfig, form: str, workarounds: Sequence[Workaround], host_triple: str | None = None
) -> None:
    """Write library and weights into a folder."""
    target = target_of(host_triple)
    mod = _module(config, form, target)
    tensors = list(library_tensors(SeededWeights(config), FORMATS[form]))
    params = [
        {"name": _theirs(name), "shape": list(array.shape), "dtype": str(array.dtype), "preprocs": []}
        for name, array in tensors
    ]
    mod = _with_metadata(mod, form, [_with_named_extent(param, config.vocabulary) for param in params])
    export(build_executable(mod, target, MLC, workarounds, lambda _: None), folder / LIBRARY, host_triple)
    _write_weights(folder / WEIGHTS, config, form, params, [array.tobytes() for _, array in tensors])


def _module(config: LlmConfig, form: str, target: Any) -> Any:
    from tvm import te
    from tvm.relax.frontend import nn
    from tvm.relax.frontend.nn import op
    from tvm.relax.frontend.nn.llm.kv_cache import PagedKVCache

    class Network(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = _decoder()(config, FORMATS[form], target)

        def embed(self, tokens: Any) -> Any:
            return self.model.embed.rows(tokens)

        def _hidden(self, x: Any, state: Any) -> Any:
            for index, layer in enumerate(self.model.layers):
                x = layer(x, state, index)
            return x

        def prefill(self, embedded: Any, state: Any) -> Any:
            def last(x: Any) -> Any:
                return te.compute((1, 1, x.shape[2]), lambda i, _, k: x[i, x.shape[1] - 1, k], name="index")

            hidden = op.tensor_expr_op(last, name_hint="index", args=[self._hidden(embedded, state)])
            return self.model._logits(hidden), state

        def decode(self, embedded: Any, state: Any) -> Any:
            return self.model._logits(self._hidden(embedded, state)), state

        def create_tir_paged_kv_cache(self, batch: Any, total: Any, chunk: Any, page: Any, window: Any) -> Any:
            return self.model.create_paged_kv_cache(batch, total, chunk, page, window)

    def step(count: int | str) -> dict[str, Any]:
        dtype = FORMATS[form].dtype
        embedded = nn.spec.Tensor([1, count, config.hidden], dtype)
        return {"embedded": embedded, "state": nn.spec.Object(PagedKVCache), "$": packed}

    packed = {"param_mode": "packed", "effect_mode": "none"}
    sizes = dict.fromkeys(("batch", "total", "chunk", "page", "window"), int)
    spec = {
        "embed": {"tokens": nn.spec.Tensor(["seq_len"], "int32"), "$": packed},
        "prefill": step("seq_len"),
        "decode": step(1),
        "create_tir_paged_kv_cache": {**sizes, "$": {"param_mode": "none", "effect_mode": "none"}},
    }
    with target:
        return Network().export_tvm(spec=spec)[0]


_MODULES = {
    "embed": "model.embed_tokens", "norm": "model.norm", "head": "lm_head", "norm1": "input_layernorm",
    "qkv": "self_attn.qkv_proj", "o": "self_attn.o_proj", "norm2": "post_attention_layernorm",
    "gate_up": "mlp.gate_up_proj", "down": "mlp.down_proj", "words": "q_weight", "scale": "q_scale",
}  # fmt: skip
"""mlc-llm's names of modules and tensors (model/llama/llama_model.py, quantization/group_quantization.py)."""


def _theirs(name: str) -> str:
    """Return mlc-llm's name of a weight."""
    layer = ["model"] if name.startswith("layers") else []
    return ".".join([*layer, *(_MODULES.get(word, word) for word in name.split("."))])


def _with_named_extent(param: dict[str, Any], vocabulary: int) -> dict[str, Any]:
    """Return a weight as the library names it: the extent of the vocabulary is known to the weights alone."""
    return {**param, "shape": ["vocab_size" if extent == vocabulary else extent for extent in param["shape"]]}


def _with_metadata(mod: Any, form: str, params: list[dict[str, Any]]) -> Any:
    from tvm import relax
    from tvm.ir import StringImm

    metadata = {
        "model_type": "llama",
        "quantization": form,
        "context_window_size": 1024,
        "sliding_window_size": -1,
        "prefill_chunk_size": CHUNK,
        "tensor_parallel_shards": 1,
        "kv_state_kind": "kv_cache",
        "max_batch_size": 1,
        "params": params,
    }
    builder = relax.BlockBuilder(mod)
    with builder.function("_metadata", params=[]):
        builder.emit_func_output(StringImm(json.dumps(metadata)))
    return builder.finalize()


def _write_weights(folder: Path, config: LlmConfig, form: str, params: list[dict[str, Any]], data: list[bytes]) -> None:
    folder.mkdir()
    offsets = [sum(map(len, data[:index])) for index in range(len(data))]
    records = [
        {**param, "format": "raw", "nbytes": len(numbers), "byteOffset": offset}
        for param, numbers, offset in zip(params, data, offsets, strict=True)
    ]
    (folder / "params_shard_0.bin").write_bytes(b"".join(data))
    shard = {"dataPath": "params_shard_0.bin", "format": "raw-shard", "nbytes": sum(map(len, data)), "records": records}
    (folder / "ndarray-cache.json").write_text(json.dumps({"metadata": {}, "records": [shard]}))
    shape = {
        "hidden_size": config.hidden,
        "intermediate_size": config.intermediate,
        "num_attention_heads": config.heads,
        "num_hidden_layers": config.layers,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "rms_norm_eps": config.eps,
        "position_embedding_base": config.rope_theta,
        "vocab_size": config.vocabulary,
    }
    settings = {"model_type": "llama", "quantization": form, "vocab_size": config.vocabulary, "model_config": shape}
    (folder / "mlc-chat-config.json").write_text(json.dumps({**settings, "context_window_size": 1024}))
