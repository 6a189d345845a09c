"""Small networks of images: segmentation, filters, features, super-resolution, detection."""

from __future__ import annotations

from typing import Any

from benchmarks.small_networks import Network, make, net

IMAGE, SMALL, VOLUME = "1,3,64,64", "1,3,32,32", "1,1,32,32,32"

M = "monai.networks.nets:"
MONAI = {
    "unet3d": net(VOLUME, f"{M}UNet", 3, 1, 2, (8, 16, 32), (2, 2), num_res_units=2),
    "unet2d": net(IMAGE, f"{M}UNet", 2, 3, 4, (8, 16, 32), (2, 2), norm="BATCH"),
    "unet1d": net("1,2,128", f"{M}UNet", 1, 2, 2, (8, 16, 32), (2, 2)),
    "attention_unet3d": net(VOLUME, f"{M}AttentionUnet", 3, 1, 2, (8, 16, 32), (2, 2)),
    "attention_unet2d": net(IMAGE, f"{M}AttentionUnet", 2, 3, 2, (8, 16, 32), (2, 2)),
    "basic_unet3d": net(VOLUME, f"{M}BasicUNet", 3, 1, 2, (8, 8, 16, 24, 32, 8)),
    "basic_unet2d_nontrainable": net(IMAGE, f"{M}BasicUNet", 2, 3, 2, (8, 8, 16, 24, 32, 8), upsample="nontrainable"),
    "basic_unet_plus_plus3d": net(VOLUME, f"{M}BasicUNetPlusPlus", 3, 1, 2, (4, 4, 8, 16, 24, 4)),
    "basic_unet_plus_plus2d": net(IMAGE, f"{M}BasicUNetPlusPlus", 2, 3, 2, (8, 8, 16, 24, 32, 8)),
    "dynunet3d": net(VOLUME, f"{M}DynUNet", 3, 1, 2, [3, 3, 3], [1, 2, 2], [2, 2], filters=[8, 16, 32], res_block=True),
    "dynunet2d": net(IMAGE, f"{M}DynUNet", 2, 3, 2, [3, 3, 3], [1, 2, 2], [2, 2], filters=[8, 16, 32]),
    "segresnet3d": net(VOLUME, f"{M}SegResNet", 3, 8, 1, 2, blocks_down=(1, 1, 1), blocks_up=(1, 1)),
    "segresnet2d": net(IMAGE, f"{M}SegResNet", 2, 8, 3, 2, upsample_mode="pixelshuffle"),
    "segresnet_ds3d": net(VOLUME, f"{M}SegResNetDS", 3, 8, 1, 2, blocks_down=(1, 1, 1), norm="instance"),
    "segresnet_vae": net(VOLUME, f"{M}SegResNetVAE", (32, 32, 32), vae_nz=16, blocks_down=(1, 1, 1), blocks_up=(1, 1)),
    "unetr3d": net(VOLUME, f"{M}UNETR", 1, 2, (32, 32, 32), feature_size=4, hidden_size=48, mlp_dim=64, num_heads=4),
    "unetr2d": net(IMAGE, f"{M}UNETR", 3, 2, 64, 4, 48, 64, 4, spatial_dims=2),
    "swin_unetr2d": net(IMAGE, f"{M}SwinUNETR", 3, 2, feature_size=12, depths=(1, 1, 1, 1), spatial_dims=2),
    "highresnet3d": net("1,1,8,8,8", f"{M}HighResNet", 3, 1, 2),
    "highresnet2d": net(SMALL, f"{M}HighResNet", 2, 3, 2),
    "densenet3d": net(VOLUME, f"{M}DenseNet", 3, 1, 3, 16, 8, (2, 2, 2)),
    "densenet1d": net("1,2,128", f"{M}DenseNet", 1, 2, 3, 16, 8, (2, 2, 2)),
    "resnet3d": net(VOLUME, f"{M}ResNet", "basic", [1, 1, 1, 1], [8, 16, 24, 32], n_input_channels=1, num_classes=3),
    "resnet3d_shortcut": net(
        VOLUME,
        f"{M}ResNet",
        "bottleneck",
        [1] * 4,
        [4, 8, 8, 8],
        n_input_channels=1,
        num_classes=3,
        shortcut_type="A",
        bias_downsample=False,
    ),
    "autoencoder3d": net(
        VOLUME, f"{M}AutoEncoder", 3, 1, 1, (4, 8, 16), (2, 2, 2), inter_channels=(16, 16), num_inter_units=1
    ),
    "autoencoder2d": net(
        IMAGE, f"{M}AutoEncoder", 2, 3, 3, (8, 16), (2, 2), inter_channels=(16,), inter_dilations=(2,)
    ),
    "autoencoder_kl3d": net(
        "1,1,16,16,16", f"{M}AutoencoderKL", 3, 1, 1, (1, 1), (8, 16), (False, True), 3, 4, method="reconstruct"
    ),
    "autoencoder_kl2d": net(
        SMALL,
        f"{M}AutoencoderKL",
        2,
        3,
        3,
        (1, 1),
        (8, 16),
        (False, True),
        3,
        4,
        method="reconstruct",
        use_convtranspose=True,
    ),
    "vqvae2d": net(
        SMALL, f"{M}VQVAE", 2, 3, 3, (16, 16), 1, (16, 16), ((2, 4, 1, 1),) * 2, ((2, 4, 1, 1, 0),) * 2, 16, 8
    ),
    "diffusion_unet2d": net(
        "1,1,16,16 1<1000", f"{M}DiffusionModelUNet", 2, 1, 1, (1, 1), (8, 16), (False, True), 4, num_head_channels=8
    ),
    "diffusion_unet3d_cross": net(
        "1,1,8,8,8 1<1000 1,4,12",
        f"{M}DiffusionModelUNet",
        3,
        1,
        1,
        (1, 1),
        (8, 16),
        (False, True),
        4,
        num_head_channels=8,
        with_conditioning=True,
        cross_attention_dim=12,
        resblock_updown=True,
    ),
    "controlnet2d": net(
        "1,1,16,16 1<1000 1,1,16,16",
        f"{M}ControlNet",
        2,
        1,
        (1, 1),
        (8, 16),
        (False, True),
        4,
        num_head_channels=8,
        conditioning_embedding_num_channels=(8,),
        conditioning_embedding_in_channels=1,
    ),
    "spade_net": net(
        "1,2,32,32 1,1,32,32",
        f"{M}SPADENet",
        2,
        1,
        1,
        2,
        [32, 32],
        [8, 16],
        is_vae=False,
        spade_intermediate_channels=8,
    ),
    "spade_autoencoder_kl": net(
        "1,1,16,16 1,2,16,16",
        f"{M}SPADEAutoencoderKL",
        2,
        2,
        1,
        1,
        (1, 1),
        (8, 16),
        (False, True),
        3,
        4,
        spade_intermediate_channels=8,
        method="reconstruct",
    ),
    "patch_discriminator": net(IMAGE, f"{M}PatchDiscriminator", 2, 8, 3),
    "vit3d": net(VOLUME, f"{M}ViT", 1, 32, 8, 48, 64, 2, 4, classification=True),
    "vit_autoenc": net(VOLUME, f"{M}ViTAutoEnc", 1, 32, 16, 1, 8, 48, 64, 2, 4),
    "mednext3d": net(
        VOLUME, f"{M}MedNeXt", 3, 8, 1, 2, kernel_size=5, blocks_down=(1,) * 4, blocks_bottleneck=1, blocks_up=(1,) * 4
    ),
    "mednext2d": net(
        IMAGE, f"{M}MedNeXt", 2, 8, 3, 2, kernel_size=3, use_residual_connection=True, global_resp_norm=True
    ),
    "restormer": net(
        SMALL,
        f"{M}restormer.Restormer",
        2,
        3,
        3,
        8,
        (1, 1, 1, 1),
        (1, 1, 2, 2),
        num_refinement_blocks=1,
        flash_attention=False,
    ),
    "regunet3d": net("1,2,16,16,16", f"{M}RegUNet", 3, 2, 4, 2),
    "globalnet": net("1,2,32,32", f"{M}GlobalNet", [32, 32], 2, 2, 8, 3),
    "localnet": net("1,2,32,32", f"{M}LocalNet", 2, 2, 8, (0, 1, 2), out_channels=2),
    "voxelmorph": net(
        "1,1,32,32 1,1,32,32",
        f"{M}VoxelMorph",
        make(f"{M}VoxelMorphUNet", 2, 2, 16, (8, 8, 8, 8), (8, 8)),
        3,
        False,
        2,
    ),
    "generator": net("1,8", f"{M}Generator", 8, (8, 4, 4), (8, 8, 1), (2, 2, 1)),
    "regressor": net(VOLUME, f"{M}Regressor", (1, 32, 32, 32), 1, (4, 8, 16), (2, 2, 2)),
    "fully_connected": net("1,16", f"{M}FullyConnectedNet", 16, 4, (32, 32), adn_ordering="NA"),
    "dints": net(
        "1,1,32,32",
        f"{M}DiNTS",
        make(f"{M}TopologySearch", 0.1, num_blocks=2, num_depths=2, spatial_dims=2),
        1,
        2,
        spatial_dims=2,
    ),
    "transformer": net("1,8<20", f"{M}DecoderOnlyTransformer", 20, 8, 32, 2, 4),
}

