"""Large products that Strassen's algorithm computes, in whole models against sums of f64."""

import collections
import json
import math
import subprocess

import models
import numpy as np
import ptc
from models import ModelTest, model, value
from onnx import helper

RNG = np.random.default_rng(7)
NAMES = {"q", "k", "v", "up", "down"}


def normal(*shape):
    return RNG.standard_normal(shape, np.float32)


def weight(terms, columns):
    return normal(terms, columns) / np.float32(terms**0.5)


def layer(rows, weights):
    """Three products of a normalised x, which are joined, and two behind each other with a GELU between them."""
    nodes = [
        helper.make_node("LayerNormalization", ["x", "scale", "shift"], ["norm"], axis=-1),
        *(helper.make_node("MatMul", ["norm", name], [f"{name}y"], name) for name in "qkv"),
        helper.make_node("Add", ["qy", "ky"], ["qk"]),
        helper.make_node("Mul", ["qk", "vy"], ["mixed"]),
        helper.make_node("MatMul", ["mixed", "up"], ["up_sum"], "up"),
        helper.make_node("Add", ["up_sum", "bias"], ["wide"]),
        helper.make_node("Gelu", ["wide"], ["active"]),
        helper.make_node("MatMul", ["active", "down"], ["down_sum"], "down"),
        helper.make_node("Add", ["down_sum", "x"], ["y"]),
    ]
    size = weights["q"].shape[0]
    return model(nodes, [value("x", [1, rows, size])], [value("y", [1, rows, size])], weights, opset=20)


def all_weights(size=256, wide=1280):
    return {"scale": normal(size) + 3, "shift": normal(size), "q": weight(size, size), "k": weight(size, size), "v": weight(size, size),
            "up": weight(size, wide), "bias": normal(wide), "down": weight(wide, size)}


def expected(weights, x):
    w = {name: array.astype(np.float64) for name, array in weights.items()}
    x = x.astype(np.float64)
    norm = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w["scale"] + w["shift"]
    wide = (norm @ w["q"] + norm @ w["k"]) * (norm @ w["v"]) @ w["up"] + w["bias"]
    gelu = 0.5 * wide * (1 + np.vectorize(math.erf)(wide / np.sqrt(2)))
    return gelu @ w["down"] + x


def by_strassen(library):
    """Names of the products that some level may compute so: there are some where the library has that of 512-bit vectors."""
    manifest = json.loads(library.with_suffix(".json").read_text())
    kernels = manifest["kernels"]
    assert ("x86-64-v4-zen4" in manifest["levels"]) == any("strassen" in kernel["kind"] for kernel in kernels)
    return {node for kernel in kernels if "strassen" in kernel["kind"] for node in kernel["nodes"] if node in NAMES}


