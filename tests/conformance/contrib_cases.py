"""Cases for operators of onnxruntime and of ai.onnx.ml whose inputs a schema does not describe well enough to make them up.

A row: an operator, its inputs (None: left out), attributes, and which dims are symbols in the model. What is expected is what
onnxruntime computes, or where its CPU provider lacks the operator, a function written from the operator's documentation.
"""

from dataclasses import dataclass, field

import numpy as np

MS, ML = "com.microsoft", "ai.onnx.ml"


@dataclass(frozen=True)
class Row:
    name: str
    operator: str
    inputs: tuple
    attributes: dict = field(default_factory=dict)
    outputs: int = 1
    domain: str = MS
    free: dict = field(default_factory=dict)  # {input: {axis: symbol}}
    constants: tuple = ()  # inputs that are initializers
    reference: object = None  # inputs -> outputs, where onnxruntime has none
    rtol: float = 1e-3
    atol: float = 1e-5
    opset: int = 17  # of ai.onnx


def _floats(rng, *shape, scale=1.0):
    return (scale * rng.standard_normal(shape)).astype(np.float32)


def _bytes(rng, *shape, signed=False):
    return rng.integers(-128 if signed else 0, 128 if signed else 256, shape).astype(np.int8 if signed else np.uint8)


def _weights(rng, *shape):
    """Signed bytes of half the range: on processors without VNNI, onnxruntime's sums of two products saturate at 16 bits. tests/sweep
    and tests/quantized have the whole range, against exact sums."""
    return rng.integers(-64, 64, shape).astype(np.int8)


def _scalar(value, kind=np.float32):
    return np.array(value, kind)


# ---- Attention -------------------------------------------------------------------------------------------------------

HEADS, SIZE, WIDTH = 2, 8, 16
SEQUENCE = {0: "batch", 1: "rows"}


def _attention(rng):
    batch, rows = 2, 5
    x, w, b = _floats(rng, batch, rows, WIDTH), _floats(rng, WIDTH, 3 * WIDTH, scale=0.3), _floats(rng, 3 * WIDTH)
    past = _floats(rng, 2, batch, HEADS, 3, SIZE)
    base = {"num_heads": HEADS}
    two = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32)
    three = (rng.random((batch, rows, rows)) < 0.7).astype(np.int32) | np.eye(rows, dtype=np.int32)
    weights = {"constants": (1, 2), "free": {0: SEQUENCE}}
    yield Row("plain", "Attention", (x, w, b), base, **weights)
    yield Row("scale", "Attention", (x, w, b), base | {"scale": 0.2})
    yield Row("causal", "Attention", (x, w, b), base | {"unidirectional": 1}, **weights)
    yield Row("mask_2d", "Attention", (x, w, b, two), base)
    yield Row("mask_2d_filter", "Attention", (x, w, b, two), base | {"mask_filter_value": -1e9, "unidirectional": 1})
    yield Row("mask_3d", "Attention", (x, w, b, three), base)
    yield Row("mask_ends", "Attention", (x, w, b, np.array([4, 2], np.int32)), base)
    yield Row("mask_ranges", "Attention", (x, w, b, np.array([5, 4, 1, 0], np.int32)), base)
    yield Row("past", "Attention", (x, w, b, None, past), base | {"unidirectional": 1}, outputs=2)
    yield Row("added", "Attention", (x, w, b, None, None, _floats(rng, 1, HEADS, rows, rows)), base)
    wide = _floats(rng, WIDTH, WIDTH + WIDTH + 24, scale=0.3)
    yield Row("sizes", "Attention", (x, wide, _floats(rng, 2 * WIDTH + 24)), base | {"qkv_hidden_sizes": [WIDTH, WIDTH, 24]})
    for signed in (False, True):
        q, qw = _bytes(rng, batch, rows, WIDTH), (_weights if signed else _bytes)(rng, WIDTH, 3 * WIDTH)
        scales = (_scalar(0.02), _scalar(0.01))
        zeros = (_scalar(120, np.uint8), _scalar(3, qw.dtype))
        yield Row(f"signed{int(signed)}", "QAttention", (q, qw, b, *scales, None, *zeros), base)
        yield Row(f"mask_signed{int(signed)}", "QAttention", (q, qw, b, *scales, np.array([4, 5], np.int32), *zeros),
                  base | {"unidirectional": 1})


def _plain_attention(q, k, v):
    """[batch, rows, heads, size] each"""
    scores = np.einsum("bihd,bjhd->bhij", q, k).astype(np.float64) / np.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(-1, keepdims=True))
    y = np.einsum("bhij,bjhd->bihd", e / e.sum(-1, keepdims=True), v)
    return [y.reshape(*y.shape[:2], -1).astype(np.float32)]


