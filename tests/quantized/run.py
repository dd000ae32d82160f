"""Products of quantised tensors in compiled libraries against onnxruntime, at every CPU level; see README.md."""

import itertools
import json
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "runtime" / "python")]
import levels  # noqa: E402
import ptc  # noqa: E402
import unittests  # noqa: E402

LEVELS = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]
# If there are byte products.
LEVELS_OF_DOTS = ["x86-64-v2", "x86-64-v3", "x86-64-v3-vnni", "x86-64-v4", "x86-64-v4-vnni-bf16", "x86-64-v4-amx"]
ALL_LEVELS = "--cpu=x86-64-v2,auto"
# Code of a level that does not run here would be made for nothing: it is where what `auto` chooses is judged.
LEVELS_HERE = ALL_LEVELS if "x86-64-v4" in levels.usual() else f"--cpu=x86-64-v2,{','.join(levels.usual())}"
ELEMENT = {np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int8): TensorProto.INT8,
           np.dtype(np.int32): TensorProto.INT32, np.dtype(np.float32): TensorProto.FLOAT}
TYPES = list(itertools.product((np.uint8, np.int8), repeat=2))


def bytes_of(rng, dtype, shape):
    """All values, the extreme ones often."""
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.2, rng.choice([limits.min, limits.max], shape), x).astype(dtype)


def quantised_convolution(model):
    """A lone QLinearConv of constant weights, by the reference evaluator's ConvInteger: its own takes two dimensions only."""
    (node,), constants = model.graph.node, {value.name: numpy_helper.to_array(value) for value in model.graph.initializer}
    _, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias = node.input
    sums = onnx.ModelProto()
    sums.CopyFrom(model)
    integer = helper.make_node("ConvInteger", ["x", w, x_zero], list(node.output))  # weights without a zero point
    integer.attribute.extend(node.attribute)
    sums.graph.node[0].CopyFrom(integer)
    sums.graph.output[0].type.tensor_type.elem_type = TensorProto.INT32
    reference = ReferenceEvaluator(sums)

    def evaluate(feeds):
        total = reference.run(None, feeds)[0]
        channels = (-1, *[1] * (total.ndim - 2))
        scale = constants[x_scale].astype(np.float64) * constants[w_scale] / constants[y_scale]
        steps = np.rint((total + constants[bias].reshape(channels)) * scale.reshape(channels)) + constants[y_zero]
        limits = np.iinfo(constants[y_zero].dtype)
        return np.clip(steps, limits.min, limits.max).astype(limits.dtype)

    return evaluate


def evaluator(model):
    """What the operators say of some inputs. Products of integers are the reference evaluator's: onnxruntime's saturate at
    16 bits on processors without VNNI."""
    kinds = {node.op_type for node in model.graph.node}
    if "QLinearConv" in kinds:
        return quantised_convolution(model)
    if kinds & {"MatMulInteger", "ConvInteger"}:
        reference = ReferenceEvaluator(model)
        return lambda feeds: reference.run(None, feeds)[0]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # its rewrites round differently
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return lambda feeds: session.run(None, feeds)[0]


class Graph:
    """Nodes and initialisers on the way to a model."""

    def __init__(self):
        self.nodes, self.initialisers = [], []

    def add(self, op, inputs, domain="", **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [x or "" for x in inputs], [name], name, domain=domain, **attributes))
        return name

    def constant(self, value):
        name = f"c{len(self.initialisers)}"
        self.initialisers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def model(self, inputs, output, dtype, opset=17):
        values = [helper.make_tensor_value_info(n, ELEMENT[np.dtype(t)], s) for n, t, s in inputs]
        dims = [f"d{i}" for i in range(len(inputs[0][2]))]  # as many as the first input has
        result = helper.make_tensor_value_info(output, ELEMENT[np.dtype(dtype)], dims)
        graph = helper.make_graph(self.nodes, "g", values, [result], self.initialisers)
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10 if opset > 20 else 8)


