"""Export networks of timm, torchvision, transformers and other packages to ONNX, with a suite file of them.

    python -m benchmarks.exported_networks FOLDER [PACKAGE ...]
    adreno-bench run --suite FOLDER/adreno-bench.toml --device DEVICE --case '*-float32-untuned'

PACKAGE is one of `PACKAGES`: also monai, kornia, torchaudio, speechbrain, diffusers, ultralytics, spandrel, open_clip,
segmentation_models_pytorch, vit_pytorch, neuralforecast, x_transformers, mambapy, vocos, transformers_heads and
transformers_speech, whose networks are small (`small_networks`). Without one, all of them are exported.

Needs a Python with torch, onnx, onnxscript and the packages, which adreno-bench does not install. Weights are
random: nothing is downloaded. Normalizations are moved, or they would do nothing, and batch norms have the statistics
of what reaches them, or the input would hardly matter. Every other network goes through torch's older exporter. A
network that neither exports as a valid file is named and left out.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import small_images, small_networks, small_others, small_sounds, small_transformers

PIXELS = 96
BATCH = 4
"""Inputs of one measurement of statistics."""
TIMM = """
mobilenetv3_small_050 mobilenetv3_large_100 mobilenetv2_100 mobilenetv4_conv_small mobilenetv4_hybrid_medium:128
efficientnet_b0 efficientnet_lite0 tf_efficientnetv2_b0 tf_efficientnet_b0:97 ghostnet_100 ghostnetv2_100 regnetx_002
regnety_002 resnet18:65 resnet26d skresnet18 ecaresnet26t densenet121:64 dla34 dla46x_c hrnet_w18_small
res2net50_14w_8s:64 mnasnet_050 mixnet_s fbnetc_100 lcnet_050 tinynet_e hardcorenas_a rexnet_100 repvgg_a0:64
repghostnet_050 mobileone_s0:64 fastvit_t8:128 edgenext_xx_small:128 efficientformer_l1:224 efficientformerv2_s0:224
mobilevit_xxs:128 mobilevitv2_050:128 convnext_atto convnextv2_atto vit_tiny_patch16_224:64 deit_tiny_patch16_224:64
swin_tiny_patch4_window7_224:224 swinv2_cr_tiny_224:224 levit_128s:224 poolformer_s12 pvt_v2_b0
xcit_nano_12_p16_224 crossvit_tiny_240:240 mixer_s32_224:224 resmlp_12_224:224 gmlp_ti16_224:224
cait_xxs24_224:224 maxvit_nano_rw_256:256 xception41 vgg11:64 tresnet_m selecsls42b nf_regnet_b0 lambda_resnet26t:128
botnet26t_256:256 focalnet_tiny_srf davit_tiny efficientvit_b0 efficientvit_m0:224 repvit_m0_9 starnet_s1
inception_next_atto mambaout_femto hiera_tiny_224:224 tiny_vit_5m_224:224 caformer_s18 inception_v4:128 gernet_s
cspresnet50:64 darknet17 vovnet39a:64 ese_vovnet19b_dw gcresnet33ts seresnext26t_32x4d:64 twins_svt_small:224
coatnet_nano_rw_224:224 visformer_tiny:224 convit_tiny:224 pit_ti_224:224 eva02_tiny_patch14_224:224
vit_medium_patch16_gap_256:256 test_byobnet test_efficientnet test_vit:160 test_convnext
"""
TORCHVISION = """
shufflenet_v2_x0_5 squeezenet1_0 mnasnet0_5 googlenet segmentation.lraspp_mobilenet_v3_large
segmentation.deeplabv3_mobilenet_v3_large:97 segmentation.fcn_resnet50:64 video.r3d_18:32 optical_flow.raft_small:128
alexnet regnet_y_400mf
"""
SMALL = {**small_images.PACKAGES, **small_sounds.PACKAGES, **small_others.PACKAGES}
PACKAGES = {"timm": TIMM, "torchvision": TORCHVISION, "transformers": small_transformers.NAMES} | {
    package: " ".join(table) for package, table in SMALL.items()
}


class Network(NamedTuple):
    """A network to export."""

    package: str
    builder: str
    pixels: int
    dynamo: bool
    """Whether torch's newer exporter tries first."""

    @property
    def name(self) -> str:
        """Its name in the suite."""
        prefix = f"{self.package}_" if self.package in SMALL else ""
        return prefix + self.builder.rpartition(".")[2].lower()


def networks(packages: Collection[str] = ()) -> Iterator[Network]:
    """Yield those of these packages, or all."""
    for package in packages or PACKAGES:
        for index, text in enumerate(PACKAGES[package].split()):
            builder, _, pixels = text.partition(":")
            yield Network(package, builder, int(pixels or PIXELS), dynamo=index % 2 == 1)