def _multi_head(rng):
    batch, rows, keys = 2, 4, 6
    q, k, v = (_floats(rng, batch, n, WIDTH) for n in (rows, keys, keys))
    b, base = _floats(rng, 3 * WIDTH), {"num_heads": HEADS}
    free = {0: {0: "batch", 1: "rows"}, 1: {0: "batch", 1: "keys"}, 2: {0: "batch", 1: "keys"}}
    yield Row("plain", "MultiHeadAttention", (q, k, v), base, free=free)
    yield Row("bias", "MultiHeadAttention", (q, k, v, b), base | {"scale": 0.5})
    yield Row("padding", "MultiHeadAttention",
              (q, k, v, None, np.array([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]], np.int32)), base)
    yield Row("added", "MultiHeadAttention", (q, k, v, b, None, _floats(rng, batch, HEADS, rows, keys)), base)
    yield Row("causal", "MultiHeadAttention", (q, q, q), base | {"unidirectional": 1})
    yield Row("packed", "MultiHeadAttention", (_floats(rng, batch, rows, HEADS, 3, SIZE),), base,
              reference=lambda x: _plain_attention(*(x[:, :, :, i] for i in range(3))))
    yield Row("packed_keys", "MultiHeadAttention", (q, _floats(rng, batch, keys, HEADS, 2, SIZE)), base,
              reference=lambda q, x: _plain_attention(q.reshape(batch, rows, HEADS, SIZE), x[:, :, :, 0], x[:, :, :, 1]))
    cross = (_floats(rng, batch, HEADS, keys, SIZE), _floats(rng, batch, HEADS, keys, SIZE))
    yield Row("cross", "MultiHeadAttention", (q, *cross), base)
    yield Row("past", "MultiHeadAttention", (q, q, q, None, None, None, *(c[:, :, :3] for c in cross)), base, outputs=3)


def _grouped(rng):
    heads, shared, size, rows = 4, 2, 16, 5
    cache = _floats(rng, 64, size // 2)
    turns = (np.cos(cache), np.sin(cache))
    base = {"num_heads": heads, "kv_num_heads": shared}

    def row(name, batch, past, new, **more):
        q, k, v = _floats(rng, batch, new, heads * size), *(_floats(rng, batch, new, shared * size) for _ in range(2))
        total = past + new
        lengths = (np.full(batch, total - 1, np.int32), _scalar(total, np.int32))
        caches = tuple(_floats(rng, batch, shared, past, size) for _ in range(2))
        return Row(name, "GroupQueryAttention", (q, k, v, *caches, *lengths, *turns), base | more, outputs=3, constants=(6,))

    yield row("prompt", 2, 0, rows)
    yield row("prompt_rotary", 2, 0, rows, do_rotary=1)
    yield row("step", 1, 6, 1, do_rotary=1)
    yield row("steps_of_batch", 3, 6, 1, do_rotary=1)
    yield row("neighbours", 1, 4, 1, do_rotary=1, rotary_interleaved=1)
    yield row("window", 1, 0, 7, local_window_size=3)
    yield row("softcap", 2, 0, rows, softcap=5.0)
    yield row("smooth", 2, 0, rows, smooth_softmax=1)
    yield row("scale", 2, 0, rows, scale=0.7)
    symbols = {"free": {0: SEQUENCE, 1: SEQUENCE, 2: SEQUENCE, 3: {0: "batch", 2: "past"}, 4: {0: "batch", 2: "past"}, 5: {0: "batch"}}}
    fixed = row("symbolic", 2, 6, 1, do_rotary=1)  # a dim that a model leaves open is at least 1: no prompt
    yield Row(fixed.name, fixed.operator, fixed.inputs, fixed.attributes, outputs=3, constants=(6,), **symbols)
    packed = _floats(rng, 2, rows, (heads + 2 * shared) * size)
    lengths = (np.full(2, rows - 1, np.int32), _scalar(rows, np.int32))
    empty = np.zeros((2, shared, 0, size), np.float32)
    yield Row("packed", "GroupQueryAttention", (packed, None, None, empty, empty, *lengths, *turns), base | {"do_rotary": 1},
              outputs=3, constants=(6,))


def _rotary(rng):
    cache = _floats(rng, 20, 4)
    turns = (np.cos(cache), np.sin(cache))
    x, at = _floats(rng, 2, 3, 16), np.array([[0, 1, 2], [5, 6, 9]], np.int64)
    yield Row("rows", "RotaryEmbedding", (x, at, *turns))
    yield Row("offset", "RotaryEmbedding", (x, np.array([4], np.int64), *turns))
    yield Row("neighbours", "RotaryEmbedding", (x, at, *turns), {"interleaved": 1}, free={0: SEQUENCE, 1: SEQUENCE})
    yield Row("heads", "RotaryEmbedding", (_floats(rng, 2, 5, 3, 8), at, *turns))
    yield Row("part", "RotaryEmbedding", (_floats(rng, 2, 3, 32), at, *turns), {"rotary_embedding_dim": 8, "num_heads": 2})


# ---- Normalisations --------------------------------------------------------------------------------------------------


def _images(x, groups, last):
    """x with channels first and in groups, normalised."""
    y = np.moveaxis(x, -1, 1) if last else x
    parts = y.reshape(y.shape[0], groups, -1).astype(np.float64)
    parts = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 1e-5)
    y = parts.reshape(y.shape)
    return np.moveaxis(y, 1, -1) if last else y


def _group_norm(last, activation):
    def compute(x, gamma, beta):
        shape = (-1,) if last else (-1, 1, 1)
        y = _images(x, 2, last) * gamma.reshape(shape) + beta.reshape(shape)
        return [(y / (1 + np.exp(-y)) if activation else y).astype(np.float32)]

    return compute


def _skip_group_norm(x, gamma, beta, skip, bias):
    total = x + (skip if skip.ndim == 4 else skip[:, None, None]) + bias
    return [(_images(total, 2, True) * gamma + beta).astype(np.float32), total]


