"""Libraries for a CUDA device beside PyTorch on the same device, in turns.

    python tests/perf/gpu.py products [--shapes 4096x4096x4096,16x4096x4096:nn] [--dtype f16] [--gpu sm_90a]
    python tests/perf/gpu.py convolutions [--layers 56x64:64k3,28x128:512k1r] [--dtype f16] [--gpu sm_90a]
    python tests/perf/gpu.py rows [gelu softmax ...] [--dtype f32] [--gpu sm_90a]
    python tests/perf/gpu.py models [resnet50 bert_base ...] [--dtype f16 | --autocast f16] [--gpu sm_90a]
    python tests/perf/gpu.py lines [--before PTC] [--gpu sm_90a]
    python tests/perf/gpu.py calls [--gpu sm_90a]

products: M x N x K; B is stored as N x K, with `:nn` as K x N. A graph of COUNT products of one B and as many A, against
torch.matmul (cuBLAS) in a graph of its own; a time is that of one product. convolutions: those of ResNet-50 at batch 1,
SIZExCHANNELS:OUTkKERNEL, then s2 (stride 2), r (a residual, then ReLU) or n (no ReLU; else with), in the same way beside
torch's on channels-last tensors (cuDNN's fused call; where it is slower, its plain one with what follows); all have a bias.
rows: what memory binds, over 64 Mi elements, against a copy of as many by the driver (100 %: the copy's bytes a second)
and torch.compile. models: those of models/export.py at batch 1,
--mode=reduce-overhead, against eager and torch.compile(mode="reduce-overhead"); with --autocast models in f32, under
torch.autocast there. Launches are of one run: ptc's of the manifest, those of torch's last column by its profiler. Errors are
||out - f64|| / ||f64||. lines: running sums and sorts
along few long lines, of f32, beside torch's in a graph (sorts that it refuses to record: without), and one run of the compiler
before. calls: what a run costs besides its kernel, of a model that has one, and what `create` does.
Needs torch with CUDA, onnx, and what a model is made of (torchvision, transformers). TF32 is off.
"""

import argparse
import concurrent.futures
import copy
import ctypes
import inspect
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "runtime" / "python"), str(ROOT / "models")]
import ptc  # noqa: E402
from ptc import _abi  # noqa: E402

CUDA = 2  # of DLPack and ptc_device
COUNT, COPIES = 20, 10
ROUNDS, RUNS = 15, 10
PRODUCTS = ("8192x8192x8192,4096x4096x4096,4096x4096x4096:nn,2048x2048x2048,2048x3072x768,1024x1024x1024,197x768x768,"
            "197x3072x768,197x768x3072,128x768x3072,64x4096x4096,16x4096x4096,8x4096x4096,4x4096x4096,1x4096x4096,1x4096x4096:nn")
LAYERS = ("224x3:64k7s2,56x64:64k1,56x64:64k3,56x64:256k1r,56x64:256k1n,56x256:64k1,56x256:128k1,56x128:128k3s2,28x128:512k1r,"
          "56x256:512k1s2n,28x512:128k1,28x128:128k3,28x512:256k1,28x256:256k3s2,14x256:1024k1r,28x512:1024k1s2n,14x1024:256k1,"
          "14x256:256k3,14x1024:512k1,14x512:512k3s2,7x512:2048k1r,14x1024:2048k1s2n,7x2048:512k1,7x512:512k3")
MODELS = ("resnet50", "mobilenet_v2", "vit_b_16", "bert_base", "convnext_tiny", "minilm_l6")
TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


class DeviceRun:
    """A function of a library on tensors of the device; `outputs` has the results of the last call."""

    def __init__(self, path, inputs):
        self.function = next(iter(ptc.load(path).functions.values()))
        self.table, self.context = self.function._model._table, self.function._model._context()
        self.ctx = self.context.__enter__()
        self.kept = [value.contiguous() for value in inputs]
        self.arguments = self._tensors(self.function.inputs, self.kept)
        shapes = self.function._output_shapes(self.ctx, self.arguments)
        kinds = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "int64": torch.int64, "bool": torch.bool}
        self.outputs = [torch.empty(shape, dtype=kinds[value.dtype], device="cuda") for value, shape in zip(self.function.outputs, shapes)]
        self.results = self._tensors(self.function.outputs, self.outputs)
        self.stream = torch.cuda.Stream()  # runs are enqueued there, as torch's are on its own

    @staticmethod
    def _tensors(values, tensors):
        made = []
        for value, tensor in zip(values, tensors, strict=True):
            shape = (ctypes.c_int64 * max(tensor.dim(), 1))(*tensor.shape)
            made.append(_abi.Tensor(tensor.data_ptr(), _abi.Device(CUDA, 0), tensor.dim(), _abi.DType(*value._type, 1), shape, None, 0))
        return (_abi.Tensor * max(len(made), 1))(*made)

    def __call__(self):
        self.function._check(self.ctx, self.table.run(self.ctx, self.function._index, self.arguments, self.results, None, self.stream.cuda_stream))


