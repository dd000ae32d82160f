"""Zeros that a Pad puts around pixels, as the border of the convolutions that read them, against onnxruntime."""

import numpy as np
import onnxruntime
import ptc
from models import ModelTest, model, value
from onnx import helper

RNG = np.random.default_rng(3)


class Borders(ModelTest):
    def test_padded_convolutions(self):
        """Borders of several sizes, one wider than the window, beside the convolution's own; strides, dilations and groups; in front of a
        transposed convolution the Pad stays."""
        cases = [([1, 1, 1, 1], {}), ([0, 2, 3, 1], {"strides": [2, 2]}), ([5, 0, 0, 4], {"pads": [1, 0, 1, 2]}), ([2, 2, 2, 2], {"dilations": [2, 2]}),
                 ([1, 0, 1, 0], {"group": 8}), ([1, 2, 1, 2], {"transposed": True})]
        for number, (border, how) in enumerate(cases):
            how = dict(how)
            kind = "ConvTranspose" if how.pop("transposed", False) else "Conv"
            weights = {"w0": RNG.standard_normal((8, 4, 1, 1), np.float32), "w1": RNG.standard_normal((8, 8 // how.get("group", 1), 3, 3), np.float32),
                       "pads": np.array([0, 0, *border[:2], 0, 0, *border[2:]], np.int64)}
            nodes = [helper.make_node("Conv", ["x", "w0"], ["a"]), helper.make_node("Relu", ["a"], ["r"]), helper.make_node("Pad", ["r", "pads"], ["p"], "pad"),
                     helper.make_node(kind, ["p", "w1"], ["y"], **how)]
            proto = model(nodes, [value("x", [1, 4, "height", 12])], [value("y", None)], weights)
            library, x = self.compile(proto, name=f"border{number}"), RNG.standard_normal((1, 4, 10, 12), np.float32)
            wanted = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
            with self.subTest(border=border, kind=kind, **how):
                np.testing.assert_allclose(ptc.load(library)(x=x)["y"], wanted, rtol=1e-4, atol=1e-4)
                text = library.with_suffix(".json").read_text()
                self.assertEqual('"pad"' in text, kind == "ConvTranspose")
