"""Layers that differ in scalars alone: one kernel, whose results are to the bit those of each layer compiled by itself."""

import json

import numpy as np
import ptc
from models import ModelTest, model, value
from onnx import helper

SIZE, ROWS, STEPS = 96, 7, 5
LEVELS = ("x86-64-v3", "native")


def chain(make_layer, numbers):
    """Layers behind each other, each with its result as an output."""
    nodes, weights = [], {}
    for number in numbers:
        source = f"y{number - 1}" if number - 1 in numbers else "x"
        own_nodes, own_weights = make_layer(number, source, f"y{number}")
        nodes, weights = nodes + own_nodes, weights | own_weights
    outputs = [value(f"y{number}", [ROWS, SIZE]) for number in numbers]
    return model(nodes, [value("x", [ROWS, SIZE])], outputs, weights)


def products(number, source, result):
    """Scales and epsilons of any size, powers of two among them."""
    n = lambda name: f"{name}{number}"
    scale, shift = [(1.0, 3.0), (0.7, -1.5), (1e-20, 2.0), (0.25, 1e-29), (-7.25, 1e10), (3.0, 0.37)][number]
    nodes = [
        helper.make_node("MatMul", [source, n("w")], [n("product")]),
        helper.make_node("LeakyRelu", [n("product")], [n("bent")], alpha=0.02),
        helper.make_node("Mul", [n("bent"), n("scale")], [n("scaled")]),
        helper.make_node("Add", [n("scaled"), n("shift")], [n("shifted")]),
        helper.make_node("Div", [n("shifted"), n("scale")], [n("divided")]),
        helper.make_node("LayerNormalization", [n("divided"), n("ones")], [result], epsilon=10.0 ** (-3 - number)),
    ]
    w = np.random.default_rng(number).standard_normal((SIZE, SIZE), np.float32) / 8
    return nodes, {n("w"): w, n("scale"): np.float32(scale), n("shift"): np.float32(shift), n("ones"): np.ones(SIZE, np.float32)}


def quantised(number, source, result):
    """Zero points of 0 and others."""
    n = lambda name: f"{name}{number}"
    scale, zero = [(0.0137, 121), (0.02, 3), (0.011, 0), (0.5, 128), (0.9, 200), (0.07, 64)][number]
    nodes = [
        helper.make_node("QuantizeLinear", [source, n("scale"), n("zero")], [n("q")]),
        helper.make_node("DequantizeLinear", [n("q"), n("scale"), n("zero")], [n("d")]),
        helper.make_node("DequantizeLinear", [n("w"), n("w_scale"), n("w_zero")], [n("wd")]),
        helper.make_node("MatMul", [n("d"), n("wd")], [n("product")]),
        helper.make_node("Sigmoid", [n("product")], [result]),
    ]
    w = np.random.default_rng(number).integers(-127, 128, (SIZE, SIZE)).astype(np.int8)
    return nodes, {n("w"): w, n("scale"): np.float32(scale), n("zero"): np.uint8(zero), n("w_scale"): np.float32(0.003 * (number + 1)),
                   n("w_zero"): np.int8(0)}


def windows(number, source, result):
    """A depthwise convolution and a pool, of a number of operations that is just not too many for tiles of them."""
    n = lambda name: f"{name}{number}"
    nodes = [
        helper.make_node("Reshape", [source, n("image_shape")], [n("image")]),
        helper.make_node("Conv", [n("image"), n("w")], [n("convolved")], group=8, pads=[1, 1, 1, 1]),
        *scaled(number, n("convolved"), n("pooled_in"), "first"),
        helper.make_node("AveragePool", [n("pooled_in")], [n("pooled")], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        *scaled(number, n("pooled"), n("pooled_out"), "second"),
        helper.make_node("Reshape", [n("pooled_out"), n("shape")], [result]),
    ]
    weights = {n("w"): np.random.default_rng(number).standard_normal((8, 1, 3, 3), np.float32), n("image_shape"): np.int64([1, 8, 7, 12]),
               n("shape"): np.int64([ROWS, SIZE])}
    for place in ("first", "second"):
        for step in range(STEPS):
            weights |= {n(f"{place}_scale{step}_"): np.float32(0.9 + 0.01 * number + 0.001 * step), n(f"{place}_shift{step}_"): np.float32(0.1 * number + step + 0.3)}
    return nodes, weights


def scaled(number, source, result, place):
    nodes = []
    for step in range(STEPS):
        name = f"{place}_{step}_{number}"
        nodes += [helper.make_node("Mul", [source, f"{place}_scale{step}_{number}"], [f"{name}_scaled"]),
                  helper.make_node("Add", [f"{name}_scaled", f"{place}_shift{step}_{number}"], [f"{name}_shifted"])]
        source = f"{name}_shifted"
    nodes[-1].output[0] = result
    return nodes


def choices(number, source, result):
    """What is chosen is the same at 0, so that denormal numbers count as 0."""
    n = lambda name: f"{name}{number}"
    nodes = [
        helper.make_node("MatMul", [source, n("w")], [n("product")]),
        helper.make_node("Exp", [n("product")], [n("e")]),
        helper.make_node("Mul", [n("e"), n("c")], [n("below")]),
        helper.make_node("Add", [n("product"), n("c")], [n("above")]),
        helper.make_node("Less", [n("product"), n("zero")], [n("is_below")]),
        helper.make_node("Where", [n("is_below"), n("below"), n("above")], [n("chosen")]),
        helper.make_node("Mul", [n("chosen"), n("tiny")], [n("small")]),
        helper.make_node("Add", [n("small"), n("product")], [result]),
    ]
    w = np.random.default_rng(number).standard_normal((SIZE, SIZE), np.float32) * np.float32(1e-20)
    return nodes, {n("w"): w, n("c"): np.float32(0.6 + 0.1 * number), n("zero"): np.float32(0), n("tiny"): np.float32(1e-38)}


class SharedScalars(ModelTest):
    def check_layers(self, make_layer, most_kernels):
        """`most_kernels` for six layers."""
        x = np.random.default_rng(9).standard_normal((ROWS, SIZE), np.float32)
        for level in LEVELS:
            name = f"{make_layer.__name__}-{level}"
            library = self.compile(chain(make_layer, list(range(6))), f"--cpu={level}", name=name)
            self.assertLessEqual(len(json.loads(library.with_suffix(".json").read_text())["kernels"]), most_kernels)
            results = ptc.load(library)(x=x)
            for number in range(6):
                source = x if number == 0 else results[f"y{number - 1}"]
                alone = ptc.load(self.compile(chain(make_layer, [number]), f"--cpu={level}", name=f"{name}-{number}"))
                np.testing.assert_array_equal(results[f"y{number}"], alone(x=source)[f"y{number}"], f"{level}, layer {number}")

    def test_products(self):
        self.check_layers(products, 3)

    def test_quantised_products(self):
        self.check_layers(quantised, 5)

    def test_windows(self):
        self.check_layers(windows, 7)

    def test_choices(self):
        self.check_layers(choices, 6)