def _normalisations(rng):
    x, skip, gamma, beta, bias = _floats(rng, 2, 3, 16), _floats(rng, 2, 3, 16), *(_floats(rng, 16) for _ in range(3))
    free = {"free": {0: SEQUENCE, 1: SEQUENCE}}
    yield Row("plain", "SkipLayerNormalization", (x, skip, gamma, beta), **free)
    yield Row("bias", "SkipLayerNormalization", (x, skip, gamma, beta, bias), {"epsilon": 1e-3})
    yield Row("shared_skip", "SkipLayerNormalization", (x, skip[0], gamma, None, bias))
    yield Row("plain", "SkipSimplifiedLayerNormalization", (x, skip, gamma), **free)
    yield Row("bias", "SkipSimplifiedLayerNormalization", (x, skip, gamma, bias), {"epsilon": 1e-3})
    half = [3 * values.astype(np.float16) for values in (x, skip, gamma, beta, bias)]  # sums that round if they are halves
    yield Row("half", "SkipLayerNormalization", tuple(half), {"epsilon": 1e-5}, outputs=4)
    yield Row("half", "SkipSimplifiedLayerNormalization", (*half[:3], half[4]), {"epsilon": 1e-5})
    yield Row("plain", "SimplifiedLayerNormalization", (x, gamma), domain="", free={0: SEQUENCE})
    yield Row("epsilon", "SimplifiedLayerNormalization", (x, gamma), {"epsilon": 0.1, "axis": 2}, domain="")
    ids = rng.integers(0, 11, (2, 4)).astype(np.int32)
    tables = (_floats(rng, 11, 16), _floats(rng, 6, 16), _floats(rng, 2, 16), gamma, beta)
    segments, mask = rng.integers(0, 2, (2, 4)).astype(np.int32), np.array([[1, 1, 1, 0], [1, 0, 0, 0]], np.int32)
    yield Row("plain", "EmbedLayerNormalization", (ids, segments, *tables), outputs=2, free={0: SEQUENCE, 1: SEQUENCE})
    yield Row("mask", "EmbedLayerNormalization", (ids, segments, *tables, mask), {"epsilon": 1e-3}, outputs=2)
    yield Row("no_segments", "EmbedLayerNormalization", (ids, None, *tables[:2], None, gamma, beta), outputs=2)
    yield Row("positions", "EmbedLayerNormalization", (ids, segments, *tables, None, ids % 6), outputs=2)
    image, channels = _floats(rng, 2, 3, 4, 6), (_floats(rng, 6), _floats(rng, 6))
    for last in (0, 1):
        shaped = image if last else np.ascontiguousarray(np.moveaxis(image, -1, 1))
        yield Row(f"last{last}", "GroupNorm", (shaped, *channels), {"groups": 2, "activation": last, "channels_last": last},
                  reference=_group_norm(last, last))
    for skipped in (_floats(rng, 2, 3, 4, 6), _floats(rng, 2, 6)):
        yield Row(f"rank{skipped.ndim}", "SkipGroupNorm", (image, *channels, skipped, _floats(rng, 6)),
                  {"groups": 2, "activation": 0}, outputs=2, reference=_skip_group_norm)

    def softmax(x, bias):
        e = np.exp((x + bias).astype(np.float64).reshape(6, 4))
        return [(e / e.sum(1, keepdims=True)).reshape(x.shape).astype(np.float32)]

    data = _floats(rng, 2, 3, 2, 2)
    yield Row("inner", "BiasSoftmax", (data, _floats(rng, 2, 1, 2, 2)), {"axis": 2, "is_inner_broadcast": 1}, reference=softmax)
    yield Row("outer", "BiasSoftmax", (data, _floats(rng, 1, 3, 2, 2)), {"axis": 2, "is_inner_broadcast": 0}, reference=softmax)


# ---- Products and convolutions ---------------------------------------------------------------------------------------


