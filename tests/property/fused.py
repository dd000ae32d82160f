"""Random graphs of operators that fusion and memory planning rewrite most: pointwise chains that meet reductions, views
between them, concats, matrix products with pointwise work around them, values that are used several times.

A graph is made from a seed alone. Shapes are small and odd, dims of 1 are frequent, and every value stays of moderate
size, so that both sides agree but for rounding.
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from case import Case

SIZES = (1, 2, 3, 5, 8, 16, 17, 33)


class Graph:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights = [], []
        self.values = {}  # name: shape
        self.inputs = [self._input() for _ in range(self.random.integers(1, 4))]
        for _ in range(self.random.integers(4, 16)):
            self._step()
        if not self.nodes:  # every step declined: its input is too large, or a scalar
            self._unary(self.inputs[0], self.values[self.inputs[0]])
        self.outputs = self._choose_outputs()

    def model(self):
        info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, self.values[name])
        graph = helper.make_graph(self.nodes, "random", [info(n) for n in self.inputs], [info(n) for n in self.outputs], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

    def feeds(self):
        return {name: self.random.uniform(-1, 1, self.values[name]).astype(np.float32) for name in self.inputs}

    # Pieces

    def _pick(self, options):
        return options[self.random.integers(len(options))]

    def _input(self):
        shape = [int(self._pick(SIZES)) for _ in range(self.random.integers(1, 5))]
        name = f"x{len(self.values)}"
        self.values[name] = shape
        return name

    def _weight(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def _node(self, op, inputs, shape, **attributes):
        name = f"v{len(self.values)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"n{len(self.nodes)}_{op}", **attributes))
        self.values[name] = [int(size) for size in shape]
        return name

    def _axis(self, shape):
        return int(self.random.integers(len(shape)))

    def _choose_outputs(self):
        """Whatever nothing reads, and some values in the middle."""
        read = {name for node in self.nodes for name in node.input}
        made = [name for node in self.nodes for name in node.output]
        return [name for name in made if name not in read or self.random.random() < 0.15]

    def _step(self):
        recent = list(self.values)[-5:]
        x = self._pick(recent)
        shape = self.values[x]
        step = self._pick((self._unary, self._unary, self._binary, self._binary, self._with_weight, self._reduce, self._softmax,
                           self._normalize, self._transpose, self._reshape, self._slice, self._concat, self._pad, self._matmul,
                           self._expand, self._select))
        if shape and np.prod(shape) <= 20000:
            step(x, shape)

    # Steps

    def _unary(self, x, shape):
        self._node(self._pick(("Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Sin", "Softplus", "HardSwish", "Erf")), [x], shape)

    def _binary(self, x, shape):
        same = [name for name, other in self.values.items() if other == shape]
        self._node(self._pick(("Add", "Sub", "Mul", "Max", "Min")), [x, self._pick(same)], shape)

    def _with_weight(self, x, shape):
        small = [size if self.random.random() < 0.6 else 1 for size in shape][self.random.integers(len(shape)):]
        pair = [x, self._weight(self.random.uniform(-1, 1, small).astype(np.float32))]
        self._node(self._pick(("Add", "Mul", "Sub", "Max")), pair[:: self._pick((1, -1))], shape)

    def _reduce(self, x, shape):
        axes = sorted({self._axis(shape) for _ in range(self.random.integers(1, 3))})
        keep = int(self.random.random() < 0.6)
        reduced = [1 if i in axes else size for i, size in enumerate(shape) if keep or i not in axes]
        op = self._pick(("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"))
        name = self._node(op, [x, self._weight(np.array(axes, np.int64))], reduced, keepdims=keep)
        if keep and self.random.random() < 0.7:  # what softmax and its kind do
            self._node(self._pick(("Add", "Sub", "Mul")), [x, name], shape)

    def _softmax(self, x, shape):
        self._node("Softmax", [x], shape, axis=self._axis(shape))

    def _normalize(self, x, shape):
        axis = self._axis(shape)
        scale = self._weight(self.random.uniform(0.5, 1.5, shape[axis:]).astype(np.float32))
        self._node("LayerNormalization", [x, scale], shape, axis=axis, epsilon=0.1)

    def _transpose(self, x, shape):
        order = self.random.permutation(len(shape))
        self._node("Transpose", [x], [shape[i] for i in order], perm=[int(i) for i in order])

    def _reshape(self, x, shape):
        merged = list(shape)
        while len(merged) > 1 and self.random.random() < 0.6:
            at = int(self.random.integers(len(merged) - 1))
            merged[at : at + 2] = [merged[at] * merged[at + 1]]
        if len(merged) < 4 and self.random.random() < 0.5:
            merged.insert(int(self.random.integers(len(merged) + 1)), 1)
        self._node("Reshape", [x, self._weight(np.array(merged, np.int64))], merged)

    def _slice(self, x, shape):
        axis = self._axis(shape)
        size = shape[axis]
        step = int(self._pick((1, 1, 2, -1)))
        first, last = sorted(int(i) for i in self.random.integers(0, size + 1, 2))
        if first == last:
            return
        bounds = (last - 1, first - 1 - (size if first == 0 else 0), step) if step < 0 else (first, last, step)
        count = -(-(last - first) // abs(step))
        parts = [self._weight(np.array([n], np.int64)) for n in (bounds[0], bounds[1], axis, step)]
        self._node("Slice", [x, *parts], [*shape[:axis], count, *shape[axis + 1 :]])

    def _concat(self, x, shape):
        axis = self._axis(shape)
        fits = lambda other: len(other) == len(shape) and all(a == b for i, (a, b) in enumerate(zip(other, shape)) if i != axis)
        parts = [x, *(self._pick([n for n, s in self.values.items() if fits(s)]) for _ in range(self.random.integers(1, 3)))]
        self._node("Concat", parts, [*shape[:axis], sum(self.values[n][axis] for n in parts), *shape[axis + 1 :]], axis=axis)

    def _pad(self, x, shape):
        before, after = self.random.integers(0, 3, (2, len(shape)))
        pads = self._weight(np.concatenate([before, after]).astype(np.int64))
        self._node("Pad", [x, pads], np.array(shape) + before + after)

    def _matmul(self, x, shape):
        if len(shape) < 2:
            return
        columns = int(self._pick(SIZES))
        weight = self._weight((self.random.uniform(-1, 1, (shape[-1], columns)) / np.sqrt(shape[-1])).astype(np.float32))
        self._node("MatMul", [x, weight], [*shape[:-1], columns])

    def _expand(self, x, shape):
        wide = [int(self._pick((2, 3, 5))) if size == 1 else size for size in shape]
        self._node("Expand", [x, self._weight(np.array(wide, np.int64))], wide)

    def _select(self, x, shape):
        axis = self._axis(shape)
        chosen = self.random.integers(-shape[axis], shape[axis], self.random.integers(1, 6))
        self._node("Gather", [x, self._weight(chosen.astype(np.int64))], [*shape[:axis], len(chosen), *shape[axis + 1 :]], axis=axis)


def draw(seed):
    """The case of a seed."""
    graph = Graph(seed)
    return Case(graph.model(), [graph.feeds()])
