"""Networks of Hugging Face's transformers, made small: two layers, 64 numbers wide, with random weights.

    python -m benchmarks.exported_networks FOLDER transformers

Each is what `AutoModel` makes of its own default configuration, with smaller sizes. Nothing is downloaded.
"""

from __future__ import annotations

from typing import Any

NAMES = """
AST Albert Bart Beit Bert BigBird BioGpt BlenderbotSmall Bloom CLIP CLIPText CLIPVision Camembert ConvBert DPT
Data2VecAudio Data2VecText Data2VecVision Deberta DebertaV2 DeiT Dinov2 DistilBert Electra Ernie EuroBert FNet GLPN
GPTBigCode GPTNeo Gemma Gemma3Text Granite GroupViT Gte Hubert IBert IJepa ImageGPT JinaEmbeddingsV3 LED LayoutLM Llama
LongT5 M2M100 MBart MPNet MT5 Marian MarkupLM MegatronBert MobileBert MobileNetV1 MobileNetV2 MobileViT ModernBert
ModernBertDecoder Mpt NomicBert Nystromformer OPT Olmo2 OpenAIGPT OwlViT ParakeetEncoder PatchTST Pegasus Phi PvtV2
Qwen3 RemBert RoFormer Roberta RobertaPreLayerNorm Rwkv SamVision Segformer SiglipVision SmolLM3 Splinter SqueezeBert
Starcoder2 SwiftFormer T5 UMT5 UniSpeech UniSpeechSat ViT ViTMSN VisualBert VitDet Wav2Vec2 Wav2Vec2Conformer
WavLM XGLM XLM XLMRoberta Yolos Yoso
"""
WIDTH, HEADS, LAYERS, WORDS, PIXELS, TOKENS = 64, 4, 2, 500, 64, 16
SIZES: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "embedding_size", "embed_dim"), WIDTH),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), HEADS),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), HEADS),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers"), LAYERS),
    **dict.fromkeys(("encoder_layers", "decoder_layers", "num_encoder_layers", "num_decoder_layers"), LAYERS),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff"), 2 * WIDTH),
    **dict.fromkeys(("hidden_dim", "mlp_dim", "max_position_embeddings", "n_positions"), 2 * WIDTH),
    **dict.fromkeys(("d_kv", "head_dim"), WIDTH // HEADS),
    "num_key_value_heads": HEADS // 2,
    "vocab_size": WORDS,
    "image_size": PIXELS,
    "attention_window": 8,
    "projection_dim": 32,
    "block_size": 32,
    "use_cache": False,
}
"""What a configuration gets in place of its own number, where it has one of that name."""
LISTS = {"conv_dim": (32,) * 7, "hidden_sizes": [16, 32, 40, 64], "depths": [1, 1, 2, 1]}
"""The same, of stages."""


def build(name: str) -> tuple[Any, tuple[Any, ...]]:
    """Return a network that returns its first two results of real numbers, and its inputs."""
    import torch
    import transformers

    config = shrunk(getattr(transformers, f"{name}Config")())
    model = transformers.AutoModel.from_config(config, attn_implementation="eager").float().eval()
    with torch.no_grad():
        for parameter in model.parameters():  # as they come, most results would hardly depend on the input
            fan_in = parameter[0].numel() if parameter.ndim > 1 else 0
            parameter.copy_(torch.randn_like(parameter) * fan_in**-0.5 if fan_in else parameter + 0.1)
    inputs = inputs_of(model)

    class Results(torch.nn.Module):  # type: ignore[misc]
        """The network with its results as a tuple."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *tensors: Any) -> tuple[Any, ...]:
            results = self.model(**dict(zip(inputs, tensors, strict=True)), return_dict=True).values()
            return tuple(each for each in results if getattr(each, "dtype", None) == torch.float32)[:2]

    return Results().eval(), tuple(inputs.values())


def shrunk(config: Any) -> Any:
    """Return a configuration with the smaller sizes, those of its parts included."""
    for name, size in SIZES.items():
        if isinstance(getattr(config, name, None), int):
            setattr(config, name, size)
    for name, sizes in LISTS.items():
        if isinstance(getattr(config, name, None), list | tuple):
            setattr(config, name, sizes[: len(getattr(config, name))])
    for name in ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"):
        if (getattr(config, name, 0) or 0) >= WORDS:
            setattr(config, name, 1)
    if getattr(config, "layer_types", None):
        config.layer_types = list(config.layer_types)[:LAYERS]
    for part in vars(config).values():
        if hasattr(part, "to_diff_dict"):
            shrunk(part)
    return config


def inputs_of(model: Any) -> dict[str, Any]:
    """Return random inputs of a network by name: tokens, an image, a sound, features of a sound, or a series."""
    import torch

    config, name = model.config, model.main_input_name
    size = getattr(config, "image_size", None) or getattr(getattr(config, "vision_config", None), "image_size", PIXELS)
    pixels = (1, getattr(config, "num_channels", 3), *(size if isinstance(size, list | tuple) else (size, size)))
    tokens = torch.randint(2, WORDS - 100, (1, TOKENS))
    if name == "pixel_values":
        return {name: torch.randn(*pixels)}
    if name == "input_values" and hasattr(config, "num_mel_bins"):
        return {name: torch.randn(1, config.max_length, config.num_mel_bins)}
    if name == "input_values":
        return {name: torch.randn(1, 1600)}
    if name == "input_features":
        return {name: torch.randn(1, 4 * TOKENS, config.num_mel_bins)}
    if name == "past_values":
        return {name: torch.randn(1, config.context_length, config.num_input_channels)}
    more = {"decoder_input_ids": tokens[:, : TOKENS // 2]} if getattr(config, "is_encoder_decoder", False) else {}
    if hasattr(config, "vision_config"):
        more["pixel_values"] = torch.randn(*pixels)
    return {"input_ids": tokens, **more}
