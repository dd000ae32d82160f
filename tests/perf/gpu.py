"""Libraries for a CUDA device beside PyTorch on the same device, in turns.

    python tests/perf/gpu.py products [--shapes 4096x4096x4096,16x4096x4096:nn] [--dtype f16] [--gpu sm_90a]
    python tests/perf/gpu.py rows [gelu softmax ...] [--dtype f32] [--gpu sm_90a]
    python tests/perf/gpu.py models [resnet50 bert_base ...] [--dtype f16 | --autocast f16] [--gpu sm_90a]

products: M x N x K; B is stored as N x K, with `:nn` as K x N. A graph of COUNT products of one B and as many A, against
torch.matmul (cuBLAS) in a graph of its own; a time is that of one product. rows: what memory binds, over 64 Mi
elements, against a copy of as many by the driver (100 %: the copy's bytes a second) and torch.compile. models: those of models/export.py at batch 1,
--mode=reduce-overhead, against eager and torch.compile(mode="reduce-overhead"); with --autocast models in f32, under
torch.autocast there. Errors are ||out - f64|| / ||f64||.
Needs torch with CUDA, onnx, and what a model is made of (torchvision, transformers). TF32 is off.
"""

import argparse
import copy
import ctypes
import inspect
import json
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
COUNT = 20
ROUNDS, RUNS = 15, 10
PRODUCTS = ("8192x8192x8192,4096x4096x4096,4096x4096x4096:nn,2048x2048x2048,2048x3072x768,1024x1024x1024,197x768x768,"
            "197x3072x768,197x768x3072,128x768x3072,64x4096x4096,16x4096x4096,8x4096x4096,4x4096x4096,1x4096x4096,1x4096x4096:nn")
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


def models(arguments):
    import export

    print("| model | launches | ptc | torch eager | torch.compile | error | torch's |\n|---|---|---|---|---|---|---|")
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
            torch.onnx.export(model, inputs, path, dynamo=False, input_names=list(axes), output_names=outputs, opset_version=17)
            library = DeviceRun(compile_model(arguments, path, *flags), [value.cuda() for value in inputs])
            manifest = json.loads(path.with_suffix(".json").read_text())
            model, inputs = model.cuda(), tuple(value.cuda() for value in inputs)
            compiled = torch.compile(model, mode="reduce-overhead")
            with under():
                theirs = first(model(*inputs)).cpu()
                times = in_turns({"ptc": library, "eager": lambda: model(*inputs), "compile": lambda: compiled(*inputs)})
                library()
                torch.cuda.synchronize()
        launches = sum(kernel["launches"] for kernel in manifest["kernels"])
        what = f"autocast {arguments.autocast}" if arguments.autocast else arguments.dtype
        print(f"| {name} {what} | {launches} | {times['ptc']:.0f} | {times['eager']:.0f} | {times['compile']:.0f} | "
              f"{error(library.outputs[0].cpu(), exact):.1e} | {error(theirs, exact):.1e} |", flush=True)


def first(result):
    while not isinstance(result, torch.Tensor):
        result = result[0] if isinstance(result, (tuple, list)) else next(iter(result.values()))
    return result


def main():
    parser = argparse.ArgumentParser(description=inspect.getdoc(sys.modules[__name__]), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("products", "rows", "models"))
    parser.add_argument("names", nargs="*", help="of models or rows")
    parser.add_argument("--ptc", default=str(ROOT / "build" / "bin" / "ptc"))
    parser.add_argument("--gpu", default="sm_90a")
    parser.add_argument("--dtype", choices=TYPES, default="f16")
    parser.add_argument("--autocast", choices=("f16", "bf16"), help="of models")
    parser.add_argument("--shapes", default=PRODUCTS)
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    with tempfile.TemporaryDirectory() as folder:
        arguments.folder = Path(folder)
        {"products": products, "rows": rows, "models": models}[arguments.what](arguments)


if __name__ == "__main__":
    main()