K = "kornia."
COLOURS = """
RgbToLab LabToRgb RgbToLuv LuvToRgb RgbToHsv HsvToRgb RgbToHls HlsToRgb RgbToXyz RgbToYuv RgbToYcbcr RgbToLinearRgb
LinearRgbToRgb Sepia RgbToYuv420
"""
KORNIA = {
    **{name.lower(): net("1,3,32,32*", f"{K}color:{name}") for name in COLOURS.split()},
    "bilateral": net("1,3,32,32*", f"{K}filters:BilateralBlur", (5, 5), 0.2, (1.5, 1.5)),
    "joint_bilateral": net("1,3,32,32* 1,3,32,32*", f"{K}filters:JointBilateralBlur", (5, 5), 0.2, (1.5, 1.5)),
    "blur_pool": net("1,3,32,32*", f"{K}filters:BlurPool2D", 3),
    "max_blur_pool": net("1,3,32,32*", f"{K}filters:MaxBlurPool2D", 3),
    "edge_aware_blur_pool": net("1,3,32,32*", f"{K}filters:EdgeAwareBlurPool2D", 3),
    "box_blur": net("1,3,32,32*", f"{K}filters:BoxBlur", (3, 5)),
    "canny": net("1,3,32,32*", f"{K}filters:Canny", hysteresis=False),
    "gaussian": net("1,3,32,32*", f"{K}filters:GaussianBlur2d", (5, 5), (1.5, 1.0)),
    "laplacian": net("1,3,32,32*", f"{K}filters:Laplacian", 5),
    "median": net("1,3,32,32*", f"{K}filters:MedianBlur", (3, 3)),
    "motion": net("1,3,32,32*", f"{K}filters:MotionBlur", 5, 35.0, 0.5),
    "sobel": net("1,3,32,32*", f"{K}filters:Sobel"),
    "spatial_gradient3d": net("1,2,8,16,16", f"{K}filters:SpatialGradient3d", order=2),
    "unsharp": net("1,3,32,32*", f"{K}filters:UnsharpMask", (5, 5), (1.5, 1.5)),
    "jpeg": net("1,3,32,32* 1*", f"{K}enhance:JPEGCodecDifferentiable"),
    "adjust_hue": net("1,3,32,32*", f"{K}enhance:AdjustHue", 0.7),
    "integral_image": net("1,1,16,16*", f"{K}enhance:IntegralImage"),
    "blob_hessian": net("1,1,32,32*", f"{K}feature:BlobHessian"),
    "corner_gftt": net("1,1,32,32*", f"{K}feature:CornerGFTT"),
    "corner_harris": net("1,1,32,32*", f"{K}feature:CornerHarris", make("torch:tensor", 0.04)),
    "dense_sift": net("1,1,32,32*", f"{K}feature:DenseSIFTDescriptor"),
    "sift": net("2,1,32,32*", f"{K}feature:SIFTDescriptor", 32),
    "disk": net("1,3,32,32*", f"{K}feature:DISK", 16, method="heatmap_and_dense_descriptors"),
    "hardnet": net("2,1,32,32*", f"{K}feature:HardNet", pretrained=False),
    "hynet": net("2,1,32,32*", f"{K}feature:HyNet", pretrained=False),
    "tfeat": net("2,1,32,32*", f"{K}feature:TFeat", pretrained=False),
    "mkd": net("2,1,32,32*", f"{K}feature:MKDDescriptor", whitening=None),
    "keynet": net("1,1,64,64*", f"{K}feature:KeyNet", pretrained=False),
    "orinet": net("2,1,32,32*", f"{K}feature:OriNet", pretrained=False),
    "affine_shape": net("2,1,19,19*", f"{K}feature:PatchAffineShapeEstimator"),
    "orientation": net("2,1,32,32*", f"{K}feature:PatchDominantGradientOrientation"),
    "xfeat": net("1,3,64,64*", f"{K}feature:XFeatModel"),
    "soft_argmax2d": net("1,1,16,16", f"{K}geometry:ConvSoftArgmax2d", output_value=True),
    "soft_argmax3d": net("1,1,3,16,16", f"{K}geometry:ConvSoftArgmax3d"),
    "spatial_soft_argmax": net("1,2,16,16", f"{K}geometry:SpatialSoftArgmax2d"),
    "non_maxima": net("1,1,32,32*", f"{K}geometry:NonMaximaSuppression2d", (3, 3)),
    "pyramid_down": net("1,3,32,32*", f"{K}geometry:PyrDown"),
    "pyramid_up": net("1,3,16,16*", f"{K}geometry:PyrUp"),
    "rotate": net("1,3,32,32*", f"{K}geometry:Rotate", make("torch:tensor", [30.0])),
    "homography_warp": net("1,3,32,32* 1,3,3", f"{K}geometry:HomographyWarper", 16, 16),
    "resize_antialias": net("1,3,32,32*", f"{K}geometry:Resize", (12, 20), antialias=True),
    "distance_transform": net("1,1,16,16*", f"{K}contrib:DistanceTransform"),
    "tensor_patches": net("1,3,32,32*", f"{K}contrib:ExtractTensorPatches", 8, stride=6),
    "tiny_vit": net(
        IMAGE,
        f"{K}contrib:TinyViT",
        64,
        embed_dims=(16, 32, 48, 64),
        depths=(1, 1, 1, 1),
        num_heads=(1, 2, 3, 4),
        window_sizes=(4, 4, 4, 2),
        num_classes=10,
    ),
    "rrdbnet": net("1,3,16,16*", f"{K}models:RRDBNet", 3, 3, num_feat=16, num_block=2, num_grow_ch=8),
    "small_sr": net("1,1,24,24*", f"{K}models.small_sr:SmallSRNet", 3, pretrained=False),
    "yunet": net(IMAGE, f"{K}models.yunet:YuNet", "test", False),
    "rgb_to_raw": net("1,3,32,32*", f"{K}color:RgbToRaw", make(f"{K}color:CFA", 0)),
    "raw_to_rgb": net("1,1,32,32*", f"{K}color:RawToRgb", make(f"{K}color:CFA", 0)),
}

