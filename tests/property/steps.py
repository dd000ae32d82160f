"""Steps of random graphs on single operators: each takes a builder and adds a node, or a few that belong together. A step that
draws what cannot be is `Declined` by whoever computes its node, so steps need not look ahead."""

import ml_dtypes
import numpy as np
from onnx import helper

from judge import Declined, is_float, size

FLOATS = (np.float32, np.float32, np.float32, np.float64, np.float16, ml_dtypes.bfloat16)
INTEGERS = (np.int64, np.int32, np.int8, np.uint8)


def onnx_type(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def is_integer(dtype):
    return dtype.kind in "iu"


# ---- elementwise ----


FUNCTIONS = ("Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Sin", "Cos", "Sqrt", "Exp", "Log", "Reciprocal", "Softplus", "Atan")
COMPOSED = ("Erf", "HardSwish", "Gelu", "LeakyRelu", "Elu", "HardSigmoid", "Softsign", "Mish", "Selu")  # in f64 the programs round their constants to f32


def unary(b):
    x = b.pick_float()
    b.node(b.choose(FUNCTIONS + (COMPOSED if b.dtype(x) != np.float64 else ())), [x])


def rounding(b):
    b.node(b.choose(("Round", "Floor", "Ceil", "Sign")), [b.pick_float(b.is_sure)])


def binary(b):
    x = b.pick(lambda name: b.dtype(name).kind != "b")
    floats = is_float(b.dtype(x))
    b.node(b.choose(("Add", "Sub", "Mul", "Add", "Mul") + (("Max", "Min") if b.often(0.5) else ("Div", "Sub") if floats else ("Mul", "Add"))), [x, b.like(x)])


def _small(b, shape):
    """A shape that broadcasts to `shape`."""
    part = [extent if b.often(0.6) else 1 for extent in shape]
    return part[b.integer(0, len(part)):]


def with_weight(b):
    x = b.pick(lambda name: b.dtype(name).kind != "b")
    dtype, small = b.dtype(x), _small(b, b.shape(x))
    if is_float(dtype):
        op = b.choose(("Add", "Mul", "Sub", "Max", "Div", "PRelu"))
        weight = b.weight(small, dtype, *((0.5, 2) if op == "Div" else (-1, 1)))
    else:
        op = b.choose(("Add", "Mul", "Sub", "Max", "Min", "Div", "Mod"))
        weight = b.weight(small, dtype, 1, 9) if op in ("Div", "Mod") or dtype.kind == "u" else b.weight(small, dtype, -5, 9)
    pair = [x, weight]
    b.node(op, pair[::-1] if op in ("Add", "Mul", "Sub", "Max") and b.often(0.5) else pair)


def broadcast(b):
    """Two values that broadcast to each other, neither a weight."""
    x = b.pick_float()
    shape = b.shape(x)
    ends = lambda other: all(i == k or 1 in (i, k) for i, k in zip(reversed(other), reversed(shape)))
    y = b.pick(lambda name: b.dtype(name) == b.dtype(x) and ends(b.shape(name)))
    b.node(b.choose(("Add", "Mul", "Sub", "Max", "Min")), [x, y] if b.often(0.5) else [y, x])


def cast(b):
    x = b.pick()
    target = np.dtype(b.choose(FLOATS + INTEGERS + (np.bool_,)))
    if is_integer(target) and is_float(b.dtype(x)):
        limits = np.iinfo(target)
        largest = b.array(x).astype(np.float64)
        if largest.size and (largest.max() > limits.max or largest.min() < limits.min):
            raise Declined("not in the range of the integers")
    b.node("Cast", [x], to=onnx_type(target))


def compare(b):
    x = b.pick(b.is_sure)
    other = b.like(x) if b.often(0.5) else b.weight(_small(b, b.shape(x)), b.dtype(x), 0, 2)
    if not b.is_sure(other):
        raise Declined("not sure")
    b.node(b.choose(("Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal") if b.dtype(x).kind != "b" else ("And", "Or", "Xor", "Equal")), [x, other])


def where(b):
    condition = b.pick(lambda name: b.dtype(name).kind == "b")
    x = b.pick(lambda name: b.shape(name) == b.shape(condition) or b.array(name).size == 1)
    other = b.like(x) if b.often(0.6) else b.weight(_small(b, b.shape(x)), b.dtype(x), 0, 1)
    b.node("Where", [condition, x, other] if b.often(0.5) else [condition, other, x])


def bits(b):
    x = b.pick(lambda name: is_integer(b.dtype(name)) or b.dtype(name).kind == "b")
    if b.dtype(x).kind == "b":
        return b.node("Not", [x])
    return b.node(b.choose(("BitwiseAnd", "BitwiseOr", "BitwiseXor")), [x, b.like(x)])


def clip(b):
    x = b.pick(lambda name: b.dtype(name).kind in "f" or is_integer(b.dtype(name)))
    low, high = sorted(b.random.integers(0 if b.dtype(x).kind == "u" else -3, 6, 2))
    b.node("Clip", [x, b.constant(low, b.dtype(x)), b.constant(high, b.dtype(x))])


# ---- views ----


def transpose(b):
    x = b.pick()
    b.node("Transpose", [x], perm=[int(i) for i in b.random.permutation(b.array(x).ndim)])


def reshape(b):
    x = b.pick()
    merged = b.shape(x)
    while len(merged) > 1 and b.often(0.6):
        at = b.integer(0, len(merged) - 2)
        merged[at : at + 2] = [merged[at] * merged[at + 1]]
    if merged and b.often(0.4):
        at = b.integer(0, len(merged) - 1)
        factors = [n for n in range(2, merged[at]) if merged[at] % n == 0]
        if factors:
            factor = b.choose(factors)
            merged[at : at + 1] = [factor, merged[at] // factor]
    if len(merged) < 5 and b.often(0.4):
        merged.insert(b.integer(0, len(merged)), 1)
    if merged and 0 not in merged and b.often(0.5):  # the largest follows, whatever the sizes of a run
        merged[int(np.argmax(merged))] = -1
    b.node("Reshape", [x, b.ints(*merged)])


def reshape_as(b):
    """By a shape that the graph computes."""
    x, like = b.pick(lambda name: b.array(name).size), b.pick()  # a 0 there is not a size
    if b.array(x).size != b.array(like).size:
        return b.node("Reshape", [x, b.node("Concat", [b.node("Shape", [x], start=-1), b.ints(-1)], axis=0)])
    return b.node("Reshape", [x, b.node("Shape", [like])])


def slice(b):
    x = b.pick()
    axis = b.axis(x)
    extent = b.shape(x)[axis]
    step = b.choose((1, 1, 1, 2, 3, -1, -2))
    first, last = sorted(b.integer(0, extent) for _ in range(2))
    bounds = (first, b.choose((last, last - extent or extent, 2**62))) if step > 0 else (last - 1, first - extent - 1)
    b.node("Slice", [x, *(b.ints(number) for number in (*bounds, axis, step))])


def split(b):
    """Parts of a whole, of which two meet again or not."""
    x = b.pick()
    axis = b.axis(x)
    cuts = sorted(b.integer(0, b.shape(x)[axis]) for _ in range(b.integer(1, 2)))
    sizes = np.diff([0, *cuts, b.shape(x)[axis]])
    parts = b.node("Split", [x, b.ints(*sizes)], outputs=len(sizes), axis=axis)
    if b.often(0.5):
        b.node("Concat", [b.choose(parts) for _ in range(b.integer(2, 3))], axis=axis)


def concat(b):
    x = b.pick()
    axis, shape = b.axis(x), b.shape(x)
    spot = axis % len(shape)
    fits = lambda name: b.dtype(name) == b.dtype(x) and len(b.shape(name)) == len(shape) and all(
        i == spot or pair[0] == pair[1] for i, pair in enumerate(zip(b.shape(name), shape)))
    parts = [x, *(b.pick(fits) for _ in range(b.integer(1, 2)))]
    if b.often(0.3):
        parts.append(b.weight([2 if i == spot else extent for i, extent in enumerate(shape)], b.dtype(x), 0, 1))
    b.node("Concat", [parts[i] for i in b.random.permutation(len(parts))], axis=axis)


def pad(b):
    x = b.pick()
    rank = b.array(x).ndim
    mode = b.choose(("constant", "constant", "reflect", "edge", "wrap"))
    pads = b.random.integers(0 if mode != "constant" or b.often(0.7) else -1, 3, 2 * rank)
    value = [b.constant(1, b.dtype(x))] if mode == "constant" and b.often(0.3) else []
    b.node("Pad", [x, b.ints(*pads), *value], mode=mode)


def expand(b):
    x = b.pick()
    wide = [b.choose((2, 3, 5)) if extent == 1 else 1 for extent in b.shape(x)]
    b.node("Expand", [x, b.ints(*([2] if b.often(0.2) else []), *wide)])


def tile(b):
    x = b.pick()
    b.node("Tile", [x, b.ints(*b.random.integers(1, 3, b.array(x).ndim))])


def squeeze(b):
    x = b.pick()
    ones = [axis for axis, extent in enumerate(b.shape(x)) if extent == 1]
    if ones and b.often(0.6):
        return b.node("Squeeze", [x, b.ints(b.choose(ones))])
    return b.node("Unsqueeze", [x, b.ints(b.integer(0, b.array(x).ndim))])


def gather(b):
    """By weights, or by integers that the graph computes, some negative."""
    x = b.pick()
    axis = b.axis(x)
    extent = b.shape(x)[axis]
    if b.often(0.5):
        return b.node("Gather", [x, b.constant(b.random.integers(-extent, extent, b.choose(((), (3,), (2, 2)))), np.int64)], axis=axis)
    return b.node("Gather", [x, _indices(b, extent)], axis=axis)


def _indices(b, extent, shape=None):
    """Computed indices into an axis, of some shape or of one that is asked for."""
    n = b.pick(lambda name: b.dtype(name) in (np.int64, np.int32) and b.array(name).size <= 300 and (shape is None or b.shape(name) == shape))
    found = b.node("Mod", [n, b.constant(extent, b.dtype(n))])
    return b.node("Sub", [found, b.constant(extent, b.dtype(n))]) if b.often(0.2) else found


def gather_elements(b):
    x = b.pick()
    axis = b.axis(x)
    extent = b.shape(x)[axis]
    b.node("GatherElements", [x, b.constant(b.random.integers(-extent, extent, b.shape(x)), np.int64) if b.often(0.6) else _indices(b, extent, b.shape(x))], axis=axis)


def scatter(b):
    """Rows or elements written over some of a value; the places are distinct where it matters."""
    x = b.pick()
    shape = b.shape(x)
    if b.often(0.5):
        places = b.random.permutation(shape[0])[: b.integer(1, shape[0])]
        rows = b.node("Gather", [b.like(x), b.ints(*b.random.integers(0, shape[0], len(places)))])
        return b.node("ScatterND", [x, b.constant(places[:, None], np.int64), rows])
    axis = b.axis(x)
    adds = b.dtype(x).kind in "fi" and b.dtype(x) != np.float16 and b.often(0.4)
    count = b.integer(1, shape[axis])
    order = np.argsort(b.random.random(shape), axis)
    places = np.take(order, range(count), axis) if not adds else np.take(b.random.integers(0, shape[axis], shape), range(count), axis)
    updates = b.node("Slice", [b.like(x), b.ints(0), b.ints(count), b.ints(axis)])
    return b.node("ScatterElements", [x, b.constant(places, np.int64), updates], axis=axis, **({"reduction": "add"} if adds else {}))


def space(b):
    x = b.pick(lambda name: b.array(name).ndim == 4 and is_float(b.dtype(name)))
    b.node(b.choose(("DepthToSpace", "SpaceToDepth")), [x], blocksize=2)


def triangle(b):
    b.node("Trilu", [b.pick(lambda name: b.array(name).ndim >= 2)], upper=b.integer(0, 1))


def found_sizes(b):
    """What only a run knows the size of."""
    x = b.pick(lambda name: b.dtype(name).kind in "fi" and b.array(name).ndim)
    flags = b.pick(lambda name: b.dtype(name).kind == "b")
    if b.often(0.5):
        return b.node("NonZero", [flags])
    axis = b.axis(x)
    flag = b.node("Reshape", [flags, b.ints(-1)])
    if b.shape(flag)[0] > b.shape(x)[axis]:
        raise Declined("too long")
    return b.node("Compress", [x, flag], axis=axis)


# ---- reductions ----


def reduce(b):
    x = b.pick(lambda name: b.dtype(name).kind != "b")
    rank = b.array(x).ndim
    axes = sorted({b.integer(0, rank - 1) - (rank if b.often(0.3) else 0) for _ in range(b.integer(1, 3))}) if rank else []
    axes = [axis for i, axis in enumerate(axes) if axis % rank not in [other % rank for other in axes[:i]]]
    keep = int(b.often(0.6))
    ops = ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceSum", "ReduceL2", "ReduceL1", "ReduceLogSumExp", "ReduceSumSquare", "ReduceProd")
    op = b.choose(ops if is_float(b.dtype(x)) else ("ReduceMax", "ReduceMin") + ("ReduceSum",) * (b.dtype(x).itemsize >= 4))
    inputs = [x] if b.often(0.15) else [x, b.ints(*axes)]
    name = b.node(op, inputs, keepdims=keep, **({"noop_with_empty_axes": 1} if b.often(0.05) else {}))
    if keep and is_float(b.dtype(x)) and b.often(0.6):  # what softmax and its kind do
        b.node(b.choose(("Add", "Sub", "Mul")), [x, name])


def extremum(b):
    x = b.pick(lambda name: b.is_sure(name) and b.dtype(name).kind in "fiu" and b.array(name).ndim)
    if b.often(0.6):
        return b.node(b.choose(("ArgMax", "ArgMin")), [x], axis=b.axis(x), keepdims=b.integer(0, 1), select_last_index=b.integer(0, 1))
    axis = b.axis(x)
    return b.node("TopK", [x, b.ints(b.integer(1, b.shape(x)[axis]))], outputs=2, axis=axis, largest=b.integer(0, 1))


def softmax(b):
    x = b.pick_float()
    b.node(b.choose(("Softmax", "Softmax", "LogSoftmax")), [x], axis=b.axis(x))


def cumulate(b):
    x = b.pick(lambda name: b.dtype(name).kind == "f" or b.dtype(name) in (np.int64, np.int32))
    b.node("CumSum", [x, b.constant(b.axis(x), np.int64)], exclusive=b.integer(0, 1), reverse=b.integer(0, 1))


def normalize(b):
    x = b.pick_float(lambda name: b.array(name).ndim)
    axis, dtype, shape = b.axis(x), b.dtype(x), b.shape(x)
    scale = b.weight(shape[axis:], dtype, 0.5, 1.5)
    op = b.choose(("LayerNormalization", "LayerNormalization", "RMSNormalization", "InstanceNormalization", "BatchNormalization", "LpNormalization"))
    if op == "LpNormalization":
        return b.node(op, [x], axis=axis)
    if op in ("LayerNormalization", "RMSNormalization"):
        bias = [b.weight(shape[axis:], dtype)] if op[0] == "L" and b.often(0.5) else []
        return b.node(op, [x, scale, *bias], axis=axis, epsilon=b.choose((0.1, 1e-3)))
    if len(shape) < 2:
        raise Declined("no channels")
    channel = lambda low, high: b.weight([shape[1]], dtype, low, high)
    statistics = [channel(-1, 1), channel(0.5, 1.5)] if op[0] == "B" else []
    return b.node(op, [x, channel(0.5, 1.5), channel(-1, 1), *statistics], epsilon=0.01)


# ---- products ----


def epilogue(b, x):
    """Pointwise work on a product's result, with operands of its channels, of its shape, or of one element."""
    for _ in range(b.integer(0, 5)):
        kind, shape, dtype = b.integer(0, 4), b.shape(x), b.dtype(x)
        if kind == 0:
            x = b.node(b.choose(("Relu", "Sigmoid", "Tanh", "Abs") + (COMPOSED if dtype != np.float64 else ())), [x])
        elif kind == 1:
            x = b.node(b.choose(("Add", "Mul")), [x, b.weight(_small(b, shape), dtype)])
        elif kind == 2:
            x = b.node(b.choose(("Add", "Mul", "Max", "Sub")), [x, b.like(x)])
        elif kind == 3:
            x = b.node("Mul", [x, b.node("Sigmoid", [x])])
        else:
            x = b.node("Clip", [x, b.constant(-2, dtype), b.constant(2, dtype)])
    return x


def _spread(terms):
    return 1 / np.sqrt(max(terms, 1))


def matmul(b):
    x = b.pick_float(lambda name: b.array(name).ndim)
    shape, dtype, columns = b.shape(x), b.dtype(x), b.choose((1, 2, 3, 5, 8, 9, 16, 17, 20, 33, 48))
    kind = b.integer(0, 3)
    if kind == 0:  # of two values
        y = b.pick(lambda name: b.dtype(name) == dtype and b.array(name).ndim and shape[-1] in b.shape(name))
        last = b.array(y).ndim - 1
        spot = b.choose([i for i, extent in enumerate(b.shape(y)) if extent == shape[-1]])
        order = [i for i in range(last + 1) if i != spot]
        order.insert(max(last - 1, 0), spot)
        return epilogue(b, b.node("MatMul", [x, b.node("Transpose", [y], perm=order)]))
    bound = 1.7 * _spread(shape[-1])
    if kind == 1 and len(shape) == 2:
        turn_a, turn_b = b.integer(0, 1), b.integer(0, 1)
        terms = shape[0] if turn_a else shape[1]
        weight = b.weight([columns, terms] if turn_b else [terms, columns], dtype, -bound, bound)
        bias = [b.weight(b.choose(([columns], [1], [])), dtype)] if b.often(0.6) else []
        return epilogue(b, b.node("Gemm", [x, weight, *bias], transA=turn_a, transB=turn_b, alpha=b.choose((1.0, 0.5)), beta=b.choose((1.0, 2.0))))
    weight = b.weight([*(shape[:-2] if kind == 2 else []), shape[-1], columns], dtype, -bound, bound)
    return epilogue(b, b.node("MatMul", [x, weight]))


def twins(b):
    """Products that read the same operand, as those of Q, K and V."""
    x = b.pick_float(lambda name: b.array(name).ndim >= 2)
    terms, dtype = b.shape(x)[-1], b.dtype(x)
    columns = b.choose((3, 4, 8, 12, 16, 20))
    bound = 1.7 * _spread(terms)
    made = []
    for _ in range(b.integer(2, 3)):
        y = b.node("MatMul", [x, b.weight([terms, columns], dtype, -bound, bound)])
        made.append(b.node("Add", [y, b.weight([columns], dtype)]) if b.often(0.6) else y)
    if b.often(0.6):
        turned = [*range(b.array(made[1]).ndim - 2), b.array(made[1]).ndim - 1, b.array(made[1]).ndim - 2]
        scores = b.node("Mul", [b.node("MatMul", [made[0], b.node("Transpose", [made[1]], perm=turned)]), b.constant(columns**-0.5, dtype)])
        if b.often(0.3):
            scores = b.node("Add", [scores, b.weight(_small(b, b.shape(scores)), dtype)])
        b.node("MatMul", [b.node("Softmax", [scores], axis=-1), made[-1]])


def convolve(b):
    x = b.pick_float(lambda name: 3 <= b.array(name).ndim <= 5)
    shape, dtype = b.shape(x), b.dtype(x)
    spatial, channels = len(shape) - 2, shape[1]
    if 0 in shape:
        raise Declined("nothing is there")
    group = b.choose([n for n in range(1, channels + 1) if channels % n == 0] + [1, channels])
    kernel = [b.choose((1, 1, 2, 3, 3, 5)) for _ in range(spatial)]
    out = group * b.choose((1, 2, 3, 5, 8)) if group > 1 else b.choose((1, 3, 5, 8, 12, 16, 17, 33))
    more = {"strides": [b.choose((1, 1, 2)) for _ in kernel], "dilations": [b.choose((1, 1, 1, 2)) for _ in kernel],
            "pads": [b.integer(0, 2) for _ in range(2 * spatial)]}
    bound = 1.7 * _spread(channels // group * np.prod(kernel))
    if b.often(0.2):
        more["output_padding"] = [b.integer(0, stride - 1) for stride in more["strides"]]
        ends = zip(shape[2:], kernel, *more.values(), more["pads"][spatial:])
        if any((extent - 1) * stride + (taps - 1) * dilation + 1 + extra <= before + after for extent, taps, stride, dilation, before, extra, after in ends):
            raise Declined("nothing is left")  # where onnxruntime would not come back
        weight = b.weight([channels, out // group, *kernel], dtype, -bound, bound)
        return epilogue(b, b.node("ConvTranspose", [x, weight], group=group, **more))
    bias = [b.weight([out], dtype)] if b.often(0.6) else []
    return epilogue(b, b.node("Conv", [x, b.weight([out, channels // group, *kernel], dtype, -bound, bound), *bias], group=group, **more))


def pool(b):
    x = b.pick_float(lambda name: 3 <= b.array(name).ndim <= 5)
    spatial = b.array(x).ndim - 2
    if not b.array(x).size:
        raise Declined("nothing is there")
    if b.often(0.2):
        return b.node(b.choose(("GlobalAveragePool", "GlobalMaxPool")), [x])
    kernel = [b.choose((1, 2, 3)) for _ in range(spatial)]
    given = {"kernel_shape": kernel, "strides": [b.choose((1, 1, 2)) for _ in kernel], "pads": [b.integer(0, size - 1) for size in kernel * 2]}
    if b.often(0.5):
        return b.node("MaxPool", [x], **given, ceil_mode=b.integer(0, 1))
    return b.node("AveragePool", [x], **given, count_include_pad=b.integer(0, 1))


def resize(b):
    x = b.pick(lambda name: b.array(name).ndim == 4 and b.dtype(name) == np.float32)
    scales = b.constant([1, 1, b.choose((1, 2, 0.5)), b.choose((1, 2, 3))], np.float32)
    mode = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"} if b.often(0.5) else {"mode": "linear"}
    b.node("Resize", [x, "", scales], **mode)


# ---- quantised tensors ----


def _scale(b, x):
    return np.float32(2.0 ** np.ceil(np.log2(max(size(b.array(x)), 1e-3) / 127)) if b.often(0.3) else max(size(b.array(x)), 1e-3) / 120)


def quantize(b, x=None):
    """To 8 bits and back."""
    x = x or b.pick(lambda name: b.dtype(name) == np.float32)
    kind = b.choose((np.int8, np.uint8))
    scale, zero = b.constant(_scale(b, x), np.float32), b.constant(b.choose((0, 3)) if kind == np.int8 else b.choose((128, 120)), kind)
    return b.node("DequantizeLinear", [b.node("QuantizeLinear", [x, scale, zero]), scale, zero])


def _weight8(b, shape, axis, terms):
    """Of 8 bits, with a scale for each channel or one for all."""
    bound = 1.7 * _spread(terms) / 120
    by_channel = b.often(0.5)
    scale = b.constant(b.random.uniform(bound / 2, bound, [shape[axis]] if by_channel else []), np.float32)
    weight = b.constant(b.random.integers(-127, 128, shape), np.int8)
    return b.node("DequantizeLinear", [weight, scale], **({"axis": axis} if by_channel else {}))


def quantized_product(b):
    """A product of 8-bit tensors as QDQ writes it, with pointwise work and a rounding behind it."""
    x = b.pick(lambda name: b.dtype(name) == np.float32 and b.array(name).ndim >= 2)
    shape = b.shape(x)
    x = quantize(b, x)
    if len(shape) == 4 and b.often(0.6):
        out, kernel = b.choose((3, 8, 12, 16)), b.choose((1, 3))
        y = b.node("Conv", [x, _weight8(b, [out, shape[1], kernel, kernel], 0, shape[1] * kernel * kernel)], pads=[kernel // 2] * 4)
    else:
        columns = b.choose((3, 8, 16, 20, 33))
        y = b.node("MatMul", [x, _weight8(b, [shape[-1], columns], 1, shape[-1])])
    if b.often(0.5):
        y = b.node("Relu", [y])
    if b.often(0.4):
        y = b.node("Add", [y, b.like(y)])
    return quantize(b, y) if b.often(0.6) else y


def integer_product(b):
    x = b.pick(lambda name: b.dtype(name) in (np.int8, np.uint8) and b.is_sure(name) and b.array(name).ndim)
    weight = b.constant(b.random.integers(-20, 20, [b.shape(x)[-1], b.choose((3, 8, 17))]), np.int8)
    return b.node("MatMulInteger", [x, weight, *([b.constant(2, b.dtype(x))] if b.often(0.4) else [])])


MOVING = (transpose, reshape, reshape_as, slice, slice, split, concat, concat, pad, expand, tile, squeeze, gather, gather_elements, scatter, space, triangle)
POINTWISE = (unary, unary, rounding, binary, binary, with_weight, with_weight, broadcast, cast, cast, compare, where, bits, clip)
REDUCING = (reduce, reduce, extremum, softmax, cumulate, normalize, pool, resize)
PRODUCTS = (matmul, matmul, twins, convolve, convolve, quantized_product, quantize, integer_product)
ALL = MOVING + POINTWISE + REDUCING + PRODUCTS + (found_sizes,)
