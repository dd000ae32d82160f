"""Which dims are free: --dynamic, ranges, hints."""

import unittest

import numpy as np

import ptc
from models import RNG, Compiled
from served import Refuses

OPEN = "m (float[b, s] x, float[3, s] y) => (float[b, 3] z) { t = Transpose<perm=[1, 0]>(y) z = MatMul(x, t) }"
FIXED = "m (float[2, 6] x) => (float[2, 12] z) { z = Concat<axis=1>(x, x) }"


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


class Dynamic(unittest.TestCase):
    def test_auto_keeps_what_the_file_says(self):
        m = Compiled(OPEN, "--dynamic=auto")
        self.assertEqual([value.shape for value in m.ptc.inputs], [("b", "s"), (3, "s")])
        for b, s in ((1, 1), (2, 7)):
            m.check(self, x=floats(b, s), y=floats(3, s))

    def test_off_takes_hints(self):
        m = Compiled(OPEN, "--dynamic=off", "--dim=b=1..64:4", "--dim=s=5")
        self.assertEqual([value.shape for value in m.ptc.inputs], [(4, 5), (3, 5)])
        m.check(self, x=floats(4, 5), y=floats(3, 5))
        with self.assertRaises(ptc.Error):
            m(x=floats(3, 5), y=floats(3, 5))

    def test_on_frees_what_the_file_fixes(self):
        m = Compiled(FIXED, "--dynamic=on")
        self.assertEqual([(s.name, s.hint) for s in m.ptc.symbols], [("x_0", 2), ("x_1", 6)])
        for shape in ((2, 6), (1, 1), (5, 3)):
            np.testing.assert_array_equal(m(x=(x := floats(*shape)))["z"], np.concatenate([x, x], 1))

    def test_on_with_pins_and_buckets(self):
        m = Compiled(FIXED, "--dynamic=on", "--dim=x[1]=6", "--dim=x[0]=0..9:3", "--bucket=x[0]=4")
        self.assertEqual([value.shape for value in m.ptc.inputs], [("x_0", 6)])
        for rows in (0, 1, 4, 9):
            np.testing.assert_array_equal(m(x=(x := floats(rows, 6)))["z"], np.concatenate([x, x], 1))

    def test_on_guards_what_the_model_needs(self):
        m = Compiled("m (float[2, 6] x) => (float[2, 6] y) <float[6] w = {1, 2, 3, 4, 5, 6}> { y = Add(x, w) }", "--dynamic=on")
        np.testing.assert_allclose(m(x=np.zeros((4, 6), np.float32))["y"], np.tile(np.arange(1, 7), (4, 1)))
        with self.assertRaisesRegex(ptc.Error, "x_1"):
            m(x=floats(4, 5))

    def test_hint_and_range_are_told(self):
        m = Compiled(OPEN, "--dim=b=2..16:4")
        self.assertEqual([(s.name, s.min, s.max, s.hint) for s in m.ptc.symbols][0], ("b", 2, 16, 4))
        for b, said in ((1, "b >= 2 is needed, but b is 1"), (17, "b <= 16 is needed, but b is 17")):
            with self.assertRaisesRegex(ptc.Error, said):
                m(x=floats(b, 3), y=floats(3, 3))


class Refused(Refuses, unittest.TestCase):
    def test_sentences(self):
        rows = [
            (r"--dynamic=off: no size is given for b, s\n.*--dim b=SIZE", "--dynamic=off"),
            (r"--dynamic=off: no size is given for b\n", "--dynamic=off", "--dim=b=1..8", "--dim=s=4"),
            (r"unknown value 'maybe' of --dynamic\n.*auto, on or off", "--dynamic=maybe"),
        ]
        for said, *flags in rows:
            with self.subTest(flags):
                self.refuse(said, *flags)

    def test_a_size_in_the_file(self):
        self.refuse(r"dim 2 of 'x' is 3 in the model\n.*--dynamic=on", "--dim=x[2]=4")


if __name__ == "__main__":
    unittest.main()
