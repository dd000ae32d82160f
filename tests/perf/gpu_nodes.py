"""What gpu.py measures of single nodes or a few: copies of them on data of their own in one graph, beside torch's in another."""

import concurrent.futures
import re
from dataclasses import dataclass, field
from typing import Callable

import onnx.parser
import torch
from gpu_device import Table, compile_both, error, in_turns, load, microseconds, record

NAMES = {"f32": "float", "f16": "float16", "bf16": "bfloat16"}
BYTES, MOST = 256 << 20, 20  # of the inputs of all copies: more than a device's caches hold; copies


@dataclass
class Nodes:
    """`graph` is a model's in ONNX's text form, {f} the floats' type, with the results of torch's `peers` on the same inputs; the
    fastest of them counts. `exact` is the first of them in f64 unless it says so. Inputs are normal, or what `make` of their name says."""

    name: str
    graph: str
    peers: list
    exact: Callable | None = None
    dims: dict = field(default_factory=dict)
    make: dict = field(default_factory=dict)

    def parse(self, dtype):
        graph = re.sub(r"(?<=[)}]) (\w+ = )", r"\n\1", self.graph.replace("{f}", NAMES[dtype]))
        return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 23, "com.microsoft" : 1]>\nm {graph}')

    def shapes(self, model):
        dims = lambda value: [dim.dim_value or self.dims[dim.dim_param] for dim in value.type.tensor_type.shape.dim]
        return {value.name: (dims(value), onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type).name) for value in model.graph.input}

    def tensors(self, shapes):
        """Of one copy."""
        kind = lambda name: getattr(torch, name)
        return [self.make[name](shape) if name in self.make else torch.randn(shape, device="cuda").to(kind(dtype)) for name, (shape, dtype) in shapes.items()]


def repeat(model, count):
    """The model with its graph so many times over, side by side."""
    result, graph = onnx.ModelProto(), model.graph
    result.CopyFrom(model)
    for part in ("node", "input", "output"):
        del getattr(result.graph, part)[:]
    for number in range(count):
        rename = lambda name: name and f"{name}_{number}"
        for node in graph.node:
            copy = result.graph.node.add()
            copy.CopyFrom(node)
            for names in (copy.input, copy.output):
                names[:] = map(rename, names)
        for values, copies in ((graph.input, result.graph.input), (graph.output, result.graph.output)):
            for value in values:
                copy = copies.add()
                copy.CopyFrom(value)
                copy.name = rename(value.name)
    return result


def measure(arguments, title, cases):
    """A table of them, us of one copy."""
    cases = [case for case in cases if not arguments.names or any(name in case.name for name in arguments.names)]
    models, copies, paths = [case.parse(arguments.dtype) for case in cases], [], []
    for number, (case, model) in enumerate(zip(cases, models)):
        size = sum(tensor.nbytes for tensor in case.tensors(case.shapes(model)))
        copies.append(max(2, min(MOST, BYTES // size)))
        paths.append(arguments.folder / f"nodes{number}.onnx")
        onnx.save(repeat(model, copies[-1]), paths[-1])
    with concurrent.futures.ThreadPoolExecutor() as pool:
        compiled = list(pool.map(lambda path: compile_both(arguments, path), paths))
    table = Table(arguments, f"{title}, {arguments.dtype}", "ptc", "torch", "torch / ptc", "error", "torch's")
    for case, model, count, path in zip(cases, models, copies, compiled):
        torch.manual_seed(0)
        inputs = [case.tensors(case.shapes(model)) for _ in range(count)]
        libraries = load(path, [tensor for one in inputs for tensor in one])
        programs, results = dict(libraries), {}
        for number, peer in enumerate(case.peers):
            def work(peer=peer, kept=results.setdefault(f"torch {number}", [])):
                kept[:] = [peer(*one) for one in inputs]
            programs[f"torch {number}"] = record(work)
        times = in_turns(programs)
        best = min(results, key=times.get)
        wide = [tensor.double() if tensor.is_floating_point() else tensor for tensor in inputs[0]]
        exact = (case.exact or case.peers[0])(*wide)
        table.row(case.name, microseconds(times, "ptc", count), microseconds(times, best, count), f"{times[best] / times['ptc']:.2f}",
                  f"{error(libraries['ptc'].outputs[0], exact):.1e}", f"{error(results[best][0], exact):.1e}", before=microseconds(times, copies=count))
        del libraries, programs, results, inputs
