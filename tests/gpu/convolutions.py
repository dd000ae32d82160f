"""Convolutions that a tuning file leaves to cuDNN: part of run.py. fake_cudnn.c is the library, on the fake driver's streams."""

import itertools
import json

import numpy as np
from onnx import TensorProto
from products import RUNS, TYPES, node, some

F, H = TensorProto.FLOAT, TensorProto.FLOAT16
PLAIN = {"x": [1, 9, 8, 16], "w": [24, 16, 3, 3]}
# Type, shapes (x and r with channels last), attributes of Conv, whether there is a ReLU; bias and residual where there are shapes of them.
FORMS = {
    "plain": (F, PLAIN, {}, False),
    "padded": (H, PLAIN | {"b": [24]}, {"pads": [1, 1, 1, 1]}, True),
    "one side": (F, PLAIN | {"b": [24]}, {"pads": [0, 1, 2, 0], "strides": [1, 2]}, False),
    "stride": (F, {"x": [2, 9, 8, 16], "w": [24, 16, 3, 3], "b": [24]}, {"pads": [1, 1, 1, 1], "strides": [2, 2]}, True),
    "residual": (H, PLAIN | {"b": [24], "r": [1, 9, 8, 24]}, {"pads": [2, 2, 2, 2], "dilations": [2, 2]}, True),
    "groups": (F, {"x": [2, 7, 8, 32], "w": [48, 8, 3, 3], "b": [48]}, {"pads": [1, 1, 1, 1], "group": 4}, True),
    "groups of few": (H, {"x": [1, 9, 8, 16], "w": [16, 4, 3, 3], "b": [16]}, {"pads": [1, 1, 1, 1], "group": 4}, True),
    "pixels": (H, {"x": [1, 8, 8, 16], "w": [24, 16, 1, 1], "b": [24]}, {"strides": [2, 2]}, False),
    "pixels and residual": (F, {"x": [1, 8, 8, 16], "w": [24, 16, 1, 1], "b": [24], "r": [1, 8, 8, 24]}, {}, True),
    "line": (F, {"x": [2, 20, 16], "w": [24, 16, 5]}, {"pads": [2, 2]}, True),
    "volume": (H, {"x": [1, 5, 6, 7, 16], "w": [16, 16, 3, 3, 3], "b": [16]}, {"pads": [1] * 6}, True),
}


