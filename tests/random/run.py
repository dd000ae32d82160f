"""Tests the operators that draw numbers; see README.md."""

import math
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "runtime" / "python")]
import ptc  # noqa: E402
import unittests  # noqa: E402

FLOAT, DOUBLE, INT32, BOOL = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.BOOL


def philox(counter, key):
    """Words 0 and 1 of Philox 4x32-10 as one number; `counter` and `key` of 64 bits."""
    x = [counter & 0xFFFFFFFF, counter >> 32, 0, 0]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [second >> 32 ^ x[1] ^ k[0], second & 0xFFFFFFFF, first >> 32 ^ x[3] ^ k[1], first & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return x[0] | x[1] << 32


def largest_gap(sample, distribution):
    """Between the sample's distribution function and the true one."""
    ordered = np.sort(sample.ravel().astype(np.float64))
    truth, steps = distribution(ordered), np.arange(ordered.size + 1) / ordered.size
    return max(np.abs(truth - steps[1:]).max(), np.abs(truth - steps[:-1]).max())


class RandomTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def compile(self, nodes, inputs, outputs, constants=None):
        values = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
        results = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in outputs]
        weights = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
        graph = helper.make_graph(nodes, "test", values, results, weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10), self.folder / "m.onnx")
        library = self.folder / f"m{len(list(self.folder.iterdir()))}.so"  # a name of its own: one that is loaded stays
        command = [self.program, "compile", self.folder / "m.onnx", "-o", library, "-q"]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return library

    def draw(self, operator, shape=(1000, 40), kind=FLOAT, **attributes):
        node = helper.make_node(operator, [], ["y"], shape=shape, dtype=kind, **attributes)
        return ptc.load(self.compile([node], [], [("y", kind, shape)]), threads=2)()["y"]

    def test_python_philox_gives_the_published_vectors(self):
        self.assertEqual(philox(0, 0), 0x6627E8D5 | 0xE169C58D << 32)

    def test_uniform_is_philox(self):
        drawn = self.draw("RandomUniform", (3, 50), seed=1.5)
        key = int(np.float32(1.5).view(np.uint32))
        expected = [np.float32((philox(i, key) >> 40) * 2.0**-24) for i in range(150)]
        self.assertEqual(drawn.ravel().tolist(), expected)

    def test_uniform_is_uniform(self):
        for kind in (FLOAT, DOUBLE):
            drawn = self.draw("RandomUniform", kind=kind, low=-2.0, high=6.0)
            self.assertTrue(np.all((drawn >= -2) & (drawn <= 6)))
            self.assertLess(largest_gap(drawn, lambda x: (x + 2) / 8), 1.95 / math.sqrt(drawn.size))

    def test_normal_is_normal(self):
        normal = np.vectorize(lambda x: (1 + math.erf((x - 3) / (0.5 * math.sqrt(2)))) / 2)
        for kind in (FLOAT, DOUBLE):
            drawn = self.draw("RandomNormal", kind=kind, mean=3.0, scale=0.5)
            self.assertTrue(np.isfinite(drawn).all())
            self.assertLess(largest_gap(drawn, normal), 1.95 / math.sqrt(drawn.size))
            self.assertLess(abs(np.corrcoef(drawn.ravel()[:-1], drawn.ravel()[1:])[0, 1]), 0.02)

    def test_seeds_and_streams(self):
        nodes = [helper.make_node("RandomUniformLike", ["x"], [f"y{i}"], **({} if seed is None else {"seed": seed}))
                 for i, seed in enumerate((None, None, 7.0, 7.0, 8.0))]
        outputs = [(f"y{i}", FLOAT, ["n", 5]) for i in range(5)]
        library = self.compile(nodes, [("x", FLOAT, ["n", 5])], outputs)
        x = np.zeros((100, 5), np.float32)
        one, two = (ptc.load(library, threads=n) for n in (1, 2))
        first, second, again = one(x=x), one(x=x), two(x=x)
        for name in first:
            self.assertEqual(first[name].tobytes(), second[name].tobytes())
            self.assertEqual(first[name].tobytes(), again[name].tobytes())
        self.assertEqual(first["y2"].tobytes(), first["y3"].tobytes())
        for a, b in (("y0", "y1"), ("y0", "y2"), ("y2", "y4")):
            self.assertLess(np.mean(first[a] == first[b]), 0.01)

    def loop_over(self, draws, rounds, scans):
        """A Loop of `rounds` (an input if None) that stacks what `draws`, a node with the output "r", gives."""
        flag = helper.make_tensor_value_info("more", BOOL, [])
        body = helper.make_graph(
            [draws, helper.make_node("Identity", ["go"], ["more"])], "body",
            [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", BOOL, [])],
            [flag, helper.make_tensor_value_info("r", FLOAT, [*scans, 500])])
        constants = {} if rounds is None else {"rounds": np.array(rounds, np.int64)}
        return helper.make_node("Loop", ["rounds", ""], ["y"], body=body), constants

    def test_rounds_of_a_loop_draw_numbers_of_their_own(self):
        for seed in ({}, {"seed": 3.0}):
            for rounds in (3, 9, None):  # unrolled, counted, counted by an input
                draws = helper.make_node("RandomUniform", [], ["r"], shape=[500], **seed)
                node, constants = self.loop_over(draws, rounds, [])
                inputs = [("rounds", TensorProto.INT64, [])] if rounds is None else []
                library = self.compile([node], inputs, [("y", FLOAT, ["n", 500])], constants)
                feeds = {"rounds": np.array(9, np.int64)} if rounds is None else {}
                first, again = (ptc.load(library, threads=n)(**feeds)["y"] for n in (1, 2))
                self.assertEqual(first.tobytes(), again.tobytes())
                for a in range(len(first)):
                    for b in range(a):
                        self.assertLess(np.mean(first[a] == first[b]), 0.01, f"rounds {a} and {b} of {rounds}")
                if rounds:
                    self.assertLess(largest_gap(first, lambda x: x), 1.95 / math.sqrt(first.size))

    def test_rounds_of_nested_loops_draw_numbers_of_their_own(self):
        inner, _ = self.loop_over(helper.make_node("RandomNormal", [], ["r"], shape=[500]), 6, [])
        inner.output[0] = "r"
        node, constants = self.loop_over(inner, 7, [6])
        y = ptc.load(self.compile([node], [], [("y", FLOAT, [7, 6, 500])], constants | {"rounds": np.array(6, np.int64)}))()["y"]
        streams = y.reshape(-1, 500)
        for a in range(len(streams)):
            for b in range(a):
                self.assertLess(np.mean(streams[a] == streams[b]), 0.01, f"{a} and {b}")

    def test_bernoulli_has_the_probabilities_it_is_given(self):
        node = helper.make_node("Bernoulli", ["p"], ["y"], dtype=INT32)
        model = ptc.load(self.compile([node], [("p", FLOAT, [4, 20000])], [("y", INT32, [4, 20000])]), threads=2)
        p = np.repeat(np.array([[0.0], [0.2], [0.7], [1.0]], np.float32), 20000, axis=1)
        rates = model(p=p)["y"].mean(1)
        np.testing.assert_allclose(rates, [0, 0.2, 0.7, 1], atol=0.015)
        self.assertEqual((rates[0], rates[3]), (0, 1))

    def test_multinomial_has_the_weights_it_is_given(self):
        node = helper.make_node("Multinomial", ["x"], ["y"], sample_size=20000)
        model = ptc.load(self.compile([node], [("x", FLOAT, [2, 3])], [("y", INT32, [2, 20000])]), threads=2)
        weights = np.array([[0.5, 0.3, 0.2], [0.0, 1.0, 0.0]])
        with np.errstate(divide="ignore"):
            drawn = model(x=np.log(weights).astype(np.float32) + 2)["y"]
        for row, wanted in zip(drawn, weights):
            np.testing.assert_allclose(np.bincount(row, minlength=3) / row.size, wanted, atol=0.015)

    def test_dropout_does_what_its_mask_tells(self):
        node = helper.make_node("Dropout", ["x", "ratio", "training"], ["y", "mask"])
        inputs = [("x", FLOAT, [200, 300]), ("ratio", FLOAT, []), ("training", BOOL, [])]
        model = ptc.load(self.compile([node], inputs, [("y", FLOAT, [200, 300]), ("mask", BOOL, [200, 300])]), threads=2)
        x = np.random.default_rng(0).standard_normal((200, 300)).astype(np.float32)
        for ratio in (0.0, 0.25, 0.9):
            result = model(x=x, ratio=np.array(ratio, np.float32), training=np.array(True))
            np.testing.assert_allclose(result["y"], np.where(result["mask"], x / (1 - ratio), 0), rtol=1e-5)
            self.assertAlmostEqual(result["mask"].mean(), 1 - ratio, delta=0.01)
        result = model(x=x, ratio=np.array(0.9, np.float32), training=np.array(False))
        np.testing.assert_array_equal(result["y"], x)
        self.assertTrue(result["mask"].all())


if __name__ == "__main__":
    sys.exit(unittests.run_class(RandomTest, __doc__))
