"""Detectors whose results have as many rows as they find: torchvision's, and a small one of the YOLO kind with its NMS."""

import torch


class _Lists(torch.nn.Module):
    """One image of any size to the fields of its detections, in the pixels of that image; or several of one size, whose
    detections follow each other."""

    def __init__(self, model, fields, size):
        super().__init__()
        self.model, self.fields = model, fields
        self.examples = [_photo(*size) for _ in range(6)]

    def rehearse(self):
        """What normalisations are measured on: several images, since deep layers see much the same all over one."""
        self.model(self.examples)

    def forward(self, image):
        found = self.model([image] if image.dim() == 3 else list(image))
        found = found[1] if isinstance(found, tuple) else found
        return tuple(torch.cat([one[field] for one in found]) for field in self.fields)


def _scene(channels, height, width):
    """Blocks of colours with some noise: unlike noise alone, it differs from place to place for deep layers too."""
    blocks = torch.rand(1, channels, height // 40 + 1, width // 40 + 1)
    return torch.nn.functional.interpolate(blocks, (height, width))[0] * 0.9 + torch.rand(channels, height, width) * 0.1


def _photo(channels, height, width):
    """Fields of colours that flow into each other. These models resize their image: at hard edges the last bits of a
    coordinate, which onnxruntime rounds to f32, would be seen in what is found."""
    fields = [torch.nn.functional.interpolate(torch.rand(1, channels, height // size + 2, width // size + 2), (height, width), mode="bilinear")[0]
              for size in (40, 10)]
    return fields[0] * 0.7 + fields[1] * 0.3


# Spread of what the last layers of heads give, by a part of their names: scores are to differ, boxes not to explode.
SPREADS = {"bbox_pred": 0.4, "bbox_reg": 0.4, "regression_head": 0.4, "boxes.": 0.4, "cls_score": 2.0, "cls_logits": 1.0,
           "classification_head.module_list": 2.0, "objectness": 1.0, "classes.": 1.0, "centerness": 1.0}


BRANCH = 0.25  # of what the branch of a residual block adds, as training makes it: with more, rounding grows from block to block


def _end_of_branch(module):
    """The normalisation that a residual block ends its branch with, or None."""
    from torchvision.models import mobilenetv3, resnet

    if isinstance(module, resnet.Bottleneck):
        return module.bn3
    return module.block[-1][1] if isinstance(module, mobilenetv3.InvertedResidual) and module.use_res_connect else None


def _widen(model):
    """Weights that keep the variance of what goes through them: with small ones all places look the same, scores are tied
    and their order is rounding. Layers at the end of heads are told the spread that export.py gives them."""
    for name, module in model.named_modules():
        if last := _end_of_branch(module):
            last.gain = BRANCH
        if isinstance(module, (torch.nn.Conv2d, torch.nn.ConvTranspose2d, torch.nn.Linear)):
            torch.nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            module.spread = next((spread for part, spread in SPREADS.items() if part in name + "."), None)


def torchvision_detector(name, size=(3, 240, 320), fields=("boxes", "scores", "labels"), images=None, **arguments):
    def make():
        import torchvision

        model = torchvision.models.get_model(name, weights=None, weights_backbone=None, **arguments)
        _widen(model)
        lists = _Lists(model, fields, size)
        example = torch.stack([_photo(*size) for _ in range(images)]) if images else _photo(*size)
        return lists, (example,), {"image": {example.dim() - 2: "height", example.dim() - 1: "width"}}, list(fields)

    return make


def _convolve(inputs, outputs, size=1, stride=1):
    return torch.nn.Sequential(torch.nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), torch.nn.BatchNorm2d(outputs), torch.nn.SiLU())


class _Split(torch.nn.Module):
    """A stage whose half goes through bottlenecks, each of which is kept."""

    def __init__(self, inputs, outputs, depth):
        super().__init__()
        self.half = outputs // 2
        self.enter = _convolve(inputs, outputs)
        self.blocks = torch.nn.ModuleList(torch.nn.Sequential(_convolve(self.half, self.half, 3), _convolve(self.half, self.half, 3)) for _ in range(depth))
        self.leave = _convolve((2 + depth) * self.half, outputs)

    def forward(self, x):
        parts = list(self.enter(x).split(self.half, 1))
        for block in self.blocks:
            parts.append(parts[-1] + block(parts[-1]))
        return self.leave(torch.cat(parts, 1))


class _Pyramid(torch.nn.Module):
    """Three levels of an image, upsampled and joined; boxes as expectations over bins; scores of classes."""

    CLASSES, BINS = 20, 16

    def __init__(self):
        super().__init__()
        widths = (16, 32, 64, 128, 256)
        self.stages = torch.nn.ModuleList(torch.nn.Sequential(_convolve(a, b, 3, 2), _Split(b, b, 1)) for a, b in zip((3, *widths), widths))
        self.pool = torch.nn.MaxPool2d(5, 1, 2)
        self.join = _convolve(4 * 256, 256)
        self.up = torch.nn.Upsample(scale_factor=2.0)
        self.up4, self.up3 = _Split(256 + 128, 128, 1), _Split(128 + 64, 64, 1)
        channels = (64, 128, 256)
        self.boxes = torch.nn.ModuleList(torch.nn.Conv2d(c, 4 * self.BINS, 1) for c in channels)
        self.classes = torch.nn.ModuleList(torch.nn.Conv2d(c, self.CLASSES, 1) for c in channels)
        _widen(self)

    def levels(self, x):
        kept = []
        for stage in self.stages:
            x = stage(x)
            kept.append(x)
        pooled = [x]
        for _ in range(3):
            pooled.append(self.pool(pooled[-1]))
        p5 = self.join(torch.cat(pooled, 1))
        p4 = self.up4(torch.cat([self.up(p5), kept[3]], 1))
        return self.up3(torch.cat([self.up(p4), kept[2]], 1)), p4, p5

    def forward(self, image):
        boxes, scores = [], []
        for level, (x, box, kind) in enumerate(zip(self.levels(image), self.boxes, self.classes)):
            stride = 8 << level
            rows, columns = torch.meshgrid(torch.arange(x.shape[2]), torch.arange(x.shape[3]), indexing="ij")
            centre = (torch.stack([columns, rows]).reshape(1, 2, -1) + 0.5) * stride
            bins = box(x).reshape(x.shape[0], 4, self.BINS, -1).softmax(2)
            reach = (bins * torch.arange(self.BINS, dtype=torch.float32).reshape(1, 1, -1, 1)).sum(2) * stride
            boxes.append(torch.cat([centre - reach[:, :2], centre + reach[:, 2:]], 1))
            scores.append(kind(x).flatten(2).sigmoid())
        return torch.cat(boxes, 2), torch.cat(scores, 2)


class _Suppressed(torch.nn.Module):
    """The detections of one image over a score, those that overlap a better one of their class taken away."""

    def __init__(self):
        from torchvision.ops import nms

        super().__init__()
        self.model, self.suppress = _Pyramid(), nms

    def rehearse(self):
        self.model(torch.stack([_photo(3, 192, 256) for _ in range(6)]))

    def forward(self, image, threshold):
        boxes, scores = self.model(image)
        best, label = scores[0].max(0)
        kept = (best > threshold).nonzero().squeeze(1)
        boxes, best, label = boxes[0].transpose(0, 1)[kept], best[kept], label[kept]
        found = self.suppress(boxes + label[:, None] * 4096.0, best, 0.5)
        return boxes[found], best[found], label[found]


def _yolo():
    image = {0: "batch", 2: "height", 3: "width"}
    return _Pyramid(), (torch.stack([_scene(3, 192, 256), _scene(3, 192, 256)]),), {"image": image}, ["boxes", "scores"]


def _yolo_nms():
    return _Suppressed(), (_photo(3, 192, 256)[None], torch.tensor(0.6)), {"image": {2: "height", 3: "width"}, "threshold": {}}, ["boxes", "scores", "labels"]


SMALL = {"min_size": 224, "max_size": 416}
DETECTORS = {
    "ssdlite320": ("ssdlite320_mobilenet_v3_large", {}),
    "ssd300_vgg16": ("ssd300_vgg16", {}),
    "retinanet": ("retinanet_resnet50_fpn", SMALL),
    "fcos": ("fcos_resnet50_fpn", SMALL),
    "fasterrcnn_mobilenet": ("fasterrcnn_mobilenet_v3_large_320_fpn", {}),
    "fasterrcnn_resnet50": ("fasterrcnn_resnet50_fpn", SMALL),
    "maskrcnn_resnet50": ("maskrcnn_resnet50_fpn", SMALL | {"fields": ("boxes", "scores", "labels", "masks")}),
    "keypointrcnn_resnet50": ("keypointrcnn_resnet50_fpn", SMALL | {"fields": ("boxes", "scores", "labels", "keypoints"), "box_detections_per_img": 16}),  # a heat map a box
}
MODELS = {"yolo": _yolo, "yolo_nms": _yolo_nms}
MODELS |= {name: torchvision_detector(model, **arguments) for name, (model, arguments) in DETECTORS.items()}
MODELS |= {f"{name}_of_8": torchvision_detector(model, images=8, **arguments) for name, (model, arguments) in DETECTORS.items() if "fields" not in arguments}