P = "segmentation_models_pytorch:"
ENCODER: dict[str, Any] = {"encoder_weights": None, "encoder_name": "tu-test_efficientnet"}
SEGMENTATION = {
    "unet": net(IMAGE, f"{P}Unet", **ENCODER, decoder_channels=(32, 24, 16, 8, 8)),
    "unet_plus_plus": net(IMAGE, f"{P}UnetPlusPlus", **ENCODER, decoder_channels=(32, 24, 16, 8, 8)),
    "manet": net(IMAGE, f"{P}MAnet", **ENCODER, decoder_channels=(32, 24, 16, 8, 8), decoder_pab_channels=16),
    "linknet": net(IMAGE, f"{P}Linknet", **ENCODER),
    "fpn": net(IMAGE, f"{P}FPN", **ENCODER, decoder_pyramid_channels=32, decoder_segmentation_channels=32),
    "pspnet": net(IMAGE, f"{P}PSPNet", **ENCODER, psp_out_channels=32),
    "pan": net("1,3,128,128", f"{P}PAN", **ENCODER, decoder_channels=16),
    "deeplabv3": net(IMAGE, f"{P}DeepLabV3", **ENCODER, decoder_channels=32),
    "deeplabv3plus": net(IMAGE, f"{P}DeepLabV3Plus", **ENCODER, decoder_channels=32),
    "upernet": net(IMAGE, f"{P}UPerNet", **ENCODER, decoder_channels=32),
    "segformer": net(IMAGE, f"{P}Segformer", **ENCODER, decoder_segmentation_channels=32),
    "dpt": net(
        "1,3,160,160",
        f"{P}DPT",
        encoder_name="tu-test_vit",
        encoder_weights=None,
        encoder_depth=4,
        decoder_intermediate_channels=(16,) * 4,
        decoder_fusion_channels=16,
        dynamic_img_size=True,
    ),
}

