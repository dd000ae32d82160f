"""Models that are not in the benchmark set, with weights from a seed, as .onnx files for compare.py.

    build/venv-torch/bin/pip install --no-deps timm
    build/venv-torch/bin/python tests/perf/architectures.py build/architectures [NAME...]
    build/venv-torch/bin/python tests/perf/compare.py --folder build/architectures --filter '^architectures/' --threads 1

    build/venv-torch/bin/pip install --no-deps timm ultralytics ultralytics-thop segmentation-models-pytorch monai diffusers torchaudio==2.11.0 requests urllib3 certifi idna charset_normalizer \
        opencv-python-headless matplotlib psutil polars py-cpuinfo einops importlib_metadata zipp
    build/venv-torch/bin/python tests/perf/architectures.py --libraries build/libraries [NAME...]

The set's models are known while kernels are written; what they do for others shows here. Without names: image models of timm, those below, or with
--libraries networks of other libraries (libraries.py): detection, segmentation, volumes, video, diffusion, sound. A model that its exporter
refuses is told and left out.
"""

import argparse
from functools import partial
from pathlib import Path

import torch

import libraries

NAMES = """
bat_resnext26ts beitv2_base_patch16_224 botnet26t_256 caformer_s18 cait_xxs24_224 coat_lite_mini coat_tiny
coatnet_0_rw_224 convformer_s18 convit_tiny convmixer_768_32 convnext_atto convnextv2_tiny crossvit_9_240 cs3darknet_m
cs3edgenet_x cspdarknet53 darknet53 davit_tiny deit3_small_patch16_224 deit_tiny_patch16_224 densenet121 dla34
dm_nfnet_f0 dpn68 eca_botnext26ts_256 eca_nfnet_l0 ecaresnet26t ecaresnet50t edgenext_small efficientformer_l1
efficientformerv2_s0 efficientnet_es efficientnet_lite0 efficientnetv2_rw_t efficientvit_b1 efficientvit_l1
efficientvit_m2 ese_vovnet19b_dw ese_vovnet39b eva02_small_patch14_224 eva02_tiny_patch14_224 fasternet_t0
fastvit_mci0 fastvit_t8 fbnetc_100 fbnetv3_b focalnet_tiny_srf gcresnet33ts gcvit_xxtiny gernet_s ghostnet_100
ghostnetv2_100 gmixer_12_224 gmlp_s16_224 hardcorenas_a hgnet_tiny hgnetv2_b4 hiera_tiny_224 hieradet_small
hrnet_w18_small_v2 inception_next_tiny inception_resnet_v2 inception_v4 lambda_resnet26t lcnet_100 legacy_senet154
levit_128 mambaout_tiny maxvit_tiny_rw_224 mixer_s16_224 mixnet_s mnasnet_100 mobilenet_edgetpu_100
mobilenetv3_small_100 mobilenetv4_conv_medium mobilenetv4_hybrid_medium mobilenetv5_base mobileone_s1 mobilevit_s
mobilevitv2_050 mobilevitv2_100 nasnetalarge nest_tiny nextvit_small nf_resnet50 pit_ti_distilled_224 pit_xs_224
pnasnet5large poolformer_s12 pvt_v2_b1 rdnet_tiny regnetv_040 regnetx_016 regnety_008 regnety_040 regnetz_b16
repghostnet_100 repvgg_a2 repvgg_d2se repvit_m1 res2net50_26w_4s resmlp_12_224 resnest26d resnet26t resnet33ts
resnet50_gn resnetblur50 resnetrs50 resnetv2_50 resnext50_32x4d rexnet_100 samvit_base_patch16_224 sebotnet33ts_256
selecsls42b semnasnet_100 sequencer2d_s seresnet33ts seresnext50_32x4d shvit_s1 skresnet34 skresnext50_32x4d
spnasnet_100 starnet_s1 swiftformer_xs swinv2_cr_tiny_ns_224 swinv2_tiny_window8_256 test_vit tf_efficientnetv2_b0
tiny_vit_5m_224 tinynet_a tnt_s_patch16_224 tresnet_m twins_pcpvt_small twins_svt_small visformer_small
vit_base_patch32_224 vit_pwee_patch16_reg1_gap_256 vit_relpos_small_patch16_224 vit_small_patch16_224
vit_small_r26_s32_224 vit_tiny_patch16_224 vitamin_small_224 wide_resnet50_2 xception41 xception65p
xcit_tiny_12_p16_224
"""


def give_weights(model):
    """Branches that begin as zeros, and norms that change nothing, would hide what is computed before them."""
    for parameter in model.parameters():
        if parameter.numel() > 1 and parameter.is_floating_point() and not parameter.any():
            parameter.normal_(0, 0.02)
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and module.running_mean is not None:
            module.running_mean.normal_(0, 0.05)
            module.running_var.uniform_(0.8, 1.2)
            if module.weight is not None:
                module.weight.uniform_(0.3, 0.6)


def make_image_model(name):
    import timm

    model = timm.create_model(name, pretrained=False, exportable=True)
    return model, [torch.randn(1, *model.default_cfg.get("input_size", (3, 224, 224)))]


def export(name, make, folder):
    torch.manual_seed(0)
    model, inputs = make()
    model.eval()
    names = ["x"] if len(inputs) == 1 else [f"x{number}" for number in range(len(inputs))]
    with torch.no_grad():
        give_weights(model)
        unfinished = folder / f"{name}.part"
        torch.onnx.export(model, tuple(inputs), unfinished, opset_version=18, dynamo=False, input_names=names, output_names=["y"])
    unfinished.rename(folder / f"{name}.onnx")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the files go; those that are there stay")
    parser.add_argument("names", nargs="*", metavar="NAME", help="models, as timm calls them, or libraries.py")
    parser.add_argument("--libraries", action="store_true", help="models of other libraries than timm")
    arguments = parser.parse_args()
    makers = libraries.MODELS if arguments.libraries else {name: partial(make_image_model, name) for name in arguments.names or NAMES.split()}
    if unknown := set(arguments.names) - set(makers):
        parser.error(f"no such model: {', '.join(sorted(unknown))}; there are {', '.join(makers)}")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or makers:
        if (arguments.folder / f"{name}.onnx").exists():
            continue
        try:
            export(name, makers[name], arguments.folder)
            print(name, flush=True)
        except Exception as failure:  # whatever a library or an exporter of some version raises
            print(f"{name}: {(str(failure) or repr(failure)).splitlines()[0]}", flush=True)


if __name__ == "__main__":
    main()
