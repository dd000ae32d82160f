"""Image models: torchvision's classifiers and segmentation, vision transformers of transformers."""

import torch

IMAGE = {0: "batch", 2: "height", 3: "width"}


def _torchvision(name, axes, size=224, **arguments):
    import torchvision

    torch.backends.mha.set_fastpath_enabled(False)  # one fused operator of eager mode, which has no ONNX counterpart
    model = torchvision.models.get_model(name, weights=None, **arguments)
    return model, (torch.rand(2, 3, size, size),), {"x": axes}, ["logits"]


def classifier(name, size=224, **arguments):
    """Classifiers whose image has one size."""
    return lambda: _torchvision(name, {0: "batch"}, size, **arguments)


def convolutional(name, size=224, **arguments):
    """Classifiers that end in a mean over the whole image take any size."""
    return lambda: _torchvision(name, IMAGE, size, **arguments)


class _Segmentation(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)["out"]


def segmentation(name):
    def make():
        model, inputs, axes, outputs = _torchvision(name, IMAGE, 224, weights_backbone=None, aux_loss=False)
        return _Segmentation(model), inputs, axes, outputs

    return make


class _Fields(torch.nn.Module):
    """A model of transformers with positional inputs, and those fields of its result that are asked for."""

    def __init__(self, model, inputs, fields):
        super().__init__()
        self.model, self.inputs, self.fields = model, inputs, fields

    def forward(self, *arguments):
        out = self.model(**dict(zip(self.inputs, arguments)))
        return tuple(getattr(out, field) for field in self.fields)


def _segformer():
    import transformers

    model = transformers.SegformerForSemanticSegmentation(transformers.SegformerConfig(num_labels=150))
    return _Fields(model, ["pixel_values"], ["logits"]), (torch.rand(2, 3, 128, 160),), {"pixel_values": IMAGE}, ["logits"]


def _beit():
    import transformers

    model = transformers.BeitForImageClassification(transformers.BeitConfig(num_labels=1000))
    return _Fields(model, ["pixel_values"], ["logits"]), (torch.rand(2, 3, 224, 224),), {"pixel_values": {0: "batch"}}, ["logits"]


def _clip():
    import transformers

    model = transformers.CLIPModel(transformers.CLIPConfig())
    ids = torch.arange(2 * 12).reshape(2, 12) * 37 % 49000
    inputs = ["input_ids", "pixel_values", "attention_mask"]
    axes = {"input_ids": {0: "texts", 1: "seq"}, "pixel_values": {0: "images"}, "attention_mask": {0: "texts", 1: "seq"}}
    fields = ["logits_per_image", "text_embeds", "image_embeds"]
    return _Fields(model, inputs, fields), (ids, torch.rand(3, 3, 224, 224), torch.ones_like(ids)), axes, fields


def _owlvit():
    import transformers

    model = transformers.OwlViTForObjectDetection(transformers.OwlViTConfig())
    # As trained heads are: with the default of 1 a weight, boxes come from values of +-43,000 before their sigmoid.
    for layer in (model.box_head.dense0, model.box_head.dense1, model.box_head.dense2):
        torch.nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
    ids = torch.arange(4 * 16).reshape(4, 16) * 37 % 49000
    ids[:, -1] = 49407
    inputs = ["input_ids", "pixel_values", "attention_mask"]
    axes = {"input_ids": {0: "queries"}, "pixel_values": {}, "attention_mask": {0: "queries"}}
    fields = ["logits", "pred_boxes"]
    return _Fields(model, inputs, fields), (ids, torch.rand(1, 3, 768, 768), torch.ones_like(ids)), axes, fields


def _backbone():
    import transformers

    return transformers.ResNetConfig(out_features=["stage4"])


def detr(kind, **sizes):
    def make():
        import transformers

        config = getattr(transformers, f"{kind}Config")(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=_backbone(), **sizes)
        model = getattr(transformers, f"{kind}ForObjectDetection")(config)
        axes = {"pixel_values": IMAGE, "pixel_mask": {0: "batch", 1: "height", 2: "width"}}
        inputs = (torch.rand(2, 3, 256, 320), torch.ones(2, 256, 320, dtype=torch.int64))
        return _Fields(model, list(axes), ["logits", "pred_boxes"]), inputs, axes, ["logits", "pred_boxes"]

    return make


def maskformer(kind, size):
    def make():
        import transformers

        stages = ["stage1", "stage2", "stage3", "stage4"]
        backbone = transformers.SwinConfig(image_size=size, embed_dim=96, depths=[2, 2, 6, 2], num_heads=[3, 6, 12, 24], window_size=7, out_features=stages)
        model = getattr(transformers, f"{kind}ForUniversalSegmentation" if kind == "Mask2Former" else f"{kind}ForInstanceSegmentation")(
            getattr(transformers, f"{kind}Config")(backbone_config=backbone))
        if kind == "Mask2Former":
            # Masks of random queries cut off at 0, where each layer's rounding decides what the next one looks at: with
            # weights that add little these are the same queries' in all layers.
            for layer in model.model.transformer_module.decoder.layers:
                torch.nn.init.normal_(layer.cross_attn.out_proj.weight, std=1e-4)
        fields = ["class_queries_logits", "masks_queries_logits"]
        return _Fields(model, ["pixel_values"], fields), (torch.rand(2, 3, size, size),), {"pixel_values": {0: "batch"}}, fields

    return make


MODELS = {
    "resnet50": lambda: _torchvision("resnet50", {0: "batch"}),
    "resnet18": convolutional("resnet18"),
    "mobilenet_v2": classifier("mobilenet_v2"),
    "mobilenet_v3_large": convolutional("mobilenet_v3_large"),
    "efficientnet_b0": classifier("efficientnet_b0"),
    "convnext_tiny": classifier("convnext_tiny"),
    "inception_v3": convolutional("inception_v3", 299, init_weights=False, aux_logits=False),
    "vgg16": classifier("vgg16"),
    "squeezenet1_1": convolutional("squeezenet1_1"),
    "shufflenet_v2_x1_0": convolutional("shufflenet_v2_x1_0"),
    "vit_b_16": classifier("vit_b_16"),
    "swin_t": classifier("swin_t"),
    "deeplabv3_mobilenet_v3_large": segmentation("deeplabv3_mobilenet_v3_large"),
    "segformer_b0": _segformer,
    "beit_base": _beit,
    "clip_vit_b32": _clip,
    "owlvit_base32": _owlvit,
    "detr_r50": detr("Detr"),
    "conditional_detr_r50": detr("ConditionalDetr"),
    "maskformer_swin_t": maskformer("MaskFormer", 224),
    "mask2former_swin_t": maskformer("Mask2Former", 384),
}