def build(network: Network) -> tuple[Any, tuple[Any, ...]]:
    """Build a network and its inputs."""
    import torch

    if network.package in SMALL:
        return small_networks.build(SMALL[network.package][network.builder])
    if network.package == "transformers":
        return small_transformers.build(network.builder)
    image = torch.randn(1, 3, network.pixels, network.pixels)
    return (of_timm if network.package == "timm" else of_torchvision)(network, image)


def of_timm(network: Network, image: Any) -> tuple[Any, tuple[Any, ...]]:
    """Build a network of timm, of the image's size if its layers depend on it."""
    import timm

    try:
        return timm.create_model(network.builder, pretrained=False, img_size=network.pixels), (image,)
    except TypeError:  # a network of any size
        return timm.create_model(network.builder, pretrained=False), (image,)


def of_torchvision(network: Network, image: Any) -> tuple[Any, tuple[Any, ...]]:
    """Build a network of torchvision."""
    import torch
    import torchvision

    folder, _, name = network.builder.rpartition(".")
    place = getattr(torchvision.models, folder) if folder else torchvision.models
    options: dict[str, Any] = {"weights_backbone": None} if folder == "segmentation" else {}
    if name == "googlenet":
        options = {"init_weights": False, "aux_logits": False}
    model = getattr(place, name)(weights=None, **options)
    if folder == "segmentation":
        return one_output(model, "out"), (image,)
    if folder == "optical_flow":
        return one_output(model, -1, num_flow_updates=2), (image, torch.randn_like(image))
    return model, (torch.randn(1, 3, 8, network.pixels, network.pixels) if folder == "video" else image,)


def one_output(model: Any, key: Any, **options: Any) -> Any:
    """Let a model return one of its outputs."""
    whole = model.forward
    model.forward = lambda *inputs: whole(*inputs, **options)[key]
    return model


def move_norms(model: Any, inputs: tuple[Any, ...]) -> Any:
    """Move the scales of normalizations, and measure the statistics of batch norms, as training does."""
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
        model.eval()
        norms = [module for module in model.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)]
        for module in norms:
            module.reset_running_stats()
            module.train().momentum = None  # all inputs count alike
        for _ in range(2 if norms else 0):
            model(*map(batch_like, inputs))
    return model.eval()


def batch_like(tensor: Any) -> Any:
    """Return a batch of other numbers; of whole numbers the same ones."""
    import torch

    batch = tensor.repeat(BATCH, *[1] * (tensor.ndim - 1))
    return torch.randn_like(batch) if tensor.is_floating_point() else batch


def export(network: Network, file: Path) -> str:
    """Export a network. Returns why that failed; empty if it did not."""
    import onnx
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    reason = ""
    try:
        model, inputs = build(network)
        if network.package != "transformers":
            move_norms(model, inputs)
        for dynamo in (network.dynamo, not network.dynamo):
            options = {"external_data": False, "verbose": False} if dynamo else {}
            try:
                torch.onnx.export(model, inputs, file, dynamo=dynamo, opset_version=18 if dynamo else 17, **options)
                onnx.checker.check_model(str(file), full_check=True)
            except Exception as error:  # whatever they raise: the other exporter is next
                reason = f"{type(error).__name__}: {str(error)[:200]}"
            else:
                return ""
    except Exception as error:  # a version of the package without this network
        reason = f"{type(error).__name__}: {str(error)[:200]}"
    file.unlink(missing_ok=True)
    return reason


def write_suite(folder: Path, names: Iterable[str]) -> None:
    """Write a suite file of the networks of these names in a folder."""
    models = "".join(f'  {{ onnx = "{name}.onnx", name = "{name}" }},\n' for name in names)
    text = f'paths = ["opencl", "texture"]\nbudget_s = 1\nmodels = [\n{models}]\n'
    (folder / "adreno-bench.toml").write_text(text, encoding="utf-8")


def main() -> None:
    """Export all networks and write the suite."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    chosen = list(networks(sys.argv[2:]))
    files = [folder / f"{network.name}.onnx" for network in chosen]
    with ProcessPoolExecutor() as pool:
        reasons = list(pool.map(export, chosen, files))
    for network, reason in zip(chosen, reasons, strict=True):
        if reason:
            print(f"{network.name}: not exported: {reason}")
    names = [network.name for network, reason in zip(chosen, reasons, strict=True) if not reason]
    write_suite(folder, names)
    print(f"{len(names)} of {len(chosen)} networks in {folder}")


if __name__ == "__main__":
    main()
