"""Which variant serves a call, that its results are right, and what the library shares between variants."""

import unittest

import numpy as np

import ptc
from models import RNG, Compiled, parse
from served import Refuses, Served, inputs, mix, with_weight


class Choice(unittest.TestCase):
    def test_guards_choose(self):
        m = Served(mix(), "--dim=b=1..8", "--dim=s=0..64:16", "--bucket=s=16,32", "--bucket=b=1,2")
        for b, s in [(1, 16), (2, 32), (2, 16), (1, 32), (3, 16), (1, 17), (8, 64), (1, 1), (5, 0)]:
            m.check(self, **inputs(b, s))
            wanted = f"b={b},s={s}" if b in (1, 2) and s in (16, 32) else None
            self.assertEqual(m.variant(), wanted)

    def test_sizes_zero_and_one(self):
        m = Served(mix(), "--dim=s=0..64", "--bucket=s=0,1")
        for s in (0, 1, 2):
            m.check(self, **inputs(3, s))
            self.assertEqual(m.variant(), f"s={s}" if s < 2 else None)

    def test_axis_names_a_dim(self):
        model = parse("m (float[a, ?] x) => (float[a, n] y) { y = Relu(x) }")
        m = Served(model, "--bucket=x[1]=5")
        m.check(self, x=RNG.standard_normal((2, 5)).astype(np.float32))
        self.assertEqual(m.variant(), "x_1=5")

    def test_no_variant_serves(self):
        m = Served(mix(), "--dim=s=1..64", "--bucket=s=16")
        with self.assertRaisesRegex(ptc.Error, r"s <= 64 is needed, but s is 65"):
            m(**inputs(1, 65))

    def test_sizes_that_the_run_finds(self):
        """A size that only some variants learn from a run is told by all."""
        m = Served("m (float[n] x) => (int64[1, k] y) { y = NonZero(x) }", "--dim=n=0..9", "--bucket=n=1,4")
        for n in (0, 1, 4, 5):
            m.check(self, x=np.ones(n, np.float32))
            self.assertEqual(m.variant(), f"n={n}" if n in (1, 4) else None)

    def test_branch_on_a_size(self):
        """What a general program decides at run time, a variant knows; sizes that branches make differ too."""
        text = """m (float[n] x) => (float[k] y) <int64[1] one = {1}, int64[1] three = {3}, int64[1] four = {4},
            int64[1] zero = {0}, int64[1] last = {1000}> {
          shape = Shape(x)
          size = Squeeze(shape, zero)
          limit = Squeeze(four, zero)
          few = Less(size, limit)
          y = If(few) <then_branch = t () => (float[k1] yt) { yt = Concat<axis=0>(x, x) },
                       else_branch = e () => (float[k2] ye) { ye = Slice(x, three, last, zero, one) }>
        }"""
        m = Served(text, "--dim=n=1..9", "--bucket=n=2,6")
        for n in (1, 2, 3, 4, 5, 6, 9):
            m.check(self, x=RNG.standard_normal(n).astype(np.float32))
            self.assertEqual(m.variant(), f"n={n}" if n in (2, 6) else None)

    def test_branch_that_a_size_forbids(self):
        """It stays in the variant, and ends the run that takes it."""
        text = """m (float[a] x, bool c) => (float[k] y) <float[3] w = {1, 2, 3}> {
          y = If(c) <then_branch = t () => (float[k1] yt) { yt = Add(x, w) },
                     else_branch = e () => (float[k2] ye) { ye = Neg(x) }>
        }"""
        m = Served(text, "--bucket=a=2,3")
        for a, c in ((2, False), (3, True), (3, False), (1, True), (4, False)):
            m.check(self, x=RNG.standard_normal(a).astype(np.float32), c=np.array(c))
            self.assertEqual(m.variant(), f"a={a}" if a in (2, 3) else None)
        with self.assertRaisesRegex(ptc.Error, "(a == 1 or a == 3|a == 3 or a == 1) is needed, with a=2"):
            m(x=np.ones(2, np.float32), c=np.array(True))

    def test_combinations_that_cannot_occur(self):
        """Sizes that a guard ties together: each in the combinations that it has."""
        text = "m (float[n] x, float[r, 4] w) => (float[r, 4] y) <int64[2] s = {-1, 4}> { g = Reshape(x, s) y = Add(g, w) }"
        m = Served(text, "--bucket=n=8,16", "--bucket=r=2,4")
        for n, r in ((8, 2), (16, 4), (12, 3)):
            m.check(self, x=RNG.standard_normal(n).astype(np.float32), w=RNG.standard_normal((r, 4)).astype(np.float32))
            self.assertEqual(m.variant(), f"n={n},r={r}" if n != 12 else "r=floordiv(n, 4)")

    def test_arithmetic_of_sizes(self):
        """2*s + 1, ceil(s / 2), n*s*2 and a size taken from another input."""
        text = """m (float[n, s, 4] x, float[1, s] w) => (float[n, k, 4] y, float[n, h, 4] z, float[r, 2] f, float[n, s] e)
        <int64[6] pads = {0, 0, 0, 0, 1, 0}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] last = {1000000},
         int64[1] two = {2}, int64[2] flat = {-1, 2}, int64[2] column = {0, 1}> {
          double = Concat<axis=1>(x, x)
          y = Pad(double, pads)
          z = Slice(x, zero, last, one, two)
          f = Reshape(x, flat)
          shape = Shape(w)
          sums = ReduceSum<keepdims=0>(x, two)
          first = Slice(sums, zero, one, one)
          e = Expand(first, shape)
        }"""
        m = Served(text, "--bucket=s=5", "--bucket=n=1", "--dim=s=1..100")
        for n, s in ((1, 5), (1, 4), (3, 1), (2, 5), (2, 33)):
            values = {name: RNG.standard_normal(shape).astype(np.float32) for name, shape in (("x", (n, s, 4)), ("w", (1, s)))}
            m.check(self, **values)
            self.assertEqual(m.variant(), "n=1,s=5" if (n, s) == (1, 5) else None)

    def test_loops(self):
        text = """m (float[n, 3] x, int64 trips) => (float[n, 3] y) <bool on = {1}> {
          y = Loop(trips, on, x) <body = b (int64 i, bool c, float[n, 3] s) => (bool c2, float[n, 3] s2) {
            c2 = Identity(c)
            s2 = Add(s, s)
          }>
        }"""
        m = Served(text, "--bucket=n=4")
        for n in (3, 4):
            m.check(self, x=RNG.standard_normal((n, 3)).astype(np.float32), trips=np.array(3))
            self.assertEqual(m.variant(), f"n={n}" if n == 4 else None)

    def test_state_in_place(self):
        text = "m (float[n] x, float[n] s) => (float[n] t) { t = Add(x, s) }"
        m = Served(text, "--alias=s=t", "--bucket=n=8")
        for n in (7, 8):
            got = m(x=np.ones(n, np.float32), s=np.arange(n, dtype=np.float32))
            np.testing.assert_array_equal(got["t"], np.arange(n) + 1)
            self.assertEqual(m.variant(), f"n={n}" if n == 8 else None)

    def test_taps_in_every_variant(self):
        seen = []
        m = Compiled(mix(), "--tap=all", "--bucket=s=16")
        tapped = ptc.load(m.library, tap=lambda tap: seen.append((tap.output, tap.array.shape)))
        for s in (16, 17):
            seen.clear()
            tapped(**inputs(2, s))
            self.assertIn(("p", (2, s, 4)), seen)