R = "spandrel.architectures."
SPANDREL = {
    "swinir": net(
        SMALL,
        f"{R}SwinIR:SwinIR",
        img_size=32,
        embed_dim=16,
        depths=[2],
        num_heads=[2],
        window_size=4,
        upscale=2,
        upsampler="pixelshuffle",
    ),
    "swin2sr": net(
        SMALL,
        f"{R}Swin2SR:Swin2SR",
        img_size=32,
        embed_dim=16,
        depths=[2],
        num_heads=[2],
        window_size=4,
        upsampler="pixelshuffledirect",
    ),
    "hat": net(
        SMALL,
        f"{R}HAT:HAT",
        img_size=32,
        embed_dim=16,
        depths=[2],
        num_heads=[2],
        window_size=4,
        upscale=2,
        upsampler="pixelshuffle",
        squeeze_factor=4,
    ),
    "dat": net(
        "1,3,16,16", f"{R}DAT:DAT", img_size=16, embed_dim=64, split_size=[2, 4], depth=[2], num_heads=[2], upscale=2
    ),
    "drct": net(
        SMALL,
        f"{R}DRCT:DRCT",
        img_size=32,
        embed_dim=16,
        depths=[1],
        num_heads=[2],
        window_size=4,
        upscale=2,
        upsampler="pixelshuffle",
        gc=8,
    ),
    "rgt": net("1,3,16,16", f"{R}RGT:RGT", img_size=16, embed_dim=64, depth=[2], num_heads=[2], split_size=[4, 4]),
    "craft": net(
        "1,3,16,16",
        f"{R}CRAFT:CRAFT",
        embed_dim=48,
        depths=[1],
        num_heads=[2],
        window_size=8,
        split_size_0=4,
        split_size_1=8,
    ),
    "compact": net(SMALL, f"{R}Compact:Compact", num_feat=16, num_conv=3),
    "esrgan": net("1,3,16,16", f"{R}ESRGAN:ESRGAN", num_filters=16, num_blocks=1),
    "span": net(SMALL, f"{R}SPAN:SPAN", num_in_ch=3, num_out_ch=3, feature_channels=16),
    "safmn": net(SMALL, f"{R}SAFMN:SAFMN", dim=16, n_blocks=2),
    "omnisr": net("1,3,16,16", f"{R}OmniSR:OmniSR", num_feat=16),
    "ditn": net("1,3,16,16", f"{R}DITN:DITN", dim=12, ITL_blocks=1, SAL_blocks=1),
    "plksr": net(SMALL, f"{R}PLKSR:PLKSR", dim=16, n_blocks=2),
    "real_plksr": net(SMALL, f"{R}PLKSR:RealPLKSR", dim=16, n_blocks=2, dysample=True),
    "mosr": net(SMALL, f"{R}MoSR:MoSR", n_block=2, dim=16),
    "rcan": net(SMALL, f"{R}RCAN:RCAN", n_resgroups=1, n_resblocks=2, n_feats=16, reduction=4),
    "seemore": net(SMALL, f"{R}SeemoRe:SeemoRe", num_experts=3, num_layers=1, embedding_dim=16),
    "cugan": net("1,3,24,24", f"{R}RealCUGAN:UpCunet2x"),
    "nafnet": net(SMALL, f"{R}NAFNet:NAFNet", width=8, enc_blk_nums=[1, 1], dec_blk_nums=[1, 1]),
    "dncnn": net(SMALL, f"{R}DnCNN:DnCNN", in_nc=3, out_nc=3, nc=16, nb=4),
    "drunet": net("1,4,32,32", f"{R}DRUNet:DRUNet", in_nc=4, out_nc=3, nc=[8, 8, 16, 16], nb=1),
    "kbnet": net(SMALL, f"{R}KBNet:KBNet_s", width=8, middle_blk_num=1, enc_blk_nums=[1, 1], dec_blk_nums=[1, 1]),
    "fftformer": net(SMALL, f"{R}FFTformer:FFTformer", dim=8, num_blocks=[1, 1, 1], num_refinement_blocks=1),
    "retinexformer": net(SMALL, f"{R}RetinexFormer:RetinexFormer", n_feat=8, stage=1),
    "uformer": net(
        "1,3,128,128",
        f"{R}Uformer:Uformer",
        img_size=128,
        embed_dim=8,
        depths=[1] * 9,
        num_heads=[1, 1, 2, 2, 4, 4, 2, 2, 1],
    ),
    "grl": net(
        "1,3,16,16",
        f"{R}GRL:GRL",
        img_size=16,
        embed_dim=16,
        depths=[1],
        num_heads_window=[1],
        num_heads_stripe=[1],
        upscale=2,
        upsampler="pixelshuffle",
        window_size=4,
        stripe_size=[4, 4],
    ),
    "moesr": net("1,3,16,16", f"{R}MoESR:MoESR", dim=16, n_blocks=1, n_block=1, upsample_dim=16),
    "fdat": net(
        "1,3,16,16",
        f"{R}FDAT:FDAT",
        embed_dim=16,
        num_groups=1,
        depth_per_group=2,
        num_heads=2,
        window_size=4,
        mid_dim=16,
    ),
}

