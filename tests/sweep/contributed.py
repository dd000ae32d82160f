"""com.microsoft: the operators of onnxruntime that ptc has. Simple ones against their formula in f64, others against onnxruntime."""

import math
from dataclasses import replace

import numpy as np

from case import EXACT, Rule
from draw import MS, TYPES, integer_range
from elementwise import ACTIVATION, _gelu
from movement import constant, ints
from neural import _convolved, _window
from quantized import NARROW, TIES
from reductions import NORMALIZED
from rows import COMPOSED, SUMS, case, row

REALS = ("float", "float", "float16", "bfloat16", "double")
HALVES = ("float", "float", "float16")
# Attention: two products around a softmax, whose weights smaller types round.
ATTENDED = Rule(ulp=16, slack=64, scale="output", zero=False)


def _kind(d, among=REALS):
    return TYPES[d.choice(among)]


def _wide(function):
    """A formula, computed in f64."""
    return lambda *arrays: function(*(None if a is None else a.astype(np.float64) for a in arrays))


def _stood_in(d, inputs, attributes, kind, ranks, rule=ATTENDED, **more):
    """Judged by onnxruntime in f32, which has few operators in other types."""
    return case(d, inputs, attributes, rule=rule, outputs=len(ranks), stand_in=np.float32, results=tuple((kind, rank) for rank in ranks), **more)


def _shaped(d, x):
    """The results have the type and the rank of x."""
    return ((x.dtype, x.ndim),)


# ---- Activations -----------------------------------------------------------------------------------------------------


@row("Gelu BiasGelu FastGelu QuickGelu BiasAdd BiasSplitGelu", MS)
def activations(d):
    kind = _kind(d) if d.operator in ("Gelu", "BiasGelu", "FastGelu", "QuickGelu") else _kind(d, HALVES)
    shape = d.shape(1, 3, zero=0)
    x, bias = d.values(kind, shape, "tame"), d.values(kind, shape[-1:], "tame")
    erf, tanh = _gelu("none"), _gelu("tanh")
    if d.operator == "BiasAdd":
        skip = d.values(kind, shape, "tame")
        return case(d, [x, bias, skip], rule=SUMS, oracle=_wide(lambda v, b, s: v + b + s), results=_shaped(d, x))
    if d.operator == "BiasSplitGelu":
        shape[-1] = 2 * d.integer(1, 9)
        x, bias = d.values(kind, shape, "tame"), d.values(kind, shape[-1:], "tame")
        half = shape[-1] // 2
        formula = _wide(lambda v, b: (v + b)[..., :half] * erf((v + b)[..., half:]))
        # Gelu's own, times the factor. Both are sums.
        terms = lambda v, b: np.abs(v.astype(np.float64)) + np.abs(b.astype(np.float64))
        reach = lambda v, b: terms(v, b)[..., :half] * np.maximum(1, terms(v, b)[..., half:])
        return case(d, [x, bias], rule=replace(ACTIVATION, scale=reach), oracle=formula, results=_shaped(d, x))
    if d.operator == "QuickGelu":
        alpha = d.number(0.5, 2)
        return case(d, [x], {"alpha": alpha}, rule=ACTIVATION, oracle=_wide(lambda v: v / (1 + np.exp(-alpha * v))), results=_shaped(d, x))
    inputs = [x, bias] if d.operator == "BiasGelu" or d.operator == "FastGelu" and d.often(0.5) else [x]
    function = tanh if d.operator == "FastGelu" else erf
    # The sum is rounded to the type.
    added = lambda v, b=None: function((v if b is None else (v + b).astype(v.dtype)).astype(np.float64))
    return case(d, inputs, rule=ACTIVATION, oracle=added, results=_shaped(d, x))


@row("BiasSoftmax", MS)
def bias_softmax(d):
    kind, inner = _kind(d, HALVES), d.integer(0, 1)
    shape = [d.integer(1, 3), d.integer(1, 3), d.integer(1, 4), d.integer(1, 9)]
    axis = d.integer(1, 3)
    x = d.values(kind, shape, "tame")
    # Inner: the bias repeats within groups of outer rows, else it repeats as a whole.
    bias_shape = [shape[0], *[1] * (axis - 1), *shape[axis:]] if inner else [1, *shape[1:]]

    def formula(v, b):
        s = (v + b).reshape(int(np.prod(shape[:axis])), -1)
        e = np.exp(s - s.max(1, keepdims=True))
        return (e / e.sum(1, keepdims=True)).reshape(v.shape)

    return case(d, [x, d.values(kind, bias_shape, "tame")], {"axis": axis, "is_inner_broadcast": inner}, rule=NORMALIZED,
                oracle=_wide(formula), results=_shaped(d, x))


# ---- Normalisations --------------------------------------------------------------------------------------------------