class Sharing(unittest.TestCase):
    def test_weights_are_stored_once(self):
        text = "m (float[b, 512] x) => (float[b, 512] y) { y = MatMul(x, w) }"
        model = with_weight(text, "w", RNG.uniform(0, 0.01, (512, 512)).astype(np.float32))
        alone, four = Served(model, "--dim=b=1..64"), Served(model, "--dim=b=1..64", "--bucket=b=1,8,16")
        for b in (1, 5, 8, 16, 64):
            four.check(self, x=RNG.standard_normal((b, 512)).astype(np.float32))
        self.assertEqual(four.manifest["weights"], alone.manifest["weights"])
        self.assertLess(four.bytes() - alone.bytes() - four.manifest["code_bytes"], 512 * 512)

    def test_set_weight_reaches_all_variants(self):
        text = "m (float[b, 64] x) => (float[b, 64] y) { y = MatMul(x, w) }"
        m = Served(with_weight(text, "w", RNG.standard_normal((64, 64)).astype(np.float32)), "--bucket=b=1,8")
        weight = RNG.standard_normal((64, 64)).astype(np.float32)
        m.ptc.set_weight("w", weight)
        for b in (1, 3, 8):
            x = RNG.standard_normal((b, 64)).astype(np.float32)
            np.testing.assert_allclose(m(x=x)["y"], x @ weight, rtol=1e-4, atol=1e-4)

    def test_constants_are_stored_once(self):
        """What does not depend on the size has one copy, computed constants included."""
        table = RNG.standard_normal((64, 64)).astype(np.float32)
        text = "m (float[b, 64] x) => (float[b, 64] y) { e = Exp(c) y = MatMul(x, e) }"
        few, many = Served(with_weight(text, "c", table)), Served(with_weight(text, "c", table), "--bucket=b=1,2,3,4,5,6,7,8")
        self.assertLess(many.bytes() - few.bytes() - many.manifest["code_bytes"], 8 * 4096)

    def test_a_variant_is_its_own_static_compile(self):
        m = Served(mix(), "--dim=b=1..8", "--dim=s=1..64", "--bucket=b=2", "--bucket=s=16")
        pinned = Served(mix(), "--dim=b=2", "--dim=s=16")
        self.assertEqual(m.kernels("b=2,s=16"), pinned.kernels())

    def test_reserved_memory_serves_every_variant(self):
        """Dims no larger than those of a run need no more memory, whichever program they run."""
        m = Served(mix(), "--dim=s=1..64", "--bucket=s=32")
        most = m.ptc.workspace_size(**inputs(4, 33))
        self.assertLessEqual(m.ptc.workspace_size(**inputs(4, 32)), most)
        self.assertLessEqual(m.ptc.workspace_size(**inputs(4, 31)), m.ptc.workspace_size(**inputs(4, 32)))


