"""gpu.py products: a graph of COUNT products of one matrix B and as many A. cublaslt: the same by cuBLASLt inside the library."""

import json
from pathlib import Path

import onnx
import torch
from gpu_device import ONNX_TYPES, TYPES, Table, compile_both, compile_model, error, in_turns, load, microseconds, record
from onnx import helper

COUNT = 20
SHAPES = ("8192x8192x8192", "4096x4096x4096", "4096x4096x4096:nn", "2048x2048x2048", "2048x3072x768", "1024x1024x1024", "197x768x768",
          "197x3072x768", "197x768x3072", "128x768x3072", "64x4096x4096", "16x4096x4096", "8x4096x4096", "4x4096x4096", "1x4096x4096",
          "1x4096x4096:nn")


def by_cublaslt(arguments, model, path):
    """The library at `path` with all of its kernels left to cuBLASLt."""
    manifest, file = Path(path).with_suffix(".json"), Path(path).with_suffix(".tune.json")
    kernels = [{"kernel": row["name"], "numbers": {"cublaslt": 1}, "ns": 0, "planned_ns": 0} for row in json.loads(manifest.read_text())["kernels"]]
    header = {"format": 1, "compiler": "", "model": "", "level": arguments.gpu, "processor": "", "threads": 1}
    file.write_text(json.dumps(header | {"kernels": kernels}))
    return compile_model(arguments, model, f"--tune-file={file}", name=f"{model.stem}.cublaslt")


def cublaslt(arguments):
    products(arguments, is_library=True)


def products(arguments, is_library=False):
    kind, onnx_kind = TYPES[arguments.dtype], ONNX_TYPES[arguments.dtype]
    more = ("by cuBLASLt", "ptc / by cuBLASLt", "its error") if is_library else ()
    table = Table(arguments, "M x N x K", "ptc", "torch", "torch / ptc", "error", "torch's", *more)
    for text in arguments.shapes.split(",") if arguments.shapes else SHAPES:
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
        model = model.rename(arguments.folder / f"{text.replace(':', '_')}.onnx")
        paths = compile_both(arguments, model)
        if is_library:
            paths["library"] = by_cublaslt(arguments, model, paths["ptc"])
        libraries = load(paths, [b, *a])
        right = b if form == "nn" else b.t()
        results = [torch.empty(m, n, dtype=kind, device="cuda") for _ in range(COUNT)]
        peer = record(lambda: [torch.matmul(x, right, out=y) for x, y in zip(a, results)])
        times = in_turns({**libraries, "torch": peer})
        exact = a[0].double() @ right.double()
        more = (microseconds(times, "library", COUNT), f"{times['ptc'] / times['library']:.2f}",
                f"{error(libraries['library'].outputs[0], exact):.1e}") if is_library else ()
        table.row(text, microseconds(times, "ptc", COUNT), microseconds(times, "torch", COUNT), f"{times['torch'] / times['ptc']:.2f}",
                  f"{error(libraries['ptc'].outputs[0], exact):.1e}", f"{error(results[0], exact):.1e}", *more, before=microseconds(times, copies=COUNT))