def convolve(x, w, pads, strides, dilations, group):
    """Of arrays whose channels are second, in f64."""
    axes = w.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(pads[a], pads[axes + a]) for a in range(axes)])
    reach = [dilations[a] * (w.shape[2 + a] - 1) + 1 for a in range(axes)]
    pixels = [(x.shape[2 + a] - reach[a]) // strides[a] + 1 for a in range(axes)]
    y = np.zeros([x.shape[0], group, w.shape[0] // group, *pixels])
    x, w = x.reshape(x.shape[0], group, -1, *x.shape[2:]), w.reshape(group, -1, *w.shape[1:])
    for place in itertools.product(*map(range, w.shape[3:])):
        part = tuple(slice(at * dilations[a], at * dilations[a] + (pixels[a] - 1) * strides[a] + 1, strides[a]) for a, at in enumerate(place))
        y += np.einsum("ngc...,gkc->ngk...", x[(slice(None),) * 3 + part], w[(slice(None),) * 3 + place])
    return y.reshape(y.shape[0], -1, *pixels)


class Convolutions:
    def compile_convolution(self, form, *flags, level="sm_90a"):
        """library.so and inputs.npz; returns what y should be, for inputs and for twice the inputs."""
        from run import model

        kind, shapes, attributes, has_relu = FORMS[form]
        values = {name: some(number, kind, *shape) for number, (name, shape) in enumerate(shapes.items())}
        axes = len(shapes["w"]) - 2
        first, last = [0, axes + 1, *range(1, axes + 1)], [0, *range(2, axes + 2), 1]
        inputs = {name: values[name] for name in ("x", "r") if name in values}
        nodes = [node("Transpose", name, name + "t", perm=first) for name in inputs]
        nodes.append(node("Conv", "xt", "w", *(["b"] if "b" in values else []), "c", **attributes))
        nodes += [node("Add", "c", "rt", "s")] if "r" in values else []
        nodes += [node("Relu", nodes[-1].output[0], "a")] if has_relu else []
        nodes.append(node("Transpose", nodes[-1].output[0], "y", perm=last))
        settings = {"pads": [0] * 2 * axes, "strides": [1] * axes, "dilations": [1] * axes, "group": 1} | attributes
        exact = {name: value.astype(np.float64) for name, value in values.items()}
        product = convolve(exact["x"].transpose(first), exact["w"], **settings).transpose(last)
        results = [factor * (product + exact.get("r", 0)) + exact.get("b", 0) for factor in (1, 1, 2)]
        np.savez(self.folder / "inputs.npz", **inputs)
        model(self.folder / "library.onnx", nodes, [(name, kind, shapes[name]) for name in inputs], [("y", kind, product.shape)],
              [(name, values[name]) for name in ("w", "b") if name in values])
        self.compile_with_numbers({"cudnn": 1}, *flags, level=level)
        return [np.maximum(result, 0) if has_relu else result for result in results]

    def check_convolutions(self, expected, **variables):
        for exact, found in zip(expected, self.python(RUNS, **variables)):
            np.testing.assert_allclose(np.array(found), exact, rtol=4e-3, atol=8e-3)

    def test_cudnn_computes(self):
        self.library = "library"
        for form in FORMS:
            for mode in ("default", "reduce-overhead"):
                with self.subTest(form=form, mode=mode):
                    self.check_convolutions(self.compile_convolution(form, "--mode=" + mode))
                    self.assertFalse(self.lines("^launch"))
                    graph = mode != "default"
                    self.assertEqual(len(self.lines("^convolve on 7")), 2 if graph else 3)  # of a graph one is run, one captured
                    self.assertEqual(len(self.lines("^replay")), 2 if graph else 0)
                    self.assertEqual(self.lines("^library has")[-1], "library has 0 objects")

    def test_cudnn_reads_tensors_where_they_lie(self):
        self.library = "library"
        for form, graph in {
            "padded": "graph of type 2: input 1:1152 16:1 9:128 8:16, weights 24:144 16:1 3:48 3:16, result 1:1728 24:1 9:192 8:24, bias relu",
            "groups": "graph of type 0: input 2:1792 32:1 7:256 8:32, weights 48:72 8:1 3:24 3:8, result 2:2688 48:1 7:384 8:48, bias relu",
            # The last line and the last pixel of each are in no window; those of a line make it whole.
            "pixels": "graph of type 2: input 1:896 16:1 7:128 8:16, weights 24:16 16:1 1:16 1:16, result 1:384 24:1 4:96 4:24, bias",
            "line": "graph of type 0: input 2:320 16:1 1:320 20:16, weights 24:80 16:1 1:80 5:16, result 2:480 24:1 1:480 20:24, relu",
        }.items():
            self.compile_convolution(form)
            self.python(RUNS)
            self.assertEqual(set(self.lines("^graph of")), {graph}, form)  # of f32 again for the fallback's engines

    def test_strict_leaves_cudnn_what_it_computes_alike(self):
        """It rounds once behind a bias, and may lose NaN in a ReLU."""
        self.library = "library"
        for form, calls in (("padded", 0), ("one side", 3), ("pixels", 0), ("stride", 0), ("line", 0), ("residual", 0)):
            self.compile_convolution(form, "--fp=strict")
            self.python(RUNS)
            self.assertEqual(len(self.lines("^convolve on")), calls, form)

    def test_cudnn_gets_a_residual_where_it_needs_one(self):
        self.library = "library"
        self.check_convolutions(self.compile_convolution("padded", "--mode=reduce-overhead"), NEEDS_RESIDUAL=1)
        self.assertTrue(self.lines("^graph of")[-1].endswith(", nothing bias relu"))
        self.assertFalse(self.lines("^launch"))

    def test_own_code_without_cudnn(self):
        self.compile_convolution("padded")
        for library, variables in (("broken", {}), ("library", {"LIBRARY_FAILS": "cudnnCreate"}),
                                   ("library", {"LIBRARY_FAILS": "cudnnBackendFinalize"}), ("library", {"LIBRARY_FAILS": "cudnnBackendExecute"})):
            self.library = library
            done = self.ptc("run", self.folder / "library.so", "-i", "x=ones", "-v", **variables)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(self.lines("^launch")), 1, variables)
            reason = "is not found, or does not start" if library == "broken" else "fails at a convolution" if "Execute" in str(variables) else "refuses a convolution"
            self.assertEqual(done.stderr.count(f"cuDNN {reason}: kernels' own code computes what it was chosen for"), 1, done.stderr)
            if self.lines("^library has"):
                self.assertEqual(self.lines("^library has")[-1], "library has 0 objects")

    def test_graph_with_a_convolution_that_fails(self):
        self.library = "library"
        self.compile_convolution("stride", "--mode=reduce-overhead")
        self.python(RUNS, LIBRARY_FAILS="cudnnBackendExecute")  # the next run records anew, with the kernel's code
        self.assertEqual((len(self.lines("^launch")), len(self.lines("^replay"))), (2, 1))

    def test_cudnn_is_described(self):
        self.compile_convolution("residual")
        [kernel] = json.loads((self.folder / "library.json").read_text())["kernels"]
        self.assertEqual(kernel["library"], "cudnn")
        self.assertIn("(or cudnn)", self.ptc("inspect", self.folder / "library.so").stdout)

    def test_own_code_of_what_cudnn_does_not_compute(self):
        from run import model

        x, w = ("x", F, [1, 16, 8, 8]), ("w", some(0, F, 16, 16, 3, 3))
        last = node("Transpose", "c", "y", perm=[0, 2, 3, 1])
        for name, nodes, shape in (("channels first in the input alone", [node("Conv", "x", "w", "c"), last], [1, 6, 6, 16]),
                                   ("sigmoid", [node("Conv", "x", "w", "c"), node("Sigmoid", "c", "y")], [1, 16, 6, 6])):
            model(self.folder / "library.onnx", nodes, [x], [("y", F, shape)], [w])
            self.compile_with_numbers({"cudnn": 1})
            self.assertFalse([kernel for kernel in self.manifest()["kernels"] if "library" in kernel], name)
