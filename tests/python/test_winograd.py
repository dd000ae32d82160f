"""Convolutions that Winograd's algorithm computes, in whole models against onnxruntime."""

import json

import numpy as np
import onnxruntime
import ptc
from models import ModelTest, model, value
from onnx import helper, numpy_helper

RNG = np.random.default_rng(5)


def normal(*shape):
    return RNG.standard_normal(shape, np.float32)


def network(pads=(1, 1, 1, 1), channels=32, window=(3, 3)):
    """Between 1x1 convolutions, which take and give channels first: one of `window` and one of 3x3 with a residual."""
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"]),
        helper.make_node("Conv", ["a", "w1", "b1"], ["c1"], "first", pads=pads),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], "second", pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c2", "r1"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["r2"]),
        helper.make_node("Conv", ["r2", "w3"], ["y"]),
    ]
    scale = np.float32((2 / (9 * channels)) ** 0.5)
    weights = {"w0": normal(channels, 8, 1, 1), "w1": normal(channels, channels, *window) * scale, "b1": normal(channels),
               "w2": normal(channels, channels, 3, 3) * scale, "b2": normal(channels), "w3": normal(12, channels, 1, 1)}
    return model(nodes, [value("x", ["n", 8, "h", "w"])], [value("y", ["n", 12, "ho", "wo"])], weights)


