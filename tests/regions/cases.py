"""Models with If, Loop and Scan in ONNX's text form, and the inputs they are run on.

A row: name, options of `ptc compile`, the model, and its feeds (functions of a random generator). A number beside an input's
name is its shape; scalars are said as they are.
"""

import numpy as np

HEADER = '<ir_version: 9, opset_import: ["" : 18]>\n'


def feed(**inputs):
    """Tuples are shapes of random floats, other values are themselves."""
    def draw(rng):
        return {name: rng.standard_normal(value).astype(np.float32) if isinstance(value, tuple) else np.asarray(value)
                for name, value in inputs.items()}
    return draw


FLOAT = np.float32

CASES = {
    "images of a batch, which run one after the other": (
        """g (float[4, 4, 512, 512] x) => (float[4, 8] y, float[4, 8, 64, 64] p) {
          zero = Constant <value_float = 0.0> ()
          one = Constant <value_float = 1.0> ()
          count = Constant <value_float = 800.0> ()
          numbers = Range (zero, count, one)
          waves = Sin (numbers)
          shape = Constant <value_ints = [8, 4, 5, 5]> ()
          w = Reshape (waves, shape)
          c = Conv <pads = [2, 2, 2, 2]> (x, w)
          d = Relu (c)
          p = MaxPool <kernel_shape = [8, 8], strides = [8, 8]> (d)
          axes = Constant <value_ints = [2, 3]> ()
          y = ReduceMean <keepdims = 0> (p, axes)
        }""", [feed(x=(4, 4, 512, 512))]),
    "branches of other ranks, of which what follows fits both": (
        """g (float[a, b, c] x, bool flag, float[4] w) => (float[n] y, float[m] z) {
          u = If (flag) <
            then_branch = t () => (float[p] flat) { one = Constant <value_ints = [-1]> () flat = Reshape (x, one) },
            else_branch = e () => (float[a, b, c] same) { same = Identity (x) }
          >
          other = Exp (w)
          v = Mul (u, u)
          axis = Constant <value_ints = [-1]> ()
          y = Reshape (v, axis)
          shape = Shape (v)
          rank = Size (shape)
          k = Cast <to = 1> (rank)
          z = Mul (k, other)
        }""", [feed(x=(a, b, c), flag=flag, w=(4,)) for a, b, c, flag in ((2, 3, 4, True), (1, 1, 1, False), (3, 1, 5, False))]),
    "a branch of a rank that what follows excludes": (
        """g (float[n, time] x, float[3] w) => (float[n, 1, m] y) {
          axis = Constant <value_ints = [1]> ()
          two = Constant <value_ints = [1]> ()
          shape = Shape (x)
          index = Constant <value_int = 1> ()
          size = Gather (shape, index)
          wanted = Constant <value_int = 7> ()
          fits = Equal (size, wanted)
          u = If (fits) <
            then_branch = t () => (float[n, 1, time] wide) { wide = Unsqueeze (x, two) },
            else_branch = e () => (float[n, time] same) { same = Identity (x) }
          >
          kernel = Reshape (w, dims)
          y = Conv <pads = [1, 1]> (u, kernel)
        }""".replace("kernel = ", "dims = Constant <value_ints = [1, 1, 3]> ()\n          kernel = "),
        [feed(x=(n, 7), w=(3,)) for n in (1, 2, 5)]),
    "pieces of which an input says how many there are": (
        """g (float[n, 2] x, int64[k] lengths, int64 at) => (float[p, 2] piece, float[n, 2] whole, int64 count) {
          pieces = SplitToSequence <axis = 0> (x, lengths)
          piece = SequenceAt (pieces, at)
          whole = ConcatFromSequence <axis = 0> (pieces)
          count = SequenceLength (pieces)
        }""", [feed(x=(n, 2), lengths=lengths, at=at) for n, lengths, at in ((6, [1, 2, 3], 1), (6, [6], 0), (5, [2, 1, 1, 1], -1))]),
    "a size of rows that is none where no round asks for it": (
        """g (int64 m, int64[1] size) => (float[p, q] rows) {
          go = Constant <value = bool {1}> ()
          rows = Loop (m, go) <body = b (int64 i, bool c) => (bool d, float[w] row) {
            d = Identity (c)
            zeros = ConstantOfShape (size)
            f = Cast <to = 1> (i)
            row = Add (zeros, f)
          }>
        }""", [feed(m=m, size=[size]) for m, size in ((2, 3), (5, 1), (0, -4), (-1, -4))]),
    "a size of rows that an index finds, which is none where no round asks for it": (
        """g (int64 m, int64[k] sizes, int64[1] at) => (float[p, q] rows, float[q] last) {
          go = Constant <value = bool {1}> ()
          none = Constant <value_floats = [0.0]> ()
          last, rows = Loop (m, go, none) <body = b (int64 i, bool c, float[v] x) => (bool d, float[w] y, float[w] row) {
            d = Identity (c)
            size = Gather (sizes, at)
            zeros = ConstantOfShape (size)
            f = Cast <to = 1> (i)
            row = Add (zeros, f)
            y = Exp (row)
          }>
        }""", [feed(m=m, sizes=[2, 5], at=[at]) for m, at in ((2, 1), (5, 0), (1, -1), (0, 7))]),
    "rows that begin anywhere in memory, read again in their round": (
        """g (float[3, 21] x, float[21] h, int64 m) => (float[21] last, float[r, 21] rows, float[r, 3, 7] products, float[r, 21] sums) {
          go = Constant <value = bool {1}> ()
          axis = Constant <value_ints = [0]> ()
          shape = Constant <value_ints = [3, 7]> ()
          last, rows, products, sums = Loop (m, go, h) <body = b (int64 i, bool c, float[21] s)
              => (bool d, float[21] t, float[21] row, float[3, 7] product, float[21] sum) {
            d = Identity (c)
            shifted = Add (x, s)
            row = ReduceMax <keepdims = 0> (shifted, axis)
            t = Tanh (row)
            square = Reshape (t, shape)
            transposed = Transpose (square)
            weights = MatMul (square, transposed)
            product = MatMul (weights, square)
            sum = Add (s, h)
          }>
        }""",
        [feed(x=(3, 21), h=(21,), m=m) for m in (0, 1, 4)]),
    "a state that begins with a product": (
        """g (float[6, 6] x, int64 m) => (float[6, 6] y) {
          go = Constant <value = bool {1}> ()
          product = MatMul (x, x)
          y = Loop (m, go, product) <body = b (int64 i, bool c, float[6, 6] s) => (bool d, float[6, 6] t) {
            d = Identity (c)
            t = Tanh (s)
          }>
        }""", [feed(x=(6, 6), m=m) for m in (0, 1, 3)]),
    "states and rows that begin with what a kernel makes": (
        """g (float[6, 6] x, bool flag, int64 m) => (float[6, 6] p, float[6, 6] q, float[6, 6] r, float[n, 6, 6] rows) {
          go = Constant <value = bool {1}> ()
          product = MatMul (x, x)
          best = Softmax (x)
          branch = If (flag) <then_branch = t () => (float[6, 6] u) { u = Exp (x) },
                              else_branch = e () => (float[6, 6] v) { v = MatMul (x, x) }>
          p, q, r, rows = Loop (m, go, product, best, branch) <body = b (int64 i, bool c, float[6, 6] a, float[6, 6] s, float[6, 6] k)
              => (bool d, float[6, 6] a2, float[6, 6] s2, float[6, 6] k2, float[6, 6] row) {
            d = Identity (c)
            a2 = Add (a, s)
            s2 = Tanh (k)
            k2 = Softmax (a)
            row = Add (product, k2)
          }>
        }""", [feed(x=(6, 6), flag=flag, m=m) for flag, m in ((True, 0), (False, 1), (True, 3))]),
    "scan over time that is free": (
        """g (float[3] h, float[time, 3] x) => (float[3] y, float[time, 3] rows) {
          y, rows = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] e) => (float[3] t, float[3] r) {
            a = Add (s, e)
            t = Tanh (a)
            r = Identity (t)
          }> (h, x)
        }""", [feed(h=(3,), x=(n, 3)) for n in (1, 7, 100)]),
    "scan with several states, reversed, along other axes, with a captured weight": (
        """g (float[batch, 4] h, float[batch, 4] c, float[batch, time, 4] x, float[time, batch, 4] z, float[4, 4] w)
          => (float[batch, 4] y, float[batch, 4] d, float[batch, time, 4] rows) {
          e = Exp (w)
          y, d, rows = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [1, 0],
                             scan_output_axes = [1], scan_output_directions = [1],
                             body = b (float[m, 4] s, float[m, 4] k, float[m, 4] xi, float[m, 4] zi)
                                 => (float[m, 4] s2, float[m, 4] k2, float[m, 4] r) {
            p = MatMul (s, e)
            a = Add (p, xi)
            s2 = Tanh (a)
            k2 = Add (k, zi)
            r = Mul (s2, k2)
          }> (h, c, x, z)
        }""", [feed(h=(b, 4), c=(b, 4), x=(b, t, 4), z=(t, b, 4), w=(4, 4)) for b, t in ((2, 5), (1, 1), (3, 17))]),
    "loop that a limit and a condition end": (
        """g (int64 n, bool go, float[2] v, float most) => (float[2] y) {
          y = Loop <body = b (int64 i, bool c, float[2] a) => (bool d, float[2] a2)
                    <float two = {2}> {
            a2 = Mul (a, two)
            sum = ReduceSum <keepdims = 0> (a2)
            d = Less (sum, most)
          }> (n, go, v)
        }""", [feed(n=np.int64(n), go=go, v=FLOAT([1, 2]), most=FLOAT(most))
               for n, go, most in ((5, True, 1e9), (100, True, 50), (0, True, 1e9), (5, False, 1e9), (-3, True, 1))]),
    "loop that a condition alone ends": (
        """g (bool go, float[n] v, float most) => (float[n] y) {
          y = Loop <body = b (int64 i, bool c, float[n] a) => (bool d, float[n] a2) {
            a2 = Add (a, v)
            sum = ReduceMax <keepdims = 0> (a2)
            d = Less (sum, most)
          }> ( , go, v)
        }""", [feed(go=go, v=FLOAT([1] * n), most=FLOAT(most)) for n, go, most in ((3, True, 9), (1, True, 0), (2, False, 9))]),
    "nested loops, the rounds as values": (
        """g (float[n] x) => (float[n] y, float[n, 6] rows) <int64 six = {6}, float half = {0.5}> {
          count = Shape (x)
          y, rows = Loop <body = outer (int64 i, bool c, float[n] v) => (bool d, float[n] v4, float[6] rs) {
            d = Identity (c)
            v2, rs = Loop <body = inner (int64 j, bool e, float[n] w) => (bool f, float[n] w2, float r) {
              f = Identity (e)
              jf = Cast <to = 1> (j)
              w1 = Add (w, jf)
              w2 = Add (w1, x)
              r = ReduceSum <keepdims = 0> (w2)
            }> (six, , v)
            fi = Cast <to = 1> (i)
            v3 = Mul (v2, half)
            v4 = Add (v3, fi)
          }> (count, , x)
        }""", [feed(x=(n,)) for n in (4, 1, 9)]),
    "a branch in a loop in a branch": (
        """g (float[n] x, bool flag) => (float[n] y) <int64 k = {12}, float zero = {0}> {
          y = If (flag) <then_branch = t () => (float[n] a) {
            a = Loop <body = b (int64 i, bool c, float[n] v) => (bool d, float[n] v2) {
              d = Identity (c)
              top = ReduceMax <keepdims = 0> (v)
              up = Greater (top, zero)
              v2 = If (up) <then_branch = tt () => (float[n] q) { q = Sub (v, x) },
                            else_branch = ee () => (float[n] s) { s0 = Add (v, x)
                                                                 s = Softmax (s0) }>
            }> (k, , x)
          }, else_branch = e () => (float[n] o) { o = Neg (x) }>
        }""", [feed(x=(n,), flag=flag) for n, flag in ((4, True), (4, False), (1, True), (33, True))]),
    "rows that the round picks": (
        """g (float[time, 3] x, float[3] v) => (float[3] y, float[time, 3] rows) <int64 one = {1}> {
          shape = Shape <start = 0, end = 1> (x)
          n = Squeeze (shape)
          last = Sub (n, one)
          y, rows = Loop <body = b (int64 i, bool c, float[3] s) => (bool d, float[3] s2, float[3] r) {
            d = Identity (c)
            xi = Gather <axis = 0> (x, i)
            s2 = Add (s, xi)
            back = Sub (last, i)
            xr = Gather <axis = 0> (x, back)
            r = Mul (xr, s2)
          }> (n, , v)
        }""", [feed(x=(n, 3), v=(3,)) for n in (6, 1, 40)]),
    "no rounds": (
        """g (float[3] v) => (float[3] y, float[k, 3] rows) <int64 none = {0}> {
          y, rows = Loop <body = b (int64 i, bool c, float[3] s) => (bool d, float[3] s2, float[3] r) {
            d = Identity (c)
            s2 = Add (s, s)
            r = Neg (s2)
          }> (none, , v)
        }""", [feed(v=(3,))]),
    "states that change places, read again behind the loop": (
        """g (float[n] x, float[3] a, float[3] b) => (float[3] ya, float[3] yb, float[n, 3] rows, float[3] z)
          <float one = {1}> {
          n = Size (x)
          ya, yb, rows = Loop <body = l (int64 i, bool c, float[3] p, float[3] q) => (bool d, float[3] p2, float[3] q2, float[3] r) {
            d = Identity (c)
            q2 = Identity (p)
            p2 = Add (q, one)
            r = Identity (p)
          }> (n, , a, b)
          z = Add (a, ya)
        }""", [feed(x=(n,), a=(3,), b=(3,)) for n in (5, 6, 1)]),
    "what a loop captures lives as long as the loop": (
        """g (float[4, 4] x) => (float[4, 4] z, float[20, 1, 4] rows)
          <int64 k = {20}, int64[1] zero = {0}, int64[1] one = {1}> {
          e = Exp (x)
          p = Relu (x)
          y, rows = Loop <body = b (int64 i, bool c, float[4, 4] v) => (bool d, float[4, 4] v2, float[1, 4] r) {
            d = Identity (c)
            m = MatMul (v, e)
            s = Softmax <axis = -1> (m)
            t = Sub (s, p)
            v2 = Softmax <axis = -2> (t)
            r = Slice (v2, zero, one, zero)
          }> (k, , p)
          z = Add (y, p)
        }""", [feed(x=(4, 4))]),
    "a condition that compares the round counts": (
        """g (float[n] x) => (float[n] y, float[k, n] rows) <int64 one = {1}, bool go = {1}> {
          size = Size (x)
          y, rows = Loop <body = b (int64 i, bool c, float[n] v) => (bool d, float[n] v2, float[n] r) {
            next = Add (i, one)
            d = Less (next, size)
            v2 = Add (v, x)
            r = Mul (v, x)
          }> ( , go, x)
        }""", [feed(x=(n,)) for n in (5, 1)]),
    "a state that no round changes, and types other than float": (
        """g (int32[4] x, uint8[3] u, float16[2] h) => (int32[4] y, uint8[3] v, float16[2] k) <int64 n = {9}, int32 three = {3}, uint8 nine = {9}> {
          y, v, same, k = Loop <body = b (int64 i, bool c, int32[4] a, uint8[3] m, int32[4] s, float16[2] f)
                             => (bool d, int32[4] a2, uint8[3] m2, int32[4] s2, float16[2] f2) {
            d = Identity (c)
            t = Mul (a, three)
            a2 = Add (t, s)
            m2 = Add (m, nine)
            s2 = Identity (s)
            f2 = Sqrt (f)
          }> (n, , x, u, x, h)
        }""", [feed(x=np.int32([1, -2, 3, 4]), u=np.uint8([1, 200, 3]), h=np.float16([2, 0.5]))]),
    "branches of different sizes": (
        """g (float[n, 3] x, bool flag, float[5, 3] w) => (float[k, 3] y, float[k] sums) {
          a = If (flag) <then_branch = t () => (float[i, 3] p) { p = Concat <axis = 0> (x, w) },
                         else_branch = e () => (float[j, 3] q) { q = Neg (x) }>
          y = Relu (a)
          sums = ReduceSum <keepdims = 0> (a, one)
        }""".replace("=> (float[k, 3] y, float[k] sums) {", "=> (float[k, 3] y, float[k] sums) <int64[1] one = {1}> {"),
        [feed(x=(n, 3), flag=flag, w=(5, 3)) for n, flag in ((2, True), (2, False), (7, True), (1, False))]),
    "branches of different sizes in a loop": (
        """g (float[n] x) => (float s) <int64 k = {7}, int64 two = {2}, int64 zero = {0}, float none = {0}> {
          s = Loop <body = b (int64 i, bool c, float t) => (bool d, float t2) {
            d = Identity (c)
            rest = Mod (i, two)
            even = Equal (rest, zero)
            v = If (even) <then_branch = tt () => (float[m] p) { p = Concat <axis = 0> (x, x) },
                           else_branch = ee () => (float[l] q) { q = Exp (x) }>
            r = ReduceSum <keepdims = 0> (v)
            t2 = Add (t, r)
          }> (k, , none)
        }""", [feed(x=(n,)) for n in (3, 1)]),
    "a state that grows by a row": (
        """g (float[1, 4] x, float[n] z) => (float[m, 4] y) {
          n = Size (z)
          y = Loop <body = b (int64 i, bool c, float[k, 4] s) => (bool d, float[l, 4] s2) <int64[1] axis = {0}> {
            d = Identity (c)
            top = ReduceMean <keepdims = 1> (s, axis)
            t = Tanh (top)
            s2 = Concat <axis = 0> (s, t)
          }> (n, , x)
        }""", [feed(x=(1, 4), z=(n,)) for n in (5, 1, 12)]),
    "states that take each other's old values, nine in a row": (
        """g (float[n] x, int64 m) => (float[k] y0, float[l] y8) <bool go = {1}> {
          y0, y1, y2, y3, y4, y5, y6, y7, y8 = Loop
            <body = b (int64 i, bool c, float[n0] s0, float[n1] s1, float[n2] s2, float[n3] s3, float[n4] s4, float[n5] s5, float[n6] s6, float[n7] s7, float[n8] s8)
               => (bool d, float[m0] t0, float[m1] t1, float[m2] t2, float[m3] t3, float[m4] t4, float[m5] t5, float[m6] t6, float[m7] t7, float[m8] t8) {
            d = Identity (c)
            t0 = Concat <axis = 0> (s0, x)
            t1 = Identity (s0)
            t2 = Identity (s1)
            t3 = Identity (s2)
            t4 = Identity (s3)
            t5 = Identity (s4)
            t6 = Identity (s5)
            t7 = Identity (s6)
            t8 = Identity (s7)
          }> (m, go, x, x, x, x, x, x, x, x, x)
        }""", [feed(x=(n,), m=np.int64(m)) for n, m in ((1, 3), (2, 12), (3, 0))]),
    "states that take each other's old values in a ring, without bounds": (
        """g (float[n] x, int64 most) => (float[k0] y0, float[k1] y1, float[k2] y2, float[k3] y3)
          <bool go = {1}, int64[1] one = {1}, int64[1] end = {1000000}> {
          y0, y1, y2, y3 = Loop <body = b (int64 i, bool c, float[n0] s0, float[n1] s1, float[n2] s2, float[n3] s3)
                             => (bool d, float[m0] t0, float[m1] t1, float[m2] t2, float[m3] t3) {
            t0 = Concat <axis = 0> (x, s2)
            t1 = Identity (s0)
            t2 = Identity (s1)
            t3 = Slice (s1, one, end)
            size = Size (t0)
            d = Less (size, most)
          }> (, go, x, x, x, x)
        }""", [feed(x=(n,), most=np.int64(most)) for n, most in ((3, 40), (2, 0), (700, 9000))]),
    "a state that grows from nothing, by what a value says": (
        """g (int64 n, float[2] x) => (float[m] y) {
          none = Constant <value = float[0] {}> ()
          y = Loop <body = b (int64 i, bool c, float[k] s) => (bool d, float[l] s2) {
            d = Identity (c)
            f = Cast <to = 1> (i)
            v = Add (x, f)
            s2 = Concat <axis = 0> (s, v)
          }> (n, , none)
        }""", [feed(n=np.int64(n), x=(2,)) for n in (4, 1, 0, 50, 3)]),
    "states that get longer where they are, of an input, nothing, and what is read behind the loop, too": (
        """g (float[n, 2, w] x, int64 m) => (float[p, 2, w] a3, float[q, 2, w] b3, float[r, 2, w] c3, float[n, 2, w] same, float[s] sums)
          <bool go = {1}, int64[1] zero = {0}> {
          none = Slice (x, zero, zero)
          same = Neg (x)
          a3, b3, c3, sums = Loop <body = b (int64 i, bool c, float[p, 2, w] a, float[q, 2, w] b, float[r, 2, w] c0)
                                   => (bool d, float[p2, 2, w] a2, float[q2, 2, w] b2, float[r2, 2, w] c2, float sum) {
            d = Identity (c)
            top = ReduceMax <keepdims = 1> (a, zero)
            row = Tanh (top)
            f = Cast <to = 1> (i)
            other = Add (x, f)
            a2 = Concat <axis = 0> (a, row, other, row)
            b2 = Concat <axis = 0> (b, other)
            twice = Mul (b, f)
            c2 = Concat <axis = 0> (c0, row)
            one = ReduceSum <keepdims = 0> (a)
            two = ReduceSum <keepdims = 0> (twice)
            sum = Add (one, two)
          }> (m, go, x, none, same)
        }""", [feed(x=(n, 2, w), m=np.int64(m)) for n, w, m in ((1, 1, 0), (3, 16, 6), (2, 5, 1), (1, 7, 11))]),
    "states that get longer, which others read at once, or that change places": (
        """g (float[n, w] x, int64 m) => (float[p, w] a3, float[q, w] b3, float[r, w] c3, float[t, w] front, float[s] sums) <bool go = {1}> {
          a3, b3, c3, front, sums = Loop
            <body = b (int64 i, bool c, float[p, w] a, float[q, w] b, float[r, w] c0, float[t, w] f)
               => (bool d, float[p2, w] a2, float[q2, w] b2, float[r2, w] c2, float[t2, w] f2, float sum) {
            d = Identity (c)
            longer = Concat <axis = 0> (a, x)
            sum = ReduceMean <keepdims = 0> (longer)
            a2 = Concat <axis = 0> (b, x)
            b2 = Identity (longer)
            c2 = Concat <axis = 0> (c0, a)
            f2 = Concat <axis = 0> (x, f)
          }> (m, go, x, x, x, x)
        }""", [feed(x=(n, w), m=np.int64(m)) for n, w, m in ((1, 3, 0), (2, 16, 4), (3, 1, 5))]),
    "states that get longer along an inner axis, and of one batch": (
        """g (float[1, n, 3] x, float[2, n] z, int64 m) => (float[1, p, 3] a3, float[2, q] b3) <bool go = {1}> {
          a3, b3 = Loop <body = b (int64 i, bool c, float[1, p, 3] a, float[2, q] b) => (bool d, float[1, p2, 3] a2, float[2, q2] b2) {
            d = Identity (c)
            f = Cast <to = 1> (i)
            v = Add (x, f)
            w = Sub (z, f)
            a2 = Concat <axis = 1> (a, v)
            b2 = Concat <axis = 1> (b, w)
          }> (m, go, x, z)
        }""", [feed(x=(1, n, 3), z=(2, n), m=np.int64(m)) for n, m in ((1, 3), (4, 6), (2, 0))]),
    "a state that inner loops make longer": (
        """g (float[n, 2] x, int64 m, int64 k) => (float[p, 2] y, float[r] sums) <bool go = {1}> {
          y, sums = Loop <body = b (int64 i, bool c, float[p, 2] a) => (bool d, float[p3, 2] a3, float sum) {
            d = Identity (c)
            t = Loop <body = inner (int64 j, bool e, float[q, 2] s) => (bool e2, float[q2, 2] s2) {
              e2 = Identity (e)
              f = Cast <to = 1> (j)
              v = Add (x, f)
              s2 = Concat <axis = 0> (s, v)
            }> (k, go, a)
            sum = ReduceSum <keepdims = 0> (t)
            u = Neg (t)
            a3 = Concat <axis = 0> (a, u)
          }> (m, go, x)
        }""", [feed(x=(n, 2), m=np.int64(m), k=np.int64(k)) for n, m, k in ((1, 3, 2), (2, 2, 0), (1, 0, 3), (3, 1, 5))]),
    "states without bounds that get longer where they are": (
        """g (float[n, 3] x, int64 most) => (float[k, 3] y, float[k2] z, float[r, 3] rows, float[r] means) <bool go = {1}, int64[1] zero = {0}> {
          none = Constant <value = float[0] {}> ()
          y, z, rows, means = Loop <body = b (int64 i, bool c, float[p, 3] s, float[q] t)
                              => (bool d, float[p2, 3] s2, float[q2] t2, float[3] row, float mean) {
            f = Cast <to = 1> (i)
            a = Add (x, f)
            row = ReduceMax <keepdims = 0> (a, zero)
            mean = ReduceMean <keepdims = 0> (s)
            s2 = Concat <axis = 0> (s, a)
            t2 = Concat <axis = 0> (t, row, t)
            size = Size (s)
            d = Less (size, most)
          }> (, go, x, none)
        }""", [feed(x=(n, 3), most=np.int64(most)) for n, most in ((1, 20), (300, 7000), (2, 0), (1, 31), (300, 9000))]),
    "states without bounds that each round computes again, longer": (
        """g (float[n] x, int64 most) => (float[k] y, float[l] z, float[r] means) <bool go = {1}, int64[1] first = {0}, int64[1] one = {1}> {
          y, z, means = Loop <body = b (int64 i, bool c, float[p] s, float[q] t) => (bool d, float[p2] s2, float[q2] t2, float mean) {
            u = Neg (t)
            front = Slice (x, first, one)
            s2 = Concat <axis = 0> (u, s, x)
            v = Concat <axis = 0> (front, s)
            t2 = Tanh (v)
            mean = ReduceMean <keepdims = 0> (s)
            size = Size (s2)
            d = Less (size, most)
          }> (, go, x, x)
        }""", [feed(x=(n,), most=np.int64(most)) for n, most in ((1, 20), (300, 20000), (2, 0), (1, 31), (300, 90000))]),
    "rounds until a state that begins empty is long enough": (
        """g (float[n, 2] x, int64 most) => (float[p, 2] y) <bool go = {1}, int64[1] zero = {0}, int64 ten = {10}> {
          none = Slice (x, zero, zero)
          y = Loop <body = b (int64 i, bool c, float[p, 2] s) => (bool d, float[q, 2] t) {
            t = Concat <axis = 0> (s, x)
            size = Size (s)
            d = Less (size, ten)
          }> (most, go, none)
        }""", [feed(x=(n, 2), most=np.int64(most)) for n, most in ((1, 100), (4, 100), (3, 2), (2, 0))]),
    "no rounds ever": (
        """g (float[n, 2] x) => (float[p, 2] y, float[q, 2] same, float[r, 2] rows) <bool go = {1}, int64 never = {0}, int64[1] zero = {0}> {
          none = Slice (x, zero, zero)
          y, same, rows = Loop <body = b (int64 i, bool c, float[p, 2] s, float[q, 2] a) => (bool d, float[p2, 2] t, float[q, 2] a2, float[2] row) {
            d = Identity (c)
            t = Concat <axis = 0> (s, x)
            a2 = Exp (a)
            row = ReduceMax <keepdims = 0> (x, zero)
          }> (never, go, none, x)
        }""", [feed(x=(n, 2)) for n in (1, 3)]),
    "rows of as many rounds as a value says": (
        """g (int64 n, float[2] x) => (float[2] y, float[m, 2] rows) {
          y, rows = Loop <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] s2, float[2] r) {
            d = Identity (c)
            s2 = Add (s, x)
            r = Neg (s2)
          }> (n, , x)
        }""", [feed(n=np.int64(n), x=(2,)) for n in (4, 1, 0, 50, 3)]),
    "rows until a condition ends the loop, of at most so many": (
        """g (float[2] x, float most) => (float[2] y, float[m, 2] rows) <int64 n = {30}, bool go = {1}> {
          y, rows = Loop <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] s2, float[2] r) {
            s2 = Add (s, x)
            t = ReduceMax <keepdims = 0> (s2)
            d = Less (t, most)
            r = Neg (s2)
          }> (n, go, x)
        }""", [feed(x=FLOAT([1, 2]), most=FLOAT(most)) for most in (9, 0, 1e9)]),
    "rows until a condition ends the loop": (
        """g (float[2] x, float most, bool go) => (float[2] y, float[m, 2] rows, float[2] sum) <int64[1] zero = {0}> {
          y, rows = Loop <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] s2, float[2] r) {
            s2 = Add (s, x)
            t = ReduceMax <keepdims = 0> (s2)
            d = Less (t, most)
            r = Neg (s2)
          }> ( , go, x)
          sum = ReduceSum <keepdims = 0> (rows, zero)
        }""", [feed(x=FLOAT([1, 2]), most=FLOAT(most), go=go) for most, go in ((9, True), (0, True), (200, True), (1, False))]),
    "a condition on a size": (
        """g (float[n, 4] x) => (float[n, k] y) <int64 zero = {0}, int64 two = {2}> {
          shape = Shape (x)
          n = Gather (shape, zero)
          many = Greater (n, two)
          a = If (many) <then_branch = t () => (float[n, 8] p) { p = Concat <axis = 1> (x, x) },
                         else_branch = e () => (float[n, 4] q) { q = Exp (x) }>
          y = Neg (a)
        }""", [feed(x=(n, 4)) for n in (1, 2, 3, 9)]),
    "a sequence that a loop fills from nothing, joined along an old and a new dim": (
        """g (int64 m, float[n, 4] x) => (float[k, 4] y, float[m2, n, 4] z) <bool go = {1}> {
          s0 = SequenceEmpty <dtype = 1> ()
          sq = Loop <body = b (int64 i, bool c, seq(float) st) => (bool d, seq(float) so) {
            d = Identity (c)
            f = Cast <to = 1> (i)
            e = Add (x, f)
            so = SequenceInsert (st, e)
          }> (m, go, s0)
          y = ConcatFromSequence <axis = 0> (sq)
          z = ConcatFromSequence <axis = 0, new_axis = 1> (sq)
        }""", [feed(m=np.int64(m), x=(n, 4)) for m, n in ((1, 3), (9, 1), (4, 5))]),
    "a sequence that nested loops fill, in some rounds": (
        """g (int64 m, float[n] x) => (float[k] y) <bool go = {1}, int64 two = {2}, int64 three = {3}> {
          s0 = SequenceEmpty <dtype = 1> ()
          sq = Loop <body = b (int64 i, bool c, seq(float) st) => (bool d, seq(float) so) {
            d = Identity (c)
            so = Loop <body = inner (int64 j, bool e, seq(float) it) => (bool f, seq(float) io) {
              f = Identity (e)
              k = Add (i, j)
              rest = Mod (k, two)
              odd = Cast <to = 9> (rest)
              io = If (odd) <then_branch = t () => (seq(float) more) {
                kf = Cast <to = 1> (k)
                row = Mul (x, kf)
                more = SequenceInsert (it, row)
              }, else_branch = s () => (seq(float) same) { same = Identity (it) }>
            }> (three, , st)
          }> (m, go, s0)
          y = ConcatFromSequence <axis = 0> (sq)
        }""", [feed(m=np.int64(m), x=(n,)) for m, n in ((1, 3), (5, 1), (6, 4))]),
    "two sequences that change places while a loop fills them": (
        """g (int64 m, float[n] x) => (float[k] y, int64 l) <bool go = {1}> {
          s0 = SequenceEmpty <dtype = 1> ()
          s1 = SequenceEmpty <dtype = 1> ()
          a, b = Loop <body = b (int64 i, bool c, seq(float) p, seq(float) q) => (bool d, seq(float) p2, seq(float) q2) {
            d = Identity (c)
            f = Cast <to = 1> (i)
            e = Add (x, f)
            p2 = SequenceInsert (q, e)
            q2 = Identity (p)
          }> (m, go, s0, s1)
          y = ConcatFromSequence <axis = 0> (a)
          l = SequenceLength (b)
        }""", [feed(m=np.int64(m), x=(n,)) for m, n in ((1, 3), (2, 1), (5, 4))]),
    "a map over a sequence whose body captures a value": (
        """g (float[n, 3] x, float[3] a, int64 m) => (float[n2, 3] y, float[2, 3] z, int64[n3] l) <bool go = {1}, int64[1] first = {0}> {
          s = SequenceConstruct (a, a)
          p = SplitToSequence <axis = 0, keepdims = 0> (x)
          o, lengths = SequenceMap (p, a) <body = b (float[3] e, float[3] w) => (float[1, 3] r, int64[2] le) {
            t = Add (e, a)
            u = Loop <body = l (int64 i, bool c, float[3] v) => (bool d, float[3] v2) {
              d = Identity (c)
              v2 = Add (v, w)
            }> (m, go, t)
            r = Unsqueeze (u, first)
            le = Shape (r)
          }>
          y = ConcatFromSequence <axis = 0> (o)
          l = ConcatFromSequence <axis = 0> (lengths)
          q = SequenceMap (s) <body = b2 (float[3] e) => (float[3] r) { r = Sub (e, a) }>
          z = ConcatFromSequence <axis = 0, new_axis = 1> (q)
        }""",
        [feed(x=(n, 3), a=(3,), m=np.int64(m)) for n, m in ((6, 2), (1, 0), (9, 1))]),
    "a state that some rounds make longer and others leave": (
        """g (int64 m, float[n] x) => (float[k] y) <bool go = {1}, int64 two = {2}> {
          y = Loop <body = b (int64 i, bool c, float[w] st) => (bool d, float[w2] so) {
            r = Mod (i, two)
            odd = Cast <to = 9> (r)
            d = Identity (c)
            so = If (odd) <then_branch = t () => (float[q] p) { p = Concat <axis = 0> (st, x) },
                           else_branch = e () => (float[q2] s) { s = Neg (st) }>
          }> (m, go, x)
        }""", [feed(m=np.int64(m), x=(n,)) for m, n in ((0, 2), (1, 1), (3, 5), (8, 2))]),
    "a state that rounds make longer or shorter, without bounds": (
        """g (int64 m, float[n] x) => (float[k] y, float s)
          <bool go = {1}, int64 three = {3}, int64 one = {1}, int64[1] begin = {1}, int64[1] end = {1000}> {
          y = Loop <body = b (int64 i, bool c, float[w] st) => (bool d, float[w2] so) {
            r = Mod (i, three)
            grows = Less (r, one)
            d = Identity (c)
            so = If (grows) <then_branch = t () => (float[q] p) { p = Concat <axis = 0> (st, x, st) },
                             else_branch = e () => (float[q2] s) { s = Slice (st, begin, end) }>
          }> (m, go, x)
          s = ReduceSum <keepdims = 0> (y)
        }""", [feed(m=np.int64(m), x=(n,)) for m, n in ((0, 2), (1, 4), (4, 4), (12, 3))]),
    "rows of a length that a value says": (
        """g (int64 m, int64 k) => (int64[a, u] rows) <bool go = {1}, int64 zero = {0}, int64 one = {1}> {
          rows = Loop <body = b (int64 i, bool c) => (bool d, int64[u] z) {
            d = Identity (c)
            up = Add (k, one)
            r = Range (zero, up, one)
            z = Mul (r, i)
          }> (m, go)
        }""", [feed(m=np.int64(m), k=np.int64(k)) for m, k in ((1, 4), (5, 1), (3, 17))]),
    "rows of as many rounds of inner loops as values say": (
        """g (int64 m, int64 k, int64 l, float[n] x) => (float[n] y, float[a, b, e, n] rows) <bool go = {1}> {
          y, rows = Loop <body = b1 (int64 i, bool c, float[n] s) => (bool d, float[n] s4, float[b, e, n] r3) {
            d = Identity (c)
            s3, r3 = Loop <body = b2 (int64 j, bool c2, float[n] t) => (bool d2, float[n] t3, float[e, n] r2) {
              d2 = Identity (c2)
              t2, r2 = Loop <body = b3 (int64 o, bool c3, float[n] u) => (bool d3, float[n] u2, float[n] r) {
                d3 = Identity (c3)
                ij = Add (i, j)
                f = Cast <to = 1> (ij)
                r = Mul (u, f)
                u2 = Add (r, x)
              }> (l, go, t)
              t3 = Tanh (t2)
            }> (k, go, s)
            s4 = Neg (s3)
          }> (m, go, x)
        }""", [feed(m=np.int64(m), k=np.int64(k), l=np.int64(l), x=(n,)) for m, k, l, n in ((2, 3, 1, 3), (1, 1, 4, 2), (5, 6, 2, 1))]),
    "rows of nested loops, as long as an element of a vector says": (
        """g (int64 n, int64 m, int64[k] v, int64 at) => (float[a, b, c] rows) <bool yes = {1}, int64[1] one = {1}> {
          rows = Loop <body = b (int64 i, bool go) => (bool go1, float[p, q] row) {
            go1 = Identity (go)
            row = Loop <body = inner (int64 j, bool go2) => (bool go3, float[r] part) {
              go3 = Identity (go2)
              size = Gather (v, at)
              length = Reshape (size, one)
              number = Cast <to = 1> (j)
              part = Expand (number, length)
            }> (m, yes)
          }> (n, yes)
        }""", [feed(n=np.int64(n), m=np.int64(m), v=np.array(v, np.int64), at=np.int64(at))
               for n, m, v, at in ((2, 3, (4, 1), 0), (1, 1, (2, 5, 3), -1), (3, 2, (7,), 0))]),
    "maps that each round resizes to a size of its own": (
        """g (float[n, c, h, w] maps, int64[n, 2] sizes) => (float[n2, c] best, int64[n3, c] places)
          <bool go = {1}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] channels = {1}, int64[1] end = {2}, int64[1] rest = {-1}> {
          all = Shape (maps)
          count = Gather (all, zero)
          rounds = Squeeze (count)
          of = Slice (all, channels, end)
          none = Concat <axis = 0> (zero, of)
          b0 = ConstantOfShape (none)
          p0 = ConstantOfShape <value = int64[1] {0}> (none)
          best, places = Loop <body = b (int64 i, bool go1, float[k, c] b1, int64[k, c] p1) => (bool go2, float[k2, c] b2, int64[k2, c] p2) {
            go2 = Identity (go1)
            own = Gather (maps, i)
            map = Unsqueeze (own, one)
            shape = Shape <end = 2> (map)
            size = Gather (sizes, i)
            target = Concat <axis = 0> (shape, size)
            large = Resize <mode = "cubic", coordinate_transformation_mode = "half_pixel"> (map, , , target)
            flatten = Concat <axis = 0> (of, rest)
            flat = Reshape (large, flatten)
            most = ReduceMax <keepdims = 0> (flat, one)
            at = ArgMax <axis = 1, keepdims = 0> (flat)
            row = Unsqueeze (most, zero)
            place = Unsqueeze (at, zero)
            b2 = Concat <axis = 0> (b1, row)
            p2 = Concat <axis = 0> (p1, place)
          }> (rounds, go, b0, p0)
        }""", [feed(maps=(n, c, h, w), sizes=np.array(sizes, np.int64).reshape(n, 2))
               for n, c, h, w, sizes in ((2, 3, 5, 4, ((9, 7), (3, 20))), (1, 1, 6, 6, ((6, 5),)), (4, 2, 3, 8, ((1, 1), (40, 31), (2, 9), (13, 4))))]),
    "how many rounds there were, of which nothing else is asked": (
        """g (int64 m, bool go, float[n] x) => (int64[1] y, float[1] first) {
          rows = Loop (m, go) <body = b (int64 i, bool c) => (bool d, int64 row) {
            two = Constant <value_int = 2> ()
            d = Less (i, two)
            row = Mul (i, i)
          }>
          y = Shape (rows)
          zero = Constant <value_ints = [0]> ()
          first = Gather (x, zero)
        }""", [feed(m=m, go=go, x=(4,)) for m, go in ((2, True), (9, True), (9, False), (0, True))]),
    "a size that differs between branches, of which nothing else is asked": (
        """g (bool flag, float[n] x) => (int64[1] y) {
          u = If (flag) <
            then_branch = t () => (float[p] long) { long = Concat <axis = 0> (x, x) },
            else_branch = e () => (float[n] same) { same = Exp (x) }
          >
          y = Shape (u)
        }""", [feed(flag=flag, x=(n,)) for n, flag in ((3, True), (3, False), (1, True))]),
    "an optional value that a branch leaves out": (
        """g (float[n] x, bool flag) => (float[n] y, bool h) {
          o = If (flag) <then_branch = t () => (optional(float[n]) p) { p = Optional (x) },
                         else_branch = e () => (optional(float[n]) q) { q = Optional <type = float[n]> () }>
          h = OptionalHasElement (o)
          y = If (h) <then_branch = t2 () => (float[n] p2) { p2 = OptionalGetElement (o) },
                      else_branch = e2 () => (float[n] q2) { q2 = Neg (x) }>
        }""", [feed(x=(n,), flag=flag) for n, flag in ((3, True), (3, False), (1, True), (40, False))]),
}

