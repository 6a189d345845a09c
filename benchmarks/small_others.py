"""Small networks of diffusion, series and sequences."""

from __future__ import annotations

from typing import Any

from benchmarks.small_networks import Network, make, net

SMALL = "1,3,32,32"
D = "diffusers:"
LEVELS: dict[str, Any] = {"block_out_channels": (16, 32), "layers_per_block": 1, "norm_num_groups": 4}
DOWN, UP = "DownEncoderBlock2D", "UpDecoderBlock2D"
CROSS: dict[str, Any] = {"cross_attention_dim": 16, "attention_head_dim": 4}
TIME, TEXT = "timestep=1<1000", "encoder_hidden_states=1,6,16"
DIFFUSERS = {
    "unet2d": net(
        f"sample=1,3,16,16 {TIME}",
        f"{D}UNet2DModel",
        16,
        **LEVELS,
        attention_head_dim=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    ),
    "unet2d_resnet": net(
        f"sample=1,3,16,16 {TIME}",
        f"{D}UNet2DModel",
        16,
        **LEVELS,
        attention_head_dim=8,
        downsample_type="resnet",
        upsample_type="resnet",
        resnet_time_scale_shift="scale_shift",
        down_block_types=("ResnetDownsampleBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "ResnetUpsampleBlock2D"),
    ),
    "unet1d_value": net(
        f"sample=1,14,16 {TIME}",
        f"{D}UNet1DModel",
        16,
        in_channels=14,
        out_channels=14,
        block_out_channels=(8, 16),
        extra_in_channels=0,
        time_embedding_type="positional",
        use_timestep_embedding=True,
        act_fn="mish",
        down_block_types=("DownResnetBlock1D", "DownResnetBlock1D"),
        up_block_types=("UpResnetBlock1D",),
        mid_block_type="MidResTemporalBlock1D",
        out_block_type="OutConv1DBlock",
        norm_num_groups=4,
    ),
    "unet2d_condition": net(
        f"sample=1,4,16,16 {TIME} {TEXT}",
        f"{D}UNet2DConditionModel",
        16,
        **LEVELS,
        **CROSS,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    ),
    "unet3d_condition": net(
        f"sample=1,4,4,8,8 {TIME} {TEXT}",
        f"{D}UNet3DConditionModel",
        8,
        **LEVELS,
        **CROSS,
        down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
        up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"),
    ),
    "controlnet": net(
        f"sample=1,4,16,16 {TIME} {TEXT} controlnet_cond=1,3,32,32",
        f"{D}ControlNetModel",
        **LEVELS,
        **CROSS,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        conditioning_embedding_out_channels=(8, 16),
    ),
    "vae": net(SMALL, f"{D}AutoencoderKL", down_block_types=(DOWN,) * 2, up_block_types=(UP,) * 2, **LEVELS),
    "vae_asymmetric": net(
        SMALL,
        f"{D}AsymmetricAutoencoderKL",
        down_block_types=(DOWN,) * 2,
        up_block_types=(UP,) * 2,
        down_block_out_channels=(16, 32),
        up_block_out_channels=(16, 32),
        norm_num_groups=4,
    ),
    "vae_tiny": net(
        SMALL,
        f"{D}AutoencoderTiny",
        encoder_block_out_channels=(16, 16),
        decoder_block_out_channels=(16, 16),
        num_encoder_blocks=(1, 1),
        num_decoder_blocks=(1, 1),
    ),
    "vae_oobleck": net("1,2,256", f"{D}AutoencoderOobleck", 8, [2, 4], [1, 2], 8, 4),
    "vae_cogvideox": net(
        "1,3,1,16,16",
        f"{D}AutoencoderKLCogVideoX",
        down_block_types=("CogVideoXDownBlock3D",) * 2,
        up_block_types=("CogVideoXUpBlock3D",) * 2,
        block_out_channels=(8, 8),
        latent_channels=4,
        layers_per_block=1,
        norm_num_groups=2,
        temporal_compression_ratio=2,
    ),
    "vq": net(
        SMALL, f"{D}VQModel", down_block_types=(DOWN,) * 2, up_block_types=(UP,) * 2, **LEVELS, num_vq_embeddings=16
    ),
    "dit": net(
        f"hidden_states=1,4,8,8 {TIME} class_labels=1<10",
        f"{D}DiTTransformer2DModel",
        4,
        8,
        num_layers=2,
        sample_size=8,
        num_embeds_ada_norm=1000,
        norm_num_groups=4,
    ),
    "pixart": net(
        f"hidden_states=1,4,8,8 {TEXT} {TIME}",
        f"{D}PixArtTransformer2DModel",
        num_attention_heads=4,
        attention_head_dim=8,
        in_channels=4,
        out_channels=8,
        num_layers=2,
        cross_attention_dim=32,
        sample_size=8,
        caption_channels=16,
        use_additional_conditions=False,
    ),
    "sd3": net(
        f"hidden_states=1,4,8,8 {TEXT} pooled_projections=1,16 {TIME}",
        f"{D}SD3Transformer2DModel",
        8,
        2,
        4,
        2,
        8,
        4,
        16,
        32,
        16,
        4,
        8,
        qk_norm="rms_norm",
        dual_attention_layers=(0,),
    ),
    "flux": net(
        f"hidden_states=1,16,4 {TEXT} pooled_projections=1,16 timestep=1* img_ids=16,3<4 txt_ids=6,3<4",
        f"{D}FluxTransformer2DModel",
        1,
        4,
        None,
        1,
        1,
        8,
        4,
        16,
        16,
        axes_dims_rope=(2, 2, 4),
    ),
    "sana": net(
        f"hidden_states=1,4,8,8 {TEXT} {TIME}",
        f"{D}SanaTransformer2DModel",
        4,
        4,
        4,
        8,
        2,
        4,
        8,
        32,
        16,
        sample_size=8,
        patch_size=1,
    ),
    "stable_audio": net(
        "hidden_states=1,4,16 timestep=1* encoder_hidden_states=1,6,16 global_hidden_states=1,1,32",
        f"{D}StableAudioDiTModel",
        16,
        4,
        2,
        8,
        4,
        2,
        4,
        16,
        global_states_input_dim=32,
        cross_attention_input_dim=16,
        time_proj_dim=16,
    ),
    "cogvideox": net(
        f"hidden_states=1,2,4,8,8 {TEXT} {TIME}",
        f"{D}CogVideoXTransformer3DModel",
        4,
        8,
        4,
        time_embed_dim=8,
        text_embed_dim=16,
        num_layers=1,
        sample_width=8,
        sample_height=8,
        sample_frames=5,
        max_text_seq_length=6,
    ),
    "wan": net(
        f"hidden_states=1,4,2,8,8 {TIME} {TEXT}", f"{D}WanTransformer3DModel", (1, 2, 2), 2, 12, 4, 4, 16, 16, 32, 2
    ),
    "aura_flow": net(
        f"hidden_states=1,4,8,8 {TEXT} timestep=1*",
        f"{D}AuraFlowTransformer2DModel",
        8,
        2,
        4,
        1,
        1,
        8,
        4,
        16,
        32,
        4,
        16,
    ),
    "prior": net(
        f"hidden_states=1,16 {TIME} proj_embedding=1,16 encoder_hidden_states=1,6,16",
        f"{D}PriorTransformer",
        4,
        8,
        2,
        16,
        6,
    ),
    "t2i_adapter": net(SMALL, f"{D}T2IAdapter", 3, [8, 16, 16, 16], 1, 4, "full_adapter"),
}

H, L = 6, 24


def series(channels: int, of: str, *arguments: Any, **options: Any) -> Network:
    """Return a network of neuralforecast."""
    return net(
        f"1,{L},{channels}",
        "benchmarks.small_networks:of_series",
        make(f"neuralforecast.models:{of}", *arguments, **options),
    )


WIDE: dict[str, Any] = {"hidden_size": 16, "conv_hidden_size": 16, "n_head": 2}
NEURALFORECAST = {
    "nbeats": series(1, "NBEATS", H, L, mlp_units=[[32, 32]] * 3),
    "nhits": series(1, "NHITS", H, L, mlp_units=[[32, 32]] * 3),
    "nhits_cubic": series(
        1, "NHITS", H, L, mlp_units=[[32, 32]] * 3, interpolation_mode="cubic", pooling_mode="AvgPool1d"
    ),
    "tft": series(1, "TFT", H, L, hidden_size=16, n_head=2),
    "patchtst": series(
        1,
        "PatchTST",
        H,
        L,
        encoder_layers=1,
        n_heads=2,
        hidden_size=16,
        linear_hidden_size=32,
        patch_len=8,
        stride=4,
    ),
    "autoformer": series(1, "Autoformer", H, L, **WIDE, encoder_layers=1, MovingAvg_window=5),
    "vanilla": series(1, "VanillaTransformer", H, L, **WIDE, encoder_layers=1),
    "itransformer": series(3, "iTransformer", H, L, 3, hidden_size=16, n_heads=2, e_layers=1, d_ff=32),
    "tide": series(1, "TiDE", H, L, hidden_size=32, decoder_output_dim=8, temporal_decoder_dim=16),
    "tsmixer": series(3, "TSMixer", H, L, 3, ff_dim=16),
    "dlinear": series(1, "DLinear", H, L, moving_avg_window=5),
    "nlinear": series(1, "NLinear", H, L),
    "bitcn": series(1, "BiTCN", H, L, hidden_size=8),
    "tcn": series(1, "TCN", H, L, encoder_hidden_size=16, decoder_hidden_size=16),
    "softs": series(3, "SOFTS", H, L, 3, hidden_size=16, d_core=8, e_layers=1, d_ff=16),
    "timemixer": series(3, "TimeMixer", H, L, 3, d_model=8, d_ff=16, e_layers=1),
    "timexer": series(3, "TimeXer", H, L, 3, patch_len=8, hidden_size=16, n_heads=2, e_layers=1, d_ff=16),
    "kan": series(1, "KAN", H, L, hidden_size=16),
    "rmok": series(3, "RMoK", H, L, 3),
    "lstm": series(1, "LSTM", H, L, encoder_hidden_size=16, decoder_hidden_size=16),
    "dilated_rnn": series(1, "DilatedRNN", H, L, encoder_hidden_size=8, decoder_hidden_size=8),
    "deepnpts": series(1, "DeepNPTS", H, L, hidden_size=16),
}

MAMBA = {
    "mamba": net(
        "1,16,16", "mambapy.mamba:Mamba", make("mambapy.mamba:MambaConfig", d_model=16, n_layers=2, pscan=True)
    ),
    "mamba_sequential": net(
        "1,8,16", "mambapy.mamba:Mamba", make("mambapy.mamba:MambaConfig", d_model=16, n_layers=1, pscan=False)
    ),
}
X = "x_transformers:"
ATTENTION: dict[str, Any] = {"dim": 32, "depth": 2, "heads": 2, "attn_dim_head": 16}
WORDS: dict[str, Any] = {"num_tokens": 50, "max_seq_len": 16}
X_TRANSFORMERS = {
    **{
        name: net(
            "1,12<50", f"{X}TransformerWrapper", **WORDS, attn_layers=make(f"{X}{layers}", **ATTENTION, **options)
        )
        for name, layers, options in (
            ("rotary", "Decoder", {"rotary_pos_emb": True, "use_rmsnorm": True, "ff_swish": True, "ff_glu": True}),
            ("alibi", "Decoder", {"alibi_pos_bias": True, "attn_qk_norm": True}),
            ("t5_bias", "Encoder", {"rel_pos_bias": True, "sandwich_norm": True}),
            (
                "dynamic_bias",
                "Encoder",
                {"dynamic_pos_bias": True, "dynamic_pos_bias_log_distance": True, "ff_relu_squared": True},
            ),
            ("macaron", "Encoder", {"macaron": True, "use_scalenorm": True, "attn_pre_talking_heads": True}),
            ("sparse_topk", "Decoder", {"attn_sparse_topk": 4, "shift_tokens": 1, "gate_residual": True}),
            ("one_kv_head", "Decoder", {"attn_one_kv_head": True, "residual_attn": True, "attn_num_mem_kv": 4}),
        )
    },
    "continuous": net(
        "1,12,8",
        f"{X}ContinuousTransformerWrapper",
        dim_in=8,
        dim_out=4,
        max_seq_len=16,
        attn_layers=make(f"{X}Encoder", **ATTENTION),
    ),
    "vit": net(
        "1,3,32,32",
        f"{X}ViTransformerWrapper",
        image_size=32,
        patch_size=8,
        num_classes=5,
        attn_layers=make(f"{X}Encoder", **ATTENTION),
    ),
}
PACKAGES = {
    "diffusers": DIFFUSERS,
    "neuralforecast": NEURALFORECAST,
    "mambapy": MAMBA,
    "x_transformers": X_TRANSFORMERS,
}