class Strassen(ModelTest):
    def test_layer(self):
        """Even and odd numbers of rows, at all levels; a row that is far larger than its neighbours, with another of zeros."""
        for rows, size in ((128, 256), (197, 256), (131, 768)):  # the last is large enough for 256-bit vectors
            weights = all_weights(size)
            library = self.compile(layer(rows, weights), name=f"layer{rows}")
            self.assertEqual(by_strassen(library), NAMES)
            x = normal(1, rows, size)
            x[0, 5] *= 1e4
            x[0, 6] = 0
            wanted = expected(weights, x)
            for level, result in self.run_levels(library, x=x):
                for row in range(rows):
                    most = 3e-5 * np.abs(wanted[0, row]).max()
                    np.testing.assert_allclose(result[0, row], wanted[0, row], rtol=0, atol=most, err_msg=f"{level}, row {row}")

    def test_convolutions(self):
        """Windows of one element are products, of at least 32 pixels, or 96 of an odd number; between two others, which take and
        give channels first."""
        for height, width, takes in [(14, 14, True), (8, 5, True), (9, 11, True), (7, 7, False), (5, 6, False)]:
            weights = {name: normal(*shape, 1, 1) / np.float32(shape[1] ** 0.5) for name, shape in {"w0": (192, 8), "w1": (320, 192), "w2": (12, 320)}.items()}
            nodes = [helper.make_node("Conv", ["x", "w0"], ["a"]), helper.make_node("Conv", ["a", "w1"], ["b"], "up"),
                     helper.make_node("Relu", ["b"], ["r"]), helper.make_node("Conv", ["r", "w2"], ["y"])]
            shape = [1, 8, height, width]
            proto = model(nodes, [value("x", shape)], [value("y", [1, 12, height, width])], weights)
            library = self.compile(proto, name=f"convolution{height}x{width}")
            self.assertEqual(by_strassen(library), {"up"} if takes else set())
            x = normal(*shape)
            wanted = x.astype(np.float64)
            for name in weights:
                wanted = np.einsum("oi,nihw->nohw", weights[name][:, :, 0, 0], np.maximum(wanted, 0) if name == "w2" else wanted)
            np.testing.assert_allclose(ptc.load(library)(x=x)["y"], wanted, rtol=0, atol=3e-6 * np.abs(wanted).max())

    def test_weights_out_of_balance(self):
        """A column or a row that is far larger than the one it would meet, with 16 columns of a quarter, 32 or either; arithmetic
        that is to be IEEE's."""
        for columns in [40], [8, 40], [40, 56]:
            with self.subTest(columns=columns):
                weights = all_weights()
                weights["up"][:, columns] *= 100
                weights["down"][7] *= 100
                self.assertEqual(by_strassen(self.compile(layer(128, weights), name=f"unbalanced{len(columns)}")), {"q", "k", "v"})
        strict = self.compile(layer(128, all_weights()), "--fp=strict", name="strict")
        self.assertEqual(by_strassen(strict), set())

    def test_rows_behind(self):
        """A norm behind a product reads its whole rows, and the sum behind that one takes the place of its other operand: no thread
        may have some columns of them alone, nor compute either more than once."""
        rows, size = 784, 256
        weights = {name: weight(size, size) for name in ("first", "q", "up", "last")} | {"scale": normal(size), "shift": normal(size)}
        nodes = [helper.make_node("MatMul", ["x", "first"], ["a"]), helper.make_node("MatMul", ["a", "q"], ["b"], "q"), helper.make_node("Relu", ["b"], ["c"]),
                 helper.make_node("MatMul", ["c", "up"], ["d"], "up"), helper.make_node("LayerNormalization", ["d", "scale", "shift"], ["norm"], "norm", axis=-1),
                 helper.make_node("Add", ["a", "norm"], ["sum"], "sum"), helper.make_node("MatMul", ["sum", "last"], ["y"])]
        library = self.compile(model(nodes, [value("x", [rows, size])], [value("y", [rows, size])], weights, opset=20))
        self.assertEqual(by_strassen(library), {"q", "up"})
        kernels = json.loads(library.with_suffix(".json").read_text())["kernels"]
        self.assertTrue(any({"up", "norm", "sum"} <= set(kernel["nodes"]) for kernel in kernels))
        x = normal(rows, size)
        w = {name: array.astype(np.float64) for name, array in weights.items()}
        a = x.astype(np.float64) @ w["first"]
        d = np.maximum(a @ w["q"], 0) @ w["up"]
        norm = (d - d.mean(-1, keepdims=True)) / np.sqrt(d.var(-1, keepdims=True) + 1e-5) * w["scale"] + w["shift"]
        wanted = (a + norm) @ w["last"]
        for threads in (1, 2, 7, 16):
            for level, result in self.run_levels(library, threads=threads, x=x):
                np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max(), err_msg=f"{level}, {threads} threads")

    def test_parts_behind(self):
        """Each head's columns are rotated by its row's angles: nodes behind a product read parts of rows, of which no thread may
        have one half alone."""
        rows, columns = 784, 512
        for size in (32, 64, 128):
            heads, half = columns // size, size // 2
            weights = {"q": weight(512, columns), "cos": normal(rows, 1, half), "sin": normal(rows, 1, half)}
            constants = {"heads": np.array([rows, heads, size]), "back": np.array([rows, columns]), "zero": np.array([0]), "half": np.array([half]),
                         "size": np.array([size]), "last": np.array([-1])}
            nodes = [helper.make_node("MatMul", ["x", "q"], ["a"], "q"), helper.make_node("Reshape", ["a", "heads"], ["b"]),
                     helper.make_node("Slice", ["b", "zero", "half", "last"], ["lo"]), helper.make_node("Slice", ["b", "half", "size", "last"], ["hi"]),
                     helper.make_node("Mul", ["lo", "cos"], ["c"]), helper.make_node("Mul", ["hi", "sin"], ["d"]), helper.make_node("Sub", ["c", "d"], ["e"]),
                     helper.make_node("Mul", ["hi", "cos"], ["f"]), helper.make_node("Mul", ["lo", "sin"], ["g"]), helper.make_node("Add", ["f", "g"], ["h"]),
                     helper.make_node("Concat", ["e", "h"], ["turned"], axis=-1), helper.make_node("Reshape", ["turned", "back"], ["y"])]
            proto = model(nodes, [value("x", [rows, 512])], [value("y", [rows, columns])], weights | constants, opset=20)
            library = self.compile(proto, name=f"turned{size}")
            self.assertEqual(by_strassen(library), {"q"})
            x = normal(rows, 512)
            lo, hi = np.split((x.astype(np.float64) @ weights["q"]).reshape(rows, heads, size), 2, axis=-1)
            cos, sin = weights["cos"], weights["sin"]
            wanted = np.concatenate([lo * cos - hi * sin, hi * cos + lo * sin], axis=-1).reshape(rows, columns)
            for threads in (1, 2, 7, 16):
                for level, result in self.run_levels(library, threads=threads, x=x):
                    np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max(), err_msg=f"{size}, {level}, {threads} threads")

    def test_pieces(self):
        """Each call of a kernel copies rows, so a thread has one; any number of them gives the same bits."""
        library = self.compile(layer(128, all_weights(768)))
        trace = self.folder / "trace.json"
        subprocess.run([models.PTC, "run", library, "-i", "random", "--threads=3", f"--profile={trace}"], check=True, capture_output=True)
        spans = json.loads(trace.read_text())["traceEvents"]
        pieces = collections.Counter(span["args"]["launch"] for span in spans if span.get("cat") == "piece" and set(span["args"]["nodes"].split(", ")) & NAMES)
        self.assertGreater(len(pieces), 2)
        self.assertEqual(set(pieces.values()), {3})
        x = normal(1, 128, 768)
        first, *others = (ptc.load(library, threads=threads)(x=x)["y"] for threads in (1, 2, 3, 7))
        for other in others:
            np.testing.assert_array_equal(other, first)
