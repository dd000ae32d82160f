"""Exports the PyTorch models of models.toml to ONNX: real architectures, seeded weights.

    python models/export.py resnet50 dynamo resnet50.onnx      one model by one exporter
    python models/export.py                                    the names of models and exporters

Both exporters of torch.onnx are in use and write different graphs of one model: `dynamo` (torch.export, operators kept)
and `script` (TorchScript traces, operators decomposed, chains of Shape and Gather). Weights are random but the same in
each run; statistics and gains of the normalisations are random too, since those of a fresh model are ones and zeros,
which hide mistakes. Quantised models are made of exported ones by onnxruntime's tools.
"""

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

import torch
from architectures import detection, language, other, quantized, vision

EXPORTERS = ("dynamo", "script")
PASSES = 3  # of a calibration

# Each gives the model, example inputs, the dims of its inputs that stay free, and the names of its outputs.
MODELS = vision.MODELS | language.MODELS | detection.MODELS | other.MODELS


def _randomize_normalisations(model):
    for module in model.modules():
        if isinstance(module, (torch.nn.modules.batchnorm._BatchNorm, torch.nn.LayerNorm)):
            gain = getattr(module, "gain", 1)
            torch.nn.init.uniform_(module.weight, 0.8 * gain, 1.2 * gain)
            torch.nn.init.uniform_(module.bias, -0.1, 0.1)
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            torch.nn.init.uniform_(module.running_mean, -0.1, 0.1)
            torch.nn.init.uniform_(module.running_var, 0.8, 1.2)
        if isinstance(module, torch.nn.Linear) and not module.weight.any():  # a head that begins as zeros gives nothing but them
            torch.nn.init.normal_(module.weight, std=0.02)


def _calibrate(model, inputs):
    """Normalisations have the statistics of the example, or of those that the model itself has. Layers that name a spread
    give it there, on that of the levels of a pyramid where they vary most. What a head proposes decides what those after it
    see: hence several passes."""

    def measure(layer, arguments):
        axes = [axis for axis in range(arguments[0].dim()) if axis != 1]
        if arguments[0].numel() > arguments[0].shape[1]:
            spread = arguments[0].var(axes)
            layer.running_var.copy_(spread.clamp(min=0.3 * spread.mean()))  # channels that hardly vary here may do elsewhere
            layer.running_mean.copy_(arguments[0].mean(axes))

    def note(layer, arguments, result):
        widest[layer] = max(widest.get(layer, 0), result.std())

    hooks = [module.register_forward_pre_hook(measure) for module in model.modules()
             if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)]
    hooks += [module.register_forward_hook(note) for module in model.modules() if getattr(module, "spread", None)]
    with torch.no_grad():
        for _ in range(PASSES):
            widest = {}
            model.rehearse() if hasattr(model, "rehearse") else model(*inputs)
            for layer, spread in widest.items():
                layer.weight *= layer.spread / spread
    for hook in hooks:
        hook.remove()


def make(name):
    """The module, the same in each run, with its example inputs, the dims of its inputs that stay free, and its outputs."""
    torch.manual_seed(0)
    model, inputs, axes, outputs = MODELS[name]()
    model.eval()
    _randomize_normalisations(model)
    if name in detection.MODELS:
        _calibrate(model, inputs)
    return model, inputs, axes, outputs


def _export(name, exporter, path):
    model, inputs, axes, outputs = make(name)
    names = {"input_names": list(axes), "output_names": outputs}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if exporter == "dynamo":
            torch.onnx.export(model, inputs, path, dynamo=True, dynamic_shapes=_shapes(model, axes), external_data=False, verbose=False, **names)
        else:
            torch.onnx.export(model, inputs, path, dynamo=False, dynamic_axes={name: dims for name, dims in axes.items() if dims}, opset_version=17, **names)


def _shapes(model, axes):
    """The free dims in the order of the inputs; a starred parameter takes a tuple of them."""
    import inspect

    dims, shapes = list(axes.values()), []
    for parameter in inspect.signature(model.forward).parameters.values():
        if parameter.kind != parameter.VAR_POSITIONAL:
            shapes.append(dims[len(shapes)])
        elif rest := dims[len(shapes):]:
            shapes.append(tuple(rest))
    return tuple(shapes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", choices=[*MODELS, *quantized.MODELS])
    parser.add_argument("exporter", nargs="?", choices=EXPORTERS)
    parser.add_argument("output", nargs="?", type=Path)
    args = parser.parse_args()
    if not args.output:
        print("models:    " + " ".join([*MODELS, *quantized.MODELS]) + "\nexporters: " + " ".join(EXPORTERS))
        return 0
    staged = args.output.with_suffix(".part")
    if args.model in quantized.MODELS:
        source, quantize = quantized.MODELS[args.model]
        with tempfile.TemporaryDirectory(dir=args.output.parent) as folder:
            plain = Path(folder) / "plain.onnx"
            _export(source, args.exporter, plain)
            quantize(plain, staged)
    else:
        _export(args.model, args.exporter, staged)
    staged.rename(args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
