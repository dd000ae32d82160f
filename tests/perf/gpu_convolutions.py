"""gpu.py convolutions: those of ResNet-50 at batch 1, with what follows them."""

import collections
import concurrent.futures
import re

import onnx
import torch
from gpu_device import ONNX_TYPES, TYPES, Table, compile_both, error, in_turns, load, record
from onnx import helper

COPIES = 10
LAYERS = ("224x3:64k7s2,56x64:64k1,56x64:64k3,56x64:256k1r,56x64:256k1n,56x256:64k1,56x256:128k1,56x128:128k3s2,28x128:512k1r,"
          "56x256:512k1s2n,28x512:128k1,28x128:128k3,28x512:256k1,28x256:256k3s2,14x256:1024k1r,28x512:1024k1s2n,14x1024:256k1,"
          "14x256:256k3,14x1024:512k1,14x512:512k3s2,7x512:2048k1r,14x1024:2048k1s2n,7x2048:512k1,7x512:512k3").split(",")


class Layer:
    """One of LAYERS: COPIES convolutions in a model, each with weights of its own, on tensors whose channels are last."""

    def __init__(self, text, dtype):
        size, channels, out, kernel, stride, form = re.fullmatch(r"(\d+)x(\d+):(\d+)k(\d+)(s2)?([rn]?)", text).groups()
        self.text, self.kind, self.form = text, TYPES[dtype], form
        self.onnx_kind = ONNX_TYPES[dtype]
        self.size, self.channels, self.out, self.kernel, self.stride = int(size), int(channels), int(out), int(kernel), 2 if stride else 1
        self.pad = self.kernel // 2
        self.pixels = (self.size + 2 * self.pad - self.kernel) // self.stride + 1
        generator = torch.Generator().manual_seed(0)
        random = lambda *shape: torch.randn(shape, generator=generator)
        depth = self.channels * self.kernel**2
        self.w = [(random(self.out, self.channels, self.kernel, self.kernel) / depth**0.5).to(self.kind) for _ in range(COPIES)]
        self.b = random(self.out).to(self.kind)

    def save(self, path):
        value = lambda name, size, channels: helper.make_tensor_value_info(name, self.onnx_kind, (1, size, size, channels))
        raw = lambda name, x: helper.make_tensor(name, self.onnx_kind, x.shape, x.contiguous().view(torch.uint8).numpy().tobytes(), raw=True)
        inputs, nodes, outputs = [], [], []
        for i in range(COPIES):
            first = lambda name, new: helper.make_node("Transpose", [name], [new], perm=[0, 3, 1, 2])
            inputs.append(value(f"x{i}", self.size, self.channels))
            nodes += [first(f"x{i}", f"t{i}"), helper.make_node("Conv", [f"t{i}", f"w{i}", "b"], [f"c{i}"], strides=[self.stride] * 2, pads=[self.pad] * 4)]
            last = f"c{i}"
            if self.form == "r":
                inputs.append(value(f"r{i}", self.pixels, self.out))
                nodes += [first(f"r{i}", f"q{i}"), helper.make_node("Add", [last, f"q{i}"], [f"s{i}"])]
                last = f"s{i}"
            if self.form != "n":
                nodes.append(helper.make_node("Relu", [last], [f"a{i}"]))
                last = f"a{i}"
            nodes.append(helper.make_node("Transpose", [last], [f"y{i}"], perm=[0, 2, 3, 1]))
            outputs.append(value(f"y{i}", self.pixels, self.out))
        weights = [raw(f"w{i}", w) for i, w in enumerate(self.w)]
        graph = helper.make_graph(nodes, "g", inputs, outputs, [*weights, raw("b", self.b)])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)

    def tensors(self, size, channels):
        return [torch.randn(1, size, size, channels, device="cuda").to(self.kind) for _ in range(COPIES)]

    def peers(self, x, r):
        """What torch offers, channels last."""
        last = lambda tensor: tensor.permute(0, 3, 1, 2)
        w, b = [w.cuda().to(memory_format=torch.channels_last) for w in self.w], self.b.cuda()
        conv = lambda i: torch.nn.functional.conv2d(last(x[i]), w[i], b, self.stride, self.pad)
        sides = [self.stride] * 2, [self.pad] * 2, [1, 1], 1
        if self.form == "n":
            return [conv]
        if self.form == "r":
            return [lambda i: torch.cudnn_convolution_add_relu(last(x[i]), w[i], last(r[i]), 1.0, b, *sides), lambda i: (conv(i) + last(r[i])).relu_()]
        return [lambda i: torch.cudnn_convolution_relu(last(x[i]), w[i], b, *sides), lambda i: conv(i).relu_()]


def convolutions(arguments):
    layers = [Layer(text, arguments.dtype) for text in (arguments.layers.split(",") if arguments.layers else LAYERS)]
    paths = [arguments.folder / f"{layer.text.replace(':', '_')}.onnx" for layer in layers]
    for layer, path in zip(layers, paths):
        layer.save(path)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        compiled = list(pool.map(lambda path: compile_both(arguments, path), paths))
    torch.backends.cudnn.benchmark = True
    table = Table(arguments, "layer", "ptc", "cuDNN", "cuDNN / ptc", "error", "cuDNN's")
    sums = collections.Counter()
    for layer, path in zip(layers, compiled):
        x, r = layer.tensors(layer.size, layer.channels), layer.tensors(layer.pixels, layer.out) if layer.form == "r" else []
        libraries = load(path, [value for i in range(COPIES) for value in (x[i], *r[i:i + 1])])
        programs, results = dict(libraries), {}
        for number, peer in enumerate(layer.peers(x, r)):
            results[f"torch{number}"] = []
            def work(peer=peer, kept=results[f"torch{number}"]):
                kept[:] = [peer(i) for i in range(COPIES)]
            programs[f"torch{number}"] = record(work)
        times = in_turns(programs)
        best = min(results, key=times.get)
        exact = torch.nn.functional.conv2d(x[0].double().permute(0, 3, 1, 2), layer.w[0].cuda().double(), layer.b.cuda().double(), layer.stride, layer.pad)
        exact = exact + r[0].double().permute(0, 3, 1, 2) if r else exact
        exact = (exact if layer.form == "n" else exact.relu()).permute(0, 2, 3, 1)
        times["cuDNN"] = times[best]
        sums.update({name: times[name] for name in ("cuDNN", *libraries)})
        errors = error(libraries["ptc"].outputs[0], exact), error(results[best][0].permute(0, 2, 3, 1), exact)
        row(table, layer.text, times, *(f"{each:.1e}" for each in errors))
    row(table, "sum", sums, "", "")


def row(table, name, times, *errors):
    cells = [f"{times[which] / COPIES:.2f}" if which in times else "-" for which in ("ptc", "cuDNN", "before")]
    table.row(name, *cells[:2], f"{times['cuDNN'] / times['ptc']:.2f}", *errors, before=cells[2])