class Manifest(unittest.TestCase):
    def test_says_variants(self):
        m = Served(mix(), "--bucket=s=16", "--bucket=b=1,2")
        function = m.manifest["functions"][0]
        names = ["b=1,s=16", "b=2,s=16"]
        self.assertEqual([variant["name"] for variant in function["variants"]], names)
        self.assertEqual(function["variants"][1]["guards"], ["b == 2", "s == 16"])
        self.assertEqual([entry.get("variant") for entry in m.manifest["memory"]], [None, *names])
        for variant in (None, *names):
            self.assertTrue(m.kernels(variant))
        self.assertIn(" *   b=2,s=16\n", m.library.with_suffix(".h").read_text())
        self.assertIn("--bucket=s=16", m.manifest["flags"])

    def test_without_buckets_nothing_of_them(self):
        m = Served(mix())
        self.assertNotIn("variant", m.library.with_suffix(".json").read_text())
        self.assertNotIn("ariant", m.library.with_suffix(".hpp").read_text())

    def test_same_bytes(self):
        first, second = Compiled(model := mix(), "--bucket=s=16,32"), Compiled(model, "--bucket=s=16,32")
        self.assertEqual(first.library.read_bytes(), second.library.read_bytes())


class Refused(Refuses, unittest.TestCase):
    def test_sentences(self):
        rows = [
            (r"no input of the model has a dim 'q'\n.*its dims: b, s", "--bucket=q=3"),
            (r"NAME=SIZE,SIZE,\.\.\. is needed", "--bucket=s=3,"),
            (r"NAME=SIZE,SIZE,\.\.\. is needed", "--bucket=s"),
            (r"NAME=SIZE,SIZE,\.\.\. is needed", "--bucket=s=3..5"),
            (r"the size 4 is named twice", "--bucket=s=4,5,4"),
            (r"'s' has buckets already", "--bucket=s=4", "--bucket=s=5"),
            (r"the size 65 is not in the range 1\.\.64 of 's'\n.*--dim s=1\.\.65", "--dim=s=1..64", "--bucket=s=65"),
            (r"the size 0 is not in the range 1\..* of 's'\n.*--dim s=0\.\.", "--bucket=s=0"),
            (r"dim 2 of 'x' is 3 in the model", "--bucket=x[2]=3"),
            (r"the dim 's' is pinned to 8\n.*--dim s=1\.\.8", "--dim=s=8", "--bucket=s=8"),
            (r"--dynamic=off leaves no dim free", "--dynamic=off", "--dim=s=8", "--dim=b=1", "--bucket=s=8"),
            (r"there would be 72 variants.*64 is the most", "--bucket=b=1,2,3,4,5,6,7,8", "--bucket=s=1,2,3,4,5,6,7,8,9"),
        ]
        for said, *flags in rows:
            with self.subTest(flags):
                self.refuse(said, *flags)

    def test_a_size_that_the_model_refuses(self):
        """A guard of the model's own that a size does not meet."""
        model = "m (float[n] x) => (float[r, 4] y) <int64[2] shape = {-1, 4}> { y = Reshape(x, shape) }"
        self.refuse(r"--bucket n=6: the model needs .*, which does not hold", "--bucket=n=8,6", model=model)


if __name__ == "__main__":
    unittest.main()