def volumes(slices, pads, apart, depth):
    """A window of so many slices, which lie apart, behind a 1x1x1 convolution that takes channels first."""
    scale = np.float32((2 / (9 * slices * 20)) ** 0.5)
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"]),
        helper.make_node("Conv", ["a", "w1", "b1"], ["c"], "volume", pads=[pads, 1, 1, pads, 1, 1], dilations=[apart, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    weights = {"w0": normal(20, 4, 1, 1, 1), "w1": normal(40, 20, slices, 3, 3) * scale, "b1": normal(40)}
    return model(nodes, [value("x", ["n", 4, depth, "h", "w"])], [value("y", ["n", 40, "do", "ho", "wo"])], weights)


def expected(proto, x):
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def kinds(library):
    manifest = json.loads(library.with_suffix(".json").read_text())
    return [(kernel["kind"], kernel["nodes"]) for kernel in manifest["kernels"] if "winograd" in kernel["kind"]]


class Winograd(ModelTest):
    def check(self, loaded, proto, x):
        wanted = expected(proto, x)
        np.testing.assert_allclose(loaded(x=x)["y"], wanted, rtol=0, atol=1e-5 * max(np.abs(wanted).max(), 1))

    def test_free_sizes(self):
        for number, pads in enumerate([(1, 1, 1, 1), (0, 0, 0, 0), (0, 2, 1, 0)]):
            proto = network(pads)
            library = self.compile(proto, "--dim=n=1..4:1", "--dim=h=3..80:56", "--dim=w=3..80:56", name=f"free{number}")
            self.assertEqual([kind for kind, _ in kinds(library)], ["winograd-4x4"] * 2)
            loaded = ptc.load(library)
            for n, h, w in [(1, 56, 56), (3, 7, 9), (1, 3, 3), (2, 33, 18), (1, 13, 70), (4, 5, 80)]:
                with self.subTest(pads=pads, n=n, h=h, w=w):
                    self.check(loaded, proto, normal(n, 8, h, w))

    def test_strides(self):
        """Outputs two pixels apart, at sizes whose last tiles are cut, in tiles of three and of four."""
        scale = np.float32((2 / (9 * 32)) ** 0.5)
        nodes = [helper.make_node("Conv", ["x", "w0"], ["a"]),
                 helper.make_node("Conv", ["a", "w1", "b1"], ["c"], "strided", pads=[1, 1, 1, 1], strides=[2, 2]),
                 helper.make_node("Relu", ["c"], ["y"])]
        weights = {"w0": normal(32, 8, 1, 1), "w1": normal(64, 32, 3, 3) * scale, "b1": normal(64)}
        proto = model(nodes, [value("x", ["n", 8, "h", "w"])], [value("y", ["n", 64, "ho", "wo"])], weights)
        for tile, hint in [(4, 64), (3, 24)]:
            library = self.compile(proto, "--dim=n=1..4:1", f"--dim=h=3..80:{hint}", f"--dim=w=3..80:{hint}", name=f"strided{tile}")
            self.assertEqual([kind for kind, _ in kinds(library)], [f"winograd-{tile}x{tile}-s2"])
            loaded = ptc.load(library)
            for n, h, w in [(1, 64, 64), (3, 7, 9), (1, 3, 4), (2, 33, 18)]:
                with self.subTest(tile=tile, n=n, h=h, w=w):
                    self.check(loaded, proto, normal(n, 8, h, w))

    def test_volumes(self):
        """Windows of 3x3 in several slices, whose channels (20) fill no whole vectors, and of one; of three slices the depth is
        transformed, but where it is one, or elements of the window lie apart."""
        for number, (slices, pads, apart, depth, side, kind) in enumerate([
                (3, 1, 1, "d", 28, "2x4x4"), (3, 0, 1, "d", 6, "2x2x2"), (2, 0, 1, "d", 28, "4x4"), (1, 0, 1, "d", 28, "4x4"),
                (3, 1, 1, 1, 28, "4x4"), (3, 2, 2, "d", 28, "4x4")]):
            proto = volumes(slices, pads, apart, depth)
            flags = ["--dim=n=1..4:1", f"--dim=h=3..60:{side}", f"--dim=w=3..60:{side}"] + (["--dim=d=3..16:8"] if depth == "d" else [])
            library = self.compile(proto, *flags, name=f"volume{number}")
            self.assertEqual([found for found, _ in kinds(library)], [f"winograd-{kind}"])
            loaded = ptc.load(library)
            for n, d, h, w in [(1, 8, 28, 28), (2, 5, 13, 6), (1, 3, 3, 3)]:
                with self.subTest(number=number, n=n, d=d, h=h, w=w):
                    self.check(loaded, proto, normal(n, 4, d if depth == "d" else depth, h, w))

    def test_groups(self):
        """Groups whose channels fill whole vectors and panels, and others; a residual behind."""
        for number, (groups, taken, made) in enumerate([(4, 64, 48), (3, 20, 36), (2, 33, 17)]):
            scale = np.float32((2 / (9 * taken)) ** 0.5)
            nodes = [
                helper.make_node("Conv", ["x", "w0"], ["a"]),
                helper.make_node("Conv", ["a", "w1", "b1"], ["c"], "grouped", pads=[1, 1, 1, 1], group=groups),
                helper.make_node("Conv", ["x", "w2"], ["d"]),
                helper.make_node("Add", ["c", "d"], ["sum"]),
                helper.make_node("Relu", ["sum"], ["y"]),
            ]
            weights = {"w0": normal(groups * taken, 8, 1, 1), "w1": normal(groups * made, taken, 3, 3) * scale,
                       "b1": normal(groups * made), "w2": normal(groups * made, 8, 1, 1)}
            proto = model(nodes, [value("x", ["n", 8, "h", "w"])], [value("y", ["n", groups * made, "h", "w"])], weights)
            library = self.compile(proto, "--dim=n=1..4:1", "--dim=h=3..80:28", "--dim=w=3..80:28", name=f"groups{number}")
            self.assertEqual([kind for kind, _ in kinds(library)], ["winograd-4x4"])
            loaded = ptc.load(library)
            for n, h, w in [(1, 28, 28), (3, 7, 9), (1, 3, 3), (2, 33, 18)]:
                with self.subTest(groups=groups, n=n, h=h, w=w):
                    self.check(loaded, proto, normal(n, 8, h, w))

    def test_dilations(self):
        """Elements of the window that lie apart, not alike on both sides, in images of any size; fewer rows than phases."""
        for number, (apart, pads) in enumerate([((2, 2), (2, 2, 2, 2)), ((3, 5), (3, 5, 3, 5)), ((4, 1), (0, 1, 4, 0)), ((2, 6), (0, 0, 0, 0))]):
            scale = np.float32((2 / (9 * 32)) ** 0.5)
            nodes = [
                helper.make_node("Conv", ["x", "w0"], ["a"]),
                helper.make_node("Conv", ["a", "w1", "b1"], ["c"], "apart", pads=pads, dilations=apart),
                helper.make_node("Relu", ["c"], ["y"]),
            ]
            weights = {"w0": normal(32, 8, 1, 1), "w1": normal(48, 32, 3, 3) * scale, "b1": normal(48)}
            proto = model(nodes, [value("x", ["n", 8, "h", "w"])], [value("y", ["n", 48, "ho", "wo"])], weights)
            least = [2 * step - pads[side] - pads[side + 2] + 1 for side, step in enumerate(apart)]
            flags = [f"--dim={name}={max(low, 1)}..80:40" for name, low in zip("hw", least)]
            library = self.compile(proto, "--dim=n=1..4:1", *flags, name=f"apart{number}")
            self.assertEqual([kind for kind, _ in kinds(library)], ["winograd-4x4"])
            loaded = ptc.load(library)
            for n, h, w in [(1, 40, 40), (3, max(least[0], 1), max(least[1], 1)), (2, 13, 18), (1, 17, 61)]:
                with self.subTest(apart=apart, n=n, h=h, w=w):
                    self.check(loaded, proto, normal(n, 8, h, w))

    def test_lines(self):
        """Windows along one dim: signals, rows, columns and time, with slices, dilations, groups and strides beside."""
        for number, (window, pads, apart, step, groups, kind) in enumerate([
                ([3], [1, 1], [1], [1], 1, 4), ([3], [8, 0], [4], [1], 1, 4), ([5], [2, 2], [1], [1], 1, 4), ([7], [3, 3], [1], [1], 1, 2),
                ([1, 3], [0, 1, 0, 1], [1, 1], [1, 1], 2, 4), ([3, 1], [1, 0, 2, 0], [2, 1], [1, 1], 1, 4), ([5, 5], [2] * 4, [1, 1], [1, 1], 1, 4),
                ([3, 3], [1] * 4, [1, 1], [2, 1], 1, 4), ([3, 1, 1], [1, 0, 0, 1, 0, 0], [1] * 3, [1] * 3, 1, 4)]):
            rank, scale = len(window), np.float32((2 / (36 * np.prod(window))) ** 0.5)
            nodes = [
                helper.make_node("Conv", ["x", "w0"], ["a"]),
                helper.make_node("Conv", ["a", "w1", "b1"], ["c"], "line", pads=pads, dilations=apart, strides=step, group=groups),
                helper.make_node("Relu", ["c"], ["y"]),
            ]
            weights = {"w0": normal(36 * groups, 8, *[1] * rank), "w1": normal(48 * groups, 36, *window) * scale, "b1": normal(48 * groups)}
            names, made = [f"s{dim}" for dim in range(rank)], [f"t{dim}" for dim in range(rank)]
            proto = model(nodes, [value("x", ["n", 8, *names])], [value("y", ["n", 48 * groups, *made])], weights)
            library = self.compile(proto, "--dim=n=1..4:1", *[f"--dim={name}=9..600:{[400, 40, 20][rank - 1]}" for name in names], name=f"line{number}")
            self.assertEqual([kind for kind, _ in kinds(library)], [f"winograd-{kind}"])
            loaded = ptc.load(library)
            for n, sizes in [(1, [40, 21, 10]), (3, [9, 9, 9]), (2, [14, 35, 11])]:
                with self.subTest(window=window, n=n, sizes=sizes):
                    self.check(loaded, proto, normal(n, 8, *sizes[:rank]))

    def test_strict_has_none(self):
        flags = ["--dim=n=1", "--dim=h=28", "--dim=w=28"]
        self.assertEqual(len(kinds(self.compile(network(), *flags, name="contract"))), 2)
        self.assertEqual(kinds(self.compile(network(), *flags, "--fp=strict", name="strict")), [])

    def test_bits_do_not_depend_on_threads(self):
        proto = network(channels=40)
        library = self.compile(proto, "--dim=n=2", "--dim=h=29", "--dim=w=31", name="threads")
        self.assertEqual(len(kinds(library)), 2)
        x = normal(2, 8, 29, 31)
        one, two = (ptc.load(library, threads=threads)(x=x)["y"] for threads in (1, 2))
        self.assertEqual(one.tobytes(), two.tobytes())
        self.check(ptc.load(library), proto, x)

    def test_replaced_weights_are_transformed(self):
        for window in ((3, 3), (1, 5)):
            with self.subTest(window=window):
                self.check_replaced(network([side // 2 for side in window] * 2, window=window), f"replaced{window[0]}", normal(1, 8, 28, 28))
        with self.subTest(window=(3, 3, 3)):
            self.check_replaced(volumes(3, 1, 1, 6), "replaced-volume", normal(1, 4, 6, 28, 28))

    def check_replaced(self, proto, name, x):
        library = self.compile(proto, "--dim=n=1", "--dim=h=28", "--dim=w=28", name=name)
        loaded = ptc.load(library)
        before = loaded(x=x)["y"]
        own = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
        loaded.set_weight("w1", own["w1"])
        self.assertEqual(loaded(x=x)["y"].tobytes(), before.tobytes())
        (tensor,) = [tensor for tensor in proto.graph.initializer if tensor.name == "w1"]
        tensor.CopyFrom(numpy_helper.from_array(own["w1"][::-1].copy(), "w1"))
        loaded.set_weight("w1", own["w1"][::-1].copy())
        self.check(loaded, proto, x)