TOWER: dict[str, Any] = {"layers": 2, "width": 64, "image_size": 64}
WORDS: dict[str, Any] = {"context_length": 16, "vocab_size": 500, "width": 64, "heads": 4, "layers": 2}
OPEN_CLIP = {
    "clip_vit": net(
        "1,3,64,64 1,16<500",
        "open_clip:CLIP",
        32,
        {**TOWER, "patch_size": 16, "head_width": 16},
        WORDS,
        quick_gelu=True,
    ),
    "clip_resnet": net(
        "1,3,64,64 1,16<500", "open_clip:CLIP", 32, {**TOWER, "layers": [1, 1, 1, 1], "width": 16}, WORDS
    ),
}

Y = "ultralytics.nn.tasks:"


def yolo(name: str, task: str = "Detection", width: float = 0.125) -> Network:
    """Return a network of ultralytics, at an eighth of its full width."""
    sizes: dict[str, Any] = {"scales": {"n": [0.33, width, 1024]}, "width_multiple": width}
    described = make("builtins:dict", make(f"{Y}yaml_model_load", f"{name}.yaml"), **sizes)
    return net("1,3,64,64*", f"{Y}{task}Model", described, verbose=False)


YOLO = """
yolov3-tiny yolov5n yolov6n yolov8n yolov8n-ghost yolov10n yolo11n yolo26n
"""
ULTRALYTICS = {
    **{name: yolo(name) for name in YOLO.split()},
    "yolo12n": yolo("yolo12n", width=0.25),
    "yolo11n-seg": yolo("yolo11n-seg", "Segmentation"),
    "yolo11n-pose": yolo("yolo11n-pose", "Pose"),
    "yolo11n-obb": yolo("yolo11n-obb", "OBB"),
    "yolo11n-cls": yolo("yolo11n-cls", "Classification"),
}

