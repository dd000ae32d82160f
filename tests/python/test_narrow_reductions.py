"""Means and norms of 16-bit floats whose count, or whose sum of squares, no 16 bits hold; against f64."""

import numpy as np
import ptc
from models import ModelTest, model, value
from onnx import TensorProto, helper

RNG = np.random.default_rng(11)


class NarrowReductions(ModelTest):
    def run_node(self, op, x, shape, axes):
        """The op over the axes, where `shape` has a name its size is free."""
        node = helper.make_node(op, ["x", "axes"] if axes else ["x"], ["y"])
        weights = {"axes": np.array(axes, np.int64)} if axes else {}
        half = TensorProto.FLOAT16
        library = self.compile(model([node], [value("x", shape, half)], [value("y", None, half)], weights))
        return ptc.load(library)(x=x)["y"].astype(np.float64)

    def test_means_of_more_elements_than_the_type_counts(self):
        for shape in [(2, 70000), (2, "n")]:
            with self.subTest(shape=shape):
                x = RNG.uniform(0, 2, (2, 70000)).astype(np.float16)
                found = self.run_node("ReduceMean", x, shape, [1])
                np.testing.assert_allclose(found, x.astype(np.float64).mean(1, keepdims=True), rtol=1e-3)
        image = RNG.uniform(0, 2, (1, 3, 260, 256)).astype(np.float16)
        found = self.run_node("GlobalAveragePool", image, image.shape, None)
        np.testing.assert_allclose(found, image.astype(np.float64).mean((2, 3), keepdims=True), rtol=1e-3)

    def test_norms_whose_squares_overflow(self):
        x = (RNG.standard_normal((4, 512)) * 40).astype(np.float16)
        found = self.run_node("ReduceL2", x, (4, "n"), [1])
        np.testing.assert_allclose(found, np.sqrt((x.astype(np.float64) ** 2).sum(1, keepdims=True)), rtol=1e-3)
