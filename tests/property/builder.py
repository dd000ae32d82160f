"""What makes a random graph node by node. A node is computed as soon as it is there, so that steps see shapes and values, and
need not foresee them: what has no result, or none that can be judged, is as if it had never been tried."""

import collections

import numpy as np
import onnx
from onnx import helper, numpy_helper

from judge import Declined, Value, is_float, reads, size

SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 20, 31, 33)
MOST, MOST_LARGE = 20000, 200000  # elements of a value


class Builder:
    """A graph under construction, or the body of a node of the graph that `around` builds."""

    def __init__(self, random, judge, around=None):
        self.random, self.judge, self.around = random, judge, around
        self.scope = around.scope.new_child() if around else collections.ChainMap()
        self.outermost = around.outermost if around else self
        self.nodes, self.weights, self.names = [], [], []
        self.count = 0  # names given, in the outermost graph
        self.is_large = False  # of the outermost graph
        self.is_open = around is not None and around.is_open  # sizes will be free: bodies must not say them

    @property
    def most(self):
        return MOST_LARGE if self.outermost.is_large else MOST

    # ---- choices ----

    def choose(self, options):
        if not len(options):
            raise Declined("nothing to choose from")
        return options[int(self.random.integers(len(options)))]

    def often(self, share):
        return bool(self.random.random() < share)

    def integer(self, low, high):
        """low <= result <= high."""
        if low > high:
            raise Declined("no such number")
        return int(self.random.integers(low, high + 1))

    def axis(self, x):
        """Any, counted from either end."""
        rank = self.array(x).ndim
        if not rank:
            raise Declined("a scalar has no axis")
        return self.integer(-rank, rank - 1)

    # ---- values ----

    def array(self, x):
        return self.scope[x].array

    def shape(self, x):
        return list(self.array(x).shape)

    def dtype(self, x):
        return self.array(x).dtype

    def is_sure(self, x):
        return not self.scope[x].error

    def fits(self, wanted):
        """Names of values that are, latest last."""
        everything = [name for level in reversed(self.scope.maps) for name in level]
        return [name for name in everything if not self.scope[name].is_constant and wanted(name)]

    def pick(self, wanted=lambda name: True):
        """A value, of the latest rather than the first."""
        found = self.fits(wanted)
        if not found:
            raise Declined("no such value")
        return self.choose(found[-6:] if self.often(0.7) else found)

    def pick_float(self, *more):
        return self.pick(lambda name: is_float(self.dtype(name)) and all(test(name) for test in more))

    def like(self, x):
        """A value of the same type and shape, x itself if there is no other."""
        return self.pick(lambda name: self.dtype(name) == self.dtype(x) and self.shape(name) == self.shape(x))

    # ---- parts of the graph ----

    def name(self, letter):
        self.outermost.count += 1
        return f"{letter}{self.outermost.count}"

    def constant(self, array, dtype=None):
        """A weight, of the body or of the graph around it."""
        owner = self if self.around is None or self.often(0.5) else self.outermost
        name = self.name("w")
        array = np.asarray(array, dtype)
        owner.weights.append(numpy_helper.from_array(array, name))
        owner.scope[name] = Value(array, 0.0, True)
        return name

    def ints(self, *numbers):
        return self.constant(numbers, np.int64)

    def weight(self, shape, dtype, low=-1.0, high=1.0):
        """Numbers of the range, on the judge's grid or not."""
        if not is_float(np.dtype(dtype)):
            return self.constant(self.random.integers(int(low), int(high) + 1, shape), dtype)
        numbers = self.random.uniform(low, high, shape)
        return self.constant(np.rint(numbers * 8) / 8 if self.often(0.4) else numbers, dtype)

    def node(self, op, inputs, outputs=1, **given):
        """Names of its results; one name if it has one."""
        names = [self.name("v") for _ in range(outputs)]
        if [] in given.values():
            raise Declined("a list of nothing has no type")
        node = helper.make_node(op, inputs, names, name=f"{op}_{self.outermost.count}", **given)
        values = self.judge.node(node, self.scope)
        if any(value.array.size > self.most for value in values):
            raise Declined("too large")
        self.nodes.append(node)
        self.names += names
        self.scope.update(zip(names, values))
        return names[0] if outputs == 1 else names

    def add_input(self, name, array):
        self.scope[name] = Value(array)

    def open_shape(self, x):
        return [None] * self.array(x).ndim

    def has_found_sizes(self):
        """Whether sizes may depend on values."""
        return any(node.op_type in ("NonZero", "Compress", "Loop", "If") for node in self.nodes)

    def attempt(self, step):
        """Whether the step added what it drew. Draws that cannot be, the third of two axes or numbers up to -1, end it too."""
        try:
            step(self)
            return True
        except (Declined, IndexError, ValueError, ZeroDivisionError):
            return False

    def info(self, x, shape=None):
        array = self.array(x)
        return helper.make_tensor_value_info(x, helper.np_dtype_to_tensor_dtype(array.dtype), list(array.shape) if shape is None else shape)

    def inner_info(self, x):
        """Of a value of a body, whose sizes may be said or not."""
        return self.info(x, self.open_shape(x) if self.is_open or self.has_found_sizes() or self.often(0.5) else None)

    def graph(self, name, inputs, outputs):
        read = {name for node in self.nodes for name in reads(node)} | {value.name for value in outputs}
        return helper.make_graph(self.nodes, name, inputs, outputs, [weight for weight in self.weights if weight.name in read])

    def is_small(self, x):
        return size(self.array(x)) <= 64


def model(graph, opset):
    """The graph as a model; its nodes are in an order that ONNX asks for."""
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=onnx.IR_VERSION if opset > 22 else 10)
