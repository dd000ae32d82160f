"""How far the results of a quantised model are from what its file says, evaluated in f64.

    python models/rounding.py resnet50_qdq-script.onnx --dim batch=2 --library resnet50.so

Prints, for each of a few seeded inputs and for each of onnxruntime with its optimisations, onnxruntime without them and the library
that ptc made of the file, the root mean square of the difference from that of the ONNX reference implementation with all floats in f64,
as a part of the result's own. A last bit of an f32 result decides now and then to which of two steps a value is rounded, so none of
them gives what f64 does; none should be much further from it than the others. Inputs: noise for floats, tokens for integers.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.reference
from onnx import numpy_helper
from onnx.reference.op_run import OpRun

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runtime" / "python"))
import ptc  # noqa: E402

FLOAT, DOUBLE = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE


class DequantizeLinear(OpRun):
    """The package's own goes through f32, which has not all of the 32 bits of a bias."""

    op_domain = ""

    def _run(self, x, scale, zero_point=None, axis=1, **_):
        shape = [-1 if scale.ndim and i == axis else 1 for i in range(x.ndim)]
        zero = 0 if zero_point is None else zero_point.astype(np.float64).reshape(shape if zero_point.ndim else ())
        return ((x.astype(np.float64) - zero) * scale.reshape(shape if scale.ndim else ()),)


class GatherElements(OpRun):
    """The package's own wants indices as long as the data along all other axes."""

    op_domain = ""

    def _run(self, data, indices, axis=0):
        axis %= data.ndim
        rows = tuple(slice(None) if i == axis else slice(size) for i, size in enumerate(indices.shape))
        return (np.take_along_axis(data[rows], indices, axis),)


def widened(model):
    """The model with f64 wherever it has f32."""
    for tensor in model.graph.initializer:
        if tensor.data_type == FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type == FLOAT:
                attribute.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(attribute.t).astype(np.float64)))
            elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == FLOAT:
                attribute.i = DOUBLE
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.elem_type == FLOAT:
            value.type.tensor_type.elem_type = DOUBLE
    del model.graph.value_info[:]
    return model


def exact(model):
    """Evaluates the model in f64."""
    session = onnx.reference.ReferenceEvaluator(widened(model), new_ops=[DequantizeLinear, GatherElements])
    return lambda feeds: session.run(None, {name: array.astype(np.float64) if array.dtype == np.float32 else array for name, array in feeds.items()})


def runtime(path, optimised):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda feeds: session.run(None, feeds)


def library(path):
    model = ptc.load(path)
    return lambda feeds: list(model(**feeds).values())


def inputs(model, dims, seed):
    rng = np.random.default_rng(seed)
    for value in model.graph.input:
        shape = [dims.get(dim.dim_param, 1) if dim.dim_param else dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == FLOAT:
            yield value.name, rng.normal(0, 1, shape).astype(np.float32)
        else:
            yield value.name, np.ones(shape, np.int64) if "mask" in value.name else rng.integers(0, 30000, shape)


def apart(got, expected):
    """Root mean square of the difference, as a part of that of what is expected."""
    squares = sum(((a.astype(np.float64) - b) ** 2).sum() for a, b in zip(got, expected))
    return np.sqrt(squares / sum((b**2).sum() for b in expected))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--library", type=Path, help="what ptc made of it")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE", help="sizes of the free dims; 1 if not said")
    parser.add_argument("--inputs", type=int, default=4, help="how many are tried")
    args = parser.parse_args()
    model = onnx.load(args.model)
    dims = {name: int(size) for name, size in (text.split("=") for text in args.dim)}
    feeds = [dict(inputs(model, dims, seed)) for seed in range(args.inputs)]
    evaluated = {"onnxruntime": runtime(args.model, True), "onnxruntime without optimisations": runtime(args.model, False)}
    if args.library:
        evaluated["ptc"] = library(args.library)
    truth = exact(model)
    found = {name: [] for name in evaluated}
    for feed in feeds:
        expected = truth(feed)
        for name, run in evaluated.items():
            found[name].append(apart(run(feed), expected))
    for name, distances in found.items():
        print(f"{name}: {' '.join(f'{d:.2e}' for d in distances)}, mean {np.mean(distances):.2e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
