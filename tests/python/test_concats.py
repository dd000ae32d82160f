"""Concats of concats, splits and channels that change places, between layers, beside onnxruntime."""

import numpy as np
import onnxruntime
import ptc
from models import ModelTest, model, value
from onnx import helper

LEVELS = (["--cpu=native"], ["--cpu=x86-64-v3", "--dynamic=on"], ["-O0"])


class Layers:
    """Nodes that are added one by one to values of known numbers of channels."""

    def __init__(self, seed):
        self.random, self.nodes, self.weights, self.channels = np.random.default_rng(seed), [], {}, {"x": 8}

    def add(self, kind, inputs, channels, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        self.channels[name] = channels
        return name

    def constant(self, array):
        name = f"c{len(self.weights)}"
        self.weights[name] = array
        return name

    def convolution(self, x, channels, window=1, groups=1):
        taken = self.channels[x] // groups
        weight = self.random.standard_normal((channels, taken, window, window)) / np.sqrt(taken * window * window)
        weights = [self.constant(weight.astype(np.float32)), self.constant(self.random.standard_normal(channels).astype(np.float32))]
        return self.add("Conv", [x, *weights], channels, kernel_shape=[window] * 2, pads=[window // 2] * 4, group=groups)

    def concat(self, *values):
        return self.add("Concat", values, sum(self.channels[x] for x in values), axis=1)

    def relu(self, x):
        return self.add("Relu", [x], self.channels[x])

    def split(self, x):
        channels, first = self.channels[x], int(self.random.integers(1, self.channels[x]))
        sizes = self.constant(np.array([first, channels - first], np.int64))
        names = [f"v{len(self.nodes)}_{part}" for part in range(2)]
        self.nodes.append(helper.make_node("Split", [x, sizes], names, axis=1))
        self.channels.update(zip(names, (first, channels - first)))
        return names

    def shuffle(self, x):
        channels = self.channels[x]
        groups = next((groups for groups in (2, 3, 5) if channels % groups == 0), 1)
        x = self.add("Reshape", [x, self.constant(np.array([0, groups, channels // groups, 6, 6], np.int64))], channels)
        x = self.add("Transpose", [x], channels, perm=[0, 2, 1, 3, 4])
        return self.add("Reshape", [x, self.constant(np.array([0, channels, 6, 6], np.int64))], channels)


class Concats(ModelTest):
    def check_results(self, layers, results):
        proto = model(layers.nodes, [value("x", ["n", 8, 6, 6])], [value(name, None) for name in dict.fromkeys(results)], layers.weights)
        session = onnxruntime.InferenceSession(proto.SerializeToString())
        libraries = [ptc.load(self.compile(proto, *flags)) for flags in LEVELS]
        for batch in (1, 3):
            x = layers.random.standard_normal((batch, 8, 6, 6)).astype(np.float32)
            wanted = dict(zip((output.name for output in session.get_outputs()), session.run(None, {"x": x})))
            for loaded in libraries:
                for name, found in loaded(x=x).items():
                    np.testing.assert_allclose(found, wanted[name], rtol=0, atol=2e-5 * max(1, np.abs(wanted[name]).max()))

    def test_dense_blocks(self):
        """Each layer reads all before it: the newest last, first, or some of them alone."""
        for growth, order in [(32, 1), (5, 1), (16, -1), (7, -1)]:
            for seen in (4, 2):  # concats are results, too
                with self.subTest(growth=growth, order=order, seen=seen):
                    layers = Layers(growth)
                    values, concats = [layers.relu(layers.convolution("x", 16))], []
                    for _ in range(4):
                        joined = layers.concat(*values[::order])
                        concats.append(joined)
                        values.append(layers.convolution(layers.relu(layers.convolution(joined, 12)), growth, 3))
                    self.check_results(layers, [layers.convolution(layers.concat(*values[::order]), 8), concats[seen - 1]])

    def test_random_channels(self):
        for seed in range(8):
            with self.subTest(seed=seed):
                layers = Layers(seed)
                values = [layers.convolution("x", 12)]
                for _ in range(14):
                    x = values[int(layers.random.integers(len(values)))]
                    step = layers.random.integers(6)
                    if step == 0 and layers.channels[x] > 1:
                        values += layers.split(x)
                    elif step == 1:
                        values.append(layers.shuffle(x))
                    elif step == 2:
                        values.append(layers.relu(layers.convolution(x, layers.channels[x], 3, groups=layers.channels[x])))
                    elif step == 3:
                        values.append(layers.convolution(x, 12))
                    else:
                        count = int(layers.random.integers(2, 5))
                        values.append(layers.concat(*(values[-count:] if step == 4 else values[:count])))
                self.check_results(layers, [values[-1], layers.convolution(layers.concat(*values[1:]), 8)])