def compile_model(arguments, model, *flags):
    path = str(Path(model).with_suffix(".so"))
    command = [arguments.ptc, "compile", str(model), "-o", path, "-q", "--target=cuda", f"--gpu={arguments.gpu}", "--mode=reduce-overhead", *flags]
    subprocess.run(command, check=True)
    return path


def in_turns(programs):
    """Median time of a run of each, us; one synchronisation a burst of RUNS."""
    times = {name: [] for name in programs}
    for run in programs.values():
        for _ in range(5):
            run()
    for _ in range(ROUNDS):
        for name, run in programs.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(RUNS):
                run()
            torch.cuda.synchronize()
            times[name].append((time.perf_counter() - start) / RUNS * 1e6)
    return {name: statistics.median(all) for name, all in times.items()}


def error(found, exact):
    return ((found.double() - exact).norm() / exact.norm()).item()


def products(arguments):
    import onnx
    from onnx import helper

    kind, onnx_kind = TYPES[arguments.dtype], {"f32": 1, "f16": 10, "bf16": 16}[arguments.dtype]
    print("| M x N x K | ptc | torch | torch / ptc | error | torch's |\n|---|---|---|---|---|---|")
    for text in arguments.shapes.split(","):
        sizes, _, form = text.partition(":")
        m, n, k = map(int, sizes.split("x"))
        b_shape = (k, n) if form == "nn" else (n, k)
        nodes = [helper.make_node("MatMul", [f"a{i}", "bt" if form != "nn" else "b"], [f"y{i}"]) for i in range(COUNT)]
        if form != "nn":
            nodes.insert(0, helper.make_node("Transpose", ["b"], ["bt"], perm=[1, 0]))
        value = lambda name, shape: helper.make_tensor_value_info(name, onnx_kind, shape)
        graph = helper.make_graph(nodes, "g", [value("b", b_shape)] + [value(f"a{i}", (m, k)) for i in range(COUNT)],
                                  [value(f"y{i}", (m, n)) for i in range(COUNT)])
        model = arguments.folder / "product.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), model)
        torch.manual_seed(0)
        a = [torch.randn(m, k, device="cuda").to(kind) for _ in range(COUNT)]
        b = torch.randn(b_shape, device="cuda").to(kind)
        library = DeviceRun(compile_model(arguments, model.rename(arguments.folder / f"{text.replace(':', '_')}.onnx")), [b, *a])
        right = b if form == "nn" else b.t()
        results = [torch.empty(m, n, dtype=kind, device="cuda") for _ in range(COUNT)]
        peer = record(lambda: [torch.matmul(x, right, out=y) for x, y in zip(a, results)])
        times = in_turns({"ptc": library, "torch": peer})
        exact = a[0].double() @ right.double()
        mine, theirs = times["ptc"] / COUNT, times["torch"] / COUNT
        print(f"| {text} | {mine:.1f} | {theirs:.1f} | {theirs / mine:.2f} | {error(library.outputs[0], exact):.1e} | {error(results[0], exact):.1e} |", flush=True)


