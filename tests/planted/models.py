"""The models whose gates are tested: small, but with something in each for every plant to spoil.

    python tests/planted/models.py FOLDER     block.onnx: a few kinds of kernels; layers.onnx: equal layers, for times
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    def __init__(self, seed):
        self.nodes, self.weights = [], []
        self.random = np.random.default_rng(seed)

    def weight(self, *shape):
        name = f"w{len(self.weights)}"
        values = self.random.normal(0, shape[0] ** -0.5, shape).astype(np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def node(self, kind, name, *inputs, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [name + "_out"], name=name, **attributes))
        return name + "_out"

    def save(self, path, inputs, outputs):
        value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, path.stem, [value(*item) for item in inputs.items()],
                                  [value(*item) for item in outputs.items()], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path)


def block(path):
    """Two branches that are joined, attention, a gate, and enough after it for memory to be used again."""
    g = Graph(1)
    x = "x"
    up = g.node("Relu", "up/relu", g.node("Add", "up/bias", g.node("MatMul", "up/matmul", x, g.weight(96, 160)), g.weight(160)))
    side = g.node("Sigmoid", "side/sigmoid", g.node("MatMul", "side/matmul", x, g.weight(96, 32)))
    joined = g.node("Concat", "join", up, side, axis=1)
    scores = g.node("MatMul", "scores/matmul", joined, g.weight(192, 80))
    soft = g.node("Softmax", "soft", scores, axis=1)
    down = g.node("MatMul", "down/matmul", soft, g.weight(80, 96))
    skip = g.node("Add", "skip", down, x)
    mean = g.node("ReduceMean", "mean", skip, axes=[1], keepdims=1)
    centred = g.node("Sub", "centre", skip, mean)
    gate = g.node("Sigmoid", "gate", centred)
    wide = g.node("Sigmoid", "wide/sigmoid", g.node("MatMul", "wide/matmul", gate, g.weight(96, 160)))
    g.nodes.append(helper.make_node("MatMul", [wide, g.weight(160, 96)], ["y"], name="last"))
    g.save(path, {"x": [24, 96]}, {"y": [24, 96]})


def layers(path, count=20, width=256, rows=64):
    """Equal layers, each as much work as another."""
    g = Graph(2)
    x = "x"
    for number in range(count):
        product = g.node("MatMul", f"layer{number}/matmul", x, g.weight(width, width))
        x = g.node("Tanh", f"layer{number}/tanh", product)
    g.nodes.append(helper.make_node("Identity", [x], ["y"], name="last"))
    g.save(path, {"x": [rows, width]}, {"y": [rows, width]})


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    block(folder / "block.onnx")
    layers(folder / "layers.onnx")


if __name__ == "__main__":
    main()
