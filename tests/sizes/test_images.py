"""Images that run one by one, as many as a run has, against onnxruntime."""

import json
import unittest

import numpy as np

import models
from models import Compiled


def floats(*shape):
    return models.RNG.standard_normal(shape).astype(np.float32)


def weights(**shapes):
    return ", ".join(f"float[{', '.join(map(str, shape))}] {name} = {{ {', '.join(map(str, floats(*shape).flatten() / 5))} }}" for name, shape in shapes.items())


class Images(unittest.TestCase):
    TEXT = """m (float[n, 4, SIZE] x) => (float[n, 8, c, d] y, float[n, e, f, g] z, float[n, 10] s) <WEIGHTS>
        {
            a = Conv<pads=[1, 1, 1, 1]>(x, k)
            b = Relu(a)
            c0 = Conv<pads=[1, 1, 1, 1], group=8>(b, l)
            z = Concat<axis=1>(b, c0)
            y = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(c0)
            p = GlobalAveragePool(y)
            f0 = Flatten(p)
            s = MatMul(f0, m)
        }"""

    def model(self, size, *flags):
        text = self.TEXT.replace("SIZE", size).replace("WEIGHTS", weights(k=(8, 4, 3, 3), l=(8, 1, 3, 3), m=(8, 10)))
        model = Compiled(text, *flags)
        peak = json.loads(model.library.with_suffix(".json").read_text())["memory"][0]["peak"]["at_hint"]
        self.assertLess(peak, 400 * 8 * 48 * 48 * 4, "no value of all images lies in the arena")
        return model

    def test_free_number(self):
        """From none to some, and more than the hint."""
        model = self.model("48, 48", "--dim", "n=0..900:400")
        for n in (0, 1, 2, 5, 401):
            model.check(self, x=floats(n, 4, 48, 48))

    def test_free_sizes(self):
        model = self.model("h, w", "--dim", "n=1..900:400", "--dim", "h=4..99:48", "--dim", "w=4..99:48")
        for n, height, width in ((1, 48, 48), (3, 4, 5), (2, 49, 31)):
            model.check(self, x=floats(n, 4, height, width))