class Layer:
    """One of LAYERS: COPIES convolutions in a model, each with weights of its own, on tensors whose channels are last."""

    def __init__(self, text, dtype):
        size, channels, out, kernel, stride, form = re.fullmatch(r"(\d+)x(\d+):(\d+)k(\d+)(s2)?([rn]?)", text).groups()
        self.text, self.kind, self.form = text, TYPES[dtype], form
        self.onnx_kind = {"f32": 1, "f16": 10, "bf16": 16}[dtype]
        self.size, self.channels, self.out, self.kernel, self.stride = int(size), int(channels), int(out), int(kernel), 2 if stride else 1
        self.pad = self.kernel // 2
        self.pixels = (self.size + 2 * self.pad - self.kernel) // self.stride + 1
        generator = torch.Generator().manual_seed(0)
        random = lambda *shape: torch.randn(shape, generator=generator)
        depth = self.channels * self.kernel**2
        self.w = [(random(self.out, self.channels, self.kernel, self.kernel) / depth**0.5).to(self.kind) for _ in range(COPIES)]
        self.b = random(self.out).to(self.kind)

    def save(self, path):
        import onnx
        from onnx import helper
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
    layers = [Layer(text, arguments.dtype) for text in arguments.layers.split(",")]
    paths = [arguments.folder / f"{layer.text.replace(':', '_')}.onnx" for layer in layers]
    for layer, path in zip(layers, paths):
        layer.save(path)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        libraries = list(pool.map(lambda path: compile_model(arguments, path), paths))
    torch.backends.cudnn.benchmark = True
    print("| layer | ptc | cuDNN | cuDNN / ptc | error | cuDNN's |\n|---|---|---|---|---|---|")
    sums = [0.0, 0.0]
    for layer, path in zip(layers, libraries):
        x, r = layer.tensors(layer.size, layer.channels), layer.tensors(layer.pixels, layer.out) if layer.form == "r" else []
        library = DeviceRun(path, [value for i in range(COPIES) for value in (x[i], *r[i:i + 1])])
        programs, results = {"ptc": library}, {}
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
        mine, theirs = times["ptc"] / COPIES, times[best] / COPIES
        sums = [sums[0] + mine, sums[1] + theirs]
        errors = error(library.outputs[0], exact), error(results[best][0].permute(0, 2, 3, 1), exact)
        print(f"| {layer.text} | {mine:.2f} | {theirs:.2f} | {theirs / mine:.2f} | {errors[0]:.1e} | {errors[1]:.1e} |", flush=True)
    print(f"| sum | {sums[0]:.1f} | {sums[1]:.1f} | {sums[1] / sums[0]:.2f} | | |")


def row_cases():
    """By name: nodes from x (and b, of one row) to y, and the same in torch."""
    from onnx.helper import make_node

    f = torch.nn.functional
    return {
        "gelu": ([make_node("Add", ["x", "b"], ["s"]), make_node("Gelu", ["s"], ["y"])], lambda x, b: f.gelu(x + b)),
        "softmax": ([make_node("Softmax", ["x"], ["y"])], lambda x, b: f.softmax(x, -1)),
        "layernorm": ([make_node("LayerNormalization", ["x", "b"], ["y"])], lambda x, b: f.layer_norm(x, b.shape, b)),
        "residual_layernorm": ([make_node("Mul", ["x", "b"], ["s"]), make_node("Add", ["x", "s"], ["r"]), make_node("LayerNormalization", ["r", "b"], ["y"])],
                               lambda x, b: f.layer_norm(x + x * b, b.shape, b)),
    }


def rows(arguments):
    import onnx
    from onnx import helper

    kind, onnx_kind = TYPES[arguments.dtype], {"f32": 1, "f16": 10, "bf16": 16}[arguments.dtype]
    value = lambda name, shape: helper.make_tensor_value_info(name, onnx_kind, shape)
    torch.manual_seed(0)
    x = torch.randn(1 << 16, 1 << 10, device="cuda").to(kind)
    b = torch.randn(1 << 10, device="cuda").to(kind)
    target, moved = torch.empty_like(x), 2 * x.numel() * x.element_size()
    print("| 64 Mi elements | ptc TB/s | copy | torch.compile | ptc / copy | error | torch's |\n|---|---|---|---|---|---|---|")
    for name, (nodes, function) in row_cases().items():
        if arguments.names and name not in arguments.names:
            continue
        inputs = [value("x", x.shape)] + ([value("b", b.shape)] if any("b" in node.input for node in nodes) else [])
        model = arguments.folder / f"{name}.onnx"
        onnx.save(helper.make_model(helper.make_graph(nodes, "g", inputs, [value("y", x.shape)]), opset_imports=[helper.make_opsetid("", 21)], ir_version=10), model)
        library = DeviceRun(compile_model(arguments, model), [x, b][:len(inputs)])
        compiled = torch.compile(function)
        times = in_turns({"ptc": library, "copy": lambda: target.copy_(x), "torch": lambda: compiled(x, b)})
        rate = {who: moved / us * 1e-6 for who, us in times.items()}
        part = slice(0, 4096)
        exact = function(x[part].double(), b.double())
        print(f"| {name} {arguments.dtype} | {rate['ptc']:.2f} | {rate['copy']:.2f} | {rate['torch']:.2f} | {rate['ptc'] / rate['copy']:.3f} | "
              f"{error(library.outputs[0][part], exact):.1e} | {error(compiled(x, b)[part], exact):.1e} |", flush=True)


