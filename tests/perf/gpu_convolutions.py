"""gpu.py convolutions: those of ResNet-50 at batch 1, with what follows them. cudnn: convolutions by cuDNN inside the library."""

import collections
import concurrent.futures
import re

import onnx
import torch
from gpu_device import ONNX_TYPES, TYPES, Table, by_library, compile_both, error, in_turns, kernels_of, load, record
from onnx import helper

COPIES = 10
LAYERS = ("224x3:64k7s2,56x64:64k1,56x64:64k3,56x64:256k1r,56x64:256k1n,56x256:64k1,56x256:128k1,56x128:128k3s2,28x128:512k1r,"
          "56x256:512k1s2n,28x512:128k1,28x128:128k3,28x512:256k1,28x256:256k3s2,14x256:1024k1r,28x512:1024k1s2n,14x1024:256k1,"
          "14x256:256k3,14x1024:512k1,14x512:512k3s2,7x512:2048k1r,14x1024:2048k1s2n,7x2048:512k1,7x512:512k3").split(",")
# Of all kinds that cuDNN is asked for: windows, strides, dilations, groups, residuals, nothing behind them.
KINDS = ("56x64:64k3,56x64:256k1r,28x128:512k1r,56x256:512k1s2n,28x256:256k3s2,14x256:256k3,7x512:512k3,28x128:128k3d2,28x128:128k3r,56x128:128k3g32,"
         "14x1024:1024k3g32,28x256:256k3s2g4n,56x64:64k5,112x16:32k7,112x8:64k3n").split(",")


class Layer:
    """One of LAYERS: `copies` convolutions in a model, each with weights of its own, on tensors whose channels are last."""

    def __init__(self, text, dtype, copies=COPIES):
        pattern = r"(\d+)x(\d+):(\d+)k(\d+)(s2)?(?:d(\d+))?(?:g(\d+))?([rn]?)"
        size, channels, out, kernel, stride, dilation, groups, form = re.fullmatch(pattern, text).groups()
        self.copies, self.dilation, self.groups = copies, int(dilation or 1), int(groups or 1)
        self.text, self.kind, self.form = text, TYPES[dtype], form
        self.onnx_kind = ONNX_TYPES[dtype]
        self.size, self.channels, self.out, self.kernel, self.stride = int(size), int(channels), int(out), int(kernel), 2 if stride else 1
        self.pad = self.kernel // 2 * self.dilation
        self.pixels = (self.size + 2 * self.pad - self.dilation * (self.kernel - 1) - 1) // self.stride + 1
        generator = torch.Generator().manual_seed(0)
        random = lambda *shape: torch.randn(shape, generator=generator)
        depth = self.channels // self.groups
        self.w = [(random(self.out, depth, self.kernel, self.kernel) / (depth * self.kernel**2)**0.5).to(self.kind) for _ in range(copies)]
        self.b = random(self.out).to(self.kind)

    def save(self, path):
        value = lambda name, size, channels: helper.make_tensor_value_info(name, self.onnx_kind, (1, size, size, channels))
        raw = lambda name, x: helper.make_tensor(name, self.onnx_kind, x.shape, x.contiguous().view(torch.uint8).numpy().tobytes(), raw=True)
        inputs, nodes, outputs = [], [], []
        settings = {"strides": [self.stride] * 2, "pads": [self.pad] * 4, "dilations": [self.dilation] * 2, "group": self.groups}
        for i in range(self.copies):
            first = lambda name, new: helper.make_node("Transpose", [name], [new], perm=[0, 3, 1, 2])
            inputs.append(value(f"x{i}", self.size, self.channels))
            nodes += [first(f"x{i}", f"t{i}"), helper.make_node("Conv", [f"t{i}", f"w{i}", "b"], [f"c{i}"], **settings)]
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
        return [torch.randn(1, size, size, channels, device="cuda").to(self.kind) for _ in range(self.copies)]

    def inputs(self):
        """x of each copy, and what is added to it if that is asked for."""
        x, r = self.tensors(self.size, self.channels), self.tensors(self.pixels, self.out) if self.form == "r" else []
        return x, r, [value for i in range(self.copies) for value in (x[i], *r[i:i + 1])]

    def exact(self, x, r):
        last = lambda tensor: tensor.double().permute(0, 3, 1, 2)
        sides = self.stride, self.pad, self.dilation, self.groups
        result = torch.nn.functional.conv2d(last(x[0]), self.w[0].cuda().double(), self.b.cuda().double(), *sides)
        result = result + last(r[0]) if r else result
        return (result if self.form == "n" else result.relu()).permute(0, 2, 3, 1)

    def peers(self, x, r):
        """What torch offers, channels last."""
        last = lambda tensor: tensor.permute(0, 3, 1, 2)
        w, b = [w.cuda().to(memory_format=torch.channels_last) for w in self.w], self.b.cuda()
        conv = lambda i: torch.nn.functional.conv2d(last(x[i]), w[i], b, self.stride, self.pad, self.dilation, self.groups)
        sides = [self.stride] * 2, [self.pad] * 2, [self.dilation] * 2, self.groups
        if self.form == "n":
            return [conv]
        if self.form == "r":
            return [lambda i: torch.cudnn_convolution_add_relu(last(x[i]), w[i], last(r[i]), 1.0, b, *sides), lambda i: (conv(i) + last(r[i])).relu_()]
        return [lambda i: torch.cudnn_convolution_relu(last(x[i]), w[i], b, *sides), lambda i: conv(i).relu_()]


