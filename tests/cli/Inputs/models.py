"""Writes the small models of these tests: python models.py FOLDER.

    mlp.onnx      [batch, 8] -> two layers with Relu and Softmax -> [batch, 4]; batch is symbolic
    cumulate.onnx state [4], x [4] -> stateN = state + x (for --alias)
    axpy.onnx     x [4], a [4] -> y = x * a + x
    unknown.onnx  two operators that nobody has, three nodes
    wide.onnx     [batch, 512] -> one product with a weight of 2 MB
    lstm.onnx     [20, 1, 16] -> 20 steps of 64 units
    mlp.npz       inputs of mlp.onnx, and `expected`, its outputs by numpy
"""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(7)


def save(name, nodes, inputs, outputs, initializers=(), domains=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid("", 17), *[helper.make_opsetid(d, 1) for d in domains]]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / f"{name}.onnx")


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


w1, b1 = rng.standard_normal((8, 16), np.float32), rng.standard_normal(16, np.float32)
w2, b2 = rng.standard_normal((16, 4), np.float32), rng.standard_normal(4, np.float32)
save("mlp", [helper.make_node("MatMul", ["x", "w1"], ["h0"], name="fc1"),
             helper.make_node("Add", ["h0", "b1"], ["h1"], name="bias1"),
             helper.make_node("Relu", ["h1"], ["h2"], name="relu"),
             helper.make_node("Gemm", ["h2", "w2", "b2"], ["h3"], name="fc2"),
             helper.make_node("Softmax", ["h3"], ["y"], name="softmax", axis=-1)],
     [value("x", ["batch", 8])], [value("y", ["batch", 4])],
     [numpy_helper.from_array(a, n) for n, a in [("w1", w1), ("b1", b1), ("w2", w2), ("b2", b2)]])
save("wide", [helper.make_node("MatMul", ["x", "w"], ["y"], name="fc")], [value("x", ["batch", 512])],
     [value("y", ["batch", 1024])], [numpy_helper.from_array(np.ones((512, 1024), np.float32), "w")])
x = rng.standard_normal((3, 8), np.float32)
h = np.maximum(x @ w1 + b1, 0) @ w2 + b2
e = np.exp(h - h.max(axis=1, keepdims=True))
np.savez(folder / "mlp.npz", x=x)
np.savez_compressed(folder / "expected.npz", y=(e / e.sum(axis=1, keepdims=True)).astype(np.float32))

save("cumulate", [helper.make_node("Add", ["state", "x"], ["stateN"], name="add")],
     [value("state", [4]), value("x", [4])], [value("stateN", [4])])
save("axpy", [helper.make_node("Mul", ["x", "a"], ["m"], name="mul"), helper.make_node("Add", ["m", "x"], ["y"], name="add")],
     [value("x", [4]), value("a", [4])], [value("y", [4])])
save("unknown", [helper.make_node("Foo", ["x"], ["a"], name="first", domain="mine"),
                 helper.make_node("Bar", ["a"], ["b"], name="second", domain="mine"),
                 helper.make_node("Foo", ["b"], ["y"], name="third", domain="mine")],
     [value("x", [4])], [value("y", [4])], domains=["mine"])

weights = [numpy_helper.from_array(rng.standard_normal((1, 256, n), np.float32), name) for n, name in [(16, "w"), (64, "r")]]
save("lstm", [helper.make_node("LSTM", ["x", "w", "r"], ["y"], name="cell", hidden_size=64)], [value("x", [20, 1, 16])], [value("y", [20, 1, 1, 64])], weights)

(folder / "text.onnx").write_text("this is not a model\n")
(folder / "empty.onnx").write_bytes(b"")
(folder / "truncated.onnx").write_bytes((folder / "mlp.onnx").read_bytes()[:-100])
