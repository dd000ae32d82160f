"""Libraries compiled with --autocast against onnxruntime on models whose operands are cast; see README.md."""

import itertools
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "runtime" / "python")]
import ptc  # noqa: E402
import unittests  # noqa: E402

NARROW = {"bf16": TensorProto.BFLOAT16, "f16": TensorProto.FLOAT16}
PRODUCTS = {"MatMul": 2, "Gemm": 2, "Conv": 2, "ConvTranspose": 2}  # operands that are rounded
DOTS, MATRICES = "x86-64-v4-vnni-bf16", "x86-64-v4-amx"


def normal(rng, *shape):
    return rng.standard_normal(shape, np.float32)


def model(nodes, inputs, outputs, weights):
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "graph", [value(*x) for x in inputs.items()], [value(*x) for x in outputs.items()],
                              [numpy_helper.from_array(array, name) for name, array in weights.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made)
    return made


def rounded(proto, narrow, kept=()):
    """The model with its products' operands cast to the narrow type and back; those in `kept`, of nodes or values, are not."""
    result = onnx.ModelProto()
    result.CopyFrom(proto)
    nodes = list(result.graph.node)
    del result.graph.node[:]
    for node in nodes:
        for i in range(PRODUCTS.get(node.op_type, 0) if node.name not in kept else 0):
            if node.input[i] in kept:
                continue
            name = f"{node.output[0]}_operand{i}"
            result.graph.node.append(helper.make_node("Cast", [node.input[i]], [name + "_narrow"], to=NARROW[narrow]))
            result.graph.node.append(helper.make_node("Cast", [name + "_narrow"], [name], to=TensorProto.FLOAT))
            node.input[i] = name
        result.graph.node.append(node)
    return result