def cudnn(arguments):
    convolutions(arguments, is_library=True)


def compile_layer(arguments, path, is_library):
    paths = compile_both(arguments, path)
    return paths | {"library": by_library(arguments, "cudnn", path, paths["ptc"])} if is_library else paths


def convolutions(arguments, is_library=False):
    names = arguments.layers.split(",") if arguments.layers else KINDS if is_library else LAYERS
    layers = [Layer(text, arguments.dtype) for text in names]
    paths = [arguments.folder / f"{layer.text.replace(':', '_')}.onnx" for layer in layers]
    for layer, path in zip(layers, paths):
        layer.save(path)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        compiled = list(pool.map(lambda path: compile_layer(arguments, path, is_library), paths))
    torch.backends.cudnn.benchmark = True
    more = ("by cuDNN", "ptc / by cuDNN", "its error", "its kernels") if is_library else ()
    table = Table(arguments, "layer", "ptc", "cuDNN", "cuDNN / ptc", "error", "cuDNN's", *more)
    sums = collections.Counter()
    for layer, path in zip(layers, compiled):
        x, r, inputs = layer.inputs()
        libraries = load(path, inputs)
        programs, results = dict(libraries), {}
        for number, peer in enumerate(layer.peers(x, r)):
            results[f"torch{number}"] = []
            def work(peer=peer, kept=results[f"torch{number}"]):
                kept[:] = [peer(i) for i in range(COPIES)]
            programs[f"torch{number}"] = record(work)
        times = in_turns(programs)
        best = min(results, key=times.get)
        exact = layer.exact(x, r)
        times["cuDNN"] = times[best]
        sums.update({name: times[name] for name in ("cuDNN", *libraries)})
        errors = error(libraries["ptc"].outputs[0], exact), error(results[best][0].permute(0, 2, 3, 1), exact)
        more = ()
        if is_library:
            kernels = {re.sub(r"\W.*", "", name)[:60] for name in kernels_of(libraries["library"])}
            more = (f"{times['library'] / COPIES:.2f}", f"{times['ptc'] / times['library']:.2f}", f"{error(libraries['library'].outputs[0], exact):.1e}",
                    " ".join(sorted(kernels)))
        row(table, layer.text, times, *(f"{each:.1e}" for each in errors), *more)
    row(table, "sum", sums, "", "", *("" for _ in more))


def row(table, name, times, *errors):
    cells = [f"{times[which] / COPIES:.2f}" if which in times else "-" for which in ("ptc", "cuDNN", "before")]
    table.row(name, *cells[:2], f"{times['cuDNN'] / times['ptc']:.2f}", *errors, before=cells[2])
