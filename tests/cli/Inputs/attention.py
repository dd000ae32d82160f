"""Writes attention.onnx: attention of two heads, its output projection and norm, and one layer more with a norm that has
the same constants. Each node has the name of its output."""

import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

HEADS, WIDTH, ROWS = 2, 16, 4
numbers = np.random.default_rng(0)
nodes, initializers = [], []


def node(op, output, *inputs, **attributes):
    nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))


def initializer(name, array):
    initializers.append(numpy_helper.from_array(array, name))
    return name


def weight(name, *shape):
    return initializer(name, numbers.standard_normal(shape, dtype=np.float32))


heads = initializer("heads", np.array([0, 0, HEADS, WIDTH // HEADS], np.int64))
whole = initializer("whole", np.array([0, 0, WIDTH], np.int64))
factor = initializer("factor", np.array(0.25, np.float32))
gamma, beta = weight("gamma", WIDTH), weight("beta", WIDTH)
for part, order in ("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3]):
    node("MatMul", part + "_product", "x", weight(part + "_weight", WIDTH, WIDTH))
    node("Add", part + "_sum", part + "_product", weight(part + "_bias", WIDTH))
    node("Reshape", part + "_heads", part + "_sum", heads)
    node("Transpose", part, part + "_heads", perm=order)
node("MatMul", "scores", "q", "k")
node("Mul", "scaled", "scores", factor)
node("Softmax", "weights", "scaled", axis=-1)
node("MatMul", "mixed", "weights", "v")
node("Transpose", "side_by_side", "mixed", perm=[0, 2, 1, 3])
node("Reshape", "rows", "side_by_side", whole)
node("MatMul", "projected", "rows", weight("o_weight", WIDTH, WIDTH))
node("Add", "sum1", "projected", "x")
node("LayerNormalization", "norm1", "sum1", gamma, beta)
node("MatMul", "fed", "norm1", weight("f_weight", WIDTH, WIDTH))
node("Add", "sum2", "fed", "norm1")
node("LayerNormalization", "norm2", "sum2", gamma, beta)

values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, ROWS, WIDTH]) for name in ("x", "norm2")]
graph = helper.make_graph(nodes, "attention", values[:1], values[1:], initializers)
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), sys.argv[1])
