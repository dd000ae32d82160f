"""Products around a causal mask that is no softmax's, which leave out what the mask hides, against sums in 64 bits."""

import numpy as np
import ptc
from models import ModelTest, model, value
from onnx import helper, numpy_helper

RNG = np.random.default_rng(5)
NAMES = "q", "k", "v", "d"


def network(steps, width):
    """Weights decay as d says, of earlier steps alone."""
    nodes = [helper.make_node(op, inputs, [output], **attributes) for op, inputs, output, attributes in [
        ("ConstantOfShape", ["square"], "ones", {"value": numpy_helper.from_array(np.array([True]))}),
        ("Trilu", ["ones", "first"], "later", {"upper": 1}),
        ("Where", ["later", "low", "d"], "decay", {}),
        ("ReduceMax", ["decay", "last"], "most", {"keepdims": 1}),
        ("Sub", ["decay", "most"], "less", {}),
        ("Exp", ["less"], "weights", {}),
        ("Transpose", ["k"], "turned", {"perm": [0, 2, 1]}),
        ("MatMul", ["q", "turned"], "scores", {}),
        ("Mul", ["scores", "weights"], "weighted", {}),
        ("MatMul", ["weighted", "v"], "y", {})]]
    inputs = [value(name, [2, steps, width]) for name in "qkv"] + [value("d", [2, steps, steps])]
    constants = {"square": np.array([steps, steps]), "first": np.array(1), "low": np.float32(-np.inf), "last": np.array([-1])}
    return model(nodes, inputs, [value("y", None)], constants)


def expected(q, k, v, d):
    q, k, v, d = (array.astype(np.float64) for array in (q, k, v, d))
    decay = np.where(np.triu(np.ones(d.shape[1:], bool), 1), -np.inf, d)
    return (q @ k.transpose(0, 2, 1) * np.exp(decay - decay.max(-1, keepdims=True))) @ v


def inputs(steps, width):
    return {name: RNG.standard_normal((2, steps, steps if name == "d" else width)).astype(np.float32) for name in NAMES}


class CausalProducts(ModelTest):
    def test_sizes(self):
        for steps, width in [(128, 64), (97, 40), (33, 17), (1500, 16)]:
            with self.subTest(steps=steps, width=width):
                x = inputs(steps, width)
                for flags in ([], ["--fp=strict"]):
                    y = ptc.load(self.compile(network(steps, width), *flags))(**x)["y"]
                    np.testing.assert_allclose(y, expected(**x), rtol=1e-4, atol=1e-4)

    def test_later_steps_are_not_read(self):
        x = inputs(128, 64)
        x["v"][:, -1] = np.nan
        first = expected(**x | {"v": np.nan_to_num(x["v"])})[:, :64]
        y = ptc.load(self.compile(network(128, 64)))(**x)["y"]
        np.testing.assert_allclose(y[:, :64], first, rtol=1e-4, atol=1e-4)
        self.assertTrue(np.isnan(y[:, -1]).all())
        y = ptc.load(self.compile(network(128, 64), "--fp=strict"))(**x)["y"]
        self.assertTrue(np.isnan(y).all())  # 0 times NaN

    def test_hidden_rows_are_nan(self):
        x = inputs(64, 32)
        x["d"][:, 40, :] = -np.inf  # its maximum is -inf, too
        y = ptc.load(self.compile(network(64, 32)))(**x)["y"]
        self.assertEqual({int(row) for row in np.argwhere(np.isnan(y))[:, 1]}, {40})
