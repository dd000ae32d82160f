"""Transposed convolutions by phases, windows that lose taps, long lines of few channels, and groups of few or many channels against onnxruntime."""

import json
import unittest

import numpy as np

import models
from models import Compiled


def floats(*shape):
    return models.RNG.standard_normal(shape).astype(np.float32)


class Convolutions(unittest.TestCase):
    TRANSPOSED = """m (float[b, 6, h, w] x, float[6, 5, K0, K1] k, float[5] bias) => (float[b, 5, oh, ow] y)
        { y = ConvTranspose<strides=[S0, S1], pads=[P], output_padding=[O]>(x, k, bias) }"""

    def test_transposed(self):
        for window, strides, pads, extra in (((2, 2), (2, 2), "0, 0, 0, 0", "0, 0"), ((4, 4), (2, 2), "1, 1, 1, 1", "0, 0"),
                                             ((6, 3), (2, 3), "0, 1, 2, 1", "1, 0"), ((2, 4), (1, 2), "0, 0, 0, 0", "0, 1"),
                                             ((3, 3), (2, 2), "1, 1, 1, 1", "1, 1"), ((5, 7), (3, 4), "2, 0, 1, 3", "0, 2"),
                                             ((5, 2), (2, 3), "0, 0, 0, 0", "0, 0"), ((9, 3), (1, 2), "4, 0, 4, 1", "0, 0")):
            text = self.TRANSPOSED.replace("P]", pads + "]").replace("O]", extra + "]")
            for name, number in zip(("K0", "K1", "S0", "S1"), window + strides):
                text = text.replace(name, str(number))
            model = Compiled(text)
            for batch, height, width in ((1, 1, 1), (2, 5, 3), (1, 14, 7)):
                model.check(self, x=floats(batch, 6, height, width), k=floats(6, 5, *window), bias=floats(5))

    def test_transposed_groups(self):
        """Weights of the model, of 1 to 16 channels a group; of images of one pixel, of which all strides are alike."""
        for channels, group, out, window, stride, pad in ((6, 1, 1, 4, 2, 1), (6, 1, 3, 3, 2, 0), (8, 4, 5, 2, 2, 0), (32, 16, 16, 4, 2, 1), (3, 3, 3, 8, 4, 2),
                                                          (4, 4, 32, 4, 3, 1), (2, 1, 1, 16, 8, 4), (12, 12, 1, 4, 2, 1), (4, 4, 20, 4, 4, 0)):
            weight = ", ".join(map(str, floats(channels * out * window * window) / 5))
            text = f"""m (float[b, {channels}, h, w] x) => (float[b, c, oh, ow] y) <float[{channels}, {out}, {window}, {window}] k = {{ {weight} }}>
                {{ y = ConvTranspose<strides=[{stride}, {stride}], pads=[{pad}, {pad}, {pad}, {pad}], group={channels // group}>(x, k) }}"""
            model = Compiled(text)
            for batch, height, width in ((1, 1, 1), (2, 5, 3), (1, 14, 7)):
                model.check(self, x=floats(batch, channels, height, width))
            Compiled(text.replace("b,", "1,").replace("h, w]", "1, 1]")).check(self, x=floats(1, channels, 1, 1))

    def test_transposed_small_images(self):
        """Phases apart: each at the places alone that are results; of one pixel, the part of the window that is left."""
        for window, stride, pads, extra, group, height in ((4, 2, "1, 1, 1, 1", 0, 1, 4), (3, 2, "1, 1, 1, 1", 1, 1, 4), (5, 2, "2, 2, 2, 2", 1, 2, 3), (4, 2, "1, 2, 1, 0", 0, 1, 2),
                                                           (4, 2, "1, 1, 1, 1", 0, 1, 1), (4, 2, "3, 0, 0, 3", 0, 2, 1), (4, 4, "1, 1, 1, 1", 2, 1, 2), (2, 2, "0, 0, 0, 0", 0, 1, 4)):
            weight = ", ".join(map(str, floats(4 * 64 * window * window) / 5))
            text = f"""m (float[2, 4, {height}, 5] x) => (float[2, c, oh, ow] y) <float[4, 64, {window}, {window}] k = {{ {weight} }}>
                {{ y = ConvTranspose<strides=[{stride}, {stride}], pads=[{pads}], output_padding=[{extra}, {extra}], group={group}>(x, k) }}"""
            Compiled(text).check(self, x=floats(2, 4, height, 5))
            Compiled(text.replace(f"{height}, 5]", f"{height}, {height}]")).check(self, x=floats(2, 4, height, height))

    def test_lines_of_channels(self):
        """Windows along the lanes: where most of a line lies inside, its ends have masks of their own; LRN, whose windows lie across."""
        for channels, window, dilation, stride, pads, length in ((24, 31, 1, 1, "15, 15", 400), (5, 9, 1, 1, "4, 4", 131), (16, 3, 4, 1, "4, 4", 777), (7, 5, 1, 2, "2, 2", 301),
                                                                 (12, 31, 1, 1, "15, 15", 50), (9, 8, 1, 1, "7, 0", 260), (3, 4, 2, 1, "0, 6", 520)):
            weight = ", ".join(map(str, floats(channels * window) / 5))
            text = f"""m (float[b, {channels}, n] x) => (float[b, {channels}, o] y) <float[{channels}, 1, {window}] k = {{ {weight} }}>
                {{ y = Conv<group={channels}, strides=[{stride}], dilations=[{dilation}], pads=[{pads}]>(x, k) }}"""
            model = Compiled(text)
            for batch, size in ((1, length), (2, 37), (1, 1030)):
                model.check(self, x=floats(batch, channels, size))
            Compiled(text.replace("b,", "2,").replace("n]", f"{length}]")).check(self, x=floats(2, channels, length))
        for size, beta, channels in ((5, 0.75, 17), (3, 0.75, 64), (3, 0.25, 6), (5, 0.5, 9), (7, 0.6, 20), (9, 0.75, 33)):
            text = f"""m (float[1, {channels}, 13, 11] x) => (float[1, {channels}, 13, 11] y) {{ y = LRN<size={size}, beta={beta}, alpha=0.5, bias=0.3>(x) }}"""
            Compiled(text).check(self, x=floats(1, channels, 13, 11) * 3)

    def test_products_of_phases(self):
        """A window of 3 x 3 by strides of 2 sees 9 elements for 4 results: in four convolutions, and no zeros."""
        weight = ", ".join(map(str, floats(6 * 16 * 9)))
        model = Compiled(f"""m (float[1, 6, 8, 8] x) => (float[1, 16, 16, 16] y) <float[6, 16, 3, 3] k = {{ {weight} }}>
            {{ y = ConvTranspose<strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]>(x, k) }}""")
        model.check(self, x=floats(1, 6, 8, 8))
        kernels = json.loads(model.library.with_suffix(".json").read_text())["kernels"]
        products = [kernel["flops"]["at_hint"] for kernel in kernels if kernel["kind"] == "contraction"]
        self.assertEqual(sorted(products), [2 * 9 * 9 * 6 * 16 * taps for taps in (1, 2, 2, 4)])

    def test_few_channels(self):
        """To few channels, lines that strides divide: one product of pixels and window, whose rows are added up at their places."""
        for channels, out, window, stride, pads, extra in ((16, 3, (4, 4), (2, 2), "1, 1, 1, 1", "0, 0"), (16, 1, (3, 3), (2, 2), "1, 1, 1, 1", "1, 1"),
                                                           (64, 3, (5, 5), (2, 2), "2, 1, 2, 1", "1, 1"), (24, 7, (3, 6), (2, 3), "0, 1, 1, 2", "0, 0"),
                                                           (32, 2, (9, 3), (4, 2), "2, 1, 3, 0", "0, 0"), (40, 5, (3, 3), (1, 2), "1, 1, 1, 1", "0, 1")):
            weight = ", ".join(map(str, floats(channels * out * window[0] * window[1]) / 5))
            text = f"""m (float[b, {channels}, h, w] x, float[{channels}, {channels}, 1, 1] first) => (float[b, {out}, oh, ow] y, float[b, {out}, oh, ow] z)
                <float[{channels}, {out}, {window[0]}, {window[1]}] k = {{ {weight} }}>
                {{ y = ConvTranspose<strides=[{stride[0]}, {stride[1]}], pads=[{pads}], output_padding=[{extra}]>(x, k)
                a = Conv(x, first) c = ConvTranspose<strides=[{stride[0]}, {stride[1]}], pads=[{pads}], output_padding=[{extra}]>(a, k) z = Sigmoid(c) }}"""
            model = Compiled(text)
            first = floats(channels, channels, 1, 1) / channels
            for batch, height, width in ((2, 5, 3), (1, 14, 40), (1, 1, 17)):
                model.check(self, x=floats(batch, channels, height, width), first=first)
            known = Compiled(text.replace("b,", "1,").replace("h, w]", "9, 20]"))
            known.check(self, x=floats(1, channels, 9, 20), first=first)
            kernels = json.loads(known.library.with_suffix(".json").read_text())["kernels"]
            self.assertIn(2 * 9 * 20 * channels * out * window[0] * window[1], [kernel["flops"]["at_hint"] for kernel in kernels])

    def test_windows_over_repeated_pixels(self):
        """Pixels that are repeated stand in groups along the lanes, as a group's channels do, and borders ask for them."""
        resized = '{ t = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, , scales)'
        for text, weights in (("y = MaxPool<kernel_shape=[1, 2], pads=[0, 1, 0, 1]>(t) }", {}),
                              ("y = Conv<group=4, pads=[1, 0, 1, 0]>(t, k) }", {"k": (4, 1, 3, 2)}),
                              ("y = Conv<group=4, dilations=[2, 1], pads=[2, 1, 2, 0]>(t, k) }", {"k": (4, 1, 3, 2)})):
            for height, width, scales in ((8, 2, "1, 1, 2, 1"), (6, 16, "1, 1, 1, 2"), (5, 9, "1, 1, 3, 4")):
                inputs = "".join(f", float[{', '.join(map(str, shape))}] {name}" for name, shape in weights.items())
                model = Compiled(f"m (float[2, 4, {height}, {width}] x{inputs}) => (float[2, 4, oh, ow] y) <float[4] scales = {{{scales}}}> {resized} {text}")
                model.check(self, x=floats(2, 4, height, width), **{name: floats(*shape) for name, shape in weights.items()})

    DILATED = """m (float[b, 8, 14, 9] x, float[8, 8, 3, 3] k) => (float[b, 8, oh, ow] y)
        { y = Conv<dilations=[D], pads=[P]>(x, k) }"""

    def test_dilated(self):
        for dilation, pads in (("24, 24", "24, 24, 24, 24"), ("13, 9", "13, 9, 13, 9"), ("12, 6", "12, 6, 12, 6"), ("20, 1", "30, 0, 20, 0")):
            model = Compiled(self.DILATED.replace("D]", dilation + "]").replace("P]", pads + "]"))
            model.check(self, x=floats(2, 8, 14, 9), k=floats(8, 8, 3, 3))

    def test_tiles_in_lines(self):
        """Tiles end with lines, or where windows begin to see the image: of known sizes, in two tasks, of volumes, with long epilogues."""
        for dims, window, strides, pads, dilation in (
                ((17, 17), (1, 7), "1, 1", "0, 3, 0, 3", "1, 1"), ((17, 17), (7, 1), "1, 1", "3, 0, 3, 0", "1, 1"), ((8, 8), (1, 3), "1, 1", "0, 1, 0, 1", "1, 1"),
                ((28, 28), (3, 3), "1, 1", "12, 12, 12, 12", "12, 12"), ((20, 28), (3, 3), "1, 1", "18, 6, 18, 6", "18, 6"), ((29, 23), (3, 3), "2, 2", "8, 8, 8, 8", "8, 8"),
                ((14, 14), (5, 5), "2, 2", "2, 2, 2, 2", "1, 1"), ((4, 14, 14), (3, 3, 3), "2, 2, 2", "1, 1, 1, 1, 1, 1", "1, 1, 1")):
            sizes, axes = ", ".join(map(str, dims)), ", ".join("abc"[:len(dims)])
            weight, ones = ", ".join(map(str, floats(48 * 40 * int(np.prod(window))) / 20)), ", ".join("1" * len(dims))
            kernel = ", ".join(map(str, window))
            text = f"""m (float[1, 40, {sizes}] x, float[40, 40, {ones}] first) => (float[1, 48, {axes}] y) <float[48, 40, {kernel}] k = {{ {weight} }}>
                {{ a = Conv(x, first) c = Conv<strides=[{strides}], pads=[{pads}], dilations=[{dilation}]>(a, k) t = Tanh(c) e = Erf(t) y = Mul(e, c) }}"""
            Compiled(text).check(self, x=floats(1, 40, *dims), first=floats(40, 40, *[1] * len(dims)) / 40)

    LINES = """m (float[2, 3, H, W] x, float[8, 3, 1, 1] k, float[16, 8, K0, K1] l) => (float[2, 16, oh, ow] y)
        { a = Conv(x, k) b = Conv<strides=[S], pads=[P], dilations=[D]>(a, l) y = Relu (b) }"""

    def test_long_lines_of_few_channels(self):
        """Most tiles meet no border there, some do, and some lie in two lines."""
        for height, width, window, strides, pads, dilation in (
                (3, 150, (3, 5), "1, 1", "1, 2, 1, 2", "1, 1"), (2, 97, (1, 39), "1, 1", "0, 19, 0, 19", "1, 1"),
                (5, 201, (3, 3), "2, 2", "0, 3, 2, 0", "1, 1"), (7, 100, (5, 1), "1, 1", "4, 0, 0, 0", "1, 1"),
                (4, 160, (3, 4), "1, 3", "2, 5, 0, 9", "2, 1"), (4, 120, (2, 3), "1, 1", "1, 4, 1, 4", "1, 4")):
            text = self.LINES.replace("S]", strides + "]").replace("P]", pads + "]").replace("D]", dilation + "]")
            for name, number in zip(("H", "W", "K0", "K1"), (height, width, *window)):
                text = text.replace(name, str(number))
            Compiled(text).check(self, x=floats(2, 3, height, width), k=floats(8, 3, 1, 1), l=floats(16, 8, *window) / 10)

    def test_small_groups(self):
        """Groups of 2 to 16 channels, of results of others (channels last) and of arguments (channels first)."""
        for channels, group, window, pads, strides, dilation in (
                (32, 2, (3, 3), "1, 1, 1, 1", "1, 1", "1, 1"), (32, 4, (3, 3), "1, 1, 1, 1", "2, 2", "1, 1"), (48, 8, (1, 5), "0, 2, 0, 2", "1, 1", "1, 1"),
                (32, 16, (3, 3), "1, 0, 2, 1", "1, 2", "1, 1"), (64, 8, (3, 3), "2, 2, 2, 2", "1, 1", "2, 2"), (16, 4, (5, 7), "2, 3, 2, 3", "3, 1", "1, 1"),
                (24, 8, (3, 3), "1, 1, 1, 1", "1, 1", "1, 1"), (20, 2, (3, 3), "1, 1, 1, 1", "2, 1", "1, 1"), (12, 4, (3, 2), "1, 0, 1, 1", "1, 1", "1, 1"),
                (32, 16, (3, 3), "1, 1, 1, 1", "1, 1", "1, 1")):
            weight = ", ".join(map(str, floats(channels * group * window[0] * window[1]) / 5))
            text = """m (float[b, 3, h, w] x, float[b, C, h, w] u, float[C, 3, 1, 1] first) => (float[b, C, h2, w2] y, float[b, C, h2, w2] z)
                <float[C, G, K0, K1] k = { WEIGHT }, float[C, G, K0, K1] l = { WEIGHT }> { a = Conv(x, first)
                c = Conv<group=N, pads=[P], strides=[S], dilations=[D]>(a, k) y = Relu(c) z = Conv<group=N, pads=[P], strides=[S], dilations=[D]>(u, l) }"""
            for name, value in (("WEIGHT", weight), ("C,", f"{channels},"), ("G,", f"{group},"), ("K0", window[0]), ("K1", window[1]), ("=N", f"={channels // group}"),
                                ("[P]", f"[{pads}]"), ("[S]", f"[{strides}]"), ("[D]", f"[{dilation}]")):
                text = text.replace(name, str(value))
            model = Compiled(text)
            for batch, height, width in ((1, 5, 7), (2, 9, 21), (1, 12, 40)):
                model.check(self, x=floats(batch, 3, height, width), u=floats(batch, channels, height, width), first=floats(channels, 3, 1, 1) / 3)

    GROUPS = """m (float[b, 12, h, w] x, float[4] scale, float[4] bias) => (float[b, 12, h2, w2] y) <int64[3] to = {0, 4, -1}>
        { s = Shape (x) g = Reshape (x, to) i = InstanceNormalization (g, scale, bias) y = Reshape (i, s) }"""

    def test_groups(self):
        model = Compiled(self.GROUPS)
        for batch, height, width in ((1, 1, 2), (2, 5, 3)):
            model.check(self, x=floats(batch, 12, height, width), scale=floats(4), bias=floats(4))


if __name__ == "__main__":
    unittest.main()