@row("SkipLayerNormalization SkipSimplifiedLayerNormalization", MS)
def skip_norm(d):
    kind = _kind(d, HALVES)
    batch, rows, width = d.integer(1, 3), d.integer(1, 5), d.choice([1, 3, 8, 16, 33])
    x = d.values(kind, [batch, rows, width], "tame")
    skip = d.values(kind, [rows, width] if d.often(0.2) else [1, rows, width] if d.often(0.2) else [batch, rows, width], "tame")
    vector = lambda: d.values(kind, [width], "tame")
    simple, epsilon = d.operator.startswith("SkipSimplified"), d.number(1e-3, 1e-1)
    bias = vector() if d.often(0.5) else None
    inputs = [x, skip, vector()] + ([] if simple else [vector() if d.often(0.7) else None]) + [bias]

    def formula(*given):
        v, s, gamma = given[:3]
        beta, b = (None, given[3]) if simple else given[3:]
        t = v + s + (0 if b is None else b)
        c = t if simple else t - t.mean(-1, keepdims=True)
        y = c / np.sqrt((c * c).mean(-1, keepdims=True) + epsilon) * gamma
        return [y + (0 if beta is None else beta), None, None, t]

    oracle = _wide(formula)
    return case(d, inputs, {"epsilon": epsilon}, rule=NORMALIZED, oracle=oracle, results=((kind, 3),))


@row("GroupNorm SkipGroupNorm", MS)
def group_norm(d):
    kind = _kind(d, HALVES)
    groups = d.integer(1, 3)
    n, h, w, c = d.integer(1, 2), d.integer(1, 4), d.integer(1, 4), groups * d.integer(1, 4)
    last = d.integer(0, 1) if d.operator == "GroupNorm" else 1
    epsilon, activation = d.number(1e-3, 1e-1), d.integer(0, 1)
    shape = [n, h, w, c] if last else [n, c, h, w]
    gamma, beta = (d.values(np.float32, [c], "tame") for _ in range(2))
    attributes = {"groups": groups, "activation": activation, "channels_last": last, "epsilon": epsilon}

    def norm(v, g, b):
        y = np.moveaxis(v, -1, 1) if last else v
        parts = y.reshape(n, groups, -1)
        parts = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + epsilon)
        y = parts.reshape(y.shape) * g.reshape(-1, 1, 1) + b.reshape(-1, 1, 1)
        y = y / (1 + np.exp(-y)) if activation else y
        return np.moveaxis(y, 1, -1) if last else y

    x = d.values(kind, shape, "tame")
    if d.operator == "GroupNorm":
        return case(d, [x, gamma, beta], attributes, rule=NORMALIZED, oracle=_wide(norm), results=_shaped(d, x))
    skip = d.values(kind, d.choice([shape, [n, c], [n, 1, 1, c]]), "tame")
    bias = d.values(kind, [c], "tame") if d.often(0.5) else None

    def summed(v, g, b, s, more=None):
        total = v + (s if s.ndim == 4 else s[:, None, None]) + (0 if more is None else more)
        return [norm(total, g, b), total]

    return case(d, [x, gamma, beta, skip, bias], attributes, rule=NORMALIZED, oracle=_wide(summed), outputs=2, results=_shaped(d, x) * 2)


@row("EmbedLayerNormalization", MS)
def embed_norm(d):
    width, rows, batch = d.choice([4, 8, 16]), d.integer(1, 5), d.integer(1, 3)
    table = lambda count: d.values(np.float32, [count, width], "tame")
    ids = lambda most: d.rng.integers(0, most, (batch, rows)).astype(np.int32)
    segments = d.often(0.6)
    mask = (d.rng.random((batch, rows)) < 0.7).astype(np.int32) if d.often(0.5) else None
    inputs = [ids(9), ids(2) if segments else None, table(9), table(6), table(2) if segments else None,
              d.values(np.float32, [width], "tame"), d.values(np.float32, [width], "tame"), mask]
    return case(d, inputs, {"epsilon": d.number(1e-3, 1e-1)}, outputs=2, rule=NORMALIZED, results=((np.float32, 3), (np.int32, 1)), stand_in=np.float32)


# ---- Attention -------------------------------------------------------------------------------------------------------


def _heads(d):
    heads, size = d.choice([1, 2, 3]), d.choice([2, 4, 8])
    return heads, size, heads * size


@row("Attention", MS)
def attention(d):
    kind = _kind(d, HALVES)
    heads, size, width = _heads(d)
    batch, rows, inner = d.integer(1, 3), d.integer(1, 6), d.choice([4, 8])
    values = lambda *shape: d.values(kind, shape, "tame")
    x, w = values(batch, rows, inner), (values(inner, 3 * width).astype(np.float32) * 0.3).astype(kind)
    past = values(2, batch, heads, d.integer(1, 3), size) if d.often(0.25) else None
    keys = rows + (0 if past is None else past.shape[3])
    mask = None
    if d.often(0.4):
        mask = (d.rng.random((batch, keys)) < 0.7).astype(np.int32)
        mask[:, 0] = 1
    attributes = {"num_heads": heads} | ({"unidirectional": 1} if d.often(0.4) else {}) | ({"scale": d.number(0.2, 1)} if d.often(0.3) else {})
    added = values(1, heads, rows, keys) if past is None and d.often(0.25) else None
    outputs = (3, 5) if past is not None else (3,)
    return _stood_in(d, [x, w, values(3 * width), mask, past, added], attributes, kind, outputs, constants=constant(1, 2) if d.often(0.5) else frozenset())


