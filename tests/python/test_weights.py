"""Weights beside the library, and weights that are replaced."""

import json
import shutil

import numpy as np
import onnxruntime
import ptc
from models import ModelTest, model, value
from onnx import helper, numpy_helper

RNG = np.random.default_rng(3)


def normal(*shape):
    return RNG.standard_normal(shape, np.float32)


def network():
    """A convolution, a product, and one weight that is read both as a table and as a matrix."""
    nodes = [
        helper.make_node("Conv", ["image", "kernel", "bias"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("ReduceMean", ["r", "axes"], ["mean"], keepdims=0),
        helper.make_node("MatMul", ["mean", "matrix"], ["hidden"]),
        helper.make_node("Gather", ["table", "ids"], ["rows"]),
        helper.make_node("Add", ["hidden", "rows"], ["sum"]),
        helper.make_node("Transpose", ["table"], ["turned"], perm=[1, 0]),
        helper.make_node("MatMul", ["sum", "turned"], ["y"]),
    ]
    weights = {"kernel": normal(20, 8, 3, 3), "bias": normal(20), "axes": np.array([2, 3], np.int64),
               "matrix": normal(20, 90), "table": normal(35, 90)}
    inputs = [value("image", ["n", 8, 10, 10]), value("ids", ["n"], 7)]
    return model(nodes, inputs, [value("y", ["n", 35])], weights)


def attention(width=64, heads=4, turned="", inner=64):
    """Queries, keys and values of one tensor: their products are one, over weights one behind another. `turned`: those of
    which the model stores the transpose. `inner`: how many features the tensor has."""
    nodes, weights = [], {"shape": np.array([0, 0, heads, width // heads], np.int64),
                          "whole": np.array([0, 0, width], np.int64), "scale": np.float32((width // heads) ** -0.5)}
    for part, perm in {"q": [0, 2, 1, 3], "k": [0, 2, 3, 1], "v": [0, 2, 1, 3]}.items():
        is_turned = part in turned
        weights |= {part: normal(*((width, inner) if is_turned else (inner, width))) / 8, f"{part}_bias": normal(width)}
        if is_turned:
            nodes.append(helper.make_node("Transpose", [part], [f"{part}_turned"], perm=[1, 0]))
        nodes += [
            helper.make_node("MatMul", ["x", f"{part}_turned" if is_turned else part], [f"{part}_product"]),
            helper.make_node("Add", [f"{part}_product", f"{part}_bias"], [f"{part}_sum"]),
            helper.make_node("Reshape", [f"{part}_sum", "shape"], [f"{part}_split"]),
            helper.make_node("Transpose", [f"{part}_split"], [f"{part}_heads"], perm=perm),
        ]
    nodes += [
        helper.make_node("MatMul", ["q_heads", "k_heads"], ["products"]),
        helper.make_node("Mul", ["products", "scale"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"]),
        helper.make_node("MatMul", ["shares", "v_heads"], ["mixed"]),
        helper.make_node("Transpose", ["mixed"], ["turned"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["turned", "whole"], ["y"]),
    ]
    return model(nodes, [value("x", ["n", "length", inner])], [value("y", ["n", "length", width])], weights)


def columns(turned):
    """Products of one tensor by weights of two widths: one product with the columns of all. `turned`: those of which the
    model stores the transpose."""
    nodes, weights = [], {"zero": np.array([0], np.int64), "half": np.array([32], np.int64),
                          "end": np.array([64], np.int64), "axis": np.array([2], np.int64)}
    for part, width in {"q": 64, "k": 32, "v": 32}.items():
        is_turned = part in turned
        weights[part] = normal(width, 48) / 8 if is_turned else normal(48, width) / 8
        if is_turned:
            nodes.append(helper.make_node("Transpose", [part], [f"{part}_turned"], perm=[1, 0]))
        nodes.append(helper.make_node("MatMul", ["x", f"{part}_turned" if is_turned else part], [f"{part}_product"]))
    nodes += [
        helper.make_node("Slice", ["q_product", "zero", "half", "axis"], ["left"]),
        helper.make_node("Slice", ["q_product", "half", "end", "axis"], ["right"]),
        helper.make_node("Mul", ["left", "right"], ["sum"]),
        helper.make_node("Transpose", ["k_product"], ["k_columns"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["sum", "k_columns"], ["scores"]),
        helper.make_node("MatMul", ["scores", "v_product"], ["y"]),
    ]
    return model(nodes, [value("x", ["n", "length", 48])], [value("y", ["n", "length", 32])], weights)


def expected(proto, feeds):
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


def changed(proto, name, array):
    copy = type(proto)()
    copy.CopyFrom(proto)
    (tensor,) = [tensor for tensor in copy.graph.initializer if tensor.name == name]
    tensor.CopyFrom(numpy_helper.from_array(array, name))
    return copy


class Weights(ModelTest):
    def check(self, loaded, proto, feeds):
        np.testing.assert_allclose(loaded(**feeds)["y"], expected(proto, feeds), rtol=1e-4, atol=1e-3)

    def test_replaced_weights_are_those_of_the_changed_model(self):
        proto = network()
        feeds = {"image": normal(3, 8, 10, 10), "ids": np.array([0, 34, 7], np.int64)}
        for place in ("embed", "file"):
            library = self.compile(proto, f"--weights={place}", name=place)
            for level in ptc.load(library).levels:
                try:
                    loaded = ptc.load(library, cpu_level=level)
                except ptc.Error:  # this processor lacks the level
                    continue
                with self.subTest(place=place, level=level):
                    now = proto
                    self.check(loaded, now, feeds)
                    for name, shape in {"kernel": (20, 8, 3, 3), "matrix": (20, 90), "table": (35, 90)}.items():
                        array = normal(*shape)
                        loaded.set_weight(name, array)
                        now = changed(now, name, array)
                        self.check(loaded, now, feeds)
                    self.check(ptc.load(library, cpu_level=level), proto, feeds)  # models are independent

    def test_weights_that_lie_one_behind_another_are_replaced_one_by_one(self):
        for turned in ("", "qk"):
            self.replace_joint(attention(turned=turned, inner=96), turned)

    def replace_joint(self, proto, turned):
        feeds = {"x": normal(2, 9, 96)}
        for flags in ([], ["--weights=file"], ["--weights=none"], ["--autocast=bf16"]):
            library = self.compile(proto, *flags, name="-".join(["joint", turned, *flags]).replace("--", "").replace("=", "-"))
            kernels = json.loads(library.with_suffix(".json").read_text())["kernels"]
            self.assertEqual([kernel["kind"] for kernel in kernels].count("contraction"), 1)
            loaded = ptc.load(library)
            self.assertLessEqual({"q", "k", "v"}, set(loaded.weights))
            if "--weights=none" in flags:
                for tensor in proto.graph.initializer:
                    if tensor.name in loaded.weights:
                        loaded.set_weight(tensor.name, numpy_helper.to_array(tensor))
            now, limit = proto, 3e-2 if "--autocast=bf16" in flags else 1e-4
            for name in ("v", "q", "k"):
                array = normal(*((64, 96) if name in turned else (96, 64))) / 8
                loaded.set_weight(name, array)
                now = changed(now, name, array)
                want = expected(now, feeds)
                with self.subTest(turned=turned, flags=flags, name=name):
                    self.assertLess(np.abs(loaded(**feeds)["y"] - want).max() / np.abs(want).max(), limit)
            again = ptc.load(self.compile(now, *[flag for flag in flags if flag != "--weights=none"]))
            np.testing.assert_array_equal(loaded(**feeds)["y"], again(**feeds)["y"])

    def test_weights_whose_columns_lie_side_by_side_are_replaced_one_by_one(self):
        feeds = {"x": normal(2, 9, 48)}
        for turned in ("", "qkv", "k"):
            for flags in ([], ["--weights=none"]):
                now = columns(turned)
                library = self.compile(now, *flags, name="-".join(["columns", turned, *flags]).replace("--", "").replace("=", "-"))
                kernels = json.loads(library.with_suffix(".json").read_text())["kernels"]
                self.assertEqual([kernel["kind"] for kernel in kernels].count("contraction"), 3)
                loaded = ptc.load(library)
                if flags:
                    for tensor in now.graph.initializer:
                        if tensor.name in loaded.weights:
                            loaded.set_weight(tensor.name, numpy_helper.to_array(tensor))
                self.check(loaded, now, feeds)
                for name in ("v", "q", "k"):
                    array = normal(*next(tensor.dims for tensor in now.graph.initializer if tensor.name == name)) / 8
                    loaded.set_weight(name, array)
                    now = changed(now, name, array)
                    with self.subTest(turned=turned, flags=flags, name=name):
                        self.check(loaded, now, feeds)

    def test_a_library_without_weights_runs_on_those_it_is_given(self):
        proto = network()
        feeds = {"image": normal(2, 8, 10, 10), "ids": np.array([3, 4], np.int64)}
        loaded = ptc.load(self.compile(proto, "--weights=none"))
        for tensor in proto.graph.initializer:
            if tensor.name in loaded.weights:
                loaded.set_weight(tensor.name, numpy_helper.to_array(tensor))
        self.check(loaded, proto, feeds)

    def test_unknown_names_and_sizes_are_refused(self):
        loaded = ptc.load(self.compile(network()))
        self.assertEqual(sorted(loaded.weights), ["kernel", "matrix", "table"])
        self.assertRaises(ptc.Error, loaded.set_weight, "nothing", normal(20, 90))
        self.assertRaises(ptc.Error, loaded.set_weight, "matrix", normal(20, 91))

    def test_a_weight_that_was_computed_with_cannot_be_replaced(self):
        nodes = [helper.make_node("Exp", ["w"], ["e"]), helper.make_node("MatMul", ["x", "e"], ["a"]),
                 helper.make_node("MatMul", ["a", "w"], ["b"]), helper.make_node("MatMul", ["b", "v"], ["y"])]
        weights = {"w": normal(40, 40), "v": normal(40, 40)}
        proto = model(nodes, [value("x", [2, 40])], [value("y", [2, 40])], weights)
        self.assertEqual(ptc.load(self.compile(proto)).weights, ["v"])

    def test_what_was_computed_of_weights_lies_among_them_unless_they_are_to_come(self):
        halves = [helper.make_node("Split", ["w"], ["left", "right"], axis=0, num_outputs=2),
                  helper.make_node("Concat", ["right", "left"], ["turned"], axis=0), helper.make_node("Exp", ["turned"], ["e"]),
                  helper.make_node("MatMul", ["x", "e"], ["a"]), helper.make_node("MatMul", ["a", "v"], ["y"])]
        proto = model(halves, [value("x", ["n", 64])], [value("y", ["n", 64])], {"w": normal(64, 64), "v": normal(64, 64)})
        feeds = {"x": normal(3, 64)}
        self.check(ptc.load(self.compile(proto, "--weights=file")), proto, feeds)
        self.assertGreaterEqual((self.folder / "model.weights").stat().st_size, 2 * 64 * 64 * 4)
        loaded = ptc.load(self.compile(proto, "--weights=none"))
        for name in loaded.weights:
            loaded.set_weight(name, numpy_helper.to_array(next(tensor for tensor in proto.graph.initializer if tensor.name == name)))
        self.check(loaded, proto, feeds)

    def test_large_products_of_weights_are_computed_once(self):
        nodes = [helper.make_node("MatMul", ["table", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["positions"]),
                 helper.make_node("Transpose", ["positions"], ["turned"], perm=[1, 0]), helper.make_node("MatMul", ["x", "turned"], ["scores"]),
                 helper.make_node("MatMul", ["scores", "v"], ["y"])]
        weights = {"table": normal(600, 512), "w": normal(512, 512) / 16, "b": normal(512), "v": normal(600, 16)}
        proto = model(nodes, [value("x", ["n", 512])], [value("y", ["n", 16])], weights)
        feeds = {"x": normal(3, 512)}
        library = self.compile(proto)
        self.assertEqual(len(json.loads(library.with_suffix(".json").read_text())["kernels"]), 2)
        loaded = ptc.load(library)
        self.assertEqual(loaded.weights, ["v"])
        self.check(loaded, proto, feeds)
        self.check(ptc.load(self.compile(proto, "--weights=file")), proto, feeds)
        loaded = ptc.load(self.compile(proto, "--weights=none"))
        self.assertEqual(sorted(loaded.weights), ["table", "v", "w"])
        for name in loaded.weights:
            loaded.set_weight(name, weights[name])
        self.check(loaded, proto, feeds)

    def test_the_weights_file_is_found_beside_the_library_or_by_option(self):
        proto = network()
        feeds = {"image": normal(1, 8, 10, 10), "ids": np.array([5], np.int64)}
        library = self.compile(proto, "--weights=file")
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        moved = shutil.copy(library, elsewhere / "moved.so")
        self.assertRaisesRegex(ptc.Error, "weights", ptc.load, moved)
        self.check(ptc.load(moved, weights=self.folder / "model.weights"), proto, feeds)
        (elsewhere / "model.weights").write_bytes((self.folder / "model.weights").read_bytes()[:-1])
        self.assertRaisesRegex(ptc.Error, "whole", ptc.load, moved)