class QuantizedTest(unittest.TestCase):
    def setUp(self):
        self.judged = set()  # kinds of models whose levels were compared with those that `auto` is to choose

    def check(self, model, inputs, exact=True, grouped=None):
        types = [value.type.tensor_type for value in model.graph.input]
        is_open = any(dim.dim_param for one in types for dim in one.shape.dim)
        kind = grouped, is_open, *[one.elem_type for one in types], *[value.data_type for value in model.graph.initializer[:1]]
        judges = grouped is not None and kind not in self.judged
        self.judged.add(kind)
        with tempfile.TemporaryDirectory() as folder:
            path = self.compile(folder, model, options=[LEVELS_HERE if not judges else ALL_LEVELS])
            if judges:
                chosen = json.loads(path.with_suffix(".json").read_text())["levels"]
                chosen = [level for level in chosen if level != "x86-64-v3-zen"]  # which is a matter of rows and sizes
                self.assertEqual(chosen, LEVELS_OF_DOTS if grouped else LEVELS)
            evaluate = evaluator(model)
            expected = [evaluate(one) for one in inputs]
            for level, library in self.libraries(path):
                for one, wanted in zip(inputs, expected):
                    found = next(iter(library(**one).values()))
                    with self.subTest(level=level, shapes={k: v.shape for k, v in one.items()}):
                        self.assertEqual((found.dtype, found.shape), (wanted.dtype, wanted.shape))
                        self.close(found, wanted, exact)

    def close(self, found, wanted, exact):
        if exact:
            np.testing.assert_array_equal(found, wanted)
        elif found.dtype == np.float32:
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)
        else:  # a result between two steps may be rounded to either
            self.assertLessEqual(np.abs(found.astype(int) - wanted.astype(int)).max(initial=0), 1)

    def test_matmul_integer(self):
        """Every pair of types, with zero points of every kind; the sums are exact, in groups of four or not. Tiny
        weights are constants, which are widened while the model is read."""
        for (a, b), k, kind in itertools.product(TYPES, (4, 64, 300, 37, 513), ("none", "scalar", "columns", "input")):
            rng = np.random.default_rng(zlib.crc32(f"{a}{b}{k}{kind}".encode()))
            n = int(rng.choice([6, 16, 33]))
            graph, inputs = Graph(), [("x", a, ["m", k])]
            operands = ["x", graph.constant(bytes_of(rng, b, (k, n)))]
            if kind == "scalar":
                operands += [graph.constant(bytes_of(rng, a, ())), graph.constant(bytes_of(rng, b, ()))]
            elif kind == "columns":
                operands += [graph.constant(bytes_of(rng, a, ())), graph.constant(bytes_of(rng, b, (n,)))]
            elif kind == "input":
                inputs.append(("z", a, []))
                operands.append("z")
            model = graph.model(inputs, graph.add("MatMulInteger", operands), np.int32)
            feeds = []
            for m in (1, 7, 40):
                feeds.append({"x": bytes_of(rng, a, (m, k))})
                if kind == "input":
                    feeds[-1]["z"] = bytes_of(rng, a, ())
            with self.subTest(a=a.__name__, b=b.__name__, k=k, n=n, kind=kind):
                self.check(model, feeds, grouped=k % 4 == 0 and k >= 64)

    def test_many_rows(self):
        """Rows that a compile knows or does not, around the number from which bytes are copied, and in
        several blocks; sums in one block and in several."""
        for m, k in itertools.product((15, 16, 29, 49, 200), (64, 1100, 2052)):
            rng = np.random.default_rng(m * k)
            n, zero = int(rng.choice([40, 64, 130])), np.asarray(7, np.uint8)
            w, x = bytes_of(rng, np.int8, (k, n)), bytes_of(rng, np.uint8, (m, k))
            for rows in (m, "m"):
                graph = Graph()
                y = graph.add("MatMulInteger", ["x", graph.constant(w), graph.constant(zero)])
                with self.subTest(rows=rows, m=m, k=k, n=n):
                    self.check(graph.model([("x", np.uint8, [rows, k])], y, np.int32), [{"x": x}], grouped=True)

    def test_large_pairs(self):
        """Weights of which two products may leave 16 bits, by bytes of 255 everywhere or at some places."""
        weights = ([127], [-128], [127, -128], [64, 65], [-64, -65], [127, 0], [-128, 1, -127])
        for values, (m, n, k) in zip(itertools.cycle(weights), [(16, 48, 68), (33, 40, 100), (49, 130, 512), (200, 65, 68)] * 4):
            rng = np.random.default_rng(m * k + values[0])
            w, some = rng.choice(np.array(values, np.int8), (k, n)), rng.integers(0, 200, (m, k), np.uint8)
            some[:, rng.integers(0, k, k // 4)] = 255
            graph = Graph()
            model = graph.model([("x", np.uint8, [m, k])], graph.add("MatMulInteger", ["x", graph.constant(w)]), np.int32)
            with self.subTest(values=values, m=m, n=n, k=k):
                self.check(model, [{"x": np.full((m, k), 255, np.uint8)}, {"x": some}])

    def test_sums_of_four(self):
        """Weights as they are in models, of which four products never leave 16 bits, seldom, often, or in some tiles."""
        for m, n, k in ((17, 40, 72), (49, 130, 512), (200, 64, 68), (196, 96, 36)):
            for largest in (90, 200, 256):
                rng = np.random.default_rng(m * largest)
                w = np.clip(np.rint(rng.normal(0, 36, (k, n))), -127, 127).astype(np.int8)
                some = rng.integers(0, 90, (m, k), np.uint8)
                some[:, : 8] = rng.integers(0, largest, (m, 8), np.uint8)
                graph, all = Graph(), rng.integers(0, largest, (m, k), np.uint8)
                y, rows = graph.add("MatMulInteger", ["x", graph.constant(w)]), m if n != 64 else "m"
                with self.subTest(largest=largest, m=m, n=n, k=k):
                    self.check(graph.model([("x", np.uint8, [rows, k])], y, np.int32), [{"x": all}, {"x": some}])

    def test_last_group(self):
        """An odd number of groups of four, of which the last two products alone leave 16 bits."""
        for k, m in itertools.product((4, 12, 68, 4100), (16, 50)):
            rng = np.random.default_rng(k)
            w, x = np.ones((k, 40), np.int8), rng.integers(0, 9, (m, k), np.uint8)
            w[-4:], x[:, -4:] = rng.choice([-128, 127], 40), 255
            graph = Graph()
            model = graph.model([("x", np.uint8, [m, k])], graph.add("MatMulInteger", ["x", graph.constant(w)]), np.int32)
            with self.subTest(k=k, m=m):
                self.check(model, [{"x": x}])

    def test_two_inputs(self):
        """Without a constant operand the product is one of bytes, too, where a group of four divides the sums and rows
        are not known to be few; the second operand as its rows or its columns lie in memory."""
        for (a, b), k, turned in itertools.product(TYPES, (5, 64, 300, 4100), (False, True)):
            rng, graph = np.random.default_rng(k), Graph()
            rows, columns = int(rng.choice([9, 40])), int(rng.choice([21, 64, 90]))
            zeros = [graph.constant(bytes_of(rng, a, ())), graph.constant(bytes_of(rng, b, ()))]
            w = graph.add("Transpose", ["w"], perm=[0, 2, 1]) if turned else "w"
            y = graph.add("MatMulInteger", ["x", w, *(zeros if k != 300 else ())])
            shape = [columns, k] if turned else [k, columns]
            feeds = [{"x": bytes_of(rng, a, (2, rows, k)), "w": bytes_of(rng, b, (2, *shape))}]
            for m in (rows, "m"):
                model = graph.model([("x", a, ["h", m, k]), ("w", b, ["h", *(shape if m == rows else ["i", "j"])])], y, np.int32)
                grouped = k % 4 == 0 and m != 9 if m == rows else None
                with self.subTest(a=a.__name__, b=b.__name__, k=k, m=m, n=columns, turned=turned):
                    self.check(model, feeds, grouped)

    def convolution(self, rng, a, b, form, zero, weight_zero=None):
        channels, out, window, groups, attributes = form
        if weight_zero is None:
            weight_zero = 0 if b == np.int8 else 128
        w = bytes_of(rng, b, (out, channels // groups, *window))
        graph = Graph()
        zeros = [graph.constant(np.asarray(zero, a)), graph.constant(np.asarray(weight_zero, b))]
        return graph, graph.constant(w), zeros, dict(kernel_shape=window, group=groups, **attributes)

    FORMS = {
        "1x1": (8, 20, [1, 1], 1, {}),
        "3x3": (16, 7, [3, 3], 1, dict(pads=[1, 1, 1, 1])),
        "strides": (4, 9, [3, 2], 1, dict(pads=[1, 0, 0, 1], strides=[2, 1])),
        "dilations": (12, 16, [3, 3], 1, dict(pads=[2, 2, 2, 2], dilations=[2, 2])),
        "groups": (8, 24, [3, 3], 2, dict(pads=[1, 1, 1, 1])),
        "depthwise": (8, 8, [3, 3], 8, dict(pads=[1, 1, 1, 1])),
        "stem": (3, 16, [7, 7], 1, dict(pads=[3, 3, 3, 3], strides=[2, 2])),
        "long": (4, 8, [9], 1, dict(pads=[4, 4])),
    }

    def test_conv_integer(self):
        for (name, form), zero in itertools.product(self.FORMS.items(), (0, 3, 113)):
            rng = np.random.default_rng(zlib.crc32(f"{name}{zero}".encode()))
            graph, w, zeros, attributes = self.convolution(rng, np.uint8, np.uint8, form, zero)
            y = graph.add("ConvInteger", ["x", w, *zeros], **attributes)
            shape = ["b", form[0], *[f"s{i}" for i in range(len(form[2]))]]
            extents = [(15, 14), (9, 21)]
            feeds = [{"x": bytes_of(rng, np.uint8, (2, form[0], *e[: len(form[2])]))} for e in extents]
            with self.subTest(form=name, zero=zero):
                self.check(graph.model([("x", np.uint8, shape)], y, np.int32), feeds)

    def test_zero_points_of_weights(self):
        """Of all weights or each output channel; borders and sizes that a compile knows, or does not."""
        forms = self.FORMS | {"wide": (32, 40, [3, 3], 1, dict(pads=[1, 1, 1, 1])), "pointwise groups": (16, 48, [1, 1], 4, dict(strides=[2, 2]))}
        for (name, form), b, kind in itertools.product(forms.items(), (np.uint8, np.int8), ("all", "channels")):
            if (name, kind) == ("long", "channels"):  # the reference evaluator fails there
                continue
            rng = np.random.default_rng(zlib.crc32(f"{name}{b}{kind}".encode()))
            weight_zero = bytes_of(rng, b, (form[1],) if kind == "channels" else ())
            graph, w, zeros, attributes = self.convolution(rng, np.uint8, b, form, int(rng.choice([0, 3, 113])), weight_zero)
            y = graph.add("ConvInteger", ["x", w, *zeros], **attributes)
            dims = [2, form[0], *(15, 14)[: len(form[2])]]
            shape = dims if rng.random() < 0.5 else ["b", form[0], *[f"s{i}" for i in range(len(form[2]))]]
            with self.subTest(form=name, b=b.__name__, kind=kind):
                grouped = True if name in ("wide", "stem") else None  # other weights are tiny
                self.check(graph.model([("x", np.uint8, shape)], y, np.int32), [{"x": bytes_of(rng, np.uint8, dims)}], grouped=grouped)

    # Windows of 3 x 3 pixels, of which 4 x 4 outputs may be computed at once where no instruction multiplies four
    # bytes ("square", "shared", "bare", "apart", "space"), and such as never are: window, extents, attributes.
    THREES = {
        "square": ([3, 3], [12, 12], dict(pads=[1, 1, 1, 1])),
        "shared": ([3, 3], [13, 7], dict(pads=[1, 1, 1, 1])),
        "bare": ([3, 3], [11, 17], {}),
        "apart": ([3, 3], [24, 23], dict(pads=[2, 2, 2, 2], strides=[2, 2], dilations=[2, 2])),
        "space": ([3, 3, 3], [5, 6, 8], dict(pads=[1, 1, 1, 1, 1, 1])),
        "uneven": ([3, 3], [10, 12], dict(pads=[0, 2, 1, 1])),
        "row": ([1, 3], [9, 16], dict(pads=[0, 1, 0, 1])),
        "tall": ([5, 3], [12, 11], dict(pads=[2, 1, 2, 1], strides=[2, 1])),
        "line": ([3], [97], dict(pads=[1, 1])),
        "narrow": ([3, 3], [40, 3], dict(pads=[1, 1, 1, 1])),
        "strides": ([3, 3], [25, 25], dict(strides=[2, 2])),
    }

    def test_windows_of_three(self):
        """The batch is known or, of signed weights, found by a run."""
        for (name, (window, extents, attributes)), b in itertools.product(self.THREES.items(), (np.uint8, np.int8)):
            rng = np.random.default_rng(zlib.crc32(f"{name}{b}".encode()))
            channels, out, batch = int(rng.choice([16, 48, 64])), int(rng.choice([32, 80])), int(rng.choice([1, 3]))
            form = (channels, out, window, 1, attributes)
            graph, w, zeros, attributes = self.convolution(rng, np.uint8, b, form, int(rng.choice([0, 113, 255])))
            y = graph.add("ConvInteger", ["x", w, *zeros], **attributes)
            is_open = b == np.int8
            model = graph.model([("x", np.uint8, ["b" if is_open else batch, channels, *extents])], y, np.int32)
            feeds = [bytes_of(rng, np.uint8, (images, channels, *extents)) for images in ((1, 2, 5) if is_open else (batch,))]
            feeds.append(np.full((batch, channels, *extents), 255, np.uint8))
            with self.subTest(form=name, b=b.__name__, channels=channels, out=out, batch=batch):
                self.check(model, [{"x": x} for x in feeds], grouped=True)

    def test_qlinear_conv(self):
        for (name, form), (a, b) in itertools.product(self.FORMS.items(), ((np.uint8, np.int8), (np.int8, np.int8))):
            rng = np.random.default_rng(zlib.crc32(f"{name}{a}".encode()))
            graph, w, zeros, attributes = self.convolution(rng, a, b, form, 5)
            out = form[1]
            scales = rng.uniform(0.001, 0.01, out).astype(np.float32)
            operands = ["x", graph.constant(np.float32(0.02)), zeros[0], w, graph.constant(scales),
                        graph.constant(np.zeros(out, np.int8)), graph.constant(np.float32(0.3)),
                        graph.constant(np.asarray(7, a)), graph.constant(rng.integers(-9999, 9999, out, dtype=np.int32))]
            y = graph.add("QLinearConv", operands, **attributes)
            shape = [2, form[0], *[15, 14][: len(form[2])]]
            with self.subTest(form=name, a=a.__name__):
                self.check(graph.model([("x", a, shape)], y, a), [{"x": bytes_of(rng, a, shape)}], exact=False)

    def quantised(self, graph, value, scale, zero, **axis):
        parameters = [graph.constant(scale), graph.constant(zero)]
        q = graph.add("QuantizeLinear", [value, *parameters], **axis)
        return graph.add("DequantizeLinear", [q, *parameters], **axis)

    def test_between_dequantize_and_quantize(self):
        """Chains of MatMul, Gemm and Conv between DequantizeLinear and QuantizeLinear."""
        for kind, a in itertools.product(("MatMul", "Gemm", "Conv"), (np.uint8, np.int8)):
            rng, graph = np.random.default_rng(zlib.crc32(kind.encode())), Graph()
            limit = 8
            value, shape = "x", ["b", 24] if kind != "Conv" else ["b", 16, "h", "w"]
            for step in range(3):
                value = self.quantised(graph, value, np.float32(0.05), np.asarray(9, a))
                if kind == "Conv":
                    w, axis = bytes_of(rng, np.int8, (16, 16, 3, 3)), 0
                elif kind == "Gemm":
                    w, axis = bytes_of(rng, np.int8, (24, 24)), 0
                else:
                    w, axis = bytes_of(rng, np.int8, (24, 24)), 1
                scales = rng.uniform(0.0005, 0.001, w.shape[axis]).astype(np.float32)
                zeros = np.zeros(w.shape[axis], np.int8)
                w = graph.add("DequantizeLinear", [graph.constant(w), graph.constant(scales), graph.constant(zeros)], axis=axis)
                bias = graph.constant(rng.normal(size=len(scales)).astype(np.float32))
                if kind == "MatMul":
                    value = graph.add("Add", [graph.add("MatMul", [value, w]), bias])
                elif kind == "Gemm":
                    value = graph.add("Gemm", [value, w, bias], transB=1)
                else:
                    value = graph.add("Conv", [value, w, bias], pads=[1, 1, 1, 1])
                value = graph.add("Relu", [value]) if step < 2 else value
            model = graph.model([("x", np.float32, shape)], value, np.float32)
            sizes = [(2, 24), (5, 24)] if kind != "Conv" else [(1, 16, 9, 7), (2, 16, 12, 12)]
            feeds = [{"x": rng.normal(size=size).astype(np.float32) * limit} for size in sizes]
            with self.subTest(kind=kind, a=a.__name__):
                self.check_steps(model, feeds)

    def test_activation_between_bytes(self):
        """An activation of what a product was rounded to twice: ends of the range, the steps between, the reciprocal of 0."""
        for kind, a in itertools.product(("Erf", "Sigmoid", "Neg", "Reciprocal"), (np.uint8, np.int8)):
            rng, graph = np.random.default_rng(zlib.crc32(kind.encode())), Graph()
            zero, scale = np.asarray(9, a), np.float32(0.02)
            value = self.quantised(graph, "x", np.float32(0.05), zero)
            w = graph.constant(bytes_of(rng, np.int8, (64, 48)))
            w = graph.add("DequantizeLinear", [w, graph.constant(np.float32(0.002)), graph.constant(np.int8(0))])
            value = graph.add("MatMul", [value, w])
            for _ in range(2):
                value = self.quantised(graph, value, scale, zero)
            value = self.quantised(graph, graph.add(kind, [value]), np.float32(0.01), zero)
            model = graph.model([("x", np.float32, ["b", 64])], value, np.float32)
            feeds = [{"x": rng.normal(size=(rows, 64)).astype(np.float32) * size} for rows, size in ((3, 0.5), (40, 8))]
            with self.subTest(kind=kind, a=a.__name__):
                self.check_steps(model, feeds)

    def test_added_results(self):
        """Products whose results are rounded and added up: what lies between them is read by the sum alone, by a second
        one, or by a convolution, too."""
        for shared, (a, zeros) in itertools.product((0, 1, 2), ((np.uint8, (0, 122)), (np.uint8, (9, 255)), (np.int8, (-128, 3)))):
            rng, graph = np.random.default_rng(shared + zeros[1] + 200), Graph()
            scale, values = np.float32(0.05), []
            x = self.quantised(graph, "x", scale, np.asarray(zeros[1], a))
            for zero in zeros:
                w = graph.constant(bytes_of(rng, np.int8, (32, 32, 1, 1)))
                w = graph.add("DequantizeLinear", [w, graph.constant(np.float32(0.001)), graph.constant(np.int8(0))])
                value = graph.add("Conv", [x, w, graph.constant(rng.normal(size=32).astype(np.float32))])
                values.append(self.quantised(graph, value, scale, np.asarray(zero, a)))
            total = graph.add("Add", values)
            if shared:
                total = graph.add("Add", [total, graph.add("Conv" if shared == 2 else "Mul", [values[0], w if shared == 2 else values[0]])])
            y = self.quantised(graph, graph.add("Relu", [total]), np.float32(0.1), np.asarray(zeros[0], a))
            model = graph.model([("x", np.float32, ["b", 32, 7, 9])], y, np.float32)
            feeds = [{"x": rng.normal(size=(images, 32, 7, 9)).astype(np.float32) * 4} for images in (1, 3)]
            with self.subTest(shared=shared, zeros=zeros, a=a.__name__):
                self.check_steps(model, feeds)

    def check_steps(self, model, feeds):
        """A sum that lies between two steps may be rounded to either, and moves what follows by a step."""
        close, self.close = self.close, lambda found, wanted, exact: self.assertLess(
            np.abs(found - wanted).max(), 0.1 + 0.01 * np.abs(wanted).max())
        try:
            self.check(model, feeds, grouped=True)
        finally:
            self.close = close

    def test_long_sums(self):
        """Sums wrap, as those of 32-bit integers do."""
        for k in (65536, 70000):
            graph = Graph()
            y = graph.add("MatMulInteger", ["x", graph.constant(np.full((k, 16), -128, np.int8))])
            model = graph.model([("x", np.uint8, ["m", k])], y, np.int32)
            self.check(model, [{"x": np.full((3, k), 255, np.uint8)}], grouped=True)


    def test_other_weights(self):
        """What knows the sums of a weight's columns does not take another; with weights that come later it knows none."""
        rng, graph = np.random.default_rng(3), Graph()
        w = bytes_of(rng, np.int8, (512, 64))
        graph.initialisers.append(numpy_helper.from_array(w, "w"))
        y = graph.add("MatMulInteger", ["x", "w", graph.constant(np.asarray(7, np.uint8))])
        model = graph.model([("x", np.uint8, ["m", 512])], y, np.int32)
        x, other = bytes_of(rng, np.uint8, (5, 512)), bytes_of(rng, np.int8, (512, 64))
        for place in ("embed", "none"):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "m.onnx"
                onnx.save(model, path)
                subprocess.run([self.program, "compile", path, "-q", f"--weights={place}", "-o", path.with_suffix(".so")], check=True)
                library = ptc.load(path.with_suffix(".so"), threads=1)
                if place == "embed":
                    with self.assertRaises((ptc.Error, KeyError, ValueError)):
                        library.set_weight("w", other)
                    continue
                library.set_weight("w", other)
                found = next(iter(library(x=x).values()))
                np.testing.assert_array_equal(found, (x.astype(np.int32) - 7) @ other.astype(np.int32))

    def test_sums_of_floats_do_not_wrap(self):
        graph, k = Graph(), 40000
        one = graph.constant(np.float32(0.01))
        a = graph.add("DequantizeLinear", ["x", one, graph.constant(np.uint8(0))])
        b = graph.add("DequantizeLinear", [graph.constant(np.full((k, 16), 255, np.uint8)), one, graph.constant(np.uint8(0))])
        model = graph.model([("x", np.uint8, ["m", k])], graph.add("MatMul", [a, b]), np.float32)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.onnx"
            onnx.save(model, path)
            subprocess.run([self.program, "compile", path, "-q", "-o", path.with_suffix(".so")], check=True)
            found = next(iter(ptc.load(path.with_suffix(".so"), threads=1)(x=np.full((3, k), 255, np.uint8)).values()))
            # Without byte products these are sums of f32, each of which may be rounded in the same direction.
            np.testing.assert_allclose(found, 255.0 * 255.0 * k * 1e-4, rtol=1e-3)

    ROWS = (1, 2, 5, 40)  # a tile of one row, of few, and enough to convert the weight beforehand

    def few_bits(self, rng, bits, block, zero, width, columns, graph=None, **attributes):
        """A MatMulNBits and the weights that it reads."""
        blocks = -(-width // block)
        weights = {"q": rng.integers(0, 256, (columns, blocks, block * bits // 8), dtype=np.uint8),
                   "s": rng.uniform(0.0001, 0.002, (columns, blocks)).astype(np.float32)}
        if zero == "packed":
            weights["z"] = rng.integers(0, 256, (columns, -(-blocks * bits // 8)), dtype=np.uint8)
        elif zero == "floats":
            weights["z"] = rng.uniform(0, 2**bits, (columns, blocks)).astype(np.float32)
        graph = graph or Graph()
        names = [f"{name}{len(graph.nodes) or ''}" for name in weights]
        graph.initialisers += [numpy_helper.from_array(value, name) for name, value in zip(names, weights.values())]
        y = graph.add("MatMulNBits", ["x", *names], "com.microsoft", K=width, N=columns, bits=bits, block_size=block, **attributes)
        return graph, y, weights

    @staticmethod
    def numbers_of(weights, bits, block):
        """The weight's rows, exactly."""
        columns, blocks, _ = weights["q"].shape
        unpack = lambda x: ((x[..., None] >> np.arange(0, 8, bits, dtype=np.uint8)) & (2**bits - 1)).reshape(*x.shape[:-1], -1)
        zeros = weights.get("z", np.full((columns, blocks), 2.0 ** (bits - 1), np.float32))
        if zeros.dtype == np.uint8:
            zeros = unpack(zeros)[:, :blocks]
        w = unpack(weights["q"]).astype(np.float64) - zeros.astype(np.float64)[..., None]
        return (w * weights["s"].astype(np.float64)[..., None]).reshape(columns, blocks * block)

    @staticmethod
    def in_bytes(x, block):
        """Rows whose blocks are integers of 8 bits times a scale."""
        parts = x.reshape(len(x), -1, block)
        most = np.maximum(np.abs(parts).max(-1, keepdims=True), np.float32(2.0**-100))
        scale = most * np.float32(1 / np.float32(127))
        return (np.rint(parts * (np.float32(127) / most)) * scale.astype(np.float64)).reshape(x.shape)

    def compile(self, folder, model, name="m", options=()):
        path = Path(folder) / f"{name}.onnx"
        onnx.save(model, path)
        command = [self.program, "compile", path, "-q", "-j1", *options, "-o", path.with_suffix(".so")]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path.with_suffix(".so")

    def libraries(self, path, threads=1):
        """At every level that this processor has."""
        for level in json.loads(path.with_suffix(".json").read_text())["levels"]:
            try:
                yield level, ptc.load(path, threads=threads, cpu_level=level)
            except ptc.Error:
                continue

    BYTES = dict(accuracy_level=4)

    def test_rows_of_bytes(self):
        """Where the model permits rows of 8 bits they are that, to the nearest, block by block: as near to the exact
        sums as onnxruntime's, which has such rows, too."""
        kinds = [("none", 16), ("none", 32), ("packed", 32), ("floats", 64), ("none", 128), ("packed", 256)]
        for bits, (zero, block) in itertools.product((2, 4), kinds):
            rng = np.random.default_rng(zlib.crc32(f"bytes{bits}{zero}{block}".encode()))
            # Bytes of zero points are whole: other weights' rows stay floats.
            width, columns = 4 * block * int(rng.integers(max(140 // block, 1), max(270 // block, 2))), int(rng.choice([512, 777, 1001]))
            graph, y, weights = self.few_bits(rng, bits, block, zero, width, columns, **self.BYTES)
            w = self.numbers_of(weights, bits, block).T
            feeds = [rng.normal(size=(rows, width)).astype(np.float32) for rows in (1, 2, 3, 7, 40, 130)]
            free = graph.model([("x", np.float32, ["m", width])], y, np.float32)
            session = onnxruntime.InferenceSession(free.SerializeToString(), providers=["CPUExecutionProvider"])
            error = lambda found, wanted: np.sqrt(np.square(found - wanted).mean() / np.square(wanted).mean())
            with tempfile.TemporaryDirectory() as folder:
                options = [LEVELS_HERE]
                for model, inputs in [(free, feeds), *((graph.model([("x", np.float32, list(x.shape))], y, np.float32), [x]) for x in feeds[::5])]:
                    for level, library in self.libraries(self.compile(folder, model, options=options)):
                        for x in inputs:
                            found, exact, as_bytes = next(iter(library(x=x).values())), x.astype(np.float64) @ w, self.in_bytes(x, block) @ w
                            other = error(session.run(None, {"x": x})[0], exact)
                            with self.subTest(bits=bits, zero=zero, block=block, width=width, columns=columns, rows=len(x), level=level):
                                self.assertLess(error(found, as_bytes), 1e-6)
                                self.assertLess(error(found, exact), max(1.2 * other, 0.01))

    def test_rows_that_are_no_bytes(self):
        """Without the model's permission, and under strict arithmetic with it, rows are what they are."""
        rng, width, block = np.random.default_rng(23), 768, 32
        x = rng.normal(size=(9, width)).astype(np.float32)
        for attributes, options in [({}, []), (dict(accuracy_level=1), []), (self.BYTES, ["--fp=strict"])]:
            graph, y, weights = self.few_bits(rng, 4, block, "none", width, 400, **attributes)
            exact = x.astype(np.float64) @ self.numbers_of(weights, 4, block).T
            for rows in ("m", 9):
                with self.subTest(attributes=attributes, options=options, rows=rows), tempfile.TemporaryDirectory() as folder:
                    model = graph.model([("x", np.float32, [rows, width])], y, np.float32)
                    for _, library in self.libraries(self.compile(folder, model, options=options)):
                        np.testing.assert_allclose(next(iter(library(x=x).values())), exact, rtol=1e-5, atol=1e-5)

    def test_extremes_of_rows_of_bytes(self):
        """Blocks of zeros, of tiny and of huge numbers; an infinity or a NaN spoils its row alone."""
        rng, width, block = np.random.default_rng(29), 1024, 32
        graph, y, weights = self.few_bits(rng, 4, block, "packed", width, 512, **self.BYTES)
        w = self.numbers_of(weights, 4, block).T
        x = rng.normal(size=(6, width)).astype(np.float32)
        x[0] = 0
        x[1, 64:96], x[1, 96:128], x[2] = 0, 1e-38, x[2] * np.float32(1e37)
        x[3, 5], x[4, 70] = np.inf, np.nan
        with tempfile.TemporaryDirectory() as folder:
            for level, library in self.libraries(self.compile(folder, graph.model([("x", np.float32, ["m", width])], y, np.float32))):
                found = next(iter(library(x=x).values()))
                with self.subTest(level=level):
                    self.assertFalse(np.isfinite(found[3:5]).any())
                    np.testing.assert_array_equal(found[0], 0)
                    for row in (1, 2, 5):
                        wanted = (self.in_bytes(x[row:row + 1], block) @ w)[0]
                        np.testing.assert_allclose(found[row], wanted, rtol=1e-5, atol=1e-6 * np.abs(wanted).max())

    def test_verifying_rows_of_bytes(self):
        """`ptc verify` expects what they are rounded to; --fp=strict rounds none, and is held to what floats are."""
        rng = np.random.default_rng(37)
        graph, y, _ = self.few_bits(rng, 4, 32, "none", 512, 384, **self.BYTES)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.onnx"
            onnx.save(graph.model([("x", np.float32, [5, 512])], y, np.float32), path)
            for flags, code in ([], 0), (["--per-node"], 0), (["--fp=strict"], 0), (["--rtol=1e-3"], 1):
                with self.subTest(flags=flags):
                    done = subprocess.run([self.program, "verify", path, *flags], capture_output=True, text=True)
                    self.assertEqual(done.returncode, code, done.stdout + done.stderr)

    def test_joined_rows_of_bytes(self):
        """Products of one value become one, whose rows are bytes if all permit it; the same by any number of threads."""
        rng, width, block, columns = np.random.default_rng(31), 512, 32, 384
        x = rng.normal(size=(70, width)).astype(np.float32)
        for permits in ((True, True, True), (True, False, True)):
            graph, all_weights, ys = None, [], []
            for permitted in permits:
                graph, y, weights = self.few_bits(rng, 4, block, "none", width, columns, graph, **(self.BYTES if permitted else {}))
                all_weights.append(self.numbers_of(weights, 4, block).T)
                ys.append(y)
            y = graph.add("Concat", ys, axis=1)
            model = graph.model([("x", np.float32, ["m", width])], y, np.float32)
            with self.subTest(permits=permits), tempfile.TemporaryDirectory() as folder:
                path = self.compile(folder, model)
                for level, library in self.libraries(path):
                    found = next(iter(library(x=x).values()))
                    for number, (permitted, w) in enumerate(zip(permits, all_weights)):
                        part, exact = found[:, number * columns:][:, :columns], x.astype(np.float64) @ w
                        near = [np.allclose(part, rows @ w, rtol=1e-5, atol=1e-5) for rows in (x.astype(np.float64), self.in_bytes(x, block))]
                        self.assertTrue(near[1] if all(permits) else near[0] if not permitted else any(near), (level, number))
                    for threads in (2, 3):
                        again = ptc.load(path, threads=threads, cpu_level=level)
                        np.testing.assert_array_equal(next(iter(again(x=x).values())), found)

    def test_weights_of_few_bits(self):
        """The sizes of blocks, kinds of zero points and lengths of the sums; rows that are known and that are not."""
        for bits, zero, block in itertools.product((2, 4, 8), ("none", "packed", "floats"), (16, 64)):
            if (bits, zero) == (8, "floats"):
                continue  # onnxruntime does not compute it
            rng = np.random.default_rng(zlib.crc32(f"{bits}{zero}{block}".encode()))
            # Smaller weights are floats in the library, those of 8 bits up to 1 MB.
            width, columns = block * int(rng.integers(560 // block, 800 // block)), int(rng.choice([512, 777, 1001]))
            if zero == "none" and block == 16:
                width -= 5  # the last block is part filled
            graph, y, _ = self.few_bits(rng, bits, block, zero, width, columns)
            feeds = [{"x": rng.normal(size=(rows, width)).astype(np.float32)} for rows in self.ROWS]
            with self.subTest(bits=bits, zero=zero, block=block, width=width, columns=columns):
                self.check(graph.model([("x", np.float32, ["m", width])], y, np.float32), feeds, exact=False)
                for feed in feeds:
                    inputs = [("x", np.float32, list(feed["x"].shape))]
                    self.check(graph.model(inputs, y, np.float32), [feed], exact=False)

    def test_small_weights_of_few_bits(self):
        """They are stored as the model has them, unless they are smaller still or have 8 bits: those are floats."""
        for bits, zero, width, columns, is_packed in [(4, "none", 256, 256, True), (4, "packed", 512, 200, True), (2, "packed", 320, 208, True), (4, "none", 128, 128, False), (8, "none", 256, 256, False)]:
            rng = np.random.default_rng(zlib.crc32(f"{bits}{zero}{width}".encode()))
            graph, y, _ = self.few_bits(rng, bits, 32, zero, width, columns)
            model = graph.model([("x", np.float32, ["m", width])], y, np.float32)
            with self.subTest(bits=bits, zero=zero, width=width, columns=columns):
                self.check(model, [{"x": rng.normal(size=(rows, width)).astype(np.float32)} for rows in self.ROWS], exact=False)
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "m.onnx"
                    onnx.save(model, path)
                    subprocess.run([self.program, "compile", path, "-q", "-o", path.with_suffix(".so")], check=True)
                    stored = json.loads(path.with_suffix(".json").read_text())["weights"]["bytes"]
                self.assertEqual(stored < width * columns, is_packed, stored)  # floats have four times as many

    def test_precision_of_few_rows(self):
        """Rows in fixed point are as near to the sums as floats, if their numbers differ by orders of magnitude, too."""
        rng, width, columns, block = np.random.default_rng(11), 2048, 512, 32
        graph, y, weights = self.few_bits(rng, 4, block, "packed", width, columns)
        numbers, zeros = (np.stack([weights[name] & 15, weights[name] >> 4], -1).reshape(columns, -1).astype(np.float64) for name in "qz")
        w = (numbers - np.repeat(zeros, block, 1)) * np.repeat(weights["s"].astype(np.float64), block, 1)
        model = graph.model([("x", np.float32, ["m", width])], y, np.float32)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.onnx"
            onnx.save(model, path)
            subprocess.run([self.program, "compile", path, "-q", "-o", path.with_suffix(".so")], check=True)
            library = ptc.load(path.with_suffix(".so"), threads=1)
            for rows, scale in itertools.product((1, 2, 3), (1, 1e-30, 1e30)):
                x = (rng.normal(size=(rows, width)) * scale).astype(np.float32)
                x[:, 7::500] *= 1000
                found = next(iter(library(x=x).values())).astype(np.float64)
                error = np.abs(found - x.astype(np.float64) @ w.T) / (np.abs(x).astype(np.float64) @ np.abs(w).T)
                with self.subTest(rows=rows, scale=scale):
                    self.assertLess(error.max(), 2e-6)
                x[-1, 3] = np.inf
                self.assertFalse(np.isfinite(next(iter(library(x=x).values()))[-1]).any())

    def test_dequantized_weights(self):
        """Weights that DequantizeLinear makes floats of, by columns and by blocks of the sum, and transposed."""
        kinds = {"int4": (ml_dtypes.int4, -8, 8), "uint4": (ml_dtypes.uint4, 0, 16), "int8": (np.int8, -128, 128),
                 "uint8": (np.uint8, 0, 256)}
        for kind, block, is_transposed in itertools.product(kinds, (0, 32), (False, True)):
            dtype, low, high = kinds[kind]
            rng = np.random.default_rng(zlib.crc32(f"{kind}{block}{is_transposed}".encode()))
            width, columns = 32 * int(rng.integers(40, 60)), int(rng.choice([500, 1024]))
            shape, axis = ((columns, width), 1) if is_transposed else ((width, columns), 0)
            scales = list(shape)
            scales[axis] //= block or 1
            if not block:
                scales = [columns]
            graph = Graph()
            operands = [graph.constant(rng.integers(low, high, shape).astype(dtype)),
                        graph.constant(rng.uniform(0.0001, 0.001, scales).astype(np.float32)),
                        graph.constant(rng.integers(low, high, scales).astype(dtype))]
            attributes = {"axis": axis, "block_size": block} if block else {"axis": 1 - axis}
            w = graph.add("DequantizeLinear", operands, **attributes)
            w = graph.add("Transpose", [w], perm=[1, 0]) if is_transposed else w
            y = graph.add("MatMul", ["x", w])
            feeds = [{"x": rng.normal(size=(rows, width)).astype(np.float32)} for rows in self.ROWS]
            with self.subTest(kind=kind, block=block, is_transposed=is_transposed, width=width, columns=columns):
                model = graph.model([("x", np.float32, ["m", width])], y, np.float32, opset=21)
                self.check(model, feeds, exact=False)
                for feed in (feeds[0], feeds[-1]):
                    model = graph.model([("x", np.float32, list(feed["x"].shape))], y, np.float32, opset=21)
                    self.check(model, [feed], exact=False)

    def test_other_weights_of_few_bits(self):
        """Words, scales and zero points may be replaced; each has its own place in the panels."""
        rng = np.random.default_rng(5)
        graph, y, weights = self.few_bits(rng, 4, 32, "packed", 1024, 333)
        other, _, replaced = self.few_bits(rng, 4, 32, "packed", 1024, 333)
        x = rng.normal(size=(3, 1024)).astype(np.float32)
        wanted = evaluator(other.model([("x", np.float32, ["m", 1024])], y, np.float32))({"x": x})
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.onnx"
            onnx.save(graph.model([("x", np.float32, ["m", 1024])], y, np.float32), path)
            subprocess.run([self.program, "compile", path, "-q", "--weights=none", "-o", path.with_suffix(".so")], check=True)
            library = ptc.load(path.with_suffix(".so"), threads=1)
            for name, value in replaced.items():
                self.assertEqual(value.shape, weights[name].shape)
                library.set_weight(name, value)
            self.close(next(iter(library(x=x).values())), wanted, exact=False)


if __name__ == "__main__":
    sys.exit(unittests.run_class(QuantizedTest, __doc__))
