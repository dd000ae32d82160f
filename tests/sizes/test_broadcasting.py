"""Free dims that meet in a broadcast: they may be equal, or one of them may be 1."""

import itertools
import json
import unittest

import numpy as np

import ptc
from models import RNG, Compiled


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


class Broadcasting(unittest.TestCase):
    def check_all(self, model, shapes, sizes=((1, 1), (4, 4), (1, 4), (4, 1), (0, 0), (0, 1), (1, 0))):
        """`shapes` says what shapes the inputs have, given two sizes that meet."""
        for a, b in sizes:
            model.check(self, **{name: normal(*shape) for name, shape in shapes(a, b).items()})

    def test_one_pair(self):
        model = Compiled("m (float[a, 3] x, float[b, 3] y) => (float[c, 3] z) { z = Add(x, y) }", "--dim", "a=0..64", "--dim", "b=0..64")
        self.check_all(model, lambda a, b: {"x": (a, 3), "y": (b, 3)})
        for a, b in ((2, 3), (0, 2), (5, 4)):
            with self.assertRaisesRegex(Exception, "node 'z': (a|b|1| or | == )+ is needed, but a is "):
                model(x=normal(a, 3), y=normal(b, 3))

    def test_nothing_beside_one(self):
        """A size of 0 that the compiler knows, beside one that may be 1."""
        model = Compiled("m (float[a, 3] x, float[b, 3] y) => (float[c, 3] z) { z = Add(x, y) }", "--dim", "a=0", "--dim", "b=0..64")
        self.check_all(model, lambda a, b: {"x": (a, 3), "y": (b, 3)}, ((0, 0), (0, 1)))
        with self.assertRaisesRegex(Exception, "is needed, but"):
            model(x=normal(0, 3), y=normal(2, 3))

    def test_stretched_beside_its_larger_part(self):
        """What the two have become meets the larger one again, where it has to be equal."""
        model = Compiled("m (float[a, 3] x, float[b, 3] y) => (float[c, 6] z) { u = Add(x, y) z = Concat<axis=1>(u, y) }")
        self.check_all(model, lambda a, b: {"x": (a, 3), "y": (b, 3)}, ((1, 1), (4, 4), (1, 4)))
        with self.assertRaisesRegex(Exception, "node 'z'"):
            model(x=normal(4, 3), y=normal(1, 3))

    def test_parts_that_have_to_be_equal(self):
        model = Compiled("m (float[a, 3] x, float[b, 3] y) => (float[c, 3] s, float[d, 6] z) { s = Add(x, y) z = Concat<axis=1>(x, y) }")
        self.check_all(model, lambda a, b: {"x": (a, 3), "y": (b, 3)}, ((1, 1), (4, 4)))
        self.assertFalse(any(kernel.get("variant") for kernel in json.loads(model.library.with_suffix(".json").read_text())["kernels"]))
        with self.assertRaisesRegex(Exception, "is needed, but"):
            model(x=normal(1, 3), y=normal(4, 3))

    def test_last_dim(self):
        model = Compiled("m (float[3, a] x, float[3, b] y) => (float[3, c] z) { s = Mul(x, y) z = Exp(s) }")
        self.check_all(model, lambda a, b: {"x": (3, a), "y": (3, b)}, ((1, 1), (37, 37), (1, 37), (37, 1)))

    def test_constant_above_one(self):
        model = Compiled("m (float[a, b] x) => (float[c, d] z) <float[2, 5] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}> { z = Sub(x, w) }")
        for shape in ((2, 5), (1, 5), (2, 1), (1, 1)):
            model.check(self, x=normal(*shape))
        with self.assertRaisesRegex(Exception, "is needed, but"):
            model(x=normal(3, 5))

    def test_several_pairs_that_meet_again(self):
        model = Compiled("""m (float[a, s] x, float[b, t] y, float[c, 1] w) => (float[p, q] z, float[r] rows)
            { u = Add(x, y) v = Mul(u, x) k = Sub(y, v) j = Add(k, w) z = Div(j, u) rows = ReduceSum<keepdims=0>(z, one) }"""
                         .replace("{ u", "{ one = Constant<value = int64[1] {1}>() u"))
        for (a, b, c), (s, t) in itertools.product(((4, 4, 4), (1, 4, 1), (4, 1, 1), (1, 1, 4), (1, 4, 4)), ((7, 7), (1, 7), (7, 1))):
            model.check(self, x=1 + abs(normal(a, s)), y=1 + abs(normal(b, t)), w=normal(c, 1))

    def test_products(self):
        model = Compiled("""m (float[a, h, m, 8] x, float[b, g, 8, n] y, float[e, 1, m2, n2] mask) => (float[p, q, r, s] z)
            { d = MatMul(x, y) t = Add(d, mask) z = Softmax<axis=3>(t) }""")
        for a, b, h, g, e, m, n in ((2, 2, 3, 3, 2, 5, 6), (1, 2, 3, 1, 1, 1, 6), (2, 1, 1, 3, 2, 5, 1), (1, 1, 1, 1, 4, 2, 2)):
            model.check(self, x=normal(a, h, 5, 8), y=normal(b, g, 8, 6), mask=normal(e, 1, m if m in (1, 5) else 5, n if n in (1, 6) else 6))

    def test_attention_with_a_mask_of_its_own_dims(self):
        model = Compiled("""m (float[b, s, 16] x, float[b2, s2] mask) => (float[p, q, 16] z)
            { k = Transpose<perm=[0, 2, 1]>(x) d = MatMul(x, k) m = Unsqueeze(mask, axes) t = Add(d, m) w = Softmax<axis=2>(t) o = MatMul(w, x) z = Add(o, x) }"""
                         .replace("{ k", "{ axes = Constant<value = int64[1] {1}>() k"))
        for b, b2, s, s2 in ((2, 2, 5, 5), (1, 3, 5, 5), (3, 1, 5, 5), (2, 2, 5, 1), (2, 1, 1, 1)):
            model.check(self, x=normal(b, s, 16), mask=normal(b2, s2))

    def test_where_expand_and_comparison(self):
        model = Compiled("""m (float[a] x, float[b] y, float[c] z) => (float[d] r, bool[e] l)
            { l = Less(x, y) w = Where(l, x, z) n = Shape(z) r = Expand(w, n) }""")
        for a, b, c in ((3, 3, 3), (1, 3, 3), (3, 1, 1), (1, 1, 3), (3, 3, 1)):
            model.check(self, x=normal(a), y=normal(b), z=normal(c))

    def test_found_sizes(self):
        model = Compiled("""m (float[n] x, float[k] y) => (float[r] z)
            { i = NonZero(x) f = Squeeze(i, zero) g = Cast<to=1>(f) z = Add(g, y) }"""
                         .replace("{ i", "{ zero = Constant<value = int64[1] {0}>() i"))
        for count, size in ((1, 5), (4, 4), (4, 1), (1, 1), (0, 1)):
            x = np.zeros(9, np.float32)
            x[:count] = 1
            model.check(self, x=x, y=normal(size))
        with self.assertRaisesRegex(Exception, "is needed, but"):
            model(x=np.ones(9, np.float32), y=normal(3))

    def test_in_a_branch(self):
        model = Compiled("""m (bool go, float[a] x, float[b] y) => (float[c] z)
            { z = If(go) <then_branch = t () => (float[p] u) { u = Add(x, y) }, else_branch = e () => (float[q] v) { v = Neg(x) }> }""")
        for go, a, b in ((True, 3, 3), (True, 1, 3), (True, 3, 1), (False, 3, 2)):
            model.check(self, go=np.array(go), x=normal(a), y=normal(b))

    def test_equal_sizes_have_the_program_of_one_symbol(self):
        text = "m (float[b, s, 8] x, float[{}, {}, 8] y) => (float[p, q, 8] z) {{ t = Mul(x, y) u = Sigmoid(t) z = Add(u, x) }}"
        own, other = Compiled(text.format("b2", "s2")), Compiled(text.format("b", "s"))
        kernels = [json.loads(model.library.with_suffix(".json").read_text())["kernels"] for model in (own, other)]
        equal = [kernel for kernel in kernels[0] if kernel.get("variant")]
        work = [[(kernel["name"].rsplit("_", 1)[0], kernel["flops"], kernel["bytes_read"]) for kernel in group] for group in (equal, kernels[1])]
        self.assertEqual(*work)
        profiled = ptc.load(own.library, profile=64)
        for sizes, variant in (((2, 3), "b2=b,s2=s"), ((1, 3), None)):
            profiled(x=normal(2, 3, 8), y=normal(*sizes, 8))
            self.assertEqual([span.kernel for span in profiled.take_spans() if span.kind == "run"][-1], variant)

    def test_buckets_are_of_equal_sizes(self):
        model = Compiled("m (float[a, 3] x, float[b, 3] y) => (float[c, 3] z) { z = Add(x, y) }", "--bucket", "a=1,4")
        self.check_all(model, lambda a, b: {"x": (a, 3), "y": (b, 3)}, ((1, 1), (4, 4), (1, 4), (4, 1), (5, 5)))

    def test_buckets_that_stretch(self):
        model = Compiled("m (float[a, 3] x, float[b, 3] y) => (float[c, 3] z) { z = Add(x, y) }", "--bucket", "a=1,4", "--bucket", "b=1,4")
        sizes = (1, 1), (4, 4), (1, 4), (4, 1), (5, 5), (1, 5)
        self.check_all(model, lambda a, b: {"x": (a, 3), "y": (b, 3)}, sizes)
        profiled, served = ptc.load(model.library, profile=64), []
        for a, b in sizes:
            profiled(x=normal(a, 3), y=normal(b, 3))
            served.append([span.kernel for span in profiled.take_spans() if span.kind == "run"][-1])
        self.assertEqual(served, ["a=1,b=1", "a=4,b=4", "a=1,b=4", "a=4,b=1", "b=a", None])

    def test_a_bucket_of_one_serves_what_it_meets(self):
        model = Compiled("m (float[a, 3] x, float[b, 3] y) => (float[c, 3] z) { z = Add(x, y) }", "--bucket", "a=1")
        profiled, served = ptc.load(model.library, profile=64), []
        for a, b in ((1, 1), (1, 7), (7, 1), (7, 7)):
            model.check(self, x=normal(a, 3), y=normal(b, 3))
            profiled(x=normal(a, 3), y=normal(b, 3))
            served.append([span.kernel for span in profiled.take_spans() if span.kind == "run"][-1])
        self.assertEqual(served, ["a=1,b=1", "a=1", None, "b=a"])