def record(work):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def line_cases():
    """Name: the graph's text, a function of its input for torch, dims of the input, and flags."""
    def scan(axis, shape, text=None, flags=()):
        dims = text or ", ".join(map(str, shape))
        graph = f"(float[{dims}] x) => (float[{dims}] y) {{ z = Constant <value = int64 {{{axis}}}> () y = CumSum (x, z) }}"
        return graph, lambda x: torch.cumsum(x, axis), shape, flags

    def top(rows, length, kept):
        graph = (f"(float[{rows}, {length}] x) => (float[{rows}, {kept}] y, int64[{rows}, {kept}] i)"
                 f" {{ k = Constant <value = int64[1] {{{kept}}}> () y, i = TopK (x, k) }}")
        if kept == length:
            return graph, lambda x: torch.sort(x, dim=1, descending=True, stable=True), (rows, length), ()
        return graph, lambda x: torch.topk(x, kept, dim=1), (rows, length), ()

    return {
        "sum along 1 x 16 Mi": scan(1, (1, 1 << 24)), "sum along 4 x 1 Mi": scan(1, (4, 1 << 20)),
        "sum along 1 x 131072": scan(1, (1, 1 << 17)), "sum along 1024 x 4096": scan(1, (1024, 4096)),
        "sum along 65536 x 256": scan(1, (1 << 16, 256)), "sum along lines of 8 of 1 Mi": scan(0, (1 << 20, 8)),
        "sum along n x len, 4 x 1 Mi": scan(1, (4, 1 << 20), "n, len"),
        "sort 1 x 1 Mi": top(1, 1 << 20, 1 << 20), "sort 1 x 8 Mi": top(1, 1 << 23, 1 << 23), "sort 4096 x 1000": top(4096, 1000, 1000),
        "first 50 of 1 x 131072": top(1, 1 << 17, 50), "first 100 of 1 x 1 Mi": top(1, 1 << 20, 100),
        "first 50 of 64 x 32768": top(64, 1 << 15, 50),
    }


def lines(arguments):
    import onnx.parser

    print("| f32 | ptc, us | before | torch | torch / ptc | error | torch's |\n|---|---|---|---|---|---|---|")
    for number, (name, (graph, function, shape, flags)) in enumerate(line_cases().items()):
        if arguments.names and not any(word in name for word in arguments.names):
            continue
        torch.manual_seed(0)
        x = torch.randn(shape, device="cuda")
        model = arguments.folder / f"line{number}.onnx"
        text = re.sub(r"(?<=\)) (y(, i)? = )", r"\n\1", graph)
        onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> m {text}'), model)
        library = DeviceRun(compile_model(arguments, model, *flags), [x])
        try:
            peer = record(lambda: function(x))
        except RuntimeError:
            peer = lambda: function(x)
        times, before = in_turns({"ptc": library, "torch": peer}), "-"
        if arguments.before:
            older = argparse.Namespace(**{**vars(arguments), "ptc": arguments.before})
            run = DeviceRun(compile_model(older, model.rename(arguments.folder / f"before{number}.onnx"), *flags), [x])
            run()
            torch.cuda.synchronize()
            start = time.perf_counter()
            run()
            torch.cuda.synchronize()
            before = f"{(time.perf_counter() - start) * 1e6:,.0f}"
        exact, found, theirs = function(x.double()), library.outputs[0], function(x)
        if not torch.is_tensor(exact):
            exact, theirs = exact[0], theirs[0]
        print(f"| {name} | {times['ptc']:.1f} | {before} | {times['torch']:.1f} | {times['torch'] / times['ptc']:.2f} | "
              f"{error(found, exact):.1e} | {error(theirs, exact):.1e} |", flush=True)


