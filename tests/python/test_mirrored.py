"""Filters that are their own mirror images, whose windows are folded before they are multiplied, against sums in 64 bits."""

import numpy as np
import ptc
from models import ModelTest, model, value
from onnx import helper

RNG = np.random.default_rng(3)


def spectrum(window, offset=0.0):
    """Windowed cosines, then sines, each the exact mirror image of itself; with an offset the first weight is not 0."""
    k = np.arange(window)
    shape = 0.5 + offset - 0.5 * np.cos(2 * np.pi * k / window)
    angles = 2 * np.pi * np.outer(np.arange(window // 2 + 1), k) / window
    cosines, sines = (np.cos(angles) * shape).astype(np.float32), (np.sin(angles) * shape).astype(np.float32)
    half = (window + 1) // 2
    cosines[:, window - half + 1:] = cosines[:, half - 1:0:-1]
    sines[:, window - half + 1:] = -sines[:, half - 1:0:-1]
    sines[:, 0] = 0
    if window % 2 == 0:
        sines[:, window // 2] = 0
    return cosines, sines


def network(weight, length, stride):
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], strides=[stride])]
    return model(nodes, [value("x", ["n", 1, length])], [value("y", None)], {"w": weight[:, None]})


class Mirrored(ModelTest):
    def test_spectra(self):
        for window, stride, offset, order in [(64, 64, 0, 1), (64, 32, 0, 1), (64, 16, 0.08, -1), (96, 16, 0, -1), (63, 21, 0.08, 1)]:
            with self.subTest(window=window, stride=stride):
                weight = np.concatenate(spectrum(window, offset)[::order])
                length = window + 5 * stride + 3
                loaded = ptc.load(self.compile(network(weight, length, stride)))
                self.assertEqual(loaded.weights, [])  # folded
                for batch in (1, 3):
                    x = RNG.standard_normal((batch, 1, length)).astype(np.float32)
                    frames = np.lib.stride_tricks.sliding_window_view(x[:, 0], window, axis=1)[:, ::stride]
                    wanted = np.einsum("btk,nk->bnt", frames.astype(np.float64), weight.astype(np.float64))
                    np.testing.assert_allclose(loaded(x=x)["y"], wanted, rtol=0, atol=2e-6 * window)

    def test_even_alone(self):
        cosines, _ = spectrum(128)
        loaded = ptc.load(self.compile(network(cosines, 256, 64)))
        x = RNG.standard_normal((2, 1, 256)).astype(np.float32)
        frames = np.lib.stride_tricks.sliding_window_view(x[:, 0], 128, axis=1)[:, ::64]
        np.testing.assert_allclose(loaded(x=x)["y"], np.einsum("btk,nk->bnt", frames, cosines), rtol=0, atol=1e-4)
        self.assertEqual(loaded.weights, [])

    def test_strict_and_free_weights(self):
        weight = np.concatenate(spectrum(64))
        proto, x = network(weight, 128, 32), RNG.standard_normal((2, 1, 128)).astype(np.float32)
        frames = np.lib.stride_tricks.sliding_window_view(x[:, 0], 64, axis=1)[:, ::32]
        for flag, weights in (("--fp=strict", ["w"]), ("--weights=file", []), ("--weights=none", ["w"])):
            with self.subTest(flag):
                loaded = ptc.load(self.compile(proto, flag))
                self.assertEqual(loaded.weights, weights)
                given = weight
                if flag == "--weights=none":  # one that is nobody's mirror image
                    given = RNG.standard_normal(weight.shape).astype(np.float32)
                    loaded.set_weight("w", given[:, None])
                np.testing.assert_allclose(loaded(x=x)["y"], np.einsum("btk,nk->bnt", frames, given), rtol=0, atol=1e-4)
