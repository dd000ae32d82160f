"""Results of models with operators of the user's own."""

import threading

import ml_dtypes
import numpy as np
import ptc
from models import ModelTest, value
from onnx import TensorProto, helper
from operators import DOMAIN, flags, library, model, node

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def random(*shape, dtype=np.float32):
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


class Results(ModelTest):
    def load(self, proto, *operators, **options):
        return ptc.load(self.compile(proto, *flags(*operators)), **options)

    def test_a_node_between_others_of_symbolic_size(self):
        nodes = [helper.make_node("Relu", ["x"], ["r"]), node("Scale", ["r"], ["s"], factor=2.0, offset=1.0),
                 helper.make_node("Add", ["s", "x"], ["y"])]
        loaded = self.load(model(nodes, [value("x", ["n", 3])], [value("y", ["n", 3])]), "Scale")
        for n in (1, 2, 5000):
            x = random(n, 3)
            np.testing.assert_array_equal(loaded(x)["y"], np.maximum(x, 0) * np.float32(2) + np.float32(1) + x)

    def test_double(self):
        proto = model([node("Scale", ["x"], ["y"], factor=0.5)], [value("x", [4], TensorProto.DOUBLE)],
                      [value("y", [4], TensorProto.DOUBLE)])
        x = random(4, dtype=np.float64)
        np.testing.assert_array_equal(self.load(proto, "Scale")(x)["y"], x * 0.5)

    def test_a_library_in_cpp(self):
        proto = model([node("Scale", ["x"], ["y"], factor=3.0)], [value("x", [4])], [value("y", [4])])
        loaded = ptc.load(self.compile(proto, *flags("Scale", path=library("c++"))))
        np.testing.assert_array_equal(loaded(random(4))["y"], random(4) * np.float32(3))

    def test_expressions_of_symbols_and_two_outputs(self):
        outputs = [value("a", ["n", None]), value("b", ["n", None])]
        proto = model([node("Halves", ["x"], ["a", "b"])], [value("x", ["n", "w"])], outputs)
        loaded = self.load(proto, "Halves")
        self.assertEqual([v.shape[0] for v in loaded.outputs], ["n", "n"])
        for width in (1, 2, 7):
            x = random(3, width)
            results = loaded(x)
            np.testing.assert_array_equal(results["a"], x[:, :width // 2])
            np.testing.assert_array_equal(results["b"], x[:, width // 2:])

    def test_optional_input_and_unused_output(self):
        for inputs in (["x"], ["x", "bias"]):
            names = [value("x", [2, 4])] + ([value("bias", [])] if len(inputs) > 1 else [])
            proto = model([node("Halves", inputs, ["", "b"])], names, [value("b", [2, 2])])
            x, bias = random(2, 4), np.float32(2)
            result = self.load(proto, "Halves")(*[x, np.array(bias)][:len(inputs)])["b"]
            np.testing.assert_array_equal(result, x[:, 2:] + (bias if len(inputs) > 1 else 0))

    def test_sizes_that_depend_on_values(self):
        for bounded in (1, 0):
            nodes = [node("Above", ["x", "t"], ["k"], bounded=bounded), helper.make_node("Neg", ["k"], ["y"])]
            proto = model(nodes, [value("x", ["n"]), value("t", [])], [value("y", [None])])
            loaded = self.load(proto, "Above")
            for n in (1, 5, 200):
                for threshold in (-9, 0, 9):
                    x = random(n)
                    np.testing.assert_array_equal(loaded(x, np.float32(threshold))["y"], -x[x > threshold])

    def test_strings(self):
        proto = model([node("Shout", ["x"], ["y", "n"], ending="?!")], [value("x", ["k"], TensorProto.STRING)],
                      [value("y", ["k"], TensorProto.STRING), value("n", ["k"], INT64)])
        results = self.load(proto, "Shout")(np.array(["abc", "", "Grüße"], object))
        self.assertEqual(list(results["y"]), ["ABC?!", "?!", "GRüßE?!"])
        self.assertEqual(list(results["n"]), [5, 2, 9])

    def test_element_types_as_they_are(self):
        types = {TensorProto.FLOAT16: np.float16, TensorProto.BFLOAT16: ml_dtypes.bfloat16, TensorProto.UINT8: np.uint8,
                 TensorProto.INT64: np.int64, TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
                 TensorProto.INT4: ml_dtypes.int4, TensorProto.UINT2: ml_dtypes.uint2}
        for kind, dtype in types.items():
            proto = model([node("Flip", ["x"], ["y"])], [value("x", [5], kind)], [value("y", [5], kind)])
            x = np.array([0, 1, 2, 1, 3], np.float32).astype(dtype)
            result = self.load(proto, "Flip")(x)["y"]
            mask = {TensorProto.INT4: 15, TensorProto.UINT2: 3}.get(kind)
            bits, flipped = (np.frombuffer(a.tobytes(), np.uint8) for a in (x, result))
            expected = ~bits & mask if mask else ~bits
            np.testing.assert_array_equal(flipped & mask if mask else flipped, expected, str(dtype))

    def test_attributes_constants_and_state(self):
        values = helper.make_tensor("", FLOAT, [3], [0.5, 1.5, 2.5])
        lookup = node("Lookup", ["x", "repeats"], ["y"], keys=[1, 3, 5], values=values, offsets=[10.0],
                      names=["a", "", "ccc"])
        proto = model([lookup], [value("x", ["n"], TensorProto.INT32)], [value("y", ["n", 2])],
                      {"repeats": np.array(2, np.int64)})
        loaded = self.load(proto, "Lookup")
        expected = np.array([[11.5] * 2, [15.5] * 2, [0] * 2, [11.5] * 2], np.float32)
        np.testing.assert_array_equal(loaded(np.array([1, 5, 2, 3], np.int32))["y"], expected)

    def test_inside_control_flow(self):
        body = helper.make_graph(
            [node("Scale", ["s"], ["t"], factor=2.0), helper.make_node("Identity", ["keep"], ["again"])], "body",
            [value("i", [], INT64), value("keep", [], TensorProto.BOOL), value("s", ["n"])],
            [value("again", [], TensorProto.BOOL), value("t", ["n"])])
        then = helper.make_graph([node("Above", ["x", "zero"], ["p"])], "then", [], [value("p", [None])])
        other = helper.make_graph([node("Scale", ["x"], ["q"], offset=1.0)], "other", [], [value("q", [None])])
        nodes = [helper.make_node("Loop", ["rounds", "", "x"], ["looped"], body=body),
                 helper.make_node("If", ["which"], ["y"], then_branch=then, else_branch=other)]
        proto = model(nodes, [value("x", ["n"]), value("rounds", [], INT64), value("which", [], TensorProto.BOOL)],
                      [value("looped", ["n"]), value("y", [None])], {"zero": np.array(0, np.float32)})
        # An If's branches and the Loop's body are the same in either form, unrolled or not.
        loaded = self.load(proto, "Scale", "Above")
        x = random(6)
        for rounds in (0, 1, 9):
            for which in (True, False):
                results = loaded(x, np.array(rounds), np.array(which))
                np.testing.assert_array_equal(results["looped"], x * np.float32(2) ** rounds)
                np.testing.assert_array_equal(results["y"], x[x > 0] if which else x + np.float32(1))

    def test_in_a_counted_loop(self):
        """Such a loop of arithmetic alone is one kernel; calls stay launches of their own."""
        body = helper.make_graph(
            [node("Scale", ["s"], ["t"], factor=2.0), helper.make_node("Identity", ["keep"], ["again"])], "body",
            [value("i", [], INT64), value("keep", [], TensorProto.BOOL), value("s", ["n"])],
            [value("again", [], TensorProto.BOOL), value("t", ["n"])])
        for rounds in (1, 9):
            proto = model([helper.make_node("Loop", ["rounds", "", "x"], ["y"], body=body)], [value("x", ["n"])],
                          [value("y", ["n"])], {"rounds": np.array(rounds)})
            x = random(6)
            np.testing.assert_array_equal(self.load(proto, "Scale")(x)["y"], x * np.float32(2) ** rounds)

    def test_threads_and_contexts(self):
        proto = model([node("Scale", ["x"], ["y"], factor=2.0)], [value("x", ["n"])], [value("y", ["n"])])
        library_path = self.compile(proto, *flags("Scale"))
        x = random(100_000)
        for threads in (1, 4):
            loaded = ptc.load(library_path, threads=threads)
            wrong = []

            def work():
                for _ in range(20):
                    if not np.array_equal(loaded(x)["y"], x * np.float32(2)):
                        wrong.append(threads)

            workers = [threading.Thread(target=work) for _ in range(4)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            self.assertEqual(wrong, [])

    def test_an_operator_of_onnx_is_replaced(self):
        proto = model([helper.make_node("Relu", ["x"], ["y"])], [value("x", [4])], [value("y", [4])])
        loaded = ptc.load(self.compile(proto, f"--custom-op=Relu={library()}:scale_op"))
        np.testing.assert_array_equal(loaded(random(4))["y"], random(4))

    def test_the_manifest_lists_libraries(self):
        import json

        proto = model([node("Scale", ["x"], ["y"])], [value("x", [4])], [value("y", [4])])
        made = self.compile(proto, *flags("Scale"))
        entries = json.loads(made.with_suffix(".json").read_text())["custom_operators"]
        self.assertEqual(entries, [{"library": str(library()), "nodes": ["my_scale"], "operator": f"{DOMAIN}.Scale",
                                    "symbol": "scale_op"}])
        self.assertIn(str(library()), made.with_suffix(".h").read_text())