def models(arguments):
    import export

    print("| model | launches | torch's | ptc | torch eager | torch.compile | error | torch's |\n|---|---|---|---|---|---|---|---|")
    for name in arguments.names or MODELS:
        torch.manual_seed(0)
        model, inputs, axes, outputs = export.MODELS[name]()
        model.eval()
        export._randomize_normalisations(model)
        kind = TYPES["f32" if arguments.autocast else arguments.dtype]
        flags = [f"--autocast={arguments.autocast}"] if arguments.autocast else []
        under = lambda: torch.autocast("cuda", TYPES.get(arguments.autocast), enabled=bool(arguments.autocast))
        cast = lambda value, to: value[:1].to(to) if value.is_floating_point() else value[:1]
        with torch.no_grad():
            exact = first(copy.deepcopy(model).double()(*(cast(value, torch.float64) for value in inputs)))
            model, inputs = model.to(kind), tuple(cast(value, kind) for value in inputs)
            path = arguments.folder / f"{name}.onnx"
            export_model(model, inputs, path, list(axes), outputs)
            library = DeviceRun(compile_model(arguments, path, *flags), [value.cuda() for value in inputs])
            manifest = json.loads(path.with_suffix(".json").read_text())
            model, inputs = model.cuda(), tuple(value.cuda() for value in inputs)
            programs = {"ptc": library, "eager": lambda: model(*inputs)}
            if not arguments.eager:
                compiled = torch.compile(model, mode="reduce-overhead")
                programs["compile"] = lambda: compiled(*inputs)
            with under():
                theirs = first(model(*inputs)).cpu()
                times = in_turns(programs)
                last = programs.popitem()[1]
                kernels = launches_of(last)
                library()
                torch.cuda.synchronize()
        launches = sum(kernel["launches"] for kernel in manifest["kernels"])
        what = f"autocast {arguments.autocast}" if arguments.autocast else arguments.dtype
        print(f"| {name} {what} | {launches} | {kernels} | {times['ptc']:.0f} | {times['eager']:.0f} | {times.get('compile', math.nan):.0f} | "
              f"{error(library.outputs[0].cpu(), exact):.1e} | {error(theirs, exact):.1e} |", flush=True)


def export_model(model, inputs, path, names, outputs):
    """By the older exporter, or by the newer one where that fails. Normalisations stay: folded, weights of 16 bits would be
    rounded once more than torch's own."""
    keeps = {"training": torch.onnx.TrainingMode.PRESERVE}
    for newer, opset, more in ((False, 17, keeps), (True, 20, {})):
        try:
            return torch.onnx.export(model, inputs, path, dynamo=newer, input_names=names, output_names=outputs, opset_version=opset, **more)
        except Exception:
            if newer:
                raise


def launches_of(run):
    """Kernels of a run on the device, copies not counted."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
        torch.cuda.synchronize()
    on_device = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    return sum(not event.name.startswith(("Memcpy", "Memset")) for event in on_device)


def calls(arguments):
    import onnx
    from onnx import helper

    value = lambda name: helper.make_tensor_value_info(name, 1, (1024,))
    model = arguments.folder / "relu.onnx"
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [value("x")], [value("y")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), model)
    x = torch.randn(1024, device="cuda")
    library, peer = DeviceRun(compile_model(arguments, model), [x]), record(lambda: x.relu())
    for name, run in {"ptc": library, "a graph of torch": peer}.items():
        print(f"{name}: {each(run, wait=True):.1f} us a run and its end, {each(run, wait=False):.1f} us until a run is enqueued")
    start = time.perf_counter()
    with library.function._model._context():
        print(f"create: {(time.perf_counter() - start) * 1e3:.2f} ms")


def each(run, wait):
    """Median time of a call, us, with its end or without."""
    times = []
    for _ in range(ROUNDS * RUNS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        if wait:
            torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


def first(result):
    while not isinstance(result, torch.Tensor):
        result = result[0] if isinstance(result, (tuple, list)) else next(iter(result.values()))
    return result


def main():
    parser = argparse.ArgumentParser(description=inspect.getdoc(sys.modules[__name__]), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("products", "convolutions", "rows", "models", "lines", "calls"))
    parser.add_argument("names", nargs="*", help="of models, rows or lines")
    parser.add_argument("--ptc", default=str(ROOT / "build" / "bin" / "ptc"))
    parser.add_argument("--gpu", default="sm_90a")
    parser.add_argument("--dtype", choices=TYPES, default="f16")
    parser.add_argument("--autocast", choices=("f16", "bf16"), help="of models")
    parser.add_argument("--eager", action="store_true", help="models: no torch.compile, which takes half a minute each")
    parser.add_argument("--shapes", default=PRODUCTS, help="of products")
    parser.add_argument("--before", help="lines: another ptc")
    parser.add_argument("--layers", default=LAYERS, help="of convolutions")
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    with tempfile.TemporaryDirectory() as folder:
        arguments.folder = Path(folder)
        {"products": products, "convolutions": convolutions, "rows": rows, "models": models, "lines": lines, "calls": calls}[arguments.what](arguments)


if __name__ == "__main__":
    main()
