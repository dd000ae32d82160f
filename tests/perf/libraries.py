"""Networks of other libraries than timm, each as a function that makes the module and its inputs; for architectures.py.

Sizes are those that the libraries' documentation uses, or the largest that one core runs in a second or so; transformers of diffusers have
fewer layers than the published ones. A library that is not installed raises what its import raises.
"""

import functools
import importlib

import torch
from torch import randn

VOLUME = (1, 1, 64, 64, 64)


class First(torch.nn.Module):
    """The first result of a module that is called by keywords."""

    def __init__(self, module, names=(), **fixed):
        super().__init__()
        self.module, self.names, self.fixed = module, names, fixed

    def forward(self, *values):
        result = self.module(**dict(zip(self.names, values)), **self.fixed) if self.names else self.module(*values, **self.fixed)
        return result[0] if isinstance(result, (tuple, list)) else result


class LastFlow(torch.nn.Module):
    """RAFT's last estimate of several."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, first, second):
        return self.module(first, second, num_flow_updates=4)[-1]


def _inputs(shapes):
    """Noise; of what is no shape, the number itself in a vector."""
    return [randn(*shape) if isinstance(shape, tuple) else torch.tensor([shape]) for shape in shapes]


def _torchvision(name, *shapes):
    models = importlib.import_module("torchvision.models")
    settings = {"weights": None} | ({"weights_backbone": None} if name.startswith(("deeplab", "fcn", "lraspp")) else {})
    module = models.get_model(name, **settings)
    return LastFlow(module) if name.startswith("raft") else module, [randn(*shape) for shape in shapes]


def _ultralytics(name, size=320):
    tasks = importlib.import_module("ultralytics.nn.tasks")
    kinds = {"seg": "SegmentationModel", "pose": "PoseModel", "obb": "OBBModel", "cls": "ClassificationModel"}
    kind = "RTDETRDetectionModel" if name.startswith("rtdetr") else kinds.get(name.split("-")[-1], "DetectionModel")
    module = getattr(tasks, kind)(f"{name}.yaml", verbose=False)
    for part in module.modules():
        if hasattr(part, "export"):
            part.export, part.format = True, "onnx"
    return module, [randn(1, 3, size, size)]


def _segmentation(name, encoder="resnet18", size=256):
    library = importlib.import_module("segmentation_models_pytorch")
    return getattr(library, name)(encoder_name=encoder, encoder_weights=None, classes=4), [randn(1, 3, size, size)]


def _monai(name, *shapes, **settings):
    return getattr(importlib.import_module("monai.networks.nets"), name)(**settings), [randn(*shape) for shape in shapes]


def _diffusers(name, names, shapes, part=None, **settings):
    module = getattr(importlib.import_module("diffusers"), name)(**settings)
    return First(getattr(module, part) if part else module, names, **({} if part else {"return_dict": False})), _inputs(shapes)


def _torchaudio(name, *shapes, arguments=()):
    return First(getattr(importlib.import_module("torchaudio.models"), name)(*arguments)), _inputs(shapes)


def _named(prefix, make, rows):
    return {f"{prefix}-{name}": functools.partial(make, name, *arguments) for name, *arguments in rows}


def _volumes(name, *shapes, **settings):
    shapes = shapes or [VOLUME]
    return {f"monai-{name}": functools.partial(_monai, name, *shapes, spatial_dims=len(shapes[0]) - 2, in_channels=1, out_channels=2, **settings)}


IMAGE, VIDEO, SMALL_VIDEO = (1, 3, 224, 224), (1, 3, 16, 224, 224), (1, 3, 16, 112, 112)
DOWN, UP = ("DownEncoderBlock2D",) * 4, ("UpDecoderBlock2D",) * 4
VAE = {"block_out_channels": (64, 128, 256, 256), "down_block_types": DOWN, "up_block_types": UP, "layers_per_block": 1}
TOKENS = {"num_attention_heads": 12, "attention_head_dim": 64, "num_layers": 3}

MODELS = {
    **_named("torchvision", _torchvision, [(name, IMAGE) for name in (
        "alexnet", "deeplabv3_resnet50", "densenet169", "efficientnet_v2_s", "fcn_resnet50", "googlenet", "lraspp_mobilenet_v3_large", "maxvit_t",
        "mnasnet1_0", "mobilenet_v3_small", "regnet_x_3_2gf", "squeezenet1_0", "vgg11_bn", "wide_resnet50_2")]),
    **_named("torchvision", _torchvision, [
        ("mc3_18", SMALL_VIDEO), ("r2plus1d_18", SMALL_VIDEO), ("s3d", VIDEO), ("swin3d_t", VIDEO), ("swin_v2_t", (1, 3, 256, 256)),
        ("raft_small", (1, 3, 256, 256), (1, 3, 256, 256)), ("raft_large", (1, 3, 256, 256), (1, 3, 256, 256))]),
    **_named("ultralytics", _ultralytics, [(name,) for name in (
        "yolov3-tiny", "yolov5n", "yolov6n", "yolov8n", "yolov8s", "yolov8n-ghost", "yolov8n-p2", "yolov8n-seg", "yolov9t", "yolov10n", "yolo11n",
        "yolo11s", "yolo11n-obb", "yolo11n-pose", "yolo12n", "yolo26n", "yolo26n-seg", "rtdetr-l")]),
    **_named("ultralytics", _ultralytics, [("yolo11n-cls", 224)]),
    **_named("smp", _segmentation, [(name,) for name in (
        "DeepLabV3", "DeepLabV3Plus", "FPN", "Linknet", "MAnet", "PAN", "Segformer", "Unet", "UnetPlusPlus")]),
    "smp-DPT": functools.partial(_segmentation, "DPT", "tu-vit_base_patch16_224.augreg_in21k", 224),
    **{f"smp-{name}-{encoder}": functools.partial(_segmentation, name, encoder) for name, encoder in (
        ("FPN", "mit_b0"), ("Unet", "efficientnet-b0"), ("Unet", "mit_b1"), ("Unet", "mobilenet_v2"), ("Unet", "resnet34"))},
    **_volumes("AttentionUnet", channels=(16, 32, 64, 128), strides=(2, 2, 2)),
    **_volumes("BasicUNet"),
    **_volumes("DenseNet121"),
    **_volumes("DynUNet", kernel_size=[3] * 4, strides=[1, 2, 2, 2], upsample_kernel_size=[2] * 3),
    **_volumes("HighResNet", (1, 1, 48, 48, 48)),
    **_volumes("MedNeXtS"),
    **_volumes("SegResNet", init_filters=16),
    **_volumes("SwinUNETR", feature_size=24),
    **_volumes("UNETR", img_size=(64, 64, 64), feature_size=16),
    **_volumes("UNet", (1, 1, 96, 96, 96), channels=(16, 32, 64, 128, 256), strides=(2, 2, 2, 2), num_res_units=2),
    **_volumes("VNet"),
    **_volumes("BasicUNetPlusPlus", (1, 1, 128, 128)),
    "monai-HoVerNet": functools.partial(_monai, "HoVerNet", (1, 3, 256, 256), out_classes=5),
    "diffusers-unet_sd15": functools.partial(
        _diffusers, "UNet2DConditionModel", ("sample", "timestep", "encoder_hidden_states"), [(1, 4, 32, 32), 1.0, (1, 77, 768)],
        sample_size=32, block_out_channels=(128, 256, 512, 512), layers_per_block=1, cross_attention_dim=768, attention_head_dim=8),
    "diffusers-unet_sdxl": functools.partial(
        _diffusers, "UNet2DConditionModel", ("sample", "timestep", "encoder_hidden_states"), [(1, 4, 64, 64), 1.0, (1, 77, 1024)],
        sample_size=64, block_out_channels=(160, 320, 640), layers_per_block=1,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"), transformer_layers_per_block=(1, 1, 2), cross_attention_dim=1024,
        attention_head_dim=(5, 10, 10), use_linear_projection=True),
    "diffusers-unet2d": functools.partial(_diffusers, "UNet2DModel", ("sample", "timestep"), [(1, 3, 64, 64), 1.0], sample_size=64,
                                          block_out_channels=(64, 128, 256, 256)),
    "diffusers-vae_decoder": functools.partial(_diffusers, "AutoencoderKL", ("sample",), [(1, 4, 32, 32)], "decoder", **VAE),
    "diffusers-vae_encoder": functools.partial(_diffusers, "AutoencoderKL", ("sample",), [(1, 3, 256, 256)], "encoder", **VAE),
    "diffusers-taesd": functools.partial(_diffusers, "AutoencoderTiny", ("x",), [(1, 4, 32, 32)], "decoder"),
    "diffusers-sd3": functools.partial(
        _diffusers, "SD3Transformer2DModel", ("hidden_states", "encoder_hidden_states", "pooled_projections", "timestep"),
        [(1, 16, 64, 64), (1, 77, 1024), (1, 512), 1.0], sample_size=64, joint_attention_dim=1024,
        caption_projection_dim=768, pooled_projection_dim=512, pos_embed_max_size=64, **TOKENS),
    "diffusers-dit": functools.partial(
        _diffusers, "DiTTransformer2DModel", ("hidden_states", "timestep", "class_labels"),
        [(1, 4, 32, 32), 1, 1], sample_size=32, in_channels=4, out_channels=8,
        **TOKENS),
    "torchaudio-conformer": functools.partial(_torchaudio, "Conformer", (1, 400, 80), 400, arguments=(80, 4, 256, 4, 31)),
    "torchaudio-convtasnet": functools.partial(_torchaudio, "conv_tasnet_base", (1, 1, 16000)),
    "torchaudio-hdemucs": functools.partial(_torchaudio, "hdemucs_low", (1, 2, 44100), arguments=(["drums", "bass"],)),
    "torchaudio-wav2letter": functools.partial(_torchaudio, "Wav2Letter", (1, 40, 400), arguments=(40, "mfcc", 40)),
    "torchaudio-wav2vec2": functools.partial(_torchaudio, "wav2vec2_base", (1, 32000)),
}