def expected(proto, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # casts stay where they are
    return onnxruntime.InferenceSession(proto.SerializeToString(), options).run(None, feeds)[0]


class Autocast(unittest.TestCase):
    program = None  # unittests.run_class sets it

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.rng = np.random.default_rng(17)
        self.numbers = itertools.count()

    def ptc(self, *arguments):
        return subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True)

    def compile(self, proto, *flags):
        path = self.folder / f"model{next(self.numbers)}.onnx"  # a library is loaded once for each path
        onnx.save(proto, path)
        done = self.ptc("compile", path, "-o", path.with_suffix(".so"), "-q", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path.with_suffix(".so")

    def libraries(self, path):
        """The library at each level that this processor has."""
        for level in ptc.load(path).levels:
            try:
                yield level, ptc.load(path, cpu_level=level)
            except ptc.Error as error:
                self.assertIn("level", str(error))

    def check(self, proto, feeds, *flags, kept=(), flips=False):
        """`flips`: a value between two products may be rounded to its other neighbour, since sums differ in their last bits."""
        for narrow, step in ("bf16", 2**-8), ("f16", 2**-11):
            path = self.compile(proto, f"--autocast={narrow}", *flags)
            want = expected(rounded(proto, narrow, kept), feeds)
            size = np.abs(want).max() if want.size else 1
            for level, library in self.libraries(path):
                with self.subTest(narrow=narrow, level=level):
                    (found,) = library(**feeds).values()
                    np.testing.assert_allclose(found, want, rtol=0, atol=size * (step / 4 if flips else 1e-5))

    def product(self, m, k, n):
        nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
        return model(nodes, {"x": m + [k]}, {"y": m + [n]}, {"w": normal(self.rng, k, n)})

    def test_products_with_a_weight(self):
        for m, k, n in ([33], 64, 48), ([1], 128, 80), ([2, 7], 30, 17), ([5], 33, 20), ([40], 2048, 35), ([9], 2, 6), ([6], 8, 3), ([83], 4102, 70):
            with self.subTest(m=m, k=k, n=n):
                self.check(self.product(m, k, n), {"x": normal(self.rng, *m, k)})

    def test_products_at_free_sizes(self):
        proto = self.product(["rows"], 96, 40)
        for rows in 1, 2, 29:
            self.check(proto, {"x": normal(self.rng, rows, 96)})

    def test_products_of_computed_values_stay(self):
        nodes = [helper.make_node("MatMul", ["a", "b"], ["y"])]
        for a, b in ([3, 20, 64], [3, 64, 24]), ([12, 31], [31, 50]), ([2, 1, 16], [2, 16, 40]):
            shape = [*a[:-1], b[-1]]
            proto = model(nodes, {"a": a, "b": b}, {"y": shape}, {})
            self.check(proto, {"a": normal(self.rng, *a), "b": normal(self.rng, *b)}, kept=("a", "b"))

    def test_gemm_with_what_is_fused_behind_it(self):
        nodes = [helper.make_node("Gemm", ["x", "w", "bias"], ["g"], transB=1, alpha=0.5), helper.make_node("Relu", ["g"], ["y"])]
        weights = {"w": normal(self.rng, 70, 50), "bias": normal(self.rng, 70)}
        self.check(model(nodes, {"x": [21, 50]}, {"y": [21, 70]}, weights), {"x": normal(self.rng, 21, 50)})

    def test_convolutions(self):
        for channels, out, window, attributes in (
            (16, 24, 3, dict(pads=[1] * 4)), (32, 20, 1, {}), (6, 18, 5, dict(strides=[2, 2], pads=[2, 1, 2, 1])),
            (16, 32, 3, dict(group=2, pads=[1] * 4)), (24, 24, 3, dict(group=24, pads=[1] * 4)), (7, 9, 3, dict(dilations=[2, 2])),
        ):
            with self.subTest(channels=channels, out=out, window=window, **attributes):
                nodes = [helper.make_node("Conv", ["x", "w", "bias"], ["y"], **attributes)]
                shape = (out, channels // attributes.get("group", 1), window, window)
                weights = {"w": normal(self.rng, *shape), "bias": normal(self.rng, out)}
                x = normal(self.rng, 2, channels, 13, 12)
                proto = model(nodes, {"x": list(x.shape)}, {"y": [None] * 4}, weights)
                self.check(proto, {"x": x}, kept=("x", "w") if attributes.get("group") == channels else ())

    def test_a_transposed_convolution(self):
        nodes = [helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])]
        proto = model(nodes, {"x": [1, 12, 6, 5]}, {"y": [None] * 4}, {"w": normal(self.rng, 12, 10, 3, 3)})
        self.check(proto, {"x": normal(self.rng, 1, 12, 6, 5)})

    def test_a_chain_stores_what_lies_between(self):
        nodes = [
            helper.make_node("MatMul", ["x", "w1"], ["p1"]), helper.make_node("Add", ["p1", "bias"], ["s"]),
            helper.make_node("Tanh", ["s"], ["t"]), helper.make_node("MatMul", ["t", "w2"], ["p2"]), helper.make_node("Add", ["p2", "t"], ["y"]),
        ]
        weights = {"w1": normal(self.rng, 64, 96) / 8, "bias": normal(self.rng, 96), "w2": normal(self.rng, 96, 96) / 9}
        self.check(model(nodes, {"x": [18, 64]}, {"y": [18, 96]}, weights), {"x": normal(self.rng, 18, 64)}, flips=True)

    def test_attention_stays(self):
        scale = numpy_helper.from_array(np.float32(0.125), "s")
        heads = lambda name: [helper.make_node("Reshape", [name, "split"], [name + "r"]),
                              helper.make_node("Transpose", [name + "r"], [name + "h"], perm=[0, 2, 1, 3])]
        nodes = [
            helper.make_node("Constant", [], ["split"], value=numpy_helper.from_array(np.array([1, -1, 4, 32], np.int64))),
            helper.make_node("Constant", [], ["scale"], value=scale), *heads("q"), *heads("k"), *heads("v"),
            helper.make_node("Transpose", ["kh"], ["kt"], perm=[0, 1, 3, 2]), helper.make_node("MatMul", ["qh", "kt"], ["dots"]),
            helper.make_node("Mul", ["dots", "scale"], ["scores"]), helper.make_node("Softmax", ["scores"], ["p"], axis=-1),
            helper.make_node("MatMul", ["p", "vh"], ["yh"], name="values"), helper.make_node("Transpose", ["yh"], ["y"], perm=[0, 2, 1, 3]),
        ]
        shapes = {name: [1, length, 128] for name, length in (("q", 19), ("k", 37), ("v", 37))}
        proto = model(nodes, shapes, {"y": [None] * 4}, {})
        feeds = {name: normal(self.rng, *shape) for name, shape in shapes.items()}
        self.check(proto, feeds, kept=("qh", "kt", "p", "vh"))

    def test_rounding_below_what_lies_before_a_product(self):
        ints = lambda *values: numpy_helper.from_array(np.array(values, np.int64))
        w, w2 = normal(self.rng, 10, 24, 3, 3), normal(self.rng, 40, 12)
        for name, nodes, shapes, weights in (
            ("concat", [helper.make_node("Concat", ["a", "b"], ["c"], axis=1), helper.make_node("Conv", ["c", "w"], ["y"])],
             {"a": [1, 16, 9, 9], "b": [1, 8, 9, 9]}, {"w": w}),
            ("pad", [helper.make_node("Constant", [], ["p"], value=ints(0, 0, 1, 2, 0, 0, 2, 1)), helper.make_node("Constant", [], ["v"],
             value=numpy_helper.from_array(np.float32(0.3))), helper.make_node("Pad", ["a", "p", "v"], ["c"]), helper.make_node("Conv", ["c", "w"], ["y"])],
             {"a": [1, 24, 9, 8]}, {"w": w}),
            ("expand", [helper.make_node("Constant", [], ["s"], value=ints(1, 3, 7, 40)), helper.make_node("Expand", ["a", "s"], ["c"]),
             helper.make_node("MatMul", ["c", "w"], ["y"])], {"a": [1, 3, 1, 40]}, {"w": w2}),
            ("slice", [helper.make_node("Relu", ["a"], ["r"]), helper.make_node("Split", ["r"], ["c", "d"], axis=3),
             helper.make_node("MatMul", ["c", "w"], ["e"]), helper.make_node("MatMul", ["d", "w"], ["f"]), helper.make_node("Add", ["e", "f"], ["y"])],
             {"a": [1, 2, 5, 80]}, {"w": w2}),
        ):
            with self.subTest(name):
                proto = model(nodes, shapes, {"y": [None] * 4}, weights)
                self.check(proto, {key: normal(self.rng, *shape) for key, shape in shapes.items()})

    def test_nodes_that_are_kept(self):
        nodes = [helper.make_node("MatMul", ["x", "w1"], ["h"], name="body/first"), helper.make_node("MatMul", ["h", "w2"], ["y"], name="head/last")]
        weights = {"w1": normal(self.rng, 40, 64), "w2": normal(self.rng, 64, 24)}
        proto = model(nodes, {"x": [11, 40]}, {"y": [11, 24]}, weights)
        feeds = {"x": normal(self.rng, 11, 40)}
        for flags, kept in (["head/last"], ("head/last",)), (["head/*"], ("head/last",)), (["h"], ("body/first",)), (["*"], ("body/first", "head/last")):
            self.check(proto, feeds, *(f"--autocast-keep={flag}" for flag in flags), kept=kept, flips=True)

    def test_what_is_no_product(self):
        for node, inputs, outputs in (
            (helper.make_node("Einsum", ["a", "b"], ["y"], equation="i,j->ij"), {"a": [7], "b": [9]}, {"y": [7, 9]}),
            (helper.make_node("Einsum", ["a", "b"], ["y"], equation="ij,ij->ij"), {"a": [7, 4], "b": [7, 4]}, {"y": [7, 4]}),
            (helper.make_node("Mul", ["a", "b"], ["y"]), {"a": [7, 4], "b": [4]}, {"y": [7, 4]}),
            (helper.make_node("DFT", ["a"], ["y"], axis=1), {"a": [2, 24, 1]}, {"y": [2, 24, 2]}),
        ):
            with self.subTest(node=node.op_type):
                proto, feeds = model([node], inputs, outputs, {}), {name: normal(self.rng, *shape) for name, shape in inputs.items()}
                plain, narrow = (ptc.load(self.compile(proto, f"--autocast={kind}"))(**feeds)["y"] for kind in ("none", "bf16"))
                np.testing.assert_array_equal(narrow, plain)

    def test_weights_that_are_replaced(self):
        nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Gather", ["w", "i"], ["row"]), helper.make_node("Add", ["h", "row"], ["y"])]
        graph = lambda w: model(nodes, {"x": [5, 32]}, {"y": [5, 40]}, {"w": w, "i": np.array(3, np.int64)})
        old, new, x = normal(self.rng, 32, 40), normal(self.rng, 32, 40), normal(self.rng, 5, 32)
        for narrow in NARROW:
            for level, library in self.libraries(self.compile(graph(old), f"--autocast={narrow}")):
                before = library(x=x)["y"]
                library.set_weight("w", new)
                fresh = ptc.load(self.compile(graph(new), f"--autocast={narrow}"), cpu_level=level)
                np.testing.assert_array_equal(library(x=x)["y"], fresh(x=x)["y"])
                self.assertTrue((before != library(x=x)["y"]).any())

    def test_weights_take_half_the_room(self):
        proto = self.product([16], 512, 512)
        sizes = {kind: self.compile(proto, f"--autocast={kind}", "--weights=file").with_suffix(".weights").stat().st_size
                 for kind in ("none", "bf16", "f16")}
        self.assertLess(sizes["bf16"], sizes["none"] * 0.51)
        self.assertLess(sizes["f16"], sizes["none"] * 0.51)

    def test_the_levels_that_multiply_bf16_are_there_for_bf16(self):
        proto = self.product([16], 64, 64)
        for kind, special in ("none", set()), ("bf16", {DOTS, MATRICES}), ("f16", set()):
            levels = ptc.load(self.compile(proto, f"--autocast={kind}")).levels
            self.assertEqual({DOTS, MATRICES} & set(levels), special, kind)

    def test_what_the_flags_refuse(self):
        path = self.folder / "model.onnx"
        nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name="product"), helper.make_node("Relu", ["h"], ["y"], name="relu")]
        onnx.save(model(nodes, {"x": [4, 8]}, {"y": [4, 8]}, {"w": normal(self.rng, 8, 8)}), path)
        done = self.ptc("compile", path, "-o", self.folder / "yes.so", "--autocast=f16", "--autocast-keep=product", "--autocast-keep=h")
        self.assertEqual(done.returncode, 0, done.stderr)
        for flags, code, words in (
            (["--autocast=bf8"], 2, ["bf8", "bf16, f16 or none"]),
            (["--autocast-keep=product"], 2, ["--autocast-keep product", "--autocast=bf16"]),
            (["--autocast=f16", "--autocast-keep=relu"], 2, ["node 'relu'", "no product"]),
            (["--autocast=f16", "--autocast-keep=produkt"], 2, ["produkt", "did you mean 'product'"]),
        ):
            done = self.ptc("compile", path, "-o", self.folder / "no.so", *flags)
            self.assertEqual(done.returncode, code, done.stderr)
            for word in words:
                self.assertIn(word, done.stderr)
            self.assertFalse((self.folder / "no.so").exists())


if __name__ == "__main__":
    sys.exit(unittests.run_class(Autocast, __doc__))