V = "vit_pytorch."
VIT: dict[str, Any] = {
    "image_size": 64,
    "patch_size": 16,
    "num_classes": 10,
    "dim": 32,
    "depth": 2,
    "heads": 2,
    "dim_head": 16,
    "mlp_dim": 64,
}
CLIP3D: dict[str, Any] = {**VIT, "image_patch_size": 16, "frames": 4, "frame_patch_size": 2}
del CLIP3D["patch_size"]
VIT_PYTORCH = {
    **{
        name.partition(":")[0]: net(IMAGE, f"{V}{name}", **VIT)
        for name in (
            "deepvit:DeepViT",
            "parallel_vit:ViT",
            "rvt:RvT",
            "simple_vit:SimpleViT",
            "simple_vit_with_qk_norm:SimpleViT",
            "simple_uvit:SimpleUViT",
            "simple_vit_with_relative_proj_pos_bias:SimpleViT",
            "vit_for_small_dataset:ViT",
            "vit_5:ViT",
            "vit_with_patch_merger:ViT",
            "simple_vit_with_register_tokens:SimpleViT",
            "learnable_memory_vit:ViT",
            "vit_detpool:ViTDetPool",
            "simple_flash_attn_vit:SimpleViT",
        )
    },
    "fft": net(IMAGE, f"{V}simple_vit_with_fft:SimpleViT", **VIT, freq_patch_size=8),
    "cait": net(IMAGE, f"{V}cait:CaiT", **VIT, cls_depth=1),
    "xcit": net(IMAGE, f"{V}xcit:XCiT", **VIT, cls_depth=1),
    "pit": net(IMAGE, f"{V}pit:PiT", **{**VIT, "depth": (1, 1), "patch_size": 8}),
    "vivit": net(
        "1,3,4,64,64",
        f"{V}vivit:ViViT",
        **{k: v for k, v in CLIP3D.items() if k != "depth"},
        spatial_depth=1,
        temporal_depth=1,
    ),
    "vit_3d": net("1,3,4,64,64", f"{V}vit_3d:ViT", **CLIP3D),
    "cct": net(
        IMAGE,
        f"{V}cct:CCT",
        img_size=64,
        embedding_dim=32,
        num_layers=1,
        num_heads=2,
        num_classes=10,
        positional_embedding="sine",
    ),
    "cct_3d": net(
        "1,3,8,32,32",
        f"{V}cct_3d:CCT",
        img_size=32,
        num_frames=8,
        embedding_dim=32,
        num_layers=1,
        num_heads=2,
        num_classes=10,
    ),
    "cvt": net(
        IMAGE,
        f"{V}cvt:CvT",
        num_classes=10,
        s1_emb_dim=16,
        s1_heads=1,
        s2_emb_dim=32,
        s2_heads=1,
        s2_depth=1,
        s3_emb_dim=32,
        s3_heads=2,
        s3_depth=1,
    ),
    "max_vit": net("1,3,224,224", f"{V}max_vit:MaxViT", num_classes=10, dim=16, depth=(1, 1, 1, 1), dim_head=16),
    "mobile_vit": net(
        IMAGE,
        f"{V}mobile_vit:MobileViT",
        (64, 64),
        [16, 24, 32],
        [8, 8, 16, 16, 16, 16, 24, 24, 24, 24, 32],
        10,
        depths=(1, 1, 1),
    ),
    "regionvit": net("1,3,224,224", f"{V}regionvit:RegionViT", dim=(8, 16, 16, 32), depth=(1, 1, 1, 1), num_classes=10),
    "scalable_vit": net(
        "1,3,256,256",
        f"{V}scalable_vit:ScalableViT",
        num_classes=10,
        dim=16,
        heads=(1, 1, 2, 2),
        depth=(1, 1, 1, 1),
        ssa_dim_key=8,
        ssa_dim_value=8,
        reduction_factor=(8, 4, 2, 1),
        window_size=(64, 32, None, None),
    ),
}

