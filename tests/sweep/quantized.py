"""Integers that stand for floats."""

import numpy as np

from case import Rule
from draw import FLOATS, TYPES, integer_range, is_integer
from movement import constant, ints
from rows import case, row

NARROW = ("int8", "uint8")
# Results that are rounded from a float: a tie that an f32 product misses may round the other way.
TIES = Rule(steps=1)


def _scale(d, kind=np.float32, shape=()):
    return np.asarray(np.exp2(d.rng.integers(-4, 3, shape))).astype(kind)  # powers of two: products are exact, and so are ties


def _blocked(d, x, scale_kind):
    """Attributes and the shape of scales: one for all, one a slice of an axis, or one a block."""
    style = d.choice(["tensor", "axis", "block"]) if d.opset >= 21 else d.choice(["tensor", "axis"]) if d.opset >= 13 else "tensor"
    if style == "tensor" or not x.ndim:
        return {}, []
    axis = d.integer(0, x.ndim - 1)
    if style == "axis":
        return {"axis": axis}, [x.shape[axis]]
    block = d.integer(1, x.shape[axis])
    shape = list(x.shape)
    shape[axis] = -(-x.shape[axis] // block)
    return ({"axis": axis, "block_size": block}, shape) if x.shape[axis] % block == 0 else ({"axis": axis}, [x.shape[axis]])


def _spread(a, x, attributes):
    """Scales or zero points, one for each element."""
    if a.ndim == 0:
        return a
    axis = attributes["axis"]
    if "block_size" in attributes:
        return np.repeat(a, attributes["block_size"], axis)
    return a.reshape([-1 if i == axis else 1 for i in range(x.ndim)])


@row("QuantizeLinear")
def quantize(d):
    x = d.values(np.float32, d.shape(0, 3, most=200, zero=0), "special")
    x = np.where(np.isnan(x), np.ones_like(x), x)
    kind = TYPES[d.choice([name for name in d.types("T3" if d.opset >= 23 else "T2") if name.startswith(("int", "uint"))])]
    attributes, shape = _blocked(d, x, np.float32)
    scale, zero = _scale(d, shape=tuple(shape)), d.values(kind, shape, "small")

    def oracle(v, s, z):
        low, high = integer_range(kind)
        wide = np.rint(v.astype(np.float64) / _spread(s, v, attributes)) + _spread(z, v, attributes).astype(np.float64)
        return np.clip(wide, low, high).astype(np.int64).astype(kind)

    return case(d, [x, scale, zero], attributes, oracle=oracle)


@row("DequantizeLinear")
def dequantize(d):
    kind = TYPES[d.choice([name for name in d.types("T1" if d.opset >= 19 else "T") if name != "int32"])]
    x = d.values(kind, d.shape(0, 3, most=200, zero=0), "wild")
    attributes, shape = _blocked(d, x, np.float32)
    scale = _scale(d, shape=tuple(shape))
    zero = d.values(kind, shape, "small") if is_integer(kind) and d.often(0.7) else None

    def oracle(v, s, z=None):
        centered = v.astype(np.float64) - (0 if z is None else _spread(z, v, attributes).astype(np.float64))
        return centered * _spread(s, v, attributes)

    return case(d, [x, scale, zero], attributes, oracle=oracle, rule=Rule(wide=True, zero=False))


@row("DynamicQuantizeLinear")
def dynamic_quantize(d):
    return case(d, [d.values(np.float32, d.shape(1, 3, zero=0), "tame")], outputs=3, rule=Rule(ulp=2, steps=1))


@row("MatMulInteger")
def mat_mul_integer(d):
    a, b = TYPES[d.choice(NARROW)], TYPES[d.choice(NARROW)]
    m, k, n = d.dim(), d.choice([1, 3, 7, 16, 33, 64]), d.dim()
    zeros = [d.values(a, []), d.values(b, [n] if d.often(0.4) else [])]

    def oracle(x, y, p=None, q=None):
        wide = lambda v, z: v.astype(np.int32) - (0 if z is None else z.astype(np.int32))
        return wide(x, p) @ wide(y, q)

    return case(d, [d.values(a, [m, k]), d.values(b, [k, n]), *(zero if d.often(0.7) else None for zero in zeros)],
                oracle=oracle, constants=constant(1, 3) if d.often(0.5) else frozenset())


@row("ConvInteger")
def conv_integer(d):
    a, b = TYPES["uint8"], TYPES[d.choice(NARROW)]
    channels = d.integer(1, 4)
    x, w = d.values(a, [1, channels, d.integer(3, 7), d.integer(3, 7)]), d.values(b, [d.integer(1, 5), channels, 3, d.integer(1, 3)])
    attributes = {"strides": [d.integer(1, 2)] * 2} | ({"pads": [1, 0, 1, 0]} if d.often(0.5) else {})
    return case(d, [x, w, d.values(a, []) if d.often(0.7) else None], attributes, constants=constant(1) if d.often(0.5) else frozenset(), avoid="reference")


@row("QLinearMatMul")
def qlinear_mat_mul(d):
    a, b, y = (TYPES[d.choice(NARROW)] for _ in range(3))
    m, k, n = d.integer(1, 9), d.choice([1, 3, 7, 16]), d.integer(1, 9)

    def oracle(p, sp, zp, q, sq, zq, sy, zy):
        wide = (p.astype(np.int64) - zp.astype(np.int64)) @ (q.astype(np.int64) - zq.astype(np.int64))
        low, high = integer_range(y)
        return np.clip(np.rint(wide * float(sp) * float(sq) / float(sy)) + float(zy), low, high).astype(y)

    return case(d, [d.values(a, [m, k]), _scale(d), d.values(a, []), d.values(b, [k, n]), _scale(d), d.values(b, []), _scale(d), d.values(y, [])],
                oracle=oracle, rule=TIES)


@row("QLinearConv")
def qlinear_conv(d):
    channels, filters = d.integer(1, 4), d.integer(1, 5)
    x = d.values(np.uint8, [1, channels, d.integer(3, 7), d.integer(3, 7)])
    w = d.values(np.dtype(d.choice(["int8", "uint8"])), [filters, channels, 3, 3])
    bias = d.rng.integers(-999, 999, filters).astype(np.int32) if d.often(0.5) else None
    inputs = [x, _scale(d), d.values(np.uint8, []), w, _scale(d), np.zeros((), w.dtype), _scale(d), d.values(np.uint8, []), bias]
    pad = int(d.often(0.5))

    def oracle(x, sx, zx, w, sw, zw, sy, zy, bias=None):
        """Exact: onnxruntime's sums of u8 x s8 saturate at 16 bits on processors without VNNI."""
        centred = np.pad(x.astype(np.int64) - int(zx), [(0, 0), (0, 0), (pad, pad), (pad, pad)])
        windows = np.lib.stride_tricks.sliding_window_view(centred, (3, 3), axis=(2, 3))
        sums = np.einsum("nchwij,fcij->nfhw", windows, w.astype(np.int64) - int(zw))
        sums += 0 if bias is None else bias.astype(np.int64)[:, None, None]
        scaled = np.rint(sums * (float(sx) * float(sw) / float(sy))) + int(zy)
        return np.clip(scaled, 0, 255).astype(np.uint8)

    return case(d, inputs, {"pads": [1, 1, 1, 1]} if pad else {}, constants=constant(3, 8), oracle=oracle)
