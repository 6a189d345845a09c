"""Fields of the `config.json` of a small network that the tool for language models knows."""

FIELDS = {
    "model_type": "llama",
    "num_hidden_layers": 1,
    "hidden_size": 64,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 96,
}