# Models that cannot do what some inputs ask for: the sentence of such a run.
IMPOSSIBLE = {
    "more of the largest than there are": (
        """g (float[n] x) => (float[5] y, int64[5] at) <int64[1] five = {5}> { [largest] y, at = TopK (x, five) }""",
        feed(x=(6,)), feed(x=(4,)), "n >= 5"),
    "an element that a vector does not have": (
        """g (float[n] x) => (float y) <int64 second = {-2}> { [second] y = Gather (x, second) }""",
        feed(x=(3,)), feed(x=(1,)), "n >= 2"),
    "indices that reach beyond the data on another axis": (
        """g (float[n, 2] x, int64[m, 2] at) => (float[m, 2] y) { [take] y = GatherElements <axis = 1> (x, at) }""",
        feed(x=(3, 2), at=np.zeros((2, 2), np.int64)), feed(x=(3, 2), at=np.zeros((90, 2), np.int64)), "m < n \\+ 1|m <= n"),
    **{f"an index before the first, {name} of {n}": (
        f"g (float[{n}] x, int64[m, 1] at, float[m] updates) => (float[k] y) {{ flat = Constant <value_ints = [-1]> () i = Reshape (at, flat) [take] y = {op} }}",
        feed(x=(5,), at=np.array([[-1], [-5]], np.int64), updates=(2,)), feed(x=(5,), at=np.array([[-1], [-6]], np.int64), updates=(2,)),
        "index out of range in node '.*take'")
       for name, op in (("Gather", "Gather (x, i)"), ("GatherElements", "GatherElements (x, i)"), ("GatherND", "GatherND (x, at)"),
                        ("ScatterElements", "ScatterElements (x, i, updates)"), ("ScatterND", "ScatterND (x, at, updates)"))
       for n in ("5", "n")},
    "fewer updates than places": (
        """g (float[n] x, int64[m] at, float[k] updates) => (float[n] y) { [put] y = ScatterElements <axis = 0> (x, at, updates) }""",
        feed(x=(5,), at=np.array([1, 3], np.int64), updates=(2,)), feed(x=(5,), at=np.array([1, 3], np.int64), updates=(1,)), "m == k|k == m"),
    "a range that never ends": (
        """g (int64 a, int64 b, int64 step) => (int64[n] y) { [steps] y = Range (a, b, step) }""",
        feed(a=np.int64(0), b=np.int64(5), step=np.int64(2)), feed(a=np.int64(0), b=np.int64(5), step=np.int64(0)),
        r"node 'steps': .*delta\) is 0"),
    "an optional value that is not there": (
        """g (float[n] x, bool flag) => (float[n] y) {
          o = If (flag) <then_branch = t () => (optional(float[n]) p) { p = Optional (x) },
                         else_branch = e () => (optional(float[n]) q) { q = Optional <type = float[n]> () }>
          [take] y = OptionalGetElement (o)
        }""", feed(x=(3,), flag=True), feed(x=(3,), flag=False), "node 'take': .* optional value is empty"),
    "the rank that the hints do not have": (
        """g (float[m, n] x) => (float y) <int64[1] zero = {0}, int64[1] one = {1}> {
          shape = Shape (x)
          rows = Gather (shape, zero)
          flat = Equal (rows, one)
          y = If (flat) <then_branch = t () => (float[q] p) { p = Squeeze (x, zero) },
                         else_branch = e () => (float[w, r] s) { s = Identity (x) }>
        }""", feed(x=(2, 3)), feed(x=(1, 3)), "m != 1"),
    "a branch whose shapes do not fit": (
        """g (float[3, 4] x, bool flag) => (float[3, 4] y) <int64[2] wrong = {5, 5}> {
          y = If (flag) <then_branch = t () => (float[3, 4] p) { p = Neg (x) },
                         else_branch = e () => (float[5, 5] q) { r = Exp (x)
                                                                 [elsewhere] q = Reshape (r, wrong) }>
        }""", feed(x=(3, 4), flag=True), feed(x=(3, 4), flag=False), "node 'elsewhere': "),
}
