"""Unique in all its forms against onnxruntime, and against numpy where onnxruntime lacks the type."""

import unittest

import numpy as np

import models
from models import Compiled


def text(kind, attributes, x="n", y="k"):
    return f"""m ({kind}[{x}] x) => ({kind}[{y}] y, int64[a] first, int64[b] inverse, int64[c] counts)
        {{ y, first, inverse, counts = Unique<{attributes}>(x) }}"""


class Unique(unittest.TestCase):
    def test_elements(self):
        for is_sorted in (0, 1):
            for kind, numpy in (("float", np.float32), ("int64", np.int64), ("int8", np.int8), ("double", np.float64)):
                model = Compiled(text(kind, f"sorted={is_sorted}"))
                for count, different in ((1, 1), (7, 3), (300, 20), (50, 1), (64, 1000)):
                    model.check(self, x=models.RNG.integers(-different, different, count).astype(numpy))

    def test_flattens(self):
        model = Compiled(text("float", "sorted=0", "a0, b0, c0"))
        model.check(self, x=models.RNG.integers(0, 5, (2, 3, 4)).astype(np.float32))

    def test_slices(self):
        for is_sorted in (0, 1):
            for axis, rank in ((0, 2), (1, 2), (-1, 3), (1, 3)):
                dims, result = "p, q, r"[: 3 * rank - 2], ["p", "q", "r"][:rank]
                result[axis] = "k"
                model = Compiled(text("float", f"sorted={is_sorted}, axis={axis}", dims, ", ".join(result)))
                for shape in ((6, 4, 3), (1, 1, 1), (3, 9, 2)):
                    model.check(self, x=models.RNG.integers(0, 2, shape[:rank]).astype(np.float32))

    def test_no_elements(self):
        model = Compiled(text("int64", "sorted=1"), "--dim=n=0..10")
        for array in model(x=np.zeros(0, np.int64)).values():
            self.assertEqual(array.shape, (0,))

    def test_strings(self):
        words = np.array(["b", "", "ab", "a", "b", "aa", "", "é", "ab", "z" * 40, "z" * 39 + "y", "z" * 40], dtype=object)
        model = Compiled(text("string", "sorted=1"))
        for x in (words, words[:1], np.tile(words, 9), words[4:6]):
            model.check(self, x=x)
        first = Compiled(text("string", "sorted=0"))
        first.check(self, x=words)
        rows = Compiled("m (string[n, 2] x) => (string[k, 2] y, int64[n] i) { y, , i = Unique<axis=0>(x) }")
        got = rows(x=np.array([["b", "a"], ["a", "z"], ["b", "a"], ["a", "b"]], dtype=object))
        np.testing.assert_array_equal(got["y"], np.array([["a", "b"], ["a", "z"], ["b", "a"]], dtype=object))
        np.testing.assert_array_equal(got["i"], [2, 1, 2, 0])

    def test_not_a_number_equals_itself(self):
        model = Compiled(text("float", "sorted=1"))
        got = model(x=np.array([np.nan, 1, np.nan, -np.inf, 1], np.float32))
        np.testing.assert_array_equal(got["y"], np.array([-np.inf, 1, np.nan], np.float32))
        np.testing.assert_array_equal(got["counts"], [1, 2, 2])


if __name__ == "__main__":
    unittest.main()
