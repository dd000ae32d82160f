"""Operators whose results are as long as what they find, and what models do with the results."""

import unittest

import numpy as np

from models import Compiled, sparse


class Selection(unittest.TestCase):
    def test_non_zero(self):
        model = Compiled("m (float[h, w] x) => (int64[2, n] y) { y = NonZero(x) }", "--dim=h=0..100")
        for shape in ((3, 4), (1, 1), (17, 33), (0, 5)):
            for share in (0, 0.3, 1):
                model.check(self, x=sparse(*shape, share=share))

    def test_non_zero_of_every_rank_and_type(self):
        for kind, numpy in (("int32", np.int32), ("bool", np.bool_), ("uint8", np.uint8)):
            model = Compiled(f"m ({kind}[a, 3, b, 2] x) => (int64[4, n] y) {{ y = NonZero(x) }}")
            model.check(self, x=sparse(2, 3, 5, 2).astype(numpy))
        for dims, shape in (("1, h, 1, 3, 1", (1, 7, 1, 3, 1)), ("1, 1", (1, 1)), ("h, 1, 1", (9, 1, 1)), ("1, 1, h", (1, 1, 9))):
            model = Compiled(f"m (float[{dims}] x) => (int64[{len(shape)}, n] y) {{ y = NonZero(x) }}")
            model.check(self, x=sparse(*shape))
        model = Compiled("m (float[a] x) => (int64[1, n] y) { y = NonZero(x) }")
        model.check(self, x=sparse(1000))

    def test_a_size_inside_the_model_alone(self):
        # The found elements' sum: the output's shape is static.
        model = Compiled("""m (float[n] x) => (float y, int64[1] s)
            { i = NonZero(x) t = Transpose<perm=[1, 0]>(i) v = GatherND(x, t) y = ReduceSum<keepdims=0>(v) z = Shape(v) s = Identity(z) }""")
        for share in (0, 0.5, 1):
            model.check(self, x=sparse(100, share=share))

    def test_what_follows(self):
        model = Compiled("""m (float[n, 4] x, float[n] w) => (float[k, 4] rows, float[k, 4] scaled, float[total, 4] joined, int64[2] s)
            { i = NonZero(w) f = Constant<value = int64[1] {-1}>() j = Reshape(i, f) rows = Gather(x, j) v = Gather(w, j)
              a = Constant<value = int64[1] {1}>() u = Unsqueeze(v, a) scaled = Mul(rows, u)
              joined = Concat<axis=0>(x, rows) s = Shape(rows) }""")
        for n in (1, 2, 50):
            model.check(self, x=sparse(n, 4), w=sparse(n))

    def test_slices_and_sorts_of_found_rows(self):
        model = Compiled("""m (float[n] x) => (float[k] tail, float[k] sorted, float[m] padded)
            { z = Constant<value = float {0.0}>() c = Greater(x, z) v = Compress<axis=0>(x, c)
              one = Constant<value = int64[1] {1}>() big = Constant<value = int64[1] {1000000}>() tail = Slice(v, one, big)
              s = Shape(v) sorted, i = TopK(v, s) p = Constant<value = int64[2] {1, 2}>() padded = Pad(v, p) }""")
        for n in (1, 3, 40):
            model.check(self, x=sparse(n, share=1))

    def test_compress(self):
        flat = Compiled("m (float[a, b] x, bool[c] i) => (float[k] y) { y = Compress(x, i) }")
        along = Compiled("m (float[a, b] x, bool[c] i) => (float[a, k] y) { y = Compress<axis=-1>(x, i) }")
        for model in (flat, along):
            for count in (1, 3, 5):
                x, i = sparse(4, 5), sparse(count) != 0
                model.check(self, x=x, i=i)

    def test_two_finds_of_equal_length(self):
        # Nothing but the run knows that both are of one length.
        model = Compiled("""m (float[n] x, float[n] y) => (float[k] z)
            { i = NonZero(x) f = Constant<value = int64[1] {-1}>() j = Reshape(i, f) a = Gather(x, j)
              p = NonZero(y) q = Reshape(p, f) b = Gather(y, q) z = Add(a, b) }""")
        x = sparse(20)
        model.check(self, x=x, y=np.roll(x, 3))
        one = np.array([0, 1, 0, 0], np.float32)
        for a, b in ((np.ones(4, np.float32), one), (one, np.ones(4, np.float32)), (one, 0 * one)):
            model.check(self, x=a, y=b)
        with self.assertRaisesRegex(Exception, r"u\d+ == 1 or u\d+ == u\d+ or u\d+ == 1 is needed.*u\d+ is \d+ \(found by node '[ip]'\)"):
            model(x=np.ones(4, np.float32), y=np.array([1, 0, 0, 1], np.float32))

    def test_finds_of_finds(self):
        model = Compiled("""m (float[n] x) => (int64[1, k] y)
            { i = NonZero(x) f = Constant<value = int64[1] {-1}>() j = Reshape(i, f) a = Gather(x, j)
              z = Constant<value = float {0.0}>() c = Greater(a, z) y = NonZero(c) }""")
        for n in (1, 10, 100):
            model.check(self, x=sparse(n))

    def test_indices_into_nothing(self):
        # Kernels take element 0 for an index that is out of range: where there is none they do not run.
        model = Compiled("""m (float[n] x, int64[m] i, float[m] u) => (float[m] g, float[n] s) { g = Gather(x, i) s = ScatterElements(x, i, u) }""",
                         "--dim=n=0..", "--dim=m=0..")
        for n, m in ((5, 3), (5, 0), (0, 0)):
            model.check(self, x=sparse(n), i=np.zeros(m, np.int64), u=sparse(m))
        with self.assertRaisesRegex(Exception, r"min\(1, m\) < n \+ 1 is needed, but m is 3 .* and n is 0"):
            model(x=sparse(0), i=np.zeros(3, np.int64), u=sparse(3))
        found = Compiled("""m (float[n] x, int64[m] i) => (float[m] g)
            { i2 = NonZero(x) f = Constant<value = int64[1] {-1}>() j = Reshape(i2, f) a = Gather(x, j) g = Gather(a, i) }""")
        found.check(self, x=np.ones(4, np.float32), i=np.array([0, -1]))
        with self.assertRaisesRegex(Exception, r"u0 >= 1 is needed, but u0 is 0 \(found by node 'i2'\)"):
            found(x=np.zeros(4, np.float32), i=np.array([0]))


if __name__ == "__main__":
    unittest.main()