@row("QAttention", MS)
def q_attention(d):
    heads, size, width = _heads(d)
    batch, rows, inner = d.integer(1, 3), d.integer(1, 6), d.choice([4, 8])
    w_kind = _kind(d, NARROW)
    x, w = d.values(np.uint8, [batch, rows, inner]), d.values(w_kind, [inner, 3 * width])
    scalar = lambda v, t=np.float32: np.array(v, t)
    attributes = {"num_heads": heads} | ({"unidirectional": 1} if d.often(0.4) else {})

    def formula(x, w, bias, x_scale, w_scale, _, x_zero, w_zero):
        projected = _real(x, x_scale, x_zero) @ _real(w, w_scale, w_zero) + bias
        q, k, v = (part.reshape(batch, rows, heads, -1).swapaxes(1, 2) for part in np.split(projected, 3, -1))
        scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1])
        if "unidirectional" in attributes:
            scores = np.where(np.tri(rows, dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return (weights / weights.sum(-1, keepdims=True) @ v).swapaxes(1, 2).reshape(batch, rows, width)

    return case(d, [x, w, d.values(np.float32, [3 * width], "tame"), scalar(0.02), scalar(0.01), None, scalar(d.integer(0, 255), np.uint8),
                    scalar(d.integer(0, 9), w_kind)], attributes, oracle=formula, rule=ATTENDED, results=((np.float32, 3),))


@row("MultiHeadAttention", MS)
def multi_head(d):
    kind = _kind(d, HALVES)
    heads, size, width = _heads(d)
    batch, rows = d.integer(1, 3), d.integer(1, 5)
    keys = d.integer(1, 6)
    values = lambda *shape: d.values(kind, shape, "tame")
    bias = values(3 * width) if d.often(0.4) else None
    padding = None
    if d.often(0.3):
        padding = (d.rng.random((batch, keys)) < 0.7).astype(np.int32)
        padding[:, 0] = 1
    added = values(d.choice([1, batch]), heads, rows, keys) if d.often(0.3) else None
    return _stood_in(d, [values(batch, rows, width), values(batch, keys, width), values(batch, keys, width), bias, padding, added],
                     {"num_heads": heads} | ({"scale": d.number(0.2, 1)} if d.often(0.3) else {}), kind, (3,))


@row("GroupQueryAttention", MS)
def grouped(d):
    kind = _kind(d, HALVES)
    shared, times, size = d.integer(1, 2), d.integer(1, 3), 16
    heads, batch = shared * times, d.integer(1, 2)
    past = d.choice([0, 0, 3, 6])
    rows = 1 if past else d.integer(1, 6)
    values = lambda *shape: d.values(kind, shape, "tame")
    total = past + rows
    turns = [(f(d.rng.random((32, size // 2)) * 6)).astype(kind) for f in (np.cos, np.sin)] if d.often(0.5) else []
    attributes = {"num_heads": heads, "kv_num_heads": shared} | ({"do_rotary": 1, "rotary_interleaved": d.integer(0, 1)} if turns else {})
    if d.often(0.2):
        attributes["softcap"] = d.number(1, 5)
    if d.often(0.2):
        attributes["local_window_size"] = d.integer(1, 4)
    if d.often(0.2):
        attributes["scale"] = d.number(0.1, 1)
    inputs = [values(batch, rows, heads * size), *(values(batch, rows, shared * size) for _ in range(2)), *(values(batch, shared, past, size) for _ in range(2)),
              np.full(batch, total - 1, np.int32), np.array(total, np.int32), *turns]
    return _stood_in(d, inputs, attributes, kind, (3, 4, 4), constants=constant(6))


@row("RotaryEmbedding", MS)
def rotary(d):
    kind = _kind(d, HALVES)
    batch, rows, heads, half = d.integer(1, 2), d.integer(1, 4), d.integer(1, 3), d.choice([1, 2, 4])
    caches = [d.values(kind, [9, half], "tame") for _ in range(2)]
    shape = [batch, heads, rows, 2 * half] if d.often(0.4) else [batch, rows, heads * 2 * half]
    at = d.rng.integers(0, 9, (batch, rows)).astype(np.int64) if d.often(0.7) else ints([d.integer(0, 9 - rows)])
    return _stood_in(d, [d.values(kind, shape, "tame"), at, *caches], {"interleaved": d.integer(0, 1)}, kind, (len(shape),), COMPOSED)


# ---- Products --------------------------------------------------------------------------------------------------------

_ACTIVATED = {"Relu": lambda x: np.maximum(x, 0), "Tanh": np.tanh, "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "LeakyRelu": lambda x: np.where(x < 0, float(np.float32(0.1)) * x, x)}


def _activation(d):
    name = d.choice(list(_ACTIVATED))
    return name, _ACTIVATED[name]


@row("FusedMatMul TransposeMatMul FusedMatMulActivation", MS)
def fused_mat_mul(d):
    kind = _kind(d)
    m, k, n, lead = d.dim(), d.choice([1, 2, 7, 16, 33]), d.dim(), d.shape(0, 2, most=6, zero=0)
    ta, tb, alpha = d.integer(0, 1), d.integer(0, 1), d.number(-2, 2)
    batched = d.operator == "FusedMatMul" and lead and d.often(0.3)  # the rows before the batch dims
    a, b = [*lead, k, m] if ta else [*lead, m, k], [*lead, n, k] if tb else [*lead, k, n]
    attributes = {"transA": ta, "transB": tb, "alpha": alpha}
    front = lambda shape: [shape[-2], *shape[:-2], shape[-1]]
    back = lambda v: np.moveaxis(v, 0, -2)
    batch_a = batch_b = 0
    if batched:
        batch_a, batch_b = d.integer(0, 1), d.integer(0, 1)
        attributes |= {"transBatchA": batch_a, "transBatchB": batch_b}
        # With the batch dims behind the rows, the last two dims are those of the matrix after the swap.
        a, b = front(a) if batch_a else a, front(b) if batch_b else b
    name, function = _activation(d) if d.operator == "FusedMatMulActivation" else (None, lambda v: v)
    if name:
        attributes |= {"activation": name} | ({"activation_alpha": 0.1} if name == "LeakyRelu" else {})

    def formula(x, y):
        x, y = back(x) if batch_a else x, back(y) if batch_b else y
        return function(alpha * (np.swapaxes(x, -1, -2) if ta else x) @ (np.swapaxes(y, -1, -2) if tb else y))

    rule = SUMS if not name else Rule(ulp=8, slack=64, scale="output", wide=True, zero=False)
    return case(d, [d.values(kind, a, "tame"), d.values(kind, b, "tame")], attributes, rule=rule, oracle=_wide(formula), results=((kind, len(lead) + 2),))


@row("FusedGemm GemmFastGelu", MS)
def fused_gemm(d):
    kind = _kind(d, HALVES)
    m, k, n = d.dim(), d.choice([1, 2, 7, 16]), d.dim()
    rule = Rule(ulp=8, slack=64, scale="output", wide=True, zero=False)
    if d.operator == "GemmFastGelu":
        gelu = _gelu("tanh")
        terms = lambda *v: (lambda x, w, b: np.maximum(1, x @ w + b))(*(np.abs(a.astype(np.float64)) for a in v))
        return case(d, [d.values(kind, [m, k], "tame"), d.values(kind, [k, n], "tame"), d.values(kind, [n], "tame")], rule=replace(rule, slack=24, scale=terms),
                    oracle=_wide(lambda x, w, b: gelu(x @ w + b)), results=((kind, 2),))
    ta, tb, alpha, beta = d.integer(0, 1), d.integer(0, 1), d.number(-2, 2), d.number(-2, 2)
    name, function = _activation(d)
    formula = lambda x, y, c: function(alpha * (x.T if ta else x) @ (y.T if tb else y) + beta * c)
    terms = lambda *v: (lambda x, y, c: np.maximum(1, abs(alpha) * ((x.T if ta else x) @ (y.T if tb else y)) + abs(beta) * c))(
        *(np.abs(a.astype(np.float64)) for a in v))
    attributes = {"transA": ta, "transB": tb, "alpha": alpha, "beta": beta, "activation": name} | ({"activation_alpha": 0.1} if name == "LeakyRelu" else {})
    return case(d, [d.values(kind, [k, m] if ta else [m, k], "tame"), d.values(kind, [n, k] if tb else [k, n], "tame"),
                    d.values(kind, d.choice([[n], [1, n], [m, n], [m, 1]]), "tame")], attributes, rule=replace(rule, slack=24, scale=terms), oracle=_wide(formula),
                results=((kind, 2),))


@row("FusedConv NhwcConv NhwcFusedConv", MS)
def fused_conv(d):
    kind, group = _kind(d, HALVES), d.choice([1, 1, 2])
    sizes = [d.integer(1, 8) for _ in range(2)]
    attributes = _window(d, 2, sizes) | {"group": group}
    channels, filters = group * d.integer(1, 4), group * d.integer(1, 4)
    last = d.operator != "FusedConv"
    x = d.values(kind, [d.integer(1, 2), channels, *sizes], "tame")
    w = d.values(kind, [filters, channels // group, *attributes["kernel_shape"]], "tame")
    b = d.values(kind, [filters], "tame") if d.often(0.6) else None
    plain = _convolved(attributes, group)
    name, function = _activation(d) if d.operator != "NhwcConv" else (None, lambda v: v)
    attributes = attributes | ({"activation": name} if name else {}) | ({"activation_params": [0.1]} if name == "LeakyRelu" else {})
    outside = (lambda v: np.moveaxis(v, 1, -1)) if last else (lambda v: v)
    formula = lambda v, f, c=None: outside(function(plain(np.moveaxis(v, -1, 1) if last else v, f, c)))
    return case(d, [np.ascontiguousarray(outside(x)), w, b], attributes, rule=Rule(ulp=8, slack=64, scale="output", wide=True, zero=False),
                oracle=formula, results=((kind, 4),), constants=constant(1, 2) if d.often(0.5) else frozenset())


@row("MatMulInteger16", MS)
def mat_mul_16(d):
    kind = _kind(d, ("int16", "uint16"))
    m, k, n = d.dim(), d.choice([1, 3, 8]), d.dim()
    wide = np.int32 if kind == np.int16 else np.uint32
    return case(d, [d.values(kind, [m, k], "small"), d.values(kind, [k, n], "small")], oracle=lambda a, b: a.astype(wide) @ b.astype(wide), results=((wide, 2),))


@row("CDist Inverse Rfft Irfft", MS)
def linear_algebra(d):
    if d.operator == "CDist":
        kind, metric = _kind(d, ("float", "double")), d.choice(["euclidean", "sqeuclidean"])
        k = d.integer(1, 9)

        def distance(a, b):
            squares = ((a[:, None] - b[None]) ** 2).sum(-1)
            return squares if metric == "sqeuclidean" else np.sqrt(squares)

        return case(d, [d.values(kind, [d.integer(1, 9), k], "tame"), d.values(kind, [d.integer(1, 9), k], "tame")], {"metric": metric},
                    rule=Rule(ulp=64, slack=64, scale="output", wide=True, zero=False), oracle=_wide(distance), results=((kind, 2),))
    kind = _kind(d, ("float", "double"))
    if d.operator == "Inverse":
        n = d.integer(1, 5)
        x = (d.rng.standard_normal([*d.shape(0, 2, most=6, zero=0), n, n]) + 4 * np.eye(n)).astype(kind)
        return case(d, [x], rule=Rule(ulp=64, slack=512, scale="output", wide=True, zero=False), oracle=_wide(np.linalg.inv), results=_shaped(d, x))
    n, lead = d.integer(1, 16), d.shape(0, 2, most=8, zero=0)
    attributes = {"signal_ndim": 1, "onesided": 1, "normalized": 0}
    rule = Rule(ulp=64, slack=256, scale="output", wide=True, zero=False)
    if d.operator == "Rfft":
        parts = lambda z: np.stack([z.real, z.imag], -1)
        return case(d, [d.values(kind, [*lead, n], "tame")], attributes, rule=rule, oracle=_wide(lambda v: parts(np.fft.rfft(v))), results=((kind, len(lead) + 2),))
    x = d.values(kind, [*lead, n + 1, 2], "tame")
    return case(d, [x], attributes, rule=rule, oracle=_wide(lambda v: np.fft.irfft(v[..., 0] + 1j * v[..., 1])), results=((kind, len(lead) + 1),))


# ---- Movement --------------------------------------------------------------------------------------------------------


@row("ExpandDims Trilu GatherND UnfoldTensor Pad Range GridSample", MS)
def movement(d):
    every = ("float", "double", "float16", "int8", "uint8", "int16", "int32", "int64", "bool", "string")
    x = d.values(_kind(d, every), d.shape(1, 3, most=200, zero=0))
    if d.operator == "ExpandDims":
        axis = d.integer(-x.ndim - 1, x.ndim)
        return case(d, [x, np.array(axis, np.int32)], constants=constant(1), oracle=lambda v, _: np.expand_dims(v, axis), results=((x.dtype, x.ndim + 1),))
    if d.operator == "Trilu":
        x = d.values(_kind(d, every[:-1]), d.shape(2, 3, most=200))
        k, upper = d.integer(-4, 4), d.integer(0, 1)
        return case(d, [x, ints(k)], {"upper": upper}, oracle=lambda v, _: (np.triu if upper else np.tril)(v, k), results=_shaped(d, x))
    if d.operator == "GatherND":
        depth = d.integer(1, x.ndim)
        lead = d.shape(1, 2, most=8, zero=0)
        at = np.stack([d.indices(np.int64, lead, size) for size in x.shape[:depth]], -1)
        return case(d, [x, at], oracle=lambda v, i: v[tuple(np.moveaxis(i, -1, 0))], results=((x.dtype, len(lead) + x.ndim - depth),))
    if d.operator == "UnfoldTensor":
        dim = d.integer(0, x.ndim - 1)
        size, step = d.integer(1, x.shape[dim]), d.integer(1, 3)
        return case(d, [x], {"dim": dim, "size": size, "step": step}, results=((x.dtype, x.ndim + 1),),
                    oracle=lambda v: np.moveaxis(np.lib.stride_tricks.sliding_window_view(v, size, dim), dim, 0)[::step].copy().swapaxes(0, 0).transpose(
                        *range(1, dim + 1), 0, *range(dim + 1, v.ndim + 1)))
    if d.operator == "Pad":
        x = d.values(_kind(d, ("float", "double", "float16")), d.shape(1, 3, most=200, zero=0))
        pads = [d.integer(0, 3) for _ in range(2 * x.ndim)]
        value = d.values(x.dtype, [], "tame")
        widths = list(zip(pads[: x.ndim], pads[x.ndim:]))
        return case(d, [x, ints(pads), value], constants=constant(1), oracle=lambda v, _, fill: np.pad(v, widths, constant_values=fill), results=_shaped(d, x))
    if d.operator == "Range":
        kind, start, delta, count = _kind(d, ("float", "double", "int16", "int32", "int64")), d.integer(-9, 9), d.choice([1, 2, -3]), d.integer(1, 9)
        return case(d, [np.array(v, kind) for v in (start, start + count * delta, delta)], constants=constant(0, 1, 2),
                    oracle=lambda *_: (start + delta * np.arange(count)).astype(kind), results=((kind, 1),))
    x = d.values(np.float32, [d.integer(1, 2), d.integer(1, 3), d.integer(2, 6), d.integer(2, 6)], "tame")
    grid = (d.rng.random((x.shape[0], d.integer(1, 4), d.integer(1, 4), 2)) * 2.6 - 1.3).astype(np.float32)
    attributes = {"mode": d.choice(["bilinear", "nearest"]), "padding_mode": d.choice(["zeros", "border", "reflection"]), "align_corners": d.integer(0, 1)}
    return case(d, [x, grid], attributes, rule=Rule(ulp=16, slack=1024, scale="output", zero=False), results=_shaped(d, x))


# ---- Quantised -------------------------------------------------------------------------------------------------------


def _quantised(d, shape, kind):
    """Values, scale (a power of two, so that products are exact) and zero point."""
    return d.values(kind, shape), np.array(2.0 ** d.integer(-5, -1), np.float32), np.array(d.integer(*integer_range(kind)), kind)


def _real(x, scale, zero):
    return (x.astype(np.float64) - np.float64(zero)) * np.float64(scale)


def _rounded(y, scale, zero):
    return np.clip(np.rint(y / np.float64(scale)) + np.float64(zero), *integer_range(zero.dtype)).astype(zero.dtype)


@row("QLinearAdd QLinearMul QLinearSigmoid QLinearLeakyRelu QLinearSoftmax QLinearConcat QLinearWhere QLinearReduceMean", MS)
def qlinear(d):
    kind = _kind(d, NARROW)
    shape = d.shape(1, 3, most=200, zero=0)
    x, into = _quantised(d, shape, kind), _quantised(d, [1], kind)[1:]
    done = lambda inputs, oracle, attributes=None, rank=len(shape), rule=TIES: case(d, inputs, attributes, oracle=oracle, rule=rule, results=((kind, rank),))
    if d.operator in ("QLinearAdd", "QLinearMul"):
        shapes = d.broadcast(2, low=1, high=3, zero=0)
        a, b = (_quantised(d, shape, kind) for shape in shapes)
        function = np.add if d.operator == "QLinearAdd" else np.multiply
        return done([*a, *b, *into], lambda *v: _rounded(function(_real(*v[:3]), _real(*v[3:6])), *v[6:]), rank=max(map(len, shapes)))
    if d.operator == "QLinearSigmoid":
        return done([*x, *into], lambda *v: _rounded(1 / (1 + np.exp(-_real(*v[:3]))), *v[3:]))
    if d.operator == "QLinearLeakyRelu":
        alpha = d.number(0, 1)
        return done([*x, *into], lambda *v: _rounded(np.where(_real(*v[:3]) < 0, alpha, 1) * _real(*v[:3]), *v[3:]), {"alpha": alpha})
    if d.operator == "QLinearSoftmax":
        axis = d.axis(len(shape))

        def softmax(*v):
            e = _real(*v[:3])
            e = np.exp(e - e.max(axis, keepdims=True))
            return _rounded(e / e.sum(axis, keepdims=True), *v[3:])

        into = np.array(1 / 256, np.float32), np.array(integer_range(kind)[0], kind)
        return done([*x, *into], softmax, {"axis": axis, "opset": 13})
    if d.operator == "QLinearConcat":
        axis = d.axis(len(shape))
        sized = lambda: [d.integer(1, 5) if i == axis % len(shape) else size for i, size in enumerate(shape)]
        parts = [_quantised(d, sized(), kind) for _ in range(d.integer(1, 3))]
        return done([*into, *(array for part in parts for array in part)],
                    lambda *v: np.concatenate([_rounded(_real(*v[i:i + 3]), *v[:2]) for i in range(2, len(v), 3)], axis), {"axis": axis})
    if d.operator == "QLinearWhere":
        condition = d.values(bool, shape)
        return done([condition, *x, *_quantised(d, shape, kind), *into],
                    lambda c, *v: np.where(c, _rounded(_real(*v[:3]), *v[6:]), _rounded(_real(*v[3:6]), *v[6:])))
    axes, keep = sorted({axis % len(shape) for axis in d.axes(len(shape), 1)}), d.integer(0, 1)
    return done([*x, *into], lambda *v: _rounded(_real(*v[:3]).mean(tuple(axes), keepdims=bool(keep)), *v[3:]), {"axes": axes, "keepdims": keep},
                rank=len(shape) if keep else len(shape) - len(axes))


@row("QLinearAveragePool QLinearGlobalAveragePool NhwcMaxPool", MS)
def qlinear_pool(d):
    kind = _kind(d, NARROW)
    sizes = [d.integer(2, 7), d.integer(2, 7)]
    x, into = _quantised(d, [d.integer(1, 2), d.integer(1, 4), *sizes], kind), _quantised(d, [1], kind)[1:]
    if d.operator == "QLinearGlobalAveragePool":
        last = d.integer(0, 1)
        over = (1, 2) if last else (2, 3)
        return case(d, [*x, *into], {"channels_last": last}, rule=TIES, oracle=lambda *v: _rounded(_real(*v[:3]).mean(over, keepdims=True), *v[3:]), results=((kind, 4),))
    attributes = _window(d, 2, sizes, dilated=False)
    from neural import _pooled
    if d.operator == "NhwcMaxPool":
        pooled = _pooled("MaxPool", attributes)
        return case(d, [np.ascontiguousarray(np.moveaxis(x[0], 1, -1))], attributes, oracle=lambda v: np.moveaxis(pooled(np.moveaxis(v, -1, 1)), 1, -1).astype(kind), results=((kind, 4),))
    attributes["count_include_pad"] = d.integer(0, 1)
    pooled = _pooled("AveragePool", attributes)
    return case(d, [*x, *into], attributes, rule=TIES, oracle=lambda *v: _rounded(pooled(_real(*v[:3])), *v[3:]), results=((kind, 4),))


@row("QLinearConv", MS)
def qlinear_conv(d):
    kind, group = _kind(d, NARROW), d.choice([1, 1, 2])
    last = d.integer(0, 1)
    sizes = [d.integer(3, 6), d.integer(3, 6)]
    channels, filters = group * d.integer(1, 3), group * d.integer(1, 3)
    x = _quantised(d, [1, channels, *sizes], kind)
    w = d.values(np.int8, [filters, channels // group, 3, 3]), np.full(filters, 2.0**-4, np.float32), np.zeros(filters, np.int8)
    into, bias = _quantised(d, [1], kind)[1:], d.rng.integers(-999, 999, filters).astype(np.int32)
    attributes = {"group": group, "kernel_shape": [3, 3]} | ({"pads": [1, 1, 1, 1]} if d.often(0.5) else {})
    plain = _convolved(attributes, group)

    def formula(v, s, z, f, fs, fz, ys, yz, b):
        y = plain(_real(np.moveaxis(v, -1, 1) if last else v, s, z), f.astype(np.float64) * fs.reshape(-1, 1, 1, 1))
        y = _rounded(y + (b * np.float64(s) * fs).reshape(-1, 1, 1), ys, yz)
        return np.moveaxis(y, 1, -1) if last else y

    first = np.ascontiguousarray(np.moveaxis(x[0], 1, -1)) if last else x[0]
    return case(d, [first, *x[1:], *w, *into, bias], attributes | {"channels_last": last}, oracle=formula, rule=TIES, constants=constant(3, 4, 5, 8), results=((kind, 4),))


@row("QGemm MatMulIntegerToFloat DynamicQuantizeMatMul", MS)
def quantised_products(d):
    a_kind, b_kind = _kind(d, NARROW), _kind(d, NARROW)
    m, k, n = d.dim(), d.choice([1, 3, 8, 16]), d.dim()
    a, b = _quantised(d, [m, k], a_kind), _quantised(d, [k, n], b_kind)
    if d.often(0.4):  # a scale and a zero point a column
        b = b[0], np.exp2(d.rng.integers(-5, 0, n)).astype(np.float32), d.values(b_kind, [n])
    bias = d.values(np.float32, [n], "tame") if d.often(0.5) else None
    if d.operator == "MatMulIntegerToFloat":
        formula = lambda x, y, s, t, p=None, q=None, c=None: _real(x, s, 0 if p is None else p) @ _real(y, t, 0 if q is None else q) + (0 if c is None else c)
        zeros = [a[2], b[2]] if d.often(0.7) else [None, None]
        return case(d, [a[0], b[0], a[1], b[1], *zeros, bias], oracle=formula, rule=Rule(ulp=8, slack=16, scale="output", wide=True, zero=False), results=((np.float32, 2),))
    if d.operator == "DynamicQuantizeMatMul":
        x = d.values(np.float32, [m, k], "tame")

        def formula(v, y, t, q=None, c=None):
            low, high = min(0.0, float(v.min())), max(0.0, float(v.max()))
            s = np.float32(np.float32(high - low) / np.float32(255))
            z = np.float32(np.clip(np.rint(-low / s), 0, 255)) if s else 0
            e = np.clip(np.rint(v / s) + z, 0, 255) if s else np.zeros_like(v)
            return _real(e, s, z) @ _real(y, t, 0 if q is None else q) + (0 if c is None else c)

        # An element that rounds the other way changes a sum by one step of it.
        step = lambda v, y, t, q=None, c=None: float(np.ptp(np.append(v, 0)) / 255 * 256 * np.max(t)) / float(np.finfo(np.float32).eps) / 64
        return case(d, [x, b[0], b[1], b[2] if d.often(0.7) else None, bias], oracle=formula, rule=Rule(ulp=8, slack=64, scale=step, zero=False), results=((np.float32, 2),))
    alpha, c = d.number(0.5, 2), d.rng.integers(-99, 99, n).astype(np.int32) if d.often(0.5) else None
    formula = lambda x, s, p, y, t, q, b=None, ys=None, yz=None: (lambda v: v if ys is None else _rounded(v, ys, yz))(
        alpha * (_real(x, s, p) @ _real(y, t, q) + (0 if b is None else b * np.float64(s) * np.float64(t))))
    if d.often(0.5):
        into = _quantised(d, [1], a_kind)[1:]
        return case(d, [*a, *b, c, *into], {"alpha": alpha}, oracle=formula, rule=TIES, results=((a_kind, 2),))
    return case(d, [*a, *b, c], {"alpha": alpha}, oracle=formula, rule=Rule(ulp=8, slack=64, scale="output", wide=True, zero=False), results=((np.float32, 2),))


@row("QuantizeLinear DequantizeLinear", MS)
def linear_scales(d):
    kind = _kind(d, NARROW)
    x = d.values(kind, d.shape(1, 3, most=200, zero=0))
    axis = d.axis(x.ndim) if d.often(0.5) else None
    shape = [] if axis is None else [x.shape[axis]]
    scale, zero = np.exp2(d.rng.integers(-4, 3, shape)).astype(np.float32), d.values(kind, shape)
    spread = lambda a: a if axis is None else a.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    attributes = {} if axis is None else {"axis": axis}
    if d.operator == "DequantizeLinear":
        return case(d, [x, np.asarray(scale), zero], attributes, oracle=lambda v, s, z: ((v.astype(np.float64) - spread(z)) * spread(s)).astype(np.float32),
                    results=((np.float32, x.ndim),), rule=Rule(zero=False))
    real = d.values(np.float32, x.shape, "tame")
    return case(d, [real, np.asarray(scale), zero], attributes, results=((kind, x.ndim),),
                oracle=lambda v, s, z: np.clip(np.rint(v.astype(np.float64) / spread(s)) + spread(z).astype(np.float64), *integer_range(kind)).astype(kind))


def _unpacked(packed, bits, count):
    """The last dim of bytes as `count` numbers, the low bits first."""
    parts = [packed >> at & (1 << bits) - 1 for at in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*packed.shape[:-1], -1)[..., :count]


@row("MatMulNBits", MS)
def mat_mul_bits(d):
    kind, bits, block = _kind(d, HALVES), d.choice([2, 4, 4, 8]), d.choice([16, 32])
    columns, width, most = d.integer(1, 9), d.choice([1, 7, 16, 33, 40, 64]), 6
    if d.often(0.3):  # enough weights for code of their own, that is not folded: few rows, and many
        columns, width, most = d.choice([520, 1029]), block * d.choice([32, 35, 66]), d.choice([3, 40])
    blocks = -(-width // block)
    x = d.values(kind, [*d.shape(1, 2, most=most, zero=0), width], "tame")
    packed = d.values(np.uint8, [columns, blocks, block * bits // 8])
    scales = d.values(kind, [columns, blocks], "tame")
    zeros = d.values(np.uint8, [columns, -(-blocks * bits // 8)]) if d.often(0.5) else None
    bias = d.values(kind, [columns], "tame") if d.often(0.3) else None

    def formula(v, p, s, z=None, g=None, b=None):
        w = _unpacked(p, bits, block).astype(np.float64)
        zero = 2.0 ** (bits - 1) if z is None else _unpacked(z, bits, blocks).astype(np.float64)[..., None]
        w = ((w - zero) * s.astype(np.float64)[..., None]).reshape(columns, -1)[:, :width]
        return v.astype(np.float64) @ w.T + (0 if b is None else b.astype(np.float64))

    return case(d, [x, packed, scales, zeros, None, bias], {"N": columns, "K": width, "bits": bits, "block_size": block}, oracle=formula,
                constants=constant(1, 2, 3), rule=Rule(ulp=4, slack=64, scale="output", wide=True, zero=False), results=((kind, x.ndim),))


@row("GatherBlockQuantized", MS)
def gather_blocks(d):
    bits, block, rows = d.choice([4, 8]), d.choice([16, 32]), d.integer(1, 7)
    width = block * d.integer(1, 3) + d.choice([0, 0, 2, 6])
    blocks = -(-width // block)
    packed, scales = d.values(np.uint8, [rows, width * bits // 8]), d.values(np.float32, [rows, blocks], "tame")
    zeros = d.values(np.uint8, [rows, -(-blocks * bits // 8)]) if d.often(0.6) else None
    at = d.indices(d.choice([np.int64, np.int32]), d.shape(0, 2, most=6, zero=0), rows)

    def formula(p, i, s, z=None):
        w = _unpacked(p, bits, width).astype(np.float64)
        each = lambda a: np.repeat(a.astype(np.float64), block, -1)[:, :width]
        zero = 2.0 ** (bits - 1) if z is None else each(_unpacked(z, bits, blocks))
        return ((w - zero) * each(s))[i]

    return case(d, [packed, at, scales, zeros], {"block_size": block, "bits": bits, "quantize_axis": 1, "gather_axis": 0}, oracle=formula,
                rule=Rule(ulp=1, wide=True, zero=False), constants=constant(0, 2, 3) if d.often(0.7) else frozenset(), results=((np.float32, at.ndim + 1),))
