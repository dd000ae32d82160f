"""What ptc quantize makes of small models, judged by onnxruntime and NumPy; see README.md."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "runtime" / "python")]
import ptc  # noqa: E402
import unittests  # noqa: E402

SAMPLES = 4


def normal(rng, *shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def model(nodes, inputs, outputs, weights, opset=17):
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "graph", [value(*x) for x in inputs.items()], [value(*x) for x in outputs.items()],
                              [numpy_helper.from_array(array, name) for name, array in weights.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8 if opset > 12 else 3)
    if opset <= 12:  # files of that time list their weights among the inputs
        made.graph.input.extend(helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in made.graph.initializer)
    onnx.checker.check_model(made)
    return made


def node(kind, inputs, output, **attributes):
    return helper.make_node(kind, inputs.split(), output.split(), name=f"n_{output.split()[0]}", **attributes)


def conv(x, w, y, b="", **attributes):
    return node("Conv", f"{x} {w} {b}", y, kernel_shape=[3, 3], pads=[1, 1, 1, 1], **attributes)


def decibels(expected, actual):
    expected, actual = np.asarray(expected, np.float64), np.asarray(actual, np.float64)
    noise = np.square(expected - actual).sum()
    return np.inf if noise == 0 else 10 * np.log10(np.square(expected).sum() / noise)


def session(proto):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # as the file says, in floats
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(proto, feeds):
    return session(proto).run(None, feeds)


def extremes(proto, names, samples):
    """Of values inside the model, over all samples."""
    shown = onnx.ModelProto()
    shown.CopyFrom(proto)
    outputs = {value.name for value in shown.graph.output}
    inner = [name for name in names if name not in samples[0]]
    shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in inner if name not in outputs)
    runner = session(shown)
    seen = [dict(zip(inner, runner.run(inner, feeds))) | feeds if inner else feeds for feeds in samples]
    return {name: (min(x[name].min() for x in seen), max(x[name].max() for x in seen)) for name in names}


def initializers(proto):
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}


def readers(proto, name):
    return [n for n in proto.graph.node if name in n.input]


def maker(proto, name):
    return next(n for n in proto.graph.node if name in n.output)


class Samples(CalibrationDataReader):
    def __init__(self, samples):
        self.iterator = iter(samples)

    def get_next(self):
        return next(self.iterator, None)


class Quantize(unittest.TestCase):
    program = None

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name)
        self.rng = np.random.default_rng(3)

    def ptc(self, *arguments, code=0):
        done = subprocess.run([self.program, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def save(self, proto, samples):
        onnx.save(proto, self.folder / "model.onnx")
        (self.folder / "samples").mkdir()
        for number, feeds in enumerate(samples):
            np.savez(self.folder / "samples" / f"{number:02}.npz", **feeds)

    def quantize(self, proto, samples, *flags):
        self.save(proto, samples)
        self.printed = self.ptc("quantize", "model.onnx", "--data", "samples", "--report=report.json", *flags)
        self.report = json.loads((self.folder / "report.json").read_text())
        made = onnx.load(self.folder / "model-int8.onnx")
        onnx.checker.check_model(made)
        return made

    def judge(self, proto, made, samples, least=25, multiplies_bytes=True):
        """onnxruntime on both models, ptc on the new one."""
        for feeds in samples:
            for expected, actual in zip(run(proto, feeds), run(made, feeds)):
                self.assertGreater(decibels(expected, actual), least)
        self.ptc("compile", "model-int8.onnx", "-q", "-o", "model.so")
        library = ptc.load(self.folder / "model.so")
        for feeds in samples:
            results = library(**feeds)
            for expected, actual in zip(run(made, feeds), results.values() if isinstance(results, dict) else [results]):
                self.assertGreater(decibels(expected, actual), least + 10)  # rounding may fall to the other side
        manifest = json.loads((self.folder / "model.json").read_text())
        levels = {level for kernel in manifest["kernels"] for level in kernel["code_bytes"]}
        if multiplies_bytes:
            self.assertIn("x86-64-v4-vnni-bf16", levels)

    def check_scales(self, proto, made, samples, values):
        """Scales of activations are those of the extremes; `values`: groups that have one scale."""
        constants = initializers(made)
        seen = extremes(proto, [value for group in values for value in group], samples)
        for group in values:
            low = min(0, *(seen[value][0] for value in group))
            high = max(0, *(seen[value][1] for value in group))
            scale = np.float32((np.float64(high) - low) / 255)
            for value in group:
                quantizer = next(n for n in readers(made, value) if n.op_type == "QuantizeLinear")
                np.testing.assert_allclose(constants[quantizer.input[1]], scale, rtol=1e-5, err_msg=value)
                np.testing.assert_allclose(constants[quantizer.input[2]], np.rint(-low / scale), atol=1 if low else 0, err_msg=value)

    def check_weights(self, proto, made, weight, axis):
        """Of one scale a channel, the largest of which is 127."""
        w, constants = initializers(proto)[weight], initializers(made)
        q, scale = constants[f"{weight}/quantized"], constants[f"{weight}/scale"]
        others = tuple(i for i in range(w.ndim) if i != axis)
        expected = np.abs(w).max(axis=others) / np.float32(127)
        np.testing.assert_allclose(scale, expected, rtol=1e-6)
        shape = [-1 if i == axis else 1 for i in range(w.ndim)]
        np.testing.assert_array_equal(q, np.rint(w.astype(np.float64) / scale.reshape(shape)))
        self.assertNotIn(weight, constants)
        dequantizer = maker(made, f"{weight}/dequantized")
        self.assertEqual(next(a.i for a in dequantizer.attribute if a.name == "axis"), axis)

    # Graphs

    def perceptron(self, opset=17):
        rng = self.rng
        return model([node("MatMul", "x w1", "h0"), node("Add", "h0 b1", "h1"), node("Relu", "h1", "h2"),
                      node("Gemm", "h2 w2 b2", "y", transB=1)], {"x": ["batch", 32]}, {"y": ["batch", 16]},
                     {"w1": normal(rng, 32, 64), "b1": normal(rng, 64), "w2": normal(rng, 16, 64), "b2": normal(rng, 16)}, opset)

    def feeds(self, **shapes):
        return [{name: normal(self.rng, *shape) for name, shape in shapes.items()} for _ in range(SAMPLES)]

    def test_perceptron(self):
        proto, samples = self.perceptron(), self.feeds(x=(5, 32))
        made = self.quantize(proto, samples)
        self.check_scales(proto, made, samples, [["x"], ["h2"]])
        self.check_weights(proto, made, "w1", 1)
        self.check_weights(proto, made, "w2", 0)
        bias = maker(made, readers(made, "b2/dequantized")[0].output[0]).input[2]
        self.assertEqual(bias, "b2/dequantized")
        self.judge(proto, made, samples)

    def test_residual_network(self):
        """What a sum reads is rounded as well: bytes are all that goes through memory."""
        rng = self.rng
        proto = model([conv("x", "w1", "c1", "b1"), node("Relu", "c1", "r1"), conv("r1", "w2", "c2"), node("Add", "c2 r1", "s"),
                       node("Relu", "s", "r2"), conv("r2", "w3", "c3"), node("GlobalAveragePool", "c3", "p"), node("Flatten", "p", "f"),
                       node("Gemm", "f w4 b4", "y")], {"x": [1, 8, 12, 12]}, {"y": [1, 10]},
                      {"w1": normal(rng, 16, 8, 3, 3, scale=0.2), "b1": normal(rng, 16), "w2": normal(rng, 16, 16, 3, 3, scale=0.1),
                       "w3": normal(rng, 32, 16, 3, 3, scale=0.1), "w4": normal(rng, 32, 10), "b4": normal(rng, 10)})
        samples = self.feeds(x=(1, 8, 12, 12))
        made = self.quantize(proto, samples)
        self.check_scales(proto, made, samples, [["x"], ["r1"], ["r2"], ["p", "f"]])
        for weight, axis in (("w1", 0), ("w2", 0), ("w3", 0), ("w4", 1)):
            self.check_weights(proto, made, weight, axis)
        self.assertEqual(maker(made, "s").input[1], "r1/dequantized")
        self.judge(proto, made, samples)

    def test_moves_have_one_scale(self):
        rng = self.rng
        proto = model([conv("x", "w1", "c1"), node("MaxPool", "c1", "m", kernel_shape=[2, 2], strides=[2, 2]),
                       node("Transpose", "m", "t", perm=[0, 2, 3, 1]), node("Reshape", "t shape", "r"), node("MatMul", "r w2", "y")],
                      {"x": [1, 8, 8, 8]}, {"y": [16, 24]},
                      {"w1": normal(rng, 16, 8, 3, 3), "shape": np.array([16, 16]), "w2": normal(rng, 16, 24)})
        samples = self.feeds(x=(1, 8, 8, 8))
        made = self.quantize(proto, samples)
        self.check_scales(proto, made, samples, [["x"], ["c1", "m", "t", "r"]])
        self.judge(proto, made, samples)

    def test_concat_gives_its_scale_to_what_nobody_else_reads(self):
        rng = self.rng
        proto = model([conv("x", "w1", "a"), conv("x", "w2", "b"), conv("b", "w3", "c"), node("Concat", "a b c", "j", axis=1),
                       conv("j", "w4", "y")], {"x": [1, 8, 6, 6]}, {"y": [1, 8, 6, 6]},
                      {"w1": normal(rng, 8, 8, 3, 3), "w2": normal(rng, 8, 8, 3, 3), "w3": normal(rng, 8, 8, 3, 3),
                       "w4": normal(rng, 8, 24, 3, 3)})
        samples = self.feeds(x=(1, 8, 6, 6))
        made = self.quantize(proto, samples)
        self.check_scales(proto, made, samples, [["x"], ["b"], ["a", "c", "j"]])
        self.judge(proto, made, samples)

    def test_normalisations_and_outputs_read_floats(self):
        rng = self.rng
        proto = model([node("MatMul", "x w1", "h"), node("LayerNormalization", "h g", "n", axis=-1), node("MatMul", "h w2", "y")],
                      {"x": [4, 80]}, {"y": [4, 80], "n": [4, 80], "h": [4, 80]},
                      {"w1": normal(rng, 80, 80), "g": normal(rng, 80), "w2": normal(rng, 80, 80)})
        samples = self.feeds(x=(4, 80))
        made = self.quantize(proto, samples)
        self.assertEqual(maker(made, "n").input[0], "h")
        self.assertEqual(maker(made, "y").input[0], "h/dequantized")
        self.judge(proto, made, samples)

    def test_shared_weights_are_stored_once(self):
        proto = model([node("MatMul", "x w", "h"), node("MatMul", "h w", "y")], {"x": [4, 80]}, {"y": [4, 80]},
                      {"w": normal(self.rng, 80, 80)})
        made = self.quantize(proto, samples := self.feeds(x=(4, 80)))
        self.assertEqual(sum(tensor.dtype == np.int8 and tensor.ndim == 2 for tensor in initializers(made).values()), 1)
        self.judge(proto, made, samples)

    def test_weights_that_something_else_reads_stay(self):
        proto = model([node("MatMul", "x w", "h"), node("Add", "h w", "y")], {"x": [80, 80]}, {"y": [80, 80]}, {"w": normal(self.rng, 80, 80)})
        made = self.quantize(proto, samples := self.feeds(x=(80, 80)))
        self.assertIn("w", initializers(made))
        self.judge(proto, made, samples)

    def test_old_opset(self):
        """Scales along an axis came with version 13: the operators of com.microsoft have them for older models."""
        proto, samples = self.perceptron(opset=11), self.feeds(x=(5, 32))
        self.save(proto, samples)
        self.ptc("quantize", "model.onnx", "--data", "samples")
        made = onnx.load(self.folder / "model-int8.onnx")
        self.assertEqual({n.domain for n in made.graph.node if "Linear" in n.op_type}, {"com.microsoft"})
        self.assertEqual([value.name for value in made.graph.input], ["x"] + ["b1"])  # the bias is still what it was
        self.judge(proto, made, samples)

    def test_large_bias_widens_its_scale(self):
        """A bias counts in units of what is added up, 32 bits of them."""
        w, b = np.full((8, 4), 1e-8, np.float32), np.array([1e4, -1e4, 0, 1], np.float32)
        proto = model([node("Gemm", "x w b", "y")], {"x": [2, 8]}, {"y": [2, 4]}, {"w": w, "b": b})
        samples = self.feeds(x=(2, 8))
        made = self.quantize(proto, samples)
        self.judge(proto, made, samples, multiplies_bytes=False)

    def test_zeros(self):
        """Channels, weights and activations without anything in them."""
        w = normal(self.rng, 8, 4)
        w[:, 1] = 0
        proto = model([node("Gemm", "x w b", "h"), node("Relu", "h", "r"), node("Mul", "r zero", "z"), node("MatMul", "z v", "y")],
                      {"x": [2, 8]}, {"y": [2, 4], "h": [2, 4]},
                      {"w": w, "b": np.zeros(4, np.float32), "zero": np.zeros(4, np.float32), "v": np.zeros((4, 4), np.float32)})
        made = self.quantize(proto, samples := self.feeds(x=(2, 8)))
        self.judge(proto, made, samples, least=20, multiplies_bytes=False)

    def test_numbers_that_rounding_loses(self):
        """A difference that is 0 in 8 bits, and divides."""
        proto = model([node("MatMul", "x w", "h"), node("Div", "one h", "y")], {"x": [1, 2]}, {"y": [1, 1]},
                      {"w": np.float32([[1], [-1]]), "one": np.float32(1)})
        self.quantize(proto, [{"x": np.float32([[1.001, 1]])}])
        self.assertIn("output 'y': 1 element not finite, but in floats", self.printed)
        self.assertEqual(self.report["outputs"][0]["not_finite"], 1)
        self.ptc("quantize", "model.onnx", "--data", "samples", "--min-db=1", code=1)

    def test_outputs_without_a_number(self):
        proto = model([node("MatMul", "x w", "h"), node("Div", "h none", "y")], {"x": [1, 2]}, {"y": [1, 1]},
                      {"w": np.float32([[1], [-1]]), "none": np.float32(0)})
        self.quantize(proto, [{"x": np.float32([[2, 1]])}])
        self.assertIn("output 'y': no element of it is finite in floats", self.printed)
        self.assertIn("--min-db", self.ptc("quantize", "model.onnx", "--data", "samples", "--min-db=-99", code=1))

    def test_files_that_cannot_be_written(self):
        """Told before a sample is read."""
        self.save(self.perceptron(), [])
        for flag in ("-o", "--report"):
            self.assertIn("absent", self.ptc("quantize", "model.onnx", "--data", "samples", flag, "absent/x", code=6))

    def test_what_is_not_finite_is_left_out(self):
        proto, samples = self.perceptron(), self.feeds(x=(5, 32))
        broken = [dict(feeds) for feeds in samples]
        broken[0] = {"x": np.full((5, 32), np.nan, np.float32)}
        made = self.quantize(proto, broken)
        self.assertIn("not finite", self.printed)
        self.check_scales(proto, made, samples[1:], [["x"]])

    def test_values_that_are_never_finite_stay_in_floats(self):
        proto = model([node("MatMul", "x w", "h"), node("Log", "h", "l"), node("MatMul", "l v", "y")], {"x": [2, 8]}, {"y": [2, 4], "h": [2, 8]},
                      {"w": np.full((8, 8), 1, np.float32), "v": normal(self.rng, 8, 4)})
        made = self.quantize(proto, [{"x": np.full((2, 8), -1, np.float32)}])
        self.assertEqual([skipped["reason"] for skipped in self.report["floats"]], ["'l' is not finite"])
        self.assertEqual(maker(made, "y").input[0], "l")

    def test_samples_without_a_finite_value(self):
        """What is told is not the flag that would have left the nodes in floats, too."""
        self.save(self.perceptron(), [{"x": np.full((5, 32), np.nan, np.float32)}])
        printed = self.ptc("quantize", "model.onnx", "--data", "samples", code=4)
        self.assertIn("'x' is not finite", printed)
        self.assertNotIn("--keep", printed)

    def test_free_dims(self):
        proto = self.perceptron()
        samples = [{"x": normal(self.rng, rows, 32)} for rows in (1, 7, 3)]
        made = self.quantize(proto, samples)
        self.check_scales(proto, made, samples, [["x"], ["h2"]])
        self.judge(proto, made, samples)

    # Calibration

    def test_outliers(self):
        """One element of many is far out: minmax pays for it, the others cut it off."""
        proto = model([node("MatMul", "x w", "y")], {"x": [64, 512]}, {"y": [64, 16]}, {"w": normal(self.rng, 512, 16)})
        x = normal(self.rng, 64, 512)
        x[0, 0] = 200
        self.save(proto, [{"x": x}])
        scales, quiet = {}, [{"x": normal(self.rng, 64, 512)}]
        for method in ("minmax", "entropy", "percentile"):
            self.ptc("quantize", "model.onnx", "--data", "samples", f"--calibrate={method}", "-q")
            made = onnx.load(self.folder / "model-int8.onnx")
            scales[method] = initializers(made)["x/scale"] * 255
            error = decibels(run(proto, quiet[0])[0], run(made, quiet[0])[0])
            self.assertGreater(error, 12 if method == "minmax" else 30, method)
        self.assertGreater(scales["minmax"], 200)
        self.assertLess(scales["entropy"], 14)  # 255 bins of the histogram
        self.assertLess(scales["percentile"], 12)

    def test_zeros_do_not_narrow_a_range(self):
        """Half of what is behind a ReLU: any range has them exactly."""
        weights = {f"w{i}": normal(self.rng, 64, 64, scale=64**-0.5) for i in range(4)}
        nodes = [node("MatMul", "x w0", "h0")]
        for i in range(1, 4):
            nodes += [node("Relu", f"h{i - 1}", f"r{i}"), node("MatMul", f"r{i} w{i}", f"h{i}" if i < 3 else "y")]
        proto, samples = model(nodes, {"x": ["batch", 64]}, {"y": ["batch", 64]}, weights), self.feeds(x=(256, 64))
        self.judge(proto, self.quantize(proto, samples, "--calibrate=entropy"), samples, least=28)

    def test_percentile_is_that_of_numpy(self):
        proto = model([node("MatMul", "x w", "y")], {"x": [64, 256]}, {"y": [64, 16]}, {"w": normal(self.rng, 256, 16)})
        samples = [{"x": normal(self.rng, 64, 256)} for _ in range(SAMPLES)]
        made = self.quantize(proto, samples, "--calibrate=percentile", "--percent=99")
        everything = np.concatenate([feeds["x"].ravel() for feeds in samples])
        width = np.quantile(everything, 0.995) - np.quantile(everything, 0.005)
        np.testing.assert_allclose(initializers(made)["x/scale"] * 255, width, rtol=2e-3)  # bins are 1/4096 of the largest

    def test_symmetric_activations_and_one_scale_for_weights(self):
        proto, samples = self.perceptron(), self.feeds(x=(5, 32))
        made = self.quantize(proto, samples, "--activations=int8", "--weights=tensor")
        constants = initializers(made)
        self.assertEqual(constants["x/zero_point"], np.int8(0))
        largest = max(np.abs(feeds["x"]).max() for feeds in samples)
        np.testing.assert_allclose(constants["x/scale"], largest / 127, rtol=1e-6)
        np.testing.assert_allclose(constants["w1/scale"], np.abs(initializers(proto)["w1"]).max() / 127, rtol=1e-6)
        self.judge(proto, made, samples)

    def test_no_further_off_than_onnxruntime(self):
        rng = self.rng
        proto = model([conv("x", "w1", "c1", "b1"), node("Relu", "c1", "r1"), conv("r1", "w2", "c2"), node("Add", "c2 r1", "s"),
                       node("MaxPool", "s", "m", kernel_shape=[2, 2], strides=[2, 2]), node("Flatten", "m", "f"), node("Gemm", "f w3 b3", "y")],
                      {"x": [1, 4, 8, 8]}, {"y": [1, 32]},
                      {"w1": normal(rng, 16, 4, 3, 3), "b1": normal(rng, 16), "w2": normal(rng, 16, 16, 3, 3), "w3": normal(rng, 256, 32),
                       "b3": normal(rng, 32)})
        samples = self.feeds(x=(1, 4, 8, 8))
        made = self.quantize(proto, samples)
        quantize_static(self.folder / "model.onnx", self.folder / "theirs.onnx", Samples(samples), quant_format=QuantFormat.QDQ,
                        per_channel=True, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
        theirs = onnx.load(self.folder / "theirs.onnx")
        error = lambda proto_: decibels(np.stack([run(proto, f)[0] for f in samples]), np.stack([run(proto_, f)[0] for f in samples]))
        self.assertGreater(error(made), error(theirs) - 0.5)

    # The command

    def test_same_bytes(self):
        made = self.quantize(self.perceptron(), self.feeds(x=(5, 32)), "--calibrate=entropy")
        self.ptc("quantize", "model.onnx", "--data", "samples", "--calibrate=entropy", "-o", "again.onnx", "-j1")
        self.assertEqual((self.folder / "again.onnx").read_bytes(), made.SerializeToString(deterministic=True))

    def test_kept_nodes(self):
        proto, samples = self.perceptron(), self.feeds(x=(5, 32))
        made = self.quantize(proto, samples, "--keep=n_h0")
        self.assertEqual(maker(made, "h0").input[1], "w1")
        self.assertEqual(maker(made, "y").input[1], "w2/dequantized")
        self.assertEqual([skipped["reason"] for skipped in self.report["floats"]], ["--keep names it"])
        self.assertIn("n_h0", self.ptc("quantize", "model.onnx", "--data", "samples", "--keep=n_h1x", code=2))
        self.assertIn("nothing", self.ptc("quantize", "model.onnx", "--data", "samples", "--keep=all", code=4))
        self.assertIn("Value 0 not in range", self.ptc("quantize", "model.onnx", "--data", "samples", "--samples=0", code=2))

    def test_report(self):
        """Errors are those that onnxruntime has between the two models."""
        proto, samples = self.perceptron(), self.feeds(x=(5, 32))
        made = self.quantize(proto, samples)
        self.assertEqual([product["value"] for product in self.report["products"]], ["h0", "y"])
        results = lambda proto_: np.concatenate([run(proto_, feeds)[0] for feeds in samples])
        self.assertAlmostEqual(self.report["outputs"][0]["db"], decibels(results(proto), results(made)), delta=0.2)
        self.assertAlmostEqual(self.report["products"][1]["result_db"], self.report["outputs"][0]["db"], delta=1e-6)
        scale, zero = (initializers(made)[f"x/{name}"] for name in ("scale", "zero_point"))
        x = np.concatenate([feeds["x"] for feeds in samples])
        rounded = (np.clip(np.rint(x / scale) + zero, 0, 255) - zero) * scale
        self.assertAlmostEqual(self.report["products"][0]["input_db"], decibels(x, rounded), delta=0.05)
        w, q, scale = initializers(proto)["w1"], *(initializers(made)[f"w1/{name}"] for name in ("quantized", "scale"))
        self.assertAlmostEqual(self.report["products"][0]["weights_db"], decibels(w, q * scale), delta=0.05)

    def test_least_decibels(self):
        self.save(self.perceptron(), self.feeds(x=(5, 32)))
        (self.folder / "model-int8.onnx").write_text("old")
        self.assertIn("--min-db", self.ptc("quantize", "model.onnx", "--data", "samples", "--min-db=90", code=1))
        self.assertEqual((self.folder / "model-int8.onnx").read_text(), "old")
        self.ptc("quantize", "model.onnx", "--data", "samples", "--min-db=20", "-q")
        self.assertNotEqual((self.folder / "model-int8.onnx").read_bytes(), b"old")

    def test_forms_of_samples(self):
        proto, samples = self.perceptron(), self.feeds(x=(5, 32))
        made = self.quantize(proto, samples)
        for form in ("npy", "pb", "folder", "numbered"):
            place = self.folder / form
            place.mkdir()
            for number, feeds in enumerate(samples):
                tensor = numpy_helper.from_array(feeds["x"], "x").SerializeToString()
                (place / f"{number}").mkdir() if form in ("folder", "numbered") else None
                if form == "pb":
                    (place / f"{number}.pb").write_bytes(tensor)
                elif form == "numbered":
                    (place / f"{number}" / "input_0.pb").write_bytes(tensor)
                else:
                    np.save(place / (f"{number}.npy" if form == "npy" else f"{number}/x.npy"), feeds["x"])
            self.ptc("quantize", "model.onnx", "--data", form, "-o", f"{form}.onnx", "-q")
            self.assertEqual((self.folder / f"{form}.onnx").read_bytes(), made.SerializeToString(deterministic=True), form)

    def test_failures(self):
        """Each says what is wrong, and what was there stays."""
        proto = self.perceptron()
        self.save(proto, self.feeds(x=(5, 32)))
        (self.folder / "out.onnx").write_text("old")
        (self.folder / "empty").mkdir()
        (self.folder / "text").mkdir()
        (self.folder / "text" / "labels.txt").write_text("cat")
        (self.folder / "wrong").mkdir()
        np.savez(self.folder / "wrong" / "0.npz", x=np.zeros((5, 31), np.float32))
        (self.folder / "other").mkdir()
        np.savez(self.folder / "other" / "0.npz", z=np.zeros((5, 32), np.float32))
        (self.folder / "broken.onnx").write_bytes((self.folder / "model.onnx").read_bytes()[:100])
        cases = [((), 2, "--data DIR"), (("--data", "nowhere"), 6, "nowhere"), (("--data", "empty"), 6, "no samples"),
                 (("--data", "text"), 6, "labels.txt"), (("--data", "wrong"), 2, "0.npz"), (("--data", "other"), 2, "0.npz"),
                 (("--data", "samples", "--calibrate=best"), 2, "best"), (("--data", "samples", "--no-report", "--min-db=3"), 2, "--no-report"),
                 (("--data", "samples", "-o", "model.onnx"), 2, "is read")]
        for flags, code, words in cases:
            with self.subTest(flags=flags):
                output = () if "-o" in flags else ("-o", "out.onnx")
                self.assertIn(words, self.ptc("quantize", "model.onnx", *flags, *output, code=code))
        self.ptc("quantize", "broken.onnx", "-i", "random:0", "-o", "out.onnx", code=3)
        self.ptc("quantize", "absent.onnx", "-i", "random:0", "-o", "out.onnx", code=6)
        self.assertEqual((self.folder / "out.onnx").read_text(), "old")
        self.assertEqual((self.folder / "model.onnx").read_bytes(), proto.SerializeToString())

    def test_nothing_to_quantise(self):
        self.save(model([node("Relu", "x", "y")], {"x": [2]}, {"y": [2]}, {}), self.feeds(x=(2,)))
        self.assertIn("nothing", self.ptc("quantize", "model.onnx", "--data", "samples", code=4))
        quantized = self.folder / "again"
        quantized.mkdir()
        onnx.save(self.perceptron(), quantized / "model.onnx")
        self.ptc("quantize", "again/model.onnx", "-i", "random:0", "-q", "-o", "once.onnx")
        self.assertIn("neither of its operands is a constant", self.ptc("quantize", "once.onnx", "-i", "random:0", code=4))

    def test_products_in_subgraphs_stay(self):
        branch = lambda name: helper.make_graph([node("MatMul", "h w2", name)], name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 80])])
        proto = model([node("MatMul", "x w1", "h"), node("ReduceSum", "h", "s", keepdims=0), node("Greater", "s zero", "c"),
                       node("If", "c", "y", then_branch=branch("a"), else_branch=branch("b"))], {"x": [2, 80]}, {"y": [2, 80]},
                      {"w1": normal(self.rng, 80, 80), "w2": normal(self.rng, 80, 80), "zero": np.array(0, np.float32)})
        samples = self.feeds(x=(2, 80))
        made = self.quantize(proto, samples)
        self.assertIn("2 product(s) inside of If", self.printed)
        self.assertIn("w2", initializers(made))
        self.judge(proto, made, samples)

    def test_external_data(self):
        """Weights of a file beside the model, as exporters write them above 2 GB."""
        proto, samples = self.perceptron(), self.feeds(x=(5, 32))
        made = self.quantize(proto, samples)
        onnx.save(proto, self.folder / "external.onnx", save_as_external_data=True, location="external.data", size_threshold=0)
        self.ptc("quantize", "external.onnx", "--data", "samples", "-q")
        self.assertEqual((self.folder / "external-int8.onnx").read_bytes(), made.SerializeToString(deterministic=True))
        self.assertIn("is read", self.ptc("quantize", "external.onnx", "--data", "samples", "-o", "external.data", code=2))


if __name__ == "__main__":
    sys.exit(unittests.run_class(Quantize, __doc__.splitlines()[0]))
