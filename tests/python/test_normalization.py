"""BatchNormalization that takes the statistics of its batch, against f64: in which types those are computed and kept."""

import numpy as np
import ptc
from models import ModelTest, model, value
from onnx import TensorProto, helper

RNG = np.random.default_rng(7)
KINDS = {np.float16: TensorProto.FLOAT16, np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE}
MOMENTUM = 0.9


class TrainingStatistics(ModelTest):
    def check(self, kind, running, scale, offset, tolerance):
        """y within `tolerance`, and running statistics within eight steps of their type."""
        node = helper.make_node("BatchNormalization", ["x", "scale", "b", "mean", "var"], ["y", "m", "v"], training_mode=1, momentum=MOMENTUM)
        x = (RNG.standard_normal((8, 3, 16, 16)) * scale + offset).astype(kind)
        given = {"x": x, "scale": np.ones(3, kind), "b": np.zeros(3, kind), "mean": np.zeros(3, running), "var": np.ones(3, running)}
        inputs = [value(name, array.shape, KINDS[array.dtype.type]) for name, array in given.items()]
        outputs = [value("y", x.shape, KINDS[kind]), value("m", [3], KINDS[running]), value("v", [3], KINDS[running])]
        found = ptc.load(self.compile(model([node], inputs, outputs)))(**given)
        exact = x.astype(np.float64)
        mean, var = exact.mean((0, 2, 3)), exact.var((0, 2, 3))
        wanted = (exact - mean.reshape(1, 3, 1, 1)) / np.sqrt(var.reshape(1, 3, 1, 1) + 1e-5)
        self.assertLess(np.abs(found["y"] - wanted).max(), tolerance)
        near = 8 * float(np.finfo(running).eps)
        np.testing.assert_allclose(found["m"], (1 - MOMENTUM) * mean, rtol=near, atol=near)
        np.testing.assert_allclose(found["v"], MOMENTUM + (1 - MOMENTUM) * var, rtol=near)

    def test_of_narrow_floats_neither_overflow_nor_cancel(self):
        for scale, offset in [(1, 0), (300, 0), (1, 300), (0.01, 10), (30, 500)]:
            with self.subTest(scale=scale, offset=offset):
                self.check(np.float16, np.float32, scale, offset, tolerance=4e-3)  # steps of f16 up to 4, and half of one more

    def test_running_ones_may_have_a_narrower_type(self):
        self.check(np.float32, np.float16, 5, 100, tolerance=1e-4)
        self.check(np.float64, np.float32, 5, 100, tolerance=1e-12)
