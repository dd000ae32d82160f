"""Small models and what they compute."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def _save(path, nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(nodes, path.stem, inputs, outputs, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def scale(path, factor):
    """y = factor * x, both float [4]."""
    weight = numpy_helper.from_array(np.full(4, factor, np.float32), "factor")
    return _save(path, [helper.make_node("Mul", ["x", "factor"], ["y"])], [value("x", [4])], [value("y", [4])], [weight])


def scale_external(path, data):
    """y = factor * x, the factors (4 floats) in the file `data`, a name in the model's folder."""
    weight = TensorProto(name="factor", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value=data)
    return _save(path, [helper.make_node("Mul", ["x", "factor"], ["y"])], [value("x", [4])], [value("y", [4])], [weight])


def write_factors(path, factor):
    path.write_bytes(np.full(4, factor, np.float32).tobytes())


def large(path, factor):
    """y = factor * (x @ w), x [1, 64], w of ones: a weight that is worth a file of its own."""
    weight = numpy_helper.from_array(np.full((64, 64), factor, np.float32), "w")
    return _save(path, [helper.make_node("MatMul", ["x", "w"], ["y"])], [value("x", [1, 64])], [value("y", [1, 64])], [weight])


def types(path):
    """Half, bfloat16 and bool, names that are no identifiers of C++ or that its header uses, a scalar, a symbolic dim."""
    half, brain, flag = TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.BOOL
    nodes = [helper.make_node("Add", ["std", "std"], ["status"]), helper.make_node("Add", ["class", "class"], ["9/x y"]),
             helper.make_node("Not", ["this"], ["owner"]), helper.make_node("ReduceSum", ["x:0"], ["ptc"], keepdims=0),
             helper.make_node("Concat", ["x:0", "x:0"], ["Model\\"], axis=0)]
    return _save(path, nodes,
                 [value("std", ["n", 2], half), value("class", [3], brain), value("this", ["shapes"], flag), value("x:0", ["n"])],
                 [value("status", ["n", 2], half), value("9/x y", [3], brain), value("owner", ["shapes"], flag),
                  value("ptc", []), value("Model\\", [None])])


def running_sum(path):
    """total_out = total + x; with --alias total=total_out one buffer. count = Shape(x)[0] * 2 rows of zeros beside."""
    nodes = [helper.make_node("Add", ["total", "x"], ["total_out"]), helper.make_node("Neg", ["x"], ["minus"])]
    return _save(path, nodes, [value("total", ["batch", 4]), value("x", ["batch", 4])],
                 [value("total_out", ["batch", 4]), value("minus", ["batch", 4])])
