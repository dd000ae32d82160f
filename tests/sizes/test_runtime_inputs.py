"""Inputs that decide shapes and are known only when the model runs."""

import unittest

import numpy as np

import ptc

from models import RNG, Compiled, sparse


def ints(*values):
    return np.array(values, np.int64)


class RuntimeInputs(unittest.TestCase):
    def test_reshape(self):
        model = Compiled("m (float[a, b, c] x, int64[2] s) => (float[p, q] y) { y = Reshape(x, s) }")
        x = sparse(2, 3, 4)
        for shape in ((6, 4), (-1, 8), (0, -1), (24, 1), (2, 12)):
            model.check(self, x=x, s=ints(*shape))
        with self.assertRaisesRegex(Exception, "is needed, but"):
            model(x=x, s=ints(5, 5))

    def test_zeros_that_copy(self):
        # What is computed can be 0 as well as what is given; a factor of the elements' number is 0 where there are none.
        model = Compiled("""m (float[a, b] x, float[c] mask) => (float[p, q] y, float[r, t] z)
            { i = NonZero(mask) s = Shape<start=1>(i) left = Constant<value_ints=[-1]>() t = Concat<axis=0>(s, left) y = Reshape(x, t)
              u = Concat<axis=0>(left, s) z = Reshape(x, u) }""")
        for count in (0, 2, 3, 4):
            model.check(self, x=sparse(4, 6), mask=np.array([1] * count + [0] * 5, np.float32)[:6])
        with self.assertRaisesRegex(Exception, "is needed, but"):
            model(x=sparse(4, 6), mask=np.ones(5, np.float32))
        for allowed in (0, 1):
            found = Compiled(f"""m (float[a, 4] x, float[a] w) => (float[k, 2, 2] y)
                {{ i = NonZero(w) f = Constant<value_ints=[-1]>() j = Reshape(i, f) rows = Gather(x, j) s = Shape<end=1>(rows)
                  two = Constant<value_ints=[2, 2]>() t = Concat<axis=0>(s, two) y = Reshape<allowzero={allowed}>(rows, t) }}""")
            for share in (0, 1):
                found.check(self, x=sparse(3, 4), w=sparse(3, share=share))

    def test_what_is_left_once(self):
        model = Compiled("m (float[a, b] x, int64[3] s) => (float[p, q, r] y) { y = Reshape(x, s) }")
        model.check(self, x=sparse(2, 3), s=ints(-1, 1, 6))
        for shape in ((-1, -1, 6), (-2, 1, 6)):
            with self.assertRaisesRegex(Exception, "is needed, but"):
                model(x=sparse(2, 3), s=ints(*shape))

    def test_what_is_left_of_nothing(self):
        # Beside 0 elements it may be anything, which onnxruntime refuses, too; a quotient that holds for all sizes is what it is.
        flag = "--dim=a=0..4"
        copied = Compiled("m (float[a, 4] x) => (float[p, q] y) { s = Constant<value_ints=[0, -1]>() y = Reshape(x, s) }", flag)
        given = Compiled("m (float[a, 4] x, int64[2] s) => (float[p, q] y) { y = Reshape(x, s) }", flag)
        counted = Compiled("""m (float[a, 4] x, float[b] z) => (float[p, q] y)
            { r = Shape(z) left = Constant<value_ints=[-1]>() s = Concat<axis=0>(r, left) y = Reshape<allowzero=1>(x, s) }""", flag, "--dim=b=0..4")
        full, none = sparse(3, 4), sparse(0, 4)
        for run in (lambda **values: given.reference.run(None, values), given):
            with self.assertRaises(Exception):
                run(x=none, s=ints(0, -1))
        with self.assertRaisesRegex(Exception, "is needed, but"):
            counted(x=none, z=sparse(0))
        self.assertEqual(copied(x=none)["y"].shape, (0, 4))
        copied.check(self, x=full)
        for count in (1, 2, 3):
            counted.check(self, x=full, z=sparse(count))
        for shape in ((0, -1), (-1, 2)):
            given.check(self, x=full, s=ints(*shape))
        for shape in ((0, 4), (-1, 4), (-1, 0)):
            given.check(self, x=none, s=ints(*shape))

    def test_reshape_beside_known_sizes(self):
        model = Compiled("""m (float[a, b] x, int64[1] s) => (float[p, q, r] y)
            { one = Constant<value = int64[1] {-1}>() two = Constant<value = int64[1] {2}>() t = Concat<axis=0>(one, s, two) y = Reshape(x, t) }""")
        for size in (1, 2, 3, 6):
            model.check(self, x=sparse(4, 6), s=ints(size))

    def test_expand_and_what_follows(self):
        model = Compiled("""m (float[3, 1] x, int64[3] s) => (float[p, q, r] y, float[q2, r2] z)
            { y = Expand(x, s) e = Exp(y) z = ReduceSum<keepdims=0>(e, a0) }""".replace("z = ReduceSum<keepdims=0>(e, a0)",
            "a0 = Constant<value = int64[1] {0}>() z = ReduceSum<keepdims=0>(e, a0)"))
        for shape in ((2, 1, 6), (1, 3, 1), (4, 3, 5), (0, 3, 2)):
            model.check(self, x=sparse(3, 1), s=ints(*shape))
        with self.assertRaisesRegex(Exception, "is needed, but"):
            model(x=sparse(3, 1), s=ints(2, 4, 2))

    def test_expand_of_a_free_dim(self):
        model = Compiled("m (float[n, 3] x, int64[2] shape) => (float[p, q] y) { e = Expand(x, shape) y = Exp(e) }")
        for n, rows in ((1, 1), (1, 5), (4, 1), (4, 4)):
            model.check(self, x=RNG.standard_normal((n, 3)).astype(np.float32), shape=ints(rows, 3))
        with self.assertRaisesRegex(Exception, "is needed, but"):
            model(x=RNG.standard_normal((4, 3)).astype(np.float32), shape=ints(5, 3))

    def test_grown_memory_stays(self):
        # Two reductions of a value whose size nothing bounds: it is stored, and grows.
        model = Compiled("""m (float[1] x, int64[2] s) => (float y)
            { e = Expand(x, s) c = CumSum(e, one) d = Sigmoid(c) m = ReduceMax<keepdims=0>(d) r = Sub(d, m) y = ReduceMean<keepdims=0>(r) }"""
            .replace("c = CumSum", "one = Constant<value = int64 {1}>() c = CumSum"))
        for shape in ((2, 3), (100, 7), (50, 3), (1, 1), (300, 300)):
            model.check(self, x=np.array([0.01], np.float32), s=ints(*shape))

    def test_vectors_of_open_length(self):
        # As many as the operator has dims for; where they decide the rank, nothing can be compiled.
        model = Compiled("m (float[a, b] x, int64[k] r) => (float[p, q] y) { y = Tile(x, r) }")
        model.check(self, x=sparse(3, 4), r=ints(2, 3))
        with self.assertRaisesRegex(Exception, "k == 2"):
            model(x=sparse(3, 4), r=ints(2))
        model = Compiled("m (float[a, b] x, int64[k] s, int64[k] e) => (float[p, q] y) { y = Slice(x, s, e) }")
        model.check(self, x=sparse(5, 6), s=ints(1, 0), e=ints(4, -2))
        model = Compiled("m (float[a, b] x, int64[k] p) => (float[c, d] y) { y = Pad(x, p) }")
        model.check(self, x=sparse(3, 4), p=ints(0, 1, 2, 0))
        with self.assertRaisesRegex(Exception, "--dim k=2"):
            Compiled("m (float[a, b] x, int64[k] s) => (float[p, q] y) { y = Expand(x, s) }")

    def test_resize(self):
        scales = lambda *values: np.array(values, np.float32)
        for mode in ("nearest", "linear", "cubic"):
            for how in ("half_pixel", "align_corners"):
                attributes = f'mode="{mode}", coordinate_transformation_mode="{how}"'
                found = Compiled(f"m (float[1, 2, a, b] x, float[4] s) => (float[n, c, p, q] y) {{ y = Resize<{attributes}>(x, , s) }}")
                for s in (scales(1, 1, 2, 2), scales(1, 1, 0.5, 1.5), scales(1, 1, 2.5, 0.75)):
                    found.check(self, x=sparse(1, 2, 8, 12), s=s)
                sized = Compiled(f"m (float[1, 2, a, b] x, int64[4] s) => (float[n, c, p, q] y) {{ y = Resize<{attributes}>(x, , , s) }}")
                for s in (ints(1, 2, 16, 24), ints(1, 2, 5, 7), ints(1, 2, 1, 3)):
                    sized.check(self, x=sparse(1, 2, 8, 12), s=s)

    def test_resize_between_two_elements(self):
        """Halves of i * (in - 1) / (out - 1) are halves, whether sizes are known, free or found."""
        for near in ("round_prefer_floor", "round_prefer_ceil", "floor"):
            resize = f'y = Resize<mode="nearest", coordinate_transformation_mode="align_corners", nearest_mode="{near}">(x, , , s)'
            found = Compiled(f"m (float[1, a] x, int64[2] s) => (float[n, q] y) {{ {resize} }}")
            for size, result in ((4, 31), (32, 31), (7, 13), (31, 32)):
                x = np.arange(size, dtype=np.float32)[None]
                found.check(self, x=x, s=ints(1, result))
                for width in ("a", size):
                    known = Compiled(f"m (float[1, {width}] x) => (float[n, q] y) <int64[2] s = {{1, {result}}}> {{ {resize} }}")
                    known.check(self, x=x)

    def test_resize_by_scales_that_no_float_is(self):
        """Products are rounded in f32, whether width and scales are known or found: 1.3 makes 13 of 10, 116 of 90, and
        48000 / 44100 84603 of 77729, the first size that the quotient of integers misses."""
        text = "m (float[1, {}] x{}) => (float[n, q] y) {} {{ y = Resize(x, , s) }}"
        for scale, widths in ((1.3, (3, 10, 90)), (0.7, (3, 10, 90)), (1.23456789, (3, 10, 90)), (1.0884354, (77729,))):
            s = np.array([1, scale], np.float32)
            free = Compiled(text.format("w", "", f"<float[2] s = {{1.0, {scale}}}>"))
            found = Compiled(text.format("w", ", float[2] s", ""))
            for width in widths:
                known = Compiled(text.format(width, "", f"<float[2] s = {{1.0, {scale}}}>"))
                x = np.ones((1, width), np.float32)
                known.check(self, x=x)
                free.check(self, x=x)
                found.check(self, x=x, s=s)

    def test_resize_about_the_centre(self):
        # The offset comes before the half that is taken away: the other order rounds to below 1 at width 5.
        attributes = 'mode="nearest", coordinate_transformation_mode="half_pixel_symmetric", nearest_mode="floor"'
        for width in ("a", "5"):
            model = Compiled(f"m (float[1, {width}] x) => (float[n, q] y) <float[2] s = {{1, 0.5}}> {{ y = Resize<{attributes}>(x, , s) }}")
            model.check(self, x=sparse(1, 5, share=1))
        found = Compiled(f"m (float[1, a] x, float[2] s) => (float[n, q] y) {{ y = Resize<{attributes}>(x, , s) }}")
        found.check(self, x=sparse(1, 5, share=1), s=np.array([1, 0.5], np.float32))

    def test_resize_of_regions(self):
        """In part outside of the image, backwards, of one element; a free batch and sizes that the run finds."""
        resize = 'y = Resize<mode="{}", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=1.5>(x, roi, '
        for mode in ("nearest", "linear", "cubic"):
            for roi in ("0, 0, 0.1, 0.2, 1, 1, 0.8, 0.9", "0, 0, -0.31, 0.4, 1, 1, 0.53, 1.57", "0, 0, 0.9, 0.1, 1, 1, 0.2, 0.3"):
                weights = f"<float[8] roi = {{{roi}}}> {{ {resize.format(mode)}"
                sized = Compiled(f"m (float[n, 2, a, b] x, int64[4] s) => (float[k, c, p, q] y) {weights}, s) }}")
                for s in (ints(1, 2, 16, 24), ints(1, 2, 1, 13)):
                    sized.check(self, x=sparse(1, 2, 8, 12), s=s)
                scaled = Compiled(f"m (float[n, 2, a, b] x, float[4] s) => (float[k, c, p, q] y) {weights}s) }}")
                scaled.check(self, x=sparse(1, 2, 8, 12), s=np.array([1, 1, 2.5, 1.5], np.float32))

    def test_resize_by_what_is_no_scale(self):
        for mode in ("nearest", "linear", "cubic"):
            model = Compiled(f"m (float[1, 2, a, b] x, float[4] s) => (float[n, c, p, q] y) {{ y = Resize<mode=\"{mode}\">(x, , s) }}")
            x = RNG.standard_normal((1, 2, 3, 4)).astype(np.float32)
            for bad in (0, -0.0, -2, np.nan, np.inf, -np.inf):
                for place in range(4):
                    scales = np.array([1, 1, 2, 2], np.float32)
                    scales[place] = bad
                    with self.assertRaisesRegex(ptc.Error, "a scale of Resize is 0, negative, infinite or NaN"):
                        model(x=x, s=scales)
            with self.assertRaises(ptc.Error):
                model(x=x, s=np.array([1, 1, 3e38, 1], np.float32))
            model.check(self, x=x, s=np.array([1, 1, 2, 3], np.float32))

    def test_resize_by_a_quotient_of_sizes(self):
        model = Compiled("""m (float[1, 2, a, b] x, float[1, 1, h, w] like) => (float[n, c, p, q] y)
            { s = Shape<start=2>(x) t = Shape<start=2>(like) f = Cast<to=1>(s) g = Cast<to=1>(t) r = Div(g, f)
              one = Constant<value = float[2] {1.0, 1.0}>() all = Concat<axis=0>(one, r) y = Resize<mode="linear">(x, , all) }""")
        for size in ((8, 12), (16, 6), (5, 24)):
            model.check(self, x=sparse(1, 2, 8, 12), like=sparse(1, 1, *size))

    def test_range(self):
        model = Compiled("m (int64 a, int64 b, int64 c) => (int64[n] y) { y = Range(a, b, c) }")
        for a, b, c in ((0, 5, 1), (3, -9, -2), (5, 5, 1), (7, 2, 3), (-4, 100, 9)):
            model.check(self, a=np.array(a), b=np.array(b), c=np.array(c))
        model = Compiled("m (float a, float b, float c) => (float[n] y) { y = Range(a, b, c) }")
        for a, b, c in ((0, 5, 1), (1, 2, 0.25), (1, 0, -0.3)):
            model.check(self, a=np.array(a, np.float32), b=np.array(b, np.float32), c=np.array(c, np.float32))

    def test_fill_and_tile(self):
        model = Compiled("m (int64[2] s) => (float[p, q] y) { y = ConstantOfShape<value = float[1] {3.0}>(s) }")
        for shape in ((2, 3), (0, 4), (50, 1)):
            model.check(self, s=ints(*shape))
        model = Compiled("m (float[a, b] x, int64[2] r) => (float[p, q] y) { y = Tile(x, r) }")
        for repeats in ((1, 1), (2, 3), (0, 2)):
            model.check(self, x=sparse(3, 4), r=ints(*repeats))
        with self.assertRaisesRegex(Exception, r"node '.*': size u\d+ is -1, which is not in 0\.\."):
            model(x=sparse(3, 4), r=ints(-1, 2))

    def test_slice(self):
        model = Compiled("m (float[a, b, c] x, int64[2] s, int64[2] e, int64[2] k, int64[2] t) => (float[p, q, r] y) { y = Slice(x, s, e, k, t) }")
        x = sparse(5, 6, 7)
        for start, end, axes, steps in (((0, 0), (3, 10), (0, 1), (1, 1)), ((-1, 20), (-100, 0), (2, 0), (-1, -2)), ((1, 1), (1, 9), (1, 2), (3, 4)),
                                        ((2**62, -(2**62)), (2**62, 2**62), (0, -1), (1, 2))):
            model.check(self, x=x, s=ints(*start), e=ints(*end), k=ints(*axes), t=ints(*steps))
        model = Compiled("m (float[a, b] x, int64[1] s, int64[1] e) => (float[p, b] y) { y = Slice(x, s, e) }")
        for start, end in ((0, 3), (-2, 100), (3, 1), (1, -1)):
            model.check(self, x=sparse(5, 6), s=ints(start), e=ints(end))

    def test_pad(self):
        for mode in ("constant", "edge", "reflect"):
            model = Compiled(f"m (float[a, b] x, int64[4] p) => (float[c, d] y) {{ y = Pad<mode=\"{mode}\">(x, p) }}")
            for pads in ((1, 2, 3, 0), (0, 0, 0, 0), (2, 1, 0, 3)):
                model.check(self, x=sparse(4, 5), p=ints(*pads))
        model = Compiled("m (float[a, b] x, int64[4] p) => (float[c, d] y) { y = Pad(x, p) }")
        model.check(self, x=sparse(4, 5), p=ints(-1, 2, 1, -3))

    def test_pad_that_takes_away(self):
        model = Compiled("m (float[n] x) => (float[k] y) <int64[2] p = {-2, -3}> { y = Pad(x, p) }")
        for n in (5, 6, 40):
            model.check(self, x=sparse(n))
        with self.assertRaisesRegex(Exception, "node 'y': n >= 5 is needed, but n is 4 .dim 0 of input 'x'."):
            model(x=sparse(4))

    def test_top_k(self):
        model = Compiled("m (float[a, b] x, int64[1] k) => (float[a, c] y, int64[a, d] i) { y, i = TopK(x, k) }")
        for k in (0, 1, 9):
            model.check(self, x=sparse(3, 9, share=1), k=ints(k))
        with self.assertRaisesRegex(Exception, r"is 10, which is not in 0\.\.9"):
            model(x=sparse(3, 9), k=ints(10))

    def test_one_hot_and_split(self):
        model = Compiled("m (int64[n] i, int64 d, float[2] v) => (float[n, k] y) { y = OneHot(i, d, v) }")
        for depth in (1, 4, 10):
            model.check(self, i=ints(0, -1, 3, 9), d=np.array(depth), v=np.array([0, 2], np.float32))
        model = Compiled("m (float[a, b] x, int64[2] s) => (float[a, p] y, float[a, q] z) { y, z = Split<axis=1>(x, s) }")
        for sizes in ((1, 5), (6, 0), (3, 3)):
            model.check(self, x=sparse(2, 6), s=ints(*sizes))
        with self.assertRaisesRegex(Exception, "is needed, but"):
            model(x=sparse(2, 6), s=ints(2, 2))

    def test_axes(self):
        for keep in (0, 1):
            dims = "p, q, r" if keep else "p"
            model = Compiled(f"m (float[a, b, c] x, int64[2] k) => (float[{dims}] y) {{ y = ReduceSum<keepdims={keep}>(x, k) }}")
            for axes in ((0, 1), (2, 0), (-1, -2)):
                model.check(self, x=sparse(2, 3, 4), k=ints(*axes))
        model = Compiled("m (float[a, b, c] x, int64 k) => (float[a, b, c] y) { y = CumSum<reverse=1>(x, k) }")
        for axis in (0, 1, -1):
            model.check(self, x=sparse(2, 3, 4), k=np.array(axis))
        model = Compiled("m (float[a, b] x, int64[2] k) => (float[p, q, r, s] y) { y = Unsqueeze(x, k) }")
        for axes in ((0, 1), (3, 1), (-1, 0)):
            model.check(self, x=sparse(2, 3), k=ints(*axes))
        model = Compiled("m (float[1, a, 1, b] x, int64[1] k) => (float[p, q, r] y) { y = Squeeze(x, k) }")
        for axis in (0, 2, -2):
            model.check(self, x=sparse(1, 2, 1, 3), k=ints(axis))

    def test_sizes_of_an_image(self):
        model = Compiled("""m (float[1, 2, h, w] x, int64[4] s) => (float[p, q, r, t] y) { y = Resize<mode="linear">(x, , , s) }""")
        for size in ((1, 2, 8, 6), (1, 2, 3, 11)):
            model.check(self, x=sparse(1, 2, 5, 7), s=ints(*size))


if __name__ == "__main__":
    unittest.main()
