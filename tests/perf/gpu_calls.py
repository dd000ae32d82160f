"""gpu.py calls: what a run costs besides its kernel, of a model that has one, and what `create` does."""

import time

import onnx
import torch
from gpu_device import DeviceRun, compile_model, each, record
from onnx import helper


def calls(arguments):
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
