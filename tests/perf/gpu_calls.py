"""gpu.py calls: what a run costs besides its kernel, of a model that has one, and what `create` does."""

import statistics
import time

import numpy as np
import onnx
import torch
from gpu_device import DeviceRun, compile_model, each, ptc, record
from onnx import helper, numpy_helper


def save(path, nodes, inputs, outputs, weights=()):
    values = [[helper.make_tensor_value_info(name, 1, shape) for name, shape in some] for some in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", *values, [numpy_helper.from_array(array, name) for name, array in weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def calls(arguments):
    model = save(arguments.folder / "relu.onnx", [helper.make_node("Relu", ["x"], ["y"])], [("x", (1024,))], [("y", (1024,))])
    x = torch.randn(1024, device="cuda")
    library, peer = DeviceRun(compile_model(arguments, model), [x]), record(lambda: x.relu())
    for name, run in {"ptc": library, "a graph of torch": peer}.items():
        print(f"{name}: {each(run, wait=True):.1f} us a run and its end, {each(run, wait=False):.1f} us until a run is enqueued")
    start = time.perf_counter()
    with library.function._model._context():
        print(f"a context: {(time.perf_counter() - start) * 1e3:.2f} ms")
    create(arguments)


def create(arguments):
    """Twelve products of different sizes, a kernel each. The driver keeps nothing that it has compiled (gpu.py says so to it)."""
    sizes = [64 * (3 + i) for i in range(13)]
    weights = [(f"w{i}", np.ones((k, n), np.float32)) for i, (k, n) in enumerate(zip(sizes, sizes[1:]))]
    nodes = [helper.make_node("MatMul", [f"t{i}", f"w{i}"], [f"t{i + 1}"]) for i in range(12)]
    model = save(arguments.folder / "chain.onnx", nodes, [("t0", (128, sizes[0]))], [("t12", (128, sizes[-1]))], weights)
    for name, flags in {"machine code": (), "PTX": ("--ptxas=none",)}.items():
        path, times = compile_model(arguments, model, *flags, name=name.split()[0]), []
        for _ in range(3):
            start = time.perf_counter()
            ptc.load(path)
            times.append((time.perf_counter() - start) * 1e3)
        print(f"create of twelve kernels, {name}: {times[0]:.1f} ms, again {statistics.median(times[1:]):.1f} ms")
