"""gpu.py products: a graph of COUNT products of one matrix B and as many A. cublaslt: the same by cuBLASLt inside the library."""

import onnx
import torch
from gpu_device import ONNX_TYPES, TYPES, Table, by_library, compile_both, error, in_turns, load, microseconds, record
from onnx import helper

COUNT = 20
SHAPES = ("8192x8192x8192", "4096x4096x4096", "4096x4096x4096:nn", "2048x2048x2048", "2048x3072x768", "1024x1024x1024", "197x768x768",
          "197x3072x768", "197x768x3072", "128x768x3072", "64x4096x4096", "16x4096x4096", "8x4096x4096", "4x4096x4096", "1x4096x4096",
          "1x4096x4096:nn")


class Products:
    """`count` products of one B, of the sizes that `text` names, and what they multiply."""

    def __init__(self, arguments, text, count):
        sizes, _, form = text.partition(":")
        self.count, self.kind, self.onnx_kind = count, TYPES[arguments.dtype], ONNX_TYPES[arguments.dtype]
        self.m, self.n, self.k = map(int, sizes.split("x"))
        self.is_turned = form != "nn"
        self.path = arguments.folder / f"{text.replace(':', '_')}.onnx"
        torch.manual_seed(0)
        self.a = [torch.randn(self.m, self.k, device="cuda").to(self.kind) for _ in range(count)]
        self.b = torch.randn(self.shape_of_b(), device="cuda").to(self.kind)
        self.right = self.b.t() if self.is_turned else self.b
        self.inputs = [self.b, *self.a]

    def shape_of_b(self):
        return (self.n, self.k) if self.is_turned else (self.k, self.n)

    def save(self):
        nodes = [helper.make_node("MatMul", [f"a{i}", "bt" if self.is_turned else "b"], [f"y{i}"]) for i in range(self.count)]
        if self.is_turned:
            nodes.insert(0, helper.make_node("Transpose", ["b"], ["bt"], perm=[1, 0]))
        value = lambda name, shape: helper.make_tensor_value_info(name, self.onnx_kind, shape)
        graph = helper.make_graph(nodes, "g", [value("b", self.shape_of_b())] + [value(f"a{i}", (self.m, self.k)) for i in range(self.count)],
                                  [value(f"y{i}", (self.m, self.n)) for i in range(self.count)])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), self.path)
        return self.path


def cublaslt(arguments):
    products(arguments, is_library=True)


def products(arguments, is_library=False):
    more = ("by cuBLASLt", "ptc / by cuBLASLt", "its error") if is_library else ()
    table = Table(arguments, "M x N x K", "ptc", "torch", "torch / ptc", "error", "torch's", *more)
    for text in arguments.shapes.split(",") if arguments.shapes else SHAPES:
        products = Products(arguments, text, COUNT)
        paths = compile_both(arguments, products.save())
        if is_library:
            paths["library"] = by_library(arguments, "cublaslt", products.path, paths["ptc"])
        libraries = load(paths, products.inputs)
        results = [torch.empty(products.m, products.n, dtype=products.kind, device="cuda") for _ in range(COUNT)]
        peer = record(lambda: [torch.matmul(x, products.right, out=y) for x, y in zip(products.a, results)])
        times = in_turns({**libraries, "torch": peer})
        exact = products.a[0].double() @ products.right.double()
        more = (microseconds(times, "library", COUNT), f"{times['ptc'] / times['library']:.2f}",
                f"{error(libraries['library'].outputs[0], exact):.1e}") if is_library else ()
        table.row(text, microseconds(times, "ptc", COUNT), microseconds(times, "torch", COUNT), f"{times['torch'] / times['ptc']:.2f}",
                  f"{error(libraries['ptc'].outputs[0], exact):.1e}", f"{error(results[0], exact):.1e}", *more, before=microseconds(times, copies=COUNT))
