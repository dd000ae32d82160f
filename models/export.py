"""Exports the PyTorch models of models.toml to ONNX: real architectures, seeded weights.

    python models/export.py resnet50 dynamo resnet50.onnx      one model by one exporter
    python models/export.py                                    the names of models and exporters

Both exporters of torch.onnx are in use and write different graphs of one model: `dynamo` (torch.export, operators kept)
and `script` (TorchScript traces, operators decomposed, chains of Shape and Gather). Weights are random but the same in
each run; statistics and gains of the normalisations are random too, since those of a fresh model are ones and zeros,
which hide mistakes.
"""

import argparse
import sys
import warnings
from pathlib import Path

import torch

EXPORTERS = ("dynamo", "script")


def _vision(name):
    import torchvision

    torch.backends.mha.set_fastpath_enabled(False)  # one fused operator of eager mode, which has no ONNX counterpart
    model = getattr(torchvision.models, name)(weights=None)
    return model, (torch.rand(1, 3, 224, 224),), {"x": {0: "batch"}}, ["logits"]


class _Encoder(torch.nn.Module):
    """Token ids and a mask to hidden states, as sentence embedders use it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def _bert(**sizes):
    import transformers

    model = _Encoder(transformers.BertModel(transformers.BertConfig(**sizes), add_pooling_layer=False))
    ids = torch.arange(2 * 16).reshape(2, 16) * 37 % 30000
    axes = {0: "batch", 1: "seq"}
    return model, (ids, torch.ones_like(ids)), {"input_ids": axes, "attention_mask": axes}, ["hidden"]


class _Prefill(torch.nn.Module):
    """Token ids to logits and the keys and values of every layer."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        out = self.model(input_ids=input_ids, use_cache=True)
        cache = out.past_key_values
        return (out.logits, *(tensor for layer in cache.layers for tensor in (layer.keys, layer.values)))


def _gpt2():
    import transformers

    config = transformers.GPT2Config()
    cache = [f"{kind}{layer}" for layer in range(config.n_layer) for kind in ("key", "value")]
    ids = torch.arange(128).reshape(1, 128) * 37 % 50000
    return _Prefill(transformers.GPT2LMHeadModel(config)), (ids,), {"input_ids": {0: "batch"}}, ["logits", *cache]


# Each gives the model, example inputs, the dims of its inputs that stay free, and the names of its outputs.
MODELS = {
    "resnet50": lambda: _vision("resnet50"),
    "mobilenet_v2": lambda: _vision("mobilenet_v2"),
    "efficientnet_b0": lambda: _vision("efficientnet_b0"),
    "convnext_tiny": lambda: _vision("convnext_tiny"),
    "vit_b_16": lambda: _vision("vit_b_16"),
    "bert_base": lambda: _bert(),
    "minilm_l6": lambda: _bert(hidden_size=384, num_hidden_layers=6, intermediate_size=1536),
    "gpt2": _gpt2,
}


def _randomize_normalisations(model):
    for module in model.modules():
        if isinstance(module, (torch.nn.modules.batchnorm._BatchNorm, torch.nn.LayerNorm)):
            torch.nn.init.uniform_(module.weight, 0.8, 1.2)
            torch.nn.init.uniform_(module.bias, -0.1, 0.1)
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            torch.nn.init.uniform_(module.running_mean, -0.1, 0.1)
            torch.nn.init.uniform_(module.running_var, 0.8, 1.2)


def _export(name, exporter, path):
    torch.manual_seed(0)
    model, inputs, axes, outputs = MODELS[name]()
    model.eval()
    _randomize_normalisations(model)
    names = {"input_names": list(axes), "output_names": outputs}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if exporter == "dynamo":
            torch.onnx.export(model, inputs, path, dynamo=True, dynamic_shapes=tuple(axes.values()), external_data=False, verbose=False, **names)
        else:
            torch.onnx.export(model, inputs, path, dynamo=False, dynamic_axes=axes, opset_version=17, **names)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", choices=MODELS)
    parser.add_argument("exporter", nargs="?", choices=EXPORTERS)
    parser.add_argument("output", nargs="?", type=Path)
    args = parser.parse_args()
    if not args.output:
        print("models:    " + " ".join(MODELS) + "\nexporters: " + " ".join(EXPORTERS))
        return 0
    staged = args.output.with_suffix(".part")
    _export(args.model, args.exporter, staged)
    staged.rename(args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
