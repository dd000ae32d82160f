"""gpu.py bits: products with weights of 4 bits, beside what torch offers for such."""

import concurrent.futures

import numpy
import onnx
import torch
from gpu_device import ONNX_TYPES, TYPES, Table, compile_both, error, in_turns, load, microseconds, record
from onnx import helper, numpy_helper

COPIES, BLOCK = 10, 32
SHAPES = ("1x4096x4096", "4x4096x4096", "16x4096x4096", "128x4096x4096", "512x4096x11008", "2048x4096x4096")


class FewBits:
    """COPIES products M x N x K, each with weights of its own, in blocks along k."""

    def __init__(self, text, dtype, folder):
        self.text, self.kind, self.path = text, TYPES[dtype], folder / f"{text}.onnx"
        self.m, self.n, self.k = m, n, k = tuple(map(int, text.split("x")))
        random, kind = numpy.random.default_rng(0), {"f32": "float32", "f16": "float16"}[dtype]
        self.weights = [(random.integers(0, 256, (n, k // BLOCK, BLOCK // 2), dtype=numpy.uint8), (random.random((n, k // BLOCK)) / k).astype(kind))
                        for _ in range(COPIES)]
        value = lambda name, width: helper.make_tensor_value_info(name, ONNX_TYPES[dtype], (m, width))
        nodes = [helper.make_node("MatMulNBits", [f"x{i}", f"w{i}", f"s{i}"], [f"y{i}"], domain="com.microsoft", N=n, K=k, bits=4, block_size=BLOCK)
                 for i in range(COPIES)]
        graph = helper.make_graph(nodes, "g", [value(f"x{i}", k) for i in range(COPIES)], [value(f"y{i}", n) for i in range(COPIES)],
                                  [numpy_helper.from_array(a, f"{name}{i}") for i, pair in enumerate(self.weights) for name, a in zip("ws", pair)])
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), self.path)

    def numbers(self, q):
        return torch.stack([q & 15, q >> 4], -1).view(self.n, self.k // BLOCK, BLOCK)

    def dequantise(self, q, s, to):
        return ((self.numbers(q).to(to) - 8) * s.to(to)[..., None]).view(self.n, self.k)

    def peers(self, x, w):
        """What torch offers."""
        wide = [self.dequantise(q, s, self.kind) for q, s in w]
        yield "dequantised", lambda: [a @ self.dequantise(q, s, self.kind).t() for a, (q, s) in zip(x, w)]
        yield "matmul", lambda: [a @ b.t() for a, b in zip(x, wide)]
        narrow, halves = [a.bfloat16() for a in x], [self.numbers(q).view(self.n, self.k) for q, _ in w]
        packed = [torch._convert_weight_to_int4pack((h[:, ::2] << 4 | h[:, 1::2]).contiguous(), 8) for h in halves]
        scales = [torch.stack([s.bfloat16().t(), torch.zeros_like(s.t()).bfloat16()], -1).contiguous() for _, s in w]
        yield "int4pack", lambda: [torch._weight_int4pack_mm(a, p, BLOCK, s) for a, p, s in zip(narrow, packed, scales)]


def bits(arguments):
    products = [FewBits(text, arguments.dtype, arguments.folder) for text in (arguments.shapes.split(",") if arguments.shapes else SHAPES)]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        paths = list(pool.map(lambda product: compile_both(arguments, product.path), products))
    names = ("ptc", "dequantised", "matmul", "int4pack")
    table = Table(arguments, f"M x N x K, {arguments.dtype}", *names, "GB/s", "error", "torch's")
    for product, path in zip(products, paths):
        x = [torch.randn(product.m, product.k, device="cuda").to(product.kind) for _ in range(COPIES)]
        w = [(torch.from_numpy(q).cuda(), torch.from_numpy(s).cuda()) for q, s in product.weights]
        libraries, results = load(path, x), {}
        peers = {name: record(lambda name=name, work=work: results.__setitem__(name, work())) for name, work in product.peers(x, w)}
        times = in_turns({**libraries, **peers})
        exact = x[0].double() @ product.dequantise(*w[0], torch.float64).t()
        rate = sum(a.nbytes for a in product.weights[0]) * COPIES / times["ptc"] * 1e-3
        table.row(product.text, *(microseconds(times, name, COPIES) for name in names), f"{rate:.0f}", f"{error(libraries['ptc'].outputs[0], exact):.1e}",
                  f"{error(results['dequantised'][0], exact):.1e}", before=microseconds(times, copies=COPIES))
