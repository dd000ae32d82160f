"""Concats of values that are seen otherwise than they are written: their producers write into the concat, against onnxruntime."""

import json

import numpy as np
import onnxruntime
import ptc
from models import ModelTest, model, value
from onnx import helper

RNG = np.random.default_rng(6)


def node(kind, inputs, output, **how):
    return helper.make_node(kind, inputs.split(), output.split(), name=output, **how)


def head(level, weights):
    """What a detector says of one level: two convolutions side by side, pixels in a row."""
    weights[f"wa{level}"] = RNG.standard_normal((64, 16, 3, 3), np.float32) / 12
    weights[f"wb{level}"] = RNG.standard_normal((18, 16, 1, 1), np.float32) / 4
    weights["row"] = np.array([0, 82, -1], np.int64)
    return [node("Relu", f"x{level}", f"r{level}"), node("Conv", f"r{level} wa{level}", f"a{level}", pads=[1, 1, 1, 1]),
            node("Conv", f"r{level} wb{level}", f"b{level}"),
            node("Concat", f"a{level} b{level}", f"both{level}", axis=1), node("Reshape", f"both{level} row", f"flat{level}")]


class ConcatViews(ModelTest):
    def check(self, nodes, weights, inputs, *runs, outputs=("y",)):
        """Compiles for the inputs' shapes, runs each of `runs` (shapes by name)."""
        proto = model(nodes, [value(name, shape) for name, shape in inputs.items()], [value(name, None) for name in outputs], weights)
        library = self.compile(proto)
        session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        for shapes in runs or [inputs]:
            values = {name: RNG.standard_normal(shape, np.float32) for name, shape in shapes.items()}
            found = ptc.load(library)(**values)
            for name, wanted in zip(outputs, session.run(list(outputs), values)):
                np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=1e-4)
        return library

    def check_no_copies(self, library):
        """Each kernel computes something."""
        kernels = json.loads(library.with_suffix(".json").read_text())["kernels"]
        self.assertEqual([kernel["name"] for kernel in kernels if kernel["flops"]["at_hint"] == 0], [])

    def test_levels_of_a_detector(self):
        weights = {}
        nodes = head(0, weights) + head(1, weights) + [node("Concat", "flat0 flat1", "all", axis=2), node("Sigmoid", "all", "y")]
        for images in (1, 3):
            library = self.check(nodes, weights, {"x0": [images, 16, 12, 10], "x1": [images, 16, 6, 5]})
            self.check_no_copies(library)
        free = {"x0": ["n", 16, "h", "w"], "x1": ["n", 16, "k", "l"]}
        self.check(nodes, weights, free, {"x0": [2, 16, 9, 7], "x1": [2, 16, 4, 3]}, {"x0": [1, 16, 1, 1], "x1": [1, 16, 2, 5]})

    def test_rows_of_tokens(self):
        """Pixels become rows before they are put behind each other (which copies them)."""
        weights = {}
        nodes = head(0, weights) + head(1, weights)
        nodes += [node("Transpose", f"flat{level}", f"tokens{level}", perm=[0, 2, 1]) for level in (0, 1)]
        nodes += [node("Concat", "tokens0 tokens1", "all", axis=1), node("Softmax", "all", "y", axis=2)]
        self.check(nodes, weights, {"x0": [2, 16, 12, 10], "x1": [2, 16, 6, 5]})

    def test_values_that_others_read(self):
        """A convolution reads the image, the model gives it away: it is there by its dims, too."""
        weights = {"wc": RNG.standard_normal((8, 82, 3, 3), np.float32) / 27}
        nodes = head(0, weights) + head(1, weights)
        nodes += [node("Concat", "flat0 flat1", "y", axis=2), node("Conv", "both0 wc", "z", pads=[1, 1, 1, 1]), node("Relu", "both1", "r")]
        self.check(nodes, weights, {"x0": [1, 16, 12, 10], "x1": [1, 16, 6, 5]}, outputs=("y", "z", "both1", "r"))

    def test_pairs_in_a_row(self):
        """Sines and cosines in turns, of rows beside those of columns: embeddings of positions."""
        weights = {"last": np.array([-1], np.int64), "four": np.array([4, 6, 128], np.int64)}
        nodes = []
        for name in "xy":
            nodes += [node("Sin", name, f"sin{name}"), node("Cos", name, f"cos{name}"),
                      node("Unsqueeze", f"sin{name} last", f"s{name}"), node("Unsqueeze", f"cos{name} last", f"c{name}"),
                      node("Concat", f"s{name} c{name}", f"pairs{name}", axis=-1), node("Reshape", f"pairs{name} four", f"flat{name}")]
        nodes += [node("Concat", "flaty flatx", "both", axis=-1), node("Exp", "both", "y_")]
        shapes = {"x": [4, 6, 64], "y": [4, 6, 64]}
        self.check_no_copies(self.check(nodes, weights, shapes, outputs=("y_",)))

    def test_both_directions(self):
        """States of a sequence that is read backwards lie turned around beside those of one that is read forwards."""
        for kind, gates, states in [("LSTM", 4, 3), ("GRU", 3, 2), ("RNN", 1, 2)]:
            weights = {name: RNG.standard_normal(shape, np.float32) / 8
                       for name, shape in [("w", (2, gates * 32, 16)), ("r", (2, gates * 32, 32))]}
            for batch in (1, 3):
                with self.subTest(kind=kind, batch=batch):
                    weights["flat"] = np.array([9, batch, 64], np.int64)
                    nodes = [node(kind, "x w r", " ".join(["all", "h", "c"][:states]), direction="bidirectional", hidden_size=32),
                             node("Transpose", "all", "turned", perm=[0, 2, 1, 3]), node("Reshape", "turned flat", "rows"),
                             node("Relu", "rows", "y")]
                    self.check(nodes, weights, {"x": [9, batch, 16]}, outputs=("y", "h"))

    def test_turned_values(self):
        """A slice backwards, of one dim and of several seen as one (which is not turned dim by dim)."""
        weights = {"first": np.array([-1], np.int64), "end": np.array([-100], np.int64), "axis": np.array([1], np.int64),
                   "row": np.array([2, 15], np.int64)}
        for flat in (False, True):
            nodes = [node("Exp", "x", "e")] + ([node("Reshape", "e row", "f")] if flat else [])
            nodes += [node("Slice", f"{'f' if flat else 'e'} first end axis first", "s"), node("Tanh", "x", "t")]
            nodes += [node("Reshape", "t row", "u")] if flat else [node("Identity", "t", "u")]
            nodes += [node("Concat", "s u", "y", axis=1)]
            self.check(nodes, weights, {"x": [2, 3, 5] if flat else [2, 7]})

    def test_image_as_one_row(self):
        """A result that is an image in one row, channel by channel, as it is and behind another one."""
        for sizes in ([1, 16, 12, 10], [3, 16, 5, 4]):
            weights = {}
            nodes = head(0, weights) + [node("Flatten", "both0", "y"), node("Flatten", "a0", "f"), node("Flatten", "r0", "g"), node("Concat", "f g", "z", axis=1)]
            self.check(nodes, weights, {"x0": sizes}, outputs=("y", "z"))