RESNET = make(
    "transformers:ResNetConfig",
    embedding_size=16,
    hidden_sizes=[16, 16, 32, 32],
    depths=[1] * 4,
    out_features=["stage2", "stage3", "stage4"],
)
RT_RESNET = make(
    "transformers:RTDetrResNetConfig",
    embedding_size=16,
    hidden_sizes=[16, 16, 32, 32],
    depths=[1] * 4,
    layer_type="basic",
    out_features=["stage2", "stage3", "stage4"],
)
HGNET = make(
    "transformers:HGNetV2Config",
    stem_channels=[3, 8, 8],
    stage_in_channels=[8, 16, 16, 32],
    stage_mid_channels=[8, 8, 8, 8],
    stage_out_channels=[16, 16, 32, 32],
    stage_num_blocks=[1] * 4,
    stage_downsample=[False, True, True, True],
    stage_light_block=[False, False, True, True],
    stage_kernel_size=[3, 3, 5, 5],
    stage_numb_of_layers=[2] * 4,
    embedding_size=8,
    hidden_sizes=[16, 16, 32, 32],
    depths=[1] * 4,
    out_features=["stage2", "stage3", "stage4"],
)
DETECTOR: dict[str, Any] = {
    "encoder_hidden_dim": 32,
    "encoder_in_channels": [16, 32, 32],
    "encoder_ffn_dim": 64,
    "encoder_attention_heads": 2,
    "d_model": 32,
    "num_queries": 20,
    "decoder_in_channels": [32, 32, 32],
    "decoder_ffn_dim": 64,
    "decoder_attention_heads": 2,
    "decoder_layers": 2,
    "num_denoising": 0,
    "num_labels": 5,
}
DETR: dict[str, Any] = {
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "num_queries": 10,
    "use_timm_backbone": False,
    "use_pretrained_backbone": False,
}
STAGES: dict[str, Any] = {"hidden_sizes": [16, 16, 32, 32], "depths": [1] * 4}
SWIN = make(
    "transformers:SwinConfig",
    image_size=64,
    embed_dim=16,
    depths=[1] * 4,
    num_heads=[1, 1, 2, 2],
    window_size=2,
    out_features=["stage1", "stage2", "stage3", "stage4"],
)
TINY: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "image_size": 64,
}
DINO = make(
    "transformers:Dinov2Config",
    **TINY,
    patch_size=16,
    out_features=["stage1", "stage2", "stage3", "stage4"],
    reshape_hidden_states=False,
)
N = "transformers:"
HEADS = {
    "rt_detr": net(
        IMAGE, f"{N}RTDetrForObjectDetection", make(f"{N}RTDetrConfig", backbone_config=RT_RESNET, **DETECTOR)
    ),
    "rt_detr_v2": net(
        IMAGE, f"{N}RTDetrV2ForObjectDetection", make(f"{N}RTDetrV2Config", backbone_config=RT_RESNET, **DETECTOR)
    ),
    "d_fine": net(IMAGE, f"{N}DFineForObjectDetection", make(f"{N}DFineConfig", backbone_config=HGNET, **DETECTOR)),
    "detr": net(IMAGE, f"{N}DetrForObjectDetection", make(f"{N}DetrConfig", backbone_config=RESNET, **DETR)),
    "conditional_detr": net(
        IMAGE,
        f"{N}ConditionalDetrForObjectDetection",
        make(f"{N}ConditionalDetrConfig", backbone_config=RESNET, **DETR),
    ),
    "deformable_detr": net(
        IMAGE,
        f"{N}DeformableDetrForObjectDetection",
        make(f"{N}DeformableDetrConfig", backbone_config=RESNET, num_feature_levels=3, **DETR),
    ),
    "maskformer": net(
        IMAGE,
        f"{N}MaskFormerForInstanceSegmentation",
        make(
            f"{N}MaskFormerConfig",
            fpn_feature_size=32,
            mask_feature_size=32,
            backbone_config=SWIN,
            decoder_config=make(f"{N}DetrConfig", **DETR),
            num_labels=5,
        ),
    ),
    "segformer": net(
        IMAGE,
        f"{N}SegformerForSemanticSegmentation",
        make(f"{N}SegformerConfig", **STAGES, num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=32, num_labels=5),
    ),
    "upernet": net(
        IMAGE,
        f"{N}UperNetForSemanticSegmentation",
        make(
            f"{N}UperNetConfig",
            pool_scales=[1, 2],
            backbone_config=SWIN,
            hidden_size=32,
            auxiliary_in_channels=64,
            auxiliary_channels=16,
            num_labels=5,
        ),
    ),
    "mobilevit": net(
        "1,3,64,64",
        f"{N}MobileViTForSemanticSegmentation",
        make(
            f"{N}MobileViTConfig",
            image_size=64,
            hidden_sizes=[16, 24, 32],
            neck_hidden_sizes=[8, 8, 16, 16, 24, 32, 64],
            num_attention_heads=2,
            aspp_out_channels=32,
            num_labels=5,
        ),
    ),
    "dpt": net(
        IMAGE,
        f"{N}DPTForDepthEstimation",
        make(
            f"{N}DPTConfig",
            **TINY,
            backbone_out_indices=[0, 1, 2, 3],
            neck_hidden_sizes=[16, 16, 16, 16],
            fusion_hidden_size=16,
            is_hybrid=False,
        ),
    ),
    "depth_anything": net(
        IMAGE,
        f"{N}DepthAnythingForDepthEstimation",
        make(
            f"{N}DepthAnythingConfig",
            backbone_config=DINO,
            reassemble_hidden_size=32,
            patch_size=16,
            neck_hidden_sizes=[16] * 4,
            fusion_hidden_size=16,
            head_hidden_size=8,
        ),
    ),
    "glpn": net(
        IMAGE,
        f"{N}GLPNForDepthEstimation",
        make(f"{N}GLPNConfig", **STAGES, num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=16),
    ),
    "swin2sr": net(
        SMALL,
        f"{N}Swin2SRForImageSuperResolution",
        make(f"{N}Swin2SRConfig", image_size=32, embed_dim=16, depths=[1, 1], num_heads=[2, 2], window_size=4),
    ),
    "vitpose": net(
        "1,3,64,48",
        f"{N}VitPoseForPoseEstimation",
        make(
            f"{N}VitPoseConfig",
            backbone_config=make(
                f"{N}VitPoseBackboneConfig",
                **{**TINY, "image_size": [64, 48]},
                patch_size=[16, 16],
                out_features=["stage4"],
            ),
            num_labels=5,
            use_simple_decoder=False,
        ),
    ),
    "videomae": net(
        "1,4,3,64,64",
        f"{N}VideoMAEForVideoClassification",
        make(f"{N}VideoMAEConfig", **TINY, num_frames=4, num_labels=5),
    ),
    "timesformer": net("1,4,3,64,64", f"{N}TimesformerModel", make(f"{N}TimesformerConfig", **TINY, num_frames=4)),
    "vitmatte": net(
        "1,4,64,64",
        f"{N}VitMatteForImageMatting",
        make(
            f"{N}VitMatteConfig",
            backbone_config=make(
                f"{N}VitDetConfig",
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=2,
                image_size=64,
                pretrain_image_size=64,
                num_channels=4,
                out_features=["stage2"],
                window_block_indices=[0],
                window_size=2,
            ),
            hidden_size=32,
            convstream_hidden_sizes=[8, 16, 16],
            fusion_hidden_sizes=[32, 16, 16, 8],
        ),
    ),
    "convnextv2": net(
        IMAGE, f"{N}ConvNextV2ForImageClassification", make(f"{N}ConvNextV2Config", **STAGES, num_labels=5)
    ),
    "poolformer": net(
        IMAGE, f"{N}PoolFormerForImageClassification", make(f"{N}PoolFormerConfig", **STAGES, num_labels=5)
    ),
    "focalnet": net(
        IMAGE,
        f"{N}FocalNetForImageClassification",
        make(
            f"{N}FocalNetConfig",
            image_size=64,
            embed_dim=16,
            hidden_sizes=[16, 16, 32, 32],
            depths=[1] * 4,
            num_labels=5,
        ),
    ),
    "levit": net(
        IMAGE,
        f"{N}LevitForImageClassification",
        make(
            f"{N}LevitConfig",
            image_size=64,
            hidden_sizes=[16, 32, 32],
            num_attention_heads=[1, 2, 2],
            depths=[1, 1, 1],
            key_dim=[8, 8, 8],
            num_labels=5,
        ),
    ),
    "bit": net(
        IMAGE,
        f"{N}BitForImageClassification",
        make(f"{N}BitConfig", embedding_size=16, **STAGES, num_groups=4, num_labels=5),
    ),
    "trocr": net(
        "1,6<50 encoder_hidden_states=1,9,32",
        f"{N}TrOCRForCausalLM",
        make(
            f"{N}TrOCRConfig",
            vocab_size=50,
            d_model=32,
            decoder_layers=1,
            decoder_attention_heads=2,
            decoder_ffn_dim=64,
            cross_attention_hidden_size=32,
            pad_token_id=0,
            use_cache=False,
        ),
    ),
    "perceiver": net(
        "1,40,16",
        f"{N}PerceiverModel",
        make(
            f"{N}PerceiverConfig",
            num_latents=8,
            d_latents=32,
            d_model=16,
            num_self_attends_per_block=2,
            num_self_attention_heads=2,
            num_cross_attention_heads=2,
        ),
    ),
    "sam_mask_decoder": net(
        "1,32,4,4 1,32,4,4 1,1,2,32 1,32,4,4 multimask_output=1<2",
        "transformers.models.sam.modeling_sam:SamMaskDecoder",
        make(
            "transformers.models.sam.configuration_sam:SamMaskDecoderConfig",
            hidden_size=32,
            mlp_dim=64,
            num_attention_heads=2,
            iou_head_hidden_dim=32,
        ),
    ),
    "decision": net(
        "states=1,6,8 actions=1,6,3 rewards=1,6,1 returns_to_go=1,6,1 timesteps=1,6<20",
        f"{N}DecisionTransformerModel",
        make(
            f"{N}DecisionTransformerConfig", state_dim=8, act_dim=3, hidden_size=32, max_ep_len=20, n_layer=2, n_head=2
        ),
    ),
    "mamba": net(
        "1,8<50",
        f"{N}MambaForCausalLM",
        make(f"{N}MambaConfig", vocab_size=50, hidden_size=32, num_hidden_layers=1, state_size=8, use_cache=False),
    ),
    "mamba2": net(
        "1,8<50",
        f"{N}Mamba2Model",
        make(
            f"{N}Mamba2Config",
            vocab_size=50,
            hidden_size=32,
            num_hidden_layers=1,
            state_size=8,
            num_heads=4,
            head_dim=16,
            n_groups=1,
            chunk_size=4,
            use_cache=False,
        ),
    ),
    "recurrent_gemma": net(
        "1,8<50",
        f"{N}RecurrentGemmaModel",
        make(
            f"{N}RecurrentGemmaConfig",
            vocab_size=50,
            hidden_size=32,
            num_hidden_layers=3,
            num_attention_heads=2,
            intermediate_size=64,
            lru_width=32,
            use_cache=False,
        ),
    ),
    "lfm2": net(
        "1,8<50",
        f"{N}Lfm2Model",
        make(
            f"{N}Lfm2Config",
            vocab_size=50,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            intermediate_size=64,
            layer_types=["conv", "full_attention"],
            use_cache=False,
        ),
    ),
    "falcon_h1": net(
        "1,8<50",
        f"{N}FalconH1Model",
        make(
            f"{N}FalconH1Config",
            vocab_size=50,
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            intermediate_size=64,
            mamba_d_ssm=32,
            mamba_n_heads=2,
            mamba_d_head=16,
            mamba_d_state=8,
            mamba_chunk_size=4,
            use_cache=False,
        ),
    ),
    "time_series": net(
        "past_values=1,24 past_time_features=1,24,1 past_observed_mask=1,24* future_values=1,4 "
        "future_time_features=1,4,1",
        f"{N}TimeSeriesTransformerModel",
        make(
            f"{N}TimeSeriesTransformerConfig",
            prediction_length=4,
            context_length=17,
            num_time_features=1,
            d_model=16,
            encoder_layers=1,
            decoder_layers=1,
            encoder_ffn_dim=32,
            decoder_ffn_dim=32,
            use_cache=False,
        ),
    ),
    "patchtsmixer": net(
        "1,32,2",
        f"{N}PatchTSMixerForPrediction",
        make(
            f"{N}PatchTSMixerConfig",
            context_length=32,
            patch_length=8,
            num_input_channels=2,
            patch_stride=8,
            d_model=16,
            num_layers=2,
            prediction_length=8,
        ),
    ),
    "layoutlmv3": net(
        "input_ids=1,8<50 bbox=1,8,4<100 pixel_values=1,3,64,64",
        f"{N}LayoutLMv3Model",
        make(
            f"{N}LayoutLMv3Config",
            vocab_size=50,
            input_size=64,
            coordinate_size=6,
            shape_size=4,
            max_2d_position_embeddings=128,
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=64,
        ),
    ),
}
PACKAGES = {
    "monai": MONAI,
    "kornia": KORNIA,
    "segmentation_models_pytorch": SEGMENTATION,
    "spandrel": SPANDREL,
    "open_clip": OPEN_CLIP,
    "ultralytics": ULTRALYTICS,
    "vit_pytorch": VIT_PYTORCH,
    "transformers_heads": HEADS,
}
