"""Pads in front of windows, whose producers write the padded value, against onnxruntime."""

import json

import numpy as np
import onnxruntime
import ptc
from models import ModelTest, model, value
from onnx import helper

RNG = np.random.default_rng(5)


def conv(x, y, weights, channels=(8, 8), window=(3, 3), **how):
    weights[f"w{y}"] = RNG.standard_normal((channels[1], channels[0] // how.get("group", 1), *window), np.float32) / 8
    return helper.make_node("Conv", [x, f"w{y}"], [y], **how)


def pad(x, y, border, mode, weights, number=None):
    """Pads the dims behind the first two."""
    weights[f"pads{y}"] = np.array([0, 0, *border[: len(border) // 2], 0, 0, *border[len(border) // 2 :]], np.int64)
    inputs = [x, f"pads{y}"]
    if number is not None:
        weights[f"number{y}"] = np.array(number, np.float32)
        inputs.append(f"number{y}")
    return helper.make_node("Pad", inputs, [y], f"pad_{y}", mode=mode)


def run_plainly(proto, x):
    """What onnxruntime computes without its fusions, which take a Pad of zeros for the border of a MaxPool."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, {"x": x})


class Pads(ModelTest):
    def check(self, nodes, weights, *shapes, dims=None, outputs=("y",)):
        """Compiles for `dims` (the shape, perhaps with names), runs each of the shapes."""
        proto = model(nodes, [value("x", dims or shapes[0])], [value(name, None) for name in outputs], weights)
        library = self.compile(proto)
        for shape in shapes:
            x = RNG.standard_normal(shape, np.float32)
            found = ptc.load(library)(x=x)
            for name, values in zip(outputs, run_plainly(proto, x)):
                np.testing.assert_allclose(found[name], values, rtol=1e-4, atol=1e-4)
        return library

    def check_written_in_place(self, library, pad, elements):
        """What the pad's own kernels write is its border, no more: the middle is written by those of what is padded."""
        kernels = json.loads(library.with_suffix(".json").read_text())["kernels"]
        own = [kernel for kernel in kernels if {node for nodes in kernel["launch_nodes"] for node in nodes} == {pad}]
        self.assertLess(sum(kernel["bytes_written"]["at_hint"] * len(kernel["launch_nodes"]) for kernel in own), 4 * elements)

    def test_kinds_and_borders(self):
        """Each kind, borders that differ on all sides, are absent, or are as wide as the image allows."""
        for mode, number in [("reflect", None), ("edge", None), ("wrap", None), ("constant", 0.0), ("constant", 2.5)]:
            for border in [(1, 1, 1, 1), (0, 2, 3, 1), (2, 0, 0, 0), (8, 10, 8, 10)]:
                with self.subTest(mode=mode, number=number, border=border):
                    weights = {}
                    nodes = [conv("x", "a", weights, (4, 8), (1, 1)), helper.make_node("Relu", ["a"], ["r"]),
                             pad("r", "p", border, mode, weights, number), conv("p", "y", weights)]
                    library = self.check(nodes, weights, [2, 4, 9, 11])
                    if number != 0 and border[0]:  # zeros are the convolution's own border
                        padded = (9 + border[0] + border[2]) * (11 + border[1] + border[3])
                        self.check_written_in_place(library, "pad_p", 2 * 8 * (padded - 9 * 11) + 1)

    def test_ranks(self):
        """Lines and volumes, in front of convolutions, of each channel alone as well."""
        for mode in ("reflect", "edge", "wrap"):
            for pixels, border in [((37,), (3, 5)), ((5, 6, 7), (1, 2, 0, 2, 1, 3))]:
                for group in (1, 8):
                    with self.subTest(mode=mode, pixels=pixels, group=group):
                        weights, window = {}, (3,) * len(pixels)
                        nodes = [conv("x", "a", weights, window=window, pads=[1] * len(border)), helper.make_node("LeakyRelu", ["a"], ["r"]),
                                 pad("r", "p", border, mode, weights), conv("p", "y", weights, window=window, group=group)]
                        self.check(nodes, weights, [1, 8, *pixels])

    def test_free_sizes(self):
        """Sizes that are known at run time alone."""
        for mode in ("reflect", "edge", "wrap"):
            weights = {}
            nodes = [conv("x", "a", weights, (4, 8), (1, 1)), helper.make_node("Relu", ["a"], ["r"]), pad("r", "p", (2, 3, 1, 2), mode, weights),
                     conv("p", "y", weights)]
            with self.subTest(mode=mode):
                self.check(nodes, weights, [1, 4, 9, 11], [3, 4, 4, 20], dims=["n", 4, "h", "w"])

    def test_other_readers(self):
        """What is padded is read by others, too: as it lies, by sums over it, as another pad's, and as a result."""
        for mode in ("reflect", "edge"):
            with self.subTest(mode=mode):
                weights = {}
                nodes = [conv("x", "a", weights, (4, 8), (1, 1)), helper.make_node("Relu", ["a"], ["r"]),
                         pad("r", "p", (1, 1, 1, 1), mode, weights), conv("p", "b", weights),
                         helper.make_node("Add", ["r", "b"], ["s"]), pad("s", "q", (2, 2, 2, 2), mode, weights), conv("q", "c", weights, dilations=[2, 2]),
                         pad("s", "t", (1, 0, 0, 2), "wrap", weights), conv("t", "d", weights), helper.make_node("GlobalAveragePool", ["s"], ["g"]),
                         conv("r", "e", weights, window=(1, 1)), helper.make_node("Mul", ["c", "g"], ["m"]), helper.make_node("Add", ["m", "e"], ["y"])]
                self.check(nodes, weights, [1, 4, 13, 10], outputs=("y", "d", "s"))

    def test_chains(self):
        """A pad of a pad, and one below a transpose and a slice."""
        for first, second in [("reflect", "reflect"), ("edge", "wrap"), ("constant", "reflect"), ("wrap", "constant")]:
            with self.subTest(first=first, second=second):
                weights = {"from": np.array([1, 0], np.int64), "to": np.array([9, 99], np.int64), "axes": np.array([2, 3], np.int64)}
                nodes = [conv("x", "a", weights, (4, 8), (1, 1)), helper.make_node("Relu", ["a"], ["r"]), pad("r", "p", (1, 2, 2, 1), first, weights),
                         pad("p", "q", (2, 1, 0, 3), second, weights), helper.make_node("Transpose", ["q"], ["t"], perm=[0, 1, 3, 2]),
                         helper.make_node("Slice", ["t", "from", "to", "axes"], ["u"]), conv("u", "y", weights)]
                self.check(nodes, weights, [1, 4, 7, 9])

    def test_norms_and_steps(self):
        """Instance norms between, and arguments, which are copied with their borders."""
        weights = {"scale": np.ones(8, np.float32), "bias": np.zeros(8, np.float32)}
        nodes = [pad("x", "o", (3, 3, 3, 3), "reflect", weights), conv("o", "a", weights, (4, 8), (7, 7)),
                 helper.make_node("InstanceNormalization", ["a", "scale", "bias"], ["n"]), helper.make_node("Relu", ["n"], ["r"]),
                 pad("r", "p", (1, 1, 1, 1), "reflect", weights), conv("p", "b", weights), helper.make_node("InstanceNormalization", ["b", "scale", "bias"], ["k"]),
                 helper.make_node("Add", ["k", "r"], ["s"]), pad("s", "q", (1, 1, 1, 1), "reflect", weights), conv("q", "y", weights, strides=[2, 2])]
        self.check(nodes, weights, [1, 4, 20, 24])

    def test_pools(self):
        """Poolings of what is padded by numbers they depend on, and by those they do not."""
        infinity = float("-inf")
        for kind, mode, number, how in [("MaxPool", "constant", 0.0, {}), ("MaxPool", "constant", infinity, {"pads": [1, 0, 1, 0]}),
                                        ("AveragePool", "constant", 0.0, {}), ("AveragePool", "reflect", None, {}),
                                        ("AveragePool", "constant", 0.0, {"pads": [1, 1, 1, 1], "count_include_pad": 1}),
                                        ("AveragePool", "constant", 1.0, {"pads": [1, 1, 1, 1]})]:
            with self.subTest(kind=kind, mode=mode, number=number, **how):
                weights = {}
                nodes = [conv("x", "a", weights, (4, 16), pads=[1] * 4), pad("a", "p", (1, 1, 0, 2), mode, weights, number),
                         helper.make_node(kind, ["p"], ["y"], kernel_shape=[3, 3], strides=[2, 2], **how)]
                library = self.check(nodes, weights, [1, 4, 15, 18])
                isBorder = number in (0.0, infinity) and (kind, number) != ("MaxPool", 0.0)
                self.assertEqual('"pad_p"' in library.with_suffix(".json").read_text(), not isBorder)

    def test_transposed(self):
        """Zeros around pixels whose channels lie innermost, where a transpose follows."""
        weights = {"pads": np.array([0, 1, 2, 0, 0, 2, 0, 0], np.int64)}
        nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Pad", ["r", "pads"], ["p"], "pad_p"),
                 helper.make_node("Transpose", ["p"], ["t"], perm=[0, 3, 1, 2]), conv("t", "y", weights)]
        library = self.check(nodes, weights, [1, 9, 10, 8])
        self.assertNotIn('"pad_p"', library.with_suffix(".json").read_text())