def _gelu_tanh(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _gelu_erf(x):
    from math import erf

    return x / 2 * (1 + np.vectorize(erf)(x / np.sqrt(2)))


def _fused(rng):
    a, b = _floats(rng, 2, 3, 4, 5), _floats(rng, 2, 3, 5, 6)
    yield Row("plain", "FusedMatMul", (a, b), {"alpha": 0.5}, free={0: {0: "n"}, 1: {0: "n"}})
    yield Row("transposed", "FusedMatMul", (np.swapaxes(a, 2, 3).copy(), np.swapaxes(b, 2, 3).copy()),
              {"transA": 1, "transB": 1, "alpha": 2.0})
    yield Row("batch", "FusedMatMul", (np.moveaxis(a, 2, 0).copy(), np.moveaxis(b, 2, 0).copy()), {"transBatchA": 1, "transBatchB": 1})
    yield Row("vector", "FusedMatMul", (_floats(rng, 5), _floats(rng, 5, 6)), {"transA": 1})
    yield Row("plain", "TransposeMatMul", (a, np.swapaxes(b, 2, 3).copy()), {"transB": 1, "alpha": 0.25})
    m, w, c = _floats(rng, 3, 4), _floats(rng, 4, 5), _floats(rng, 5)
    for name, more in (("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.2}), ("Tanh", {}), ("Sigmoid", {}), ("Softplus", {}),
                       ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}), ("Elu", {"activation_alpha": 0.7})):
        yield Row(name.lower(), "FusedGemm", (m, w, c), {"activation": name, "alpha": 0.5, "beta": 2.0} | more)
    yield Row("plain", "GemmFastGelu", (m, w, c), reference=lambda m, w, c: [_gelu_tanh(m @ w + c).astype(np.float32)])
    yield Row("relu", "FusedMatMulActivation", (m, w), {"activation": "Relu", "alpha": 0.5},
              reference=lambda m, w: [np.maximum(m @ w / 2, 0)])
    x, k, bias = _floats(rng, 2, 4, 6, 6), _floats(rng, 6, 2, 3, 3), _floats(rng, 6)
    base = {"group": 2, "pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    yield Row("relu", "FusedConv", (x, k, bias), base | {"activation": "Relu"}, free={0: {0: "n"}})
    yield Row("sum", "FusedConv", (x, k, bias, _floats(rng, 2, 6, 6, 6)), base | {"activation": "Relu"})
    yield Row("leaky", "FusedConv", (x, k), base | {"activation": "LeakyRelu", "activation_params": [0.1]})
    yield Row("clip", "FusedConv", (x, k, bias), base | {"activation": "Clip", "activation_params": [0.0, 6.0]})
    yield Row("hard", "FusedConv", (x, k, bias), base | {"activation": "HardSigmoid", "activation_params": [0.2, 0.5]})

    def channels_last(relu):
        def compute(x, w, b):
            windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))  # n, h, w, c, 3, 3
            y = np.einsum("nhwcij,ocij->nhwo", windows, w) + b
            return [np.maximum(y, 0) if relu else y]

        return compute

    last, w4 = _floats(rng, 2, 6, 5, 4), _floats(rng, 3, 4, 3, 3)
    yield Row("plain", "NhwcConv", (last, w4, _floats(rng, 3)), reference=channels_last(False))
    yield Row("relu", "NhwcFusedConv", (last, w4, _floats(rng, 3)), {"activation": "Relu"}, reference=channels_last(True))
    rows, v = _floats(rng, 2, 3, 8), _floats(rng, 8)
    yield Row("plain", "BiasAdd", (rows, v, _floats(rng, 2, 3, 8)), reference=lambda x, b, s: [x + b + s])
    yield Row("plain", "BiasSplitGelu", (rows, v),
              reference=lambda x, b: [((x + b)[..., :4] * _gelu_erf((x + b)[..., 4:])).astype(np.float32)])
    yield Row("front", "ExpandDims", (rows, _scalar(-1, np.int32)), constants=(1,))
    yield Row("last", "ExpandDims", (rows, _scalar(1, np.int32)), constants=(1,))
    signal = _floats(rng, 2, 3, 16)
    yield Row("plain", "Rfft", (signal,), {"signal_ndim": 1, "onesided": 1, "normalized": 0}, free={0: {0: "n"}}, atol=1e-4,
              reference=lambda x: [np.stack([np.fft.rfft(x).real, np.fft.rfft(x).imag], -1).astype(np.float32)])
    yield Row("plain", "Irfft", (_floats(rng, 2, 9, 2),), {"signal_ndim": 1, "onesided": 1, "normalized": 0},
              reference=lambda x: [np.fft.irfft(x[..., 0] + 1j * x[..., 1]).astype(np.float32)])
    for metric in ("euclidean", "sqeuclidean"):
        yield Row(metric, "CDist", (_floats(rng, 3, 8), _floats(rng, 5, 8)), {"metric": metric})
    yield Row("plain", "UnfoldTensor", (_floats(rng, 2, 9, 3),), {"dim": 1, "size": 4, "step": 2},
              reference=lambda x: [np.stack([x[:, i : i + 4] for i in (0, 2, 4)], 1).swapaxes(2, 3)])
    yield Row("three", "Inverse", (_floats(rng, 2, 3, 3),), atol=1e-4)
    yield Row("six", "Inverse", (_floats(rng, 6, 6) + np.eye(6, dtype=np.float32)[::-1] * 3,), free={}, atol=1e-4)
    yield Row("upper", "Trilu", (_floats(rng, 4, 5),))
    yield Row("lower", "Trilu", (_floats(rng, 2, 4, 5), _scalar(1, np.int64)), {"upper": 0})
    yield Row("plain", "GatherND", (_floats(rng, 3, 4, 5), rng.integers(0, 3, (2, 2)).astype(np.int64)))
    yield Row("plain", "Pad", (_floats(rng, 3, 4), np.array([1, 0, 2, 1], np.int64), _scalar(0.5)), constants=(1,))
    yield Row("plain", "Range", (_scalar(1), _scalar(9), _scalar(2)), constants=(0, 1, 2))
    yield Row("steps", "Range", (_scalar(2, np.int64), _scalar(7, np.int64)), constants=(0, 1))
    yield Row("plain", "GridSample", (_floats(rng, 1, 2, 4, 4), rng.uniform(-1.2, 1.2, (1, 3, 3, 2)).astype(np.float32)))


# ---- Quantised tensors -----------------------------------------------------------------------------------------------


def _quantised(rng):
    near = {"atol": 1}  # a result may round the other way

    def tensor(*shape, signed=False, scale=0.05):
        x = _bytes(rng, *shape, signed=signed)
        return x, _scalar(scale), _scalar(7 if signed else 120, x.dtype)

    def into(signed=False, scale=0.06):
        return _scalar(scale), _scalar(-3 if signed else 110, np.int8 if signed else np.uint8)

    for s in (False, True):
        label = "signed" if s else "unsigned"
        a, b = tensor(2, 3, 8, signed=s), tensor(3, 8, signed=s, scale=0.02)
        yield Row(label, "QLinearAdd", (*a, *b, *into(s)), **near)
        yield Row(label, "QLinearMul", (*a, *b, *into(s)), **near)
        yield Row(label, "QLinearSigmoid", (*a, _scalar(1 / 256), _scalar(-128 if s else 0, a[0].dtype)), **near)
        yield Row(label, "QLinearLeakyRelu", (*a, *into(s)), {"alpha": 0.1}, **near)
        yield Row(label, "QLinearSoftmax", (*a, _scalar(1 / 256), _scalar(-128 if s else 0, a[0].dtype)), {"axis": -1, "opset": 13}, **near)
        image = tensor(2, 3, 6, 6, signed=s)
        yield Row(label, "QLinearGlobalAveragePool", (*image, *into(s)), **near)
        yield Row(label, "QLinearAveragePool", (*image, *into(s)),
                  {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2], "count_include_pad": int(s)}, **near)
    yield Row("flat", "QLinearSoftmax", (*tensor(2, 3, 4), _scalar(1 / 256), _scalar(0, np.uint8)), {"axis": 1, "opset": 12}, **near)
    yield Row("last", "QLinearGlobalAveragePool", (*tensor(2, 5, 6, 3), *into()), {"channels_last": 1}, **near)
    yield Row("plain", "QLinearConcat", (*into(), *tensor(2, 3), *tensor(2, 4, scale=0.1)), {"axis": 1}, **near)
    yield Row("plain", "QLinearWhere", (rng.random((3, 4)) < 0.5, *tensor(3, 4), *tensor(3, 4, scale=0.1), *into()), **near)
    yield Row("plain", "QLinearReduceMean", (*tensor(2, 3, 4), *into()), {"axes": [1], "keepdims": 1},
              reference=lambda x, s, z, ys, yz: [np.clip(np.rint((x.astype(np.float32) - z).mean(1, keepdims=True) * s / ys) + yz, 0, 255)
                                                 .astype(np.uint8)], **near)
    for last in (0, 1):
        x = tensor(1, 5, 5, 4) if last else tensor(1, 4, 5, 5)
        w = _weights(rng, 6, 2, 3, 3), np.linspace(0.01, 0.02, 6, dtype=np.float32), np.zeros(6, np.int8)
        yield Row(f"last{last}", "QLinearConv", (*x, *w, *into(), np.arange(6).astype(np.int32)), {"group": 2, "channels_last": last},
                  constants=(3, 4, 5, 8), **near)
    yield Row("plain", "NhwcMaxPool", (_bytes(rng, 2, 6, 6, 3),), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]})
    yield Row("plain", "MatMulInteger16", tuple(rng.integers(-3000, 3000, s).astype(np.int16) for s in ((3, 4), (4, 5))))
    for bits in (4, 8):
        table, scales = _bytes(rng, 7, 64 * bits // 8), _floats(rng, 7, 4, scale=0.1)
        zeros, at = _bytes(rng, 7, 4 * bits // 8), rng.integers(0, 7, (2, 3)).astype(np.int64)
        base = {"block_size": 16, "bits": bits, "quantize_axis": 1, "gather_axis": 0}
        yield Row(f"zeros{bits}", "GatherBlockQuantized", (table, at, scales, zeros), base, constants=(0, 2, 3), free={1: SEQUENCE})
    yield Row("plain", "GatherBlockQuantized", (_bytes(rng, 7, 16), at, _floats(rng, 7, 2)), {"block_size": 16, "bits": 4}, constants=(0, 2))
    a, b = _bytes(rng, 4, 8), _weights(rng, 8, 6)
    columns = (np.full(6, 0.01, np.float32) * np.arange(1, 7, dtype=np.float32)), np.arange(6).astype(np.int8)
    bias, zero = _floats(rng, 6), _scalar(100, np.uint8)
    yield Row("scalar", "MatMulIntegerToFloat", (a, b, _scalar(0.02), _scalar(0.01), zero, _scalar(2, np.int8), bias))
    yield Row("columns", "MatMulIntegerToFloat", (a, b, _scalar(0.02), columns[0], zero, columns[1]), free={0: {0: "rows"}})
    yield Row("scalar", "DynamicQuantizeMatMul", (_floats(rng, 4, 8), b, _scalar(0.01), _scalar(2, np.int8), bias), atol=2e-3)
    yield Row("columns", "DynamicQuantizeMatMul", (_floats(rng, 4, 8), b, columns[0], columns[1]), atol=2e-3)
    yield Row("float", "QGemm", (a, _scalar(0.02), zero, b, _scalar(0.01), _scalar(1, np.int8)), {"alpha": 0.5})
    yield Row("quantised", "QGemm", (a, _scalar(0.02), zero, b, columns[0], columns[1], np.arange(6).astype(np.int32), *into()), **near)
    yield Row("transposed", "QGemm", (a.T.copy(), _scalar(0.02), zero, b.T.copy(), _scalar(0.01), _scalar(1, np.int8)), {"transA": 1, "transB": 1})
    rows, width, block = 6, 40, 16
    blocks = -(-width // block)
    for bits in (4, 8):
        packed, scales = _bytes(rng, rows, blocks, block * bits // 8), _floats(rng, rows, blocks, scale=0.1)
        zeros = _bytes(rng, rows, -(-blocks * bits // 8))
        base = {"N": rows, "K": width, "bits": bits, "block_size": block}
        x = _floats(rng, 2, 3, width)
        yield Row(f"bits{bits}", "MatMulNBits", (x, packed, scales), base, constants=(1, 2), free={0: SEQUENCE}, atol=1e-4)
        yield Row(f"zeros{bits}", "MatMulNBits", (x, packed, scales, zeros), base, constants=(1, 2, 3), atol=1e-4)
    x, s = _floats(rng, 3, 4), _floats(rng, 4) ** 2 + np.float32(0.05)
    yield Row("columns", "QuantizeLinear", (x, s, np.array([1, 2, 3, 4], np.uint8)), {"axis": 1})
    yield Row("scalar", "QuantizeLinear", (x, _scalar(0.1), _scalar(0, np.int8)))
    yield Row("columns", "DequantizeLinear", (_bytes(rng, 3, 4), s, np.array([1, 2, 3, 4], np.uint8)), {"axis": 1})
    yield Row("scalar", "DequantizeLinear", (_bytes(rng, 3, 4, signed=True), _scalar(0.1), _scalar(5, np.int8)))


# ---- ai.onnx.ml ------------------------------------------------------------------------------------------------------


def forest(rng, trees, depth, features, targets, mode="BRANCH_LEQ", prefix="target", ids=None, lo=-1.0, missing=False):
    """Random complete trees as the attributes of versions 1 and 3."""
    names = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    nodes = {name: [] for name in names}
    leaves = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    inner = 2**depth - 1
    for tree in range(trees):
        for node in range(2 * inner + 1):
            is_leaf = node >= inner
            picked = mode if isinstance(mode, str) else mode[rng.integers(len(mode))]
            values = (tree, node, 0 if is_leaf else int(rng.integers(features)), "LEAF" if is_leaf else picked,
                      0.0 if is_leaf else float(np.float32(rng.integers(-4, 5) / 4)), 0 if is_leaf else 2 * node + 1,
                      0 if is_leaf else 2 * node + 2)
            for name, value in zip(names, values):
                nodes[name].append(value)
            if is_leaf:
                named = [int(rng.integers(targets))] if ids is None else ids
                for target in named:
                    for name, value in zip(leaves, (tree, node, target, float(np.float32(rng.uniform(lo, 1))))):
                        leaves[name].append(value)
    result = {f"nodes_{name}": values for name, values in nodes.items()} | {f"{prefix}_{name}": values for name, values in leaves.items()}
    if missing:
        result["nodes_missing_value_tracks_true"] = [int(v) for v in rng.integers(0, 2, len(nodes["modes"]))]
    return result


def _grid(rng, rows, features):
    """Values that often equal a threshold."""
    return (rng.integers(-6, 7, (rows, features)) / 4).astype(np.float32)


def _trees(rng):
    x = _grid(rng, 9, 5)
    free = {0: {0: "rows"}}
    for mode in ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"):
        yield Row(mode[7:].lower(), "TreeEnsembleRegressor", (x,), forest(rng, 4, 3, 5, 1, mode) | {"n_targets": 1}, domain=ML)
    gaps = x.copy()
    gaps[::2, 1] = np.nan
    yield Row("missing", "TreeEnsembleRegressor", (gaps,), forest(rng, 5, 3, 5, 1, missing=True) | {"n_targets": 1}, domain=ML)
    yield Row("mixed", "TreeEnsembleRegressor", (x,), forest(rng, 4, 3, 5, 1, ["BRANCH_LEQ", "BRANCH_GT"]) | {"n_targets": 1}, domain=ML)
    for kind in ("SUM", "AVERAGE", "MIN", "MAX"):
        for targets in (1, 3):
            attributes = {"n_targets": targets, "aggregate_function": kind, "base_values": [0.25 * i + 0.5 for i in range(targets)]}
            yield Row(f"{kind.lower()}{targets}", "TreeEnsembleRegressor", (x,), forest(rng, 6, 3, 5, targets, ids=list(range(targets))) | attributes,
                      domain=ML, free=free)
    for transform in ("SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        yield Row(transform.lower(), "TreeEnsembleRegressor", (x,),
                  forest(rng, 6, 3, 5, 3, ids=[0, 1, 2]) | {"n_targets": 3, "post_transform": transform}, domain=ML)
        yield Row(f"{transform.lower()}1", "TreeEnsembleRegressor", (x,), forest(rng, 3, 2, 5, 1) | {"n_targets": 1, "post_transform": transform}, domain=ML)
    yield Row("large", "TreeEnsembleRegressor", (_floats(rng, 33, 20),), forest(rng, 100, 8, 20, 1) | {"n_targets": 1}, domain=ML, free=free, atol=1e-4)
    labels = {"classlabels_int64s": [3, 1, 7]}
    for transform in ("NONE", "SOFTMAX", "LOGISTIC"):
        yield Row(transform.lower(), "TreeEnsembleClassifier", (x,),
                  forest(rng, 6, 3, 5, 3, prefix="class", ids=[0, 1, 2]) | labels | {"post_transform": transform}, outputs=2, domain=ML)
    for lo in (0.0, -1.0):
        for transform in ("NONE", "LOGISTIC"):
            yield Row(f"binary_{lo:.0f}_{transform.lower()}", "TreeEnsembleClassifier", (x,),
                      forest(rng, 3, 3, 5, 2, prefix="class", ids=[0], lo=lo) | {"classlabels_int64s": [4, 9], "post_transform": transform},
                      outputs=2, domain=ML, free=free)


def _classical(rng):
    x = _floats(rng, 5, 4)
    free = {0: {0: "rows"}}

    def ml(name, operator, inputs, attributes, outputs=1, **more):
        return Row(name, operator, inputs, attributes, outputs, ML, **more)

    yield ml("columns", "ArrayFeatureExtractor", (x, np.array([2, 0], np.int64)), {})
    yield ml("plain", "Binarizer", (x,), {"threshold": 0.3}, free=free)
    yield ml("plain", "FeatureVectorizer", (x, _floats(rng, 5, 2)), {"inputdimensions": [4, 2]})
    holes = x.copy()
    holes[1, 2] = np.nan
    yield ml("nan", "Imputer", (holes,), {"imputed_value_floats": [1.0, 2.0, 3.0, 4.0], "replaced_value_float": float("nan")}, free=free)
    yield ml("integers", "Imputer", (rng.integers(0, 3, (5, 2)).astype(np.int64),), {"imputed_value_int64s": [8], "replaced_value_int64": 1})
    for norm in ("MAX", "L1", "L2"):
        yield ml(norm.lower(), "Normalizer", (np.abs(x) if norm == "MAX" else x,), {"norm": norm}, free=free)
    yield ml("columns", "Scaler", (x,), {"offset": [0.5, 1.0, -1.0, 0.0], "scale": [2.0, 0.5, 1.0, 3.0]})
    yield ml("one", "Scaler", (x,), {"offset": [0.5], "scale": [2.0]})
    yield ml("plain", "OneHotEncoder", (rng.integers(0, 5, (6,)).astype(np.int64),), {"cats_int64s": [0, 2, 4], "zeros": 1})
    numbers = rng.integers(-2, 8, (4, 5)).astype(np.int64)
    yield ml("integers", "LabelEncoder", (numbers,), {"keys_int64s": [5, 1, 3, 7, -1], "values_floats": [0.5, 1.5, 2.5, 3.5, 4.5], "default_float": -9.0})
    yield ml("floats", "LabelEncoder", (numbers.astype(np.float32),), {"keys_floats": [5.0, 1.0, float("nan")], "values_int64s": [50, 10, 99], "default_int64": 7})
    weights = [float(v) for v in _floats(rng, 12)]
    for transform in ("NONE", "SOFTMAX", "LOGISTIC"):
        yield ml(transform.lower(), "LinearClassifier", (x,), {"coefficients": weights, "intercepts": [0.1, -0.2, 0.3],
                 "classlabels_ints": [5, 6, 8], "post_transform": transform}, 2, free=free)
    for transform in ("NONE", "LOGISTIC"):
        yield ml(f"{transform.lower()}_two", "LinearClassifier", (x,), {"coefficients": weights[:4], "intercepts": [0.1],
                 "classlabels_ints": [0, 1], "post_transform": transform}, 2)
    yield ml("plain", "LinearRegressor", (x,), {"coefficients": weights[:8], "intercepts": [0.1, 0.2], "targets": 2})
    supports = [float(v) for v in _floats(rng, 6 * 4)]
    for kernel in ("LINEAR", "RBF", "POLY", "SIGMOID"):
        shape = {"kernel_type": kernel, "kernel_params": [0.25, 1.0, 2.0], "support_vectors": supports}
        yield ml(kernel.lower(), "SVMRegressor", (x,), shape | {"coefficients": weights[:6], "rho": [0.3], "n_supports": 6}, free=free)
        yield ml(f"{kernel.lower()}_three", "SVMClassifier", (x,), shape | {"coefficients": weights, "rho": [0.1, -0.2, 0.05],
                 "vectors_per_class": [2, 3, 1], "classlabels_ints": [2, 4, 9]}, 2)
        yield ml(f"{kernel.lower()}_two", "SVMClassifier", (x,), shape | {"coefficients": weights[:6], "rho": [0.1],
                 "vectors_per_class": [2, 4], "classlabels_ints": [2, 4]}, 2)


# ---- Of ai.onnx: what its own tests leave out ------------------------------------------------------------------------


def _transforms(rng):
    def dft(x, length, inverse, onesided):
        wide = x.astype(np.float64)
        z = wide[..., 0] + (1j * wide[..., 1] if x.shape[-1] == 2 else 0)
        if onesided:
            out = np.fft.irfft(z, length, axis=1) if inverse else np.fft.rfft(z.real, length, axis=1)
        else:
            out = (np.fft.ifft if inverse else np.fft.fft)(z, length, axis=1)
        parts = [out] if onesided and inverse else [out.real, out.imag]
        return [np.stack(parts, -1).astype(x.dtype)]

    def row(name, length, parts=2, inverse=0, onesided=0, kind=np.float32, resized=None, **more):
        bins = length // 2 + 1 if onesided and inverse else length
        x = rng.standard_normal((3, bins, parts)).astype(kind)
        inputs = (x, np.array(resized, np.int64)) if resized else (x,)
        reference = lambda v, *_: dft(v, resized or length, inverse, onesided)
        return Row(name, "DFT", inputs, {"inverse": inverse, "onesided": onesided, "axis": 1}, domain="", reference=reference,
                   atol=2e-5 * length**0.5 if kind == np.float32 else 1e-12 * length, rtol=1e-4 if kind == np.float32 else 1e-11, **more)

    for length in (1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 49, 60, 121, 210, 509, 521, 1000, 1024, 1042, 2187, 4096):
        yield row(f"complex_{length}", length)
        if length not in (1, 2, 15, 60, 521, 1024):
            continue
        yield row(f"real_{length}", length, parts=1, kind=np.float64)
        yield row(f"half_{length}", length, parts=1, onesided=1)
        yield row(f"inverse_{length}", length, inverse=1, kind=np.float64)
        if length % 2 == 0:
            yield row(f"half_inverse_{length}", length, inverse=1, onesided=1)
    for resized in (9, 25):
        yield row(f"resized_{resized}", 16, resized=resized, constants=(1,))
        yield row(f"resized_in_the_run_{resized}", 16, resized=resized)
    yield row("free", 30, free={0: {1: "length"}}, kind=np.float64)
    yield row("free_half", 30, parts=1, onesided=1, free={0: {0: "signals", 1: "length"}})
    yield row("free_half_inverse", 30, inverse=1, onesided=1, free={0: {1: "bins"}})


def _regions(rng):
    x = _floats(rng, 2, 3, 9, 7)
    corners = np.sort(rng.random((5, 2, 2)) * 10 - 1, axis=1).reshape(5, 4).astype(np.float32)
    corners[4] = [3, 3, 3, 2]  # of no size
    images = np.array([0, 1, 1, 0, 1], np.int64)
    for mode in ("avg", "max"):
        for transform in ("half_pixel", "output_half_pixel"):
            yield Row(f"adaptive_{mode}_{transform}", "RoiAlign", (x, corners, images), {"mode": mode, "coordinate_transformation_mode": transform,
                      "output_height": 2, "output_width": 3, "spatial_scale": 0.9}, domain="", free={0: {2: "h", 3: "w"}, 1: {0: "regions"}, 2: {0: "regions"}})
    pooled = np.concatenate([images[:, None], np.round(corners * 1.4)], axis=1).astype(np.float32)
    pooled[3] = [0, 20, 20, 25, 25]  # outside
    for scale in (1.0, 0.6):
        yield Row(f"scaled_{scale}", "MaxRoiPool", (x, pooled), {"pooled_shape": [2, 3], "spatial_scale": scale}, domain="",
                  free={0: {2: "h", 3: "w"}, 1: {0: "regions"}})


def _mixed(rng):
    """Inputs of several types, where a schema allows them."""
    def attend(q, k, v):
        scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return [(weights / weights.sum(-1, keepdims=True) @ v.astype(np.float64)).astype(q.dtype)]

    def normalize(x, scale):
        wide = x.astype(np.float64)
        y = (wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype)
        return [(y.astype(np.float64) * scale).astype(x.dtype)]

    q, k, v = _floats(rng, 2, 3, 5, 8), _floats(rng, 2, 3, 7, 8), _floats(rng, 2, 3, 7, 4)
    for first, second in ((np.float32, np.float16), (np.float16, np.float32), (np.float32, np.float64)):
        more = {"domain": "", "opset": 23, "rtol": 4e-3, "atol": 2e-3}
        name = f"{np.dtype(first)}_{np.dtype(second)}"
        yield Row(name, "Attention", (q.astype(first), k.astype(first), v.astype(second)), reference=attend, **more)
        yield Row(name, "RMSNormalization", (q.astype(first), _floats(rng, 8).astype(second)), reference=normalize, **more)
    image = np.arange(20).reshape(4, 5).astype(str).astype(object)
    grid = (rng.random((1, 3, 2, 2)) * 2 - 1).astype(np.float32)
    nearest = lambda x, g: [x[:, :, np.rint(((g[0, ..., 1] + 1) * 4 - 1) / 2).clip(0, 3).astype(int), np.rint(((g[0, ..., 0] + 1) * 5 - 1) / 2).clip(0, 4).astype(int)]]
    yield Row("strings", "GridSample", (image[None, None], grid), {"mode": "nearest", "padding_mode": "border"}, domain="", opset=22, reference=nearest)
    for name, size in (("crops", [3, 2]), ("pads", [6, 9]), ("both", [2, 8])):
        def center(x, *_, size=size):
            at = [(a - b) // 2 if a >= b else -((b - a) // 2) for a, b in zip(x.shape, size)]
            spots = [[i + o for i in range(s)] for s, o in zip(size, at)]
            return [np.array([[x[r, c] if 0 <= r < x.shape[0] and 0 <= c < x.shape[1] else 0 for c in spots[1]] for r in spots[0]], x.dtype)]
        for where, given in (("constant", (1,)), ("run", ())):
            yield Row(f"{name}_{where}", "CenterCropPad", (_floats(rng, 4, 5), np.array(size, np.int32)), domain="", opset=18, reference=center, constants=given)


def rows():
    """All of them, the same in each run."""
    for number, family in enumerate((_attention, _multi_head, _grouped, _rotary, _normalisations, _fused, _quantised, _trees, _classical, _transforms,
                                    _regions, _mixed)):
        yield from family(np.random.default_rng(number))
