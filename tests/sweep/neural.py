"""Convolutions, pools, resampling, recurrences, attention, losses and signals."""

from dataclasses import replace

import numpy as np

import oracle as oracles
from case import EXACT, Case, Rule
from draw import FLOATS, STRING, TYPES, is_string
from movement import constant, ints
from reductions import NORMALIZED
from rows import COMPOSED, SUMS, case, row

# A few hundred products, then at most one more rounding.
PRODUCTS = Rule(ulp=2, slack=16, scale="magnitude", wide=True, zero=False)
# Gates and states of recurrences: errors of one step enter the next.
RECURRENT = Rule(ulp=64, slack=64, scale="output", wide=True, zero=False)


def _window(d, spatial, sizes, dilated=True):
    """kernel_shape, strides, dilations and pads for inputs of these sizes, such that something is left."""
    kernel = [d.integer(1, min(3, size)) for size in sizes]
    dilations = [d.integer(1, 2) if dilated and (k - 1) * 2 + 1 <= size else 1 for k, size in zip(kernel, sizes)]
    attributes = {"kernel_shape": kernel, "strides": [d.integer(1, 3) for _ in range(spatial)]}
    if dilated and d.often(0.4):
        attributes["dilations"] = dilations
    if d.often(0.3):
        attributes["auto_pad"] = d.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
        if attributes["auto_pad"] != "VALID":
            attributes.pop("dilations", None)  # which versions disagree about
    elif d.often(0.6):
        attributes["pads"] = [d.integer(0, k - 1) for k in kernel + kernel]
    return attributes


def _geometry(attributes, sizes, transposed=False):
    """Pads (low, high), strides, dilations of each spatial dim."""
    count = len(sizes)
    kernel, strides = attributes["kernel_shape"], attributes.get("strides", [1] * count)
    dilations = attributes.get("dilations", [1] * count)
    pads = attributes.get("pads", [0] * 2 * count)
    low, high = pads[:count], pads[count:]
    if attributes.get("auto_pad", "VALID") != "VALID":
        total = [max(0, (-(-size // s) - 1) * s + (k - 1) * e + 1 - size) for size, s, k, e in zip(sizes, strides, kernel, dilations)]
        less, more = [t // 2 for t in total], [t - t // 2 for t in total]
        low, high = (less, more) if attributes["auto_pad"] == "SAME_UPPER" else (more, less)
    return low, high, strides, dilations


def _windows(x, attributes, fill):
    """x as f64, cut into windows: [N, C, out..., kernel...], and which elements are no padding."""
    sizes = x.shape[2:]
    low, high, strides, dilations = _geometry(attributes, sizes)
    out = []
    for size, l, h, s, k, e in zip(sizes, low, high, strides, attributes["kernel_shape"], dilations):
        span = size + l + h - ((k - 1) * e + 1)
        count = span // s + 1
        if attributes.get("ceil_mode") and -(-span // s) * s < size + l:  # the last window begins in the input or its left padding
            count = -(-span // s) + 1
        out.append(count)
    index = [np.arange(n)[:, None] * s + np.arange(k)[None] * e - l
             for n, s, k, e, l in zip(out, strides, attributes["kernel_shape"], dilations, low)]
    values, inside = x.astype(np.float64), np.ones((), bool)
    for axis, (at, size) in enumerate(zip(index, sizes)):  # windows of earlier dims stand as two dims each
        values = np.take(values, np.clip(at, 0, size - 1), axis=2 + 2 * axis)
        inside = inside[..., None, None] & ((at >= 0) & (at < size))
    values = np.where(inside, values, fill)
    order = [0, 1, *(2 + 2 * i for i in range(len(sizes))), *(3 + 2 * i for i in range(len(sizes)))]
    valid = np.broadcast_to(inside, values.shape).transpose(order)
    return values.transpose(order), valid


def _convolved(attributes, group):
    def oracle(x, w, bias=None):
        windows, _ = _windows(x, attributes, 0.0)
        spatial = x.ndim - 2
        parts = windows.reshape(x.shape[0], group, -1, *windows.shape[2:])
        filters = w.astype(np.float64).reshape(group, -1, *w.shape[1:])
        letters, kernel = "uvw"[:spatial], "xyz"[:spatial]
        out = np.einsum(f"ngc{letters}{kernel},gmc{kernel}->ngm{letters}", parts, filters).reshape(x.shape[0], w.shape[0], *windows.shape[2:2 + spatial])
        return out if bias is None else out + bias.astype(np.float64).reshape(-1, *[1] * spatial)

    return oracle


def _transposed(attributes, group):
    """Each element adds its multiple of the filter to the result, of which the pads are cut off."""
    def oracle(x, w, bias=None):
        low, high, strides, dilations = _geometry(attributes, x.shape[2:])
        extra = attributes.get("output_padding", [0] * len(strides))
        kernel = w.shape[2:]
        full = [(n - 1) * s + (k - 1) * e + 1 + p for n, s, k, e, p in zip(x.shape[2:], strides, kernel, dilations, extra)]
        out = np.zeros((x.shape[0], group * w.shape[1], *full))
        xs = x.astype(np.float64).reshape(x.shape[0], group, -1, *x.shape[2:])
        ws = w.astype(np.float64).reshape(group, -1, *w.shape[1:])
        for at in np.ndindex(*kernel):
            part = np.einsum("ngc...,gcm->ngm...", xs, ws[(..., *at)]).reshape(x.shape[0], -1, *x.shape[2:])
            spot = tuple(slice(i * e, i * e + (n - 1) * s + 1, s) for i, e, n, s in zip(at, dilations, x.shape[2:], strides))
            out[(slice(None), slice(None), *spot)] += part
        out = out[(slice(None), slice(None), *(slice(l, n - h) for l, h, n in zip(low, high, full)))]
        return out if bias is None else out + bias.astype(np.float64).reshape(-1, *[1] * (x.ndim - 2))

    return oracle


def _pooled(operator, attributes):
    def oracle(x):
        spatial = x.ndim - 2
        over = tuple(range(-spatial, 0))
        values, valid = _windows(x, attributes, -np.inf if operator == "MaxPool" else 0.0)
        if operator == "MaxPool":
            return values.max(over).astype(x.dtype) if x.dtype.kind != "V" else values.max(over)
        if operator == "LpPool":
            p = attributes["p"]
            return (np.abs(values) ** p).sum(over) ** (1 / p)
        count = np.prod(attributes["kernel_shape"]) if attributes.get("count_include_pad") else valid.sum(over)
        return values.sum(over) / count

    return oracle


@row("Conv")
def conv(d):
    kind, spatial, group = d.type("T", FLOATS), d.integer(1, 3), d.choice([1, 1, 2, 3])
    sizes = [d.integer(1, 9) for _ in range(spatial)]
    channels, filters = group * d.integer(1, 5), group * d.integer(1, 9)
    attributes = _window(d, spatial, sizes) | {"group": group}
    x = d.values(kind, [d.integer(1, 2), channels, *sizes], "tame")
    w = d.values(kind, [filters, channels // group, *attributes["kernel_shape"]], "tame")
    bias = d.values(kind, [filters], "tame") if d.often(0.5) else None
    return case(d, [x, w, bias], attributes, rule=PRODUCTS, oracle=_convolved(attributes, group),
                constants=constant(1, 2) if d.often(0.6) else frozenset())


@row("ConvTranspose")
def conv_transpose(d):
    kind, spatial, group = d.type("T", FLOATS), d.integer(1, 2), d.choice([1, 1, 2])
    sizes = [d.integer(1, 6) for _ in range(spatial)]
    channels, filters = group * d.integer(1, 4), d.integer(1, 4)
    kernel = [d.integer(1, 5) for _ in sizes]
    strides = [d.integer(1, 3) for _ in sizes]
    attributes = {"group": group, "strides": strides, "kernel_shape": kernel}
    if d.often(0.5):
        attributes["pads"] = [d.integer(0, (k - 1) // 2) for k in kernel + kernel]
    if d.often(0.3):
        attributes["dilations"] = [d.integer(1, 2) for _ in sizes]
    if d.often(0.3):
        attributes["output_padding"] = [d.integer(0, s - 1) for s in strides]
    x = d.values(kind, [d.integer(1, 2), channels, *sizes], "tame")
    w = d.values(kind, [channels, filters, *kernel], "tame")
    bias = d.values(kind, [filters * group], "tame") if d.often(0.5) else None
    return case(d, [x, w, bias], attributes, rule=PRODUCTS, oracle=_transposed(attributes, group),
                constants=constant(1, 2) if d.often(0.6) else frozenset())


@row("MaxPool AveragePool LpPool")
def pool(d):
    kind, spatial = d.type("T", (*FLOATS, "int8", "uint8")), d.integer(1, 3)
    sizes = [d.integer(2, 9) for _ in range(spatial)]
    dilated = d.opset >= (10 if d.operator == "MaxPool" else 19)
    attributes = _window(d, spatial, sizes, dilated)
    if d.operator == "AveragePool" and d.often(0.5):
        attributes["count_include_pad"] = 1
    if d.operator == "LpPool":
        attributes["p"] = d.integer(1, 3)
    if d.opset >= 10 and d.operator == "MaxPool" and d.often(0.3) and attributes.get("auto_pad", "VALID") == "VALID":
        attributes["ceil_mode"] = 1
    x = d.values(kind, [d.integer(1, 2), d.integer(1, 4), *sizes], "tame")
    rule = EXACT if d.operator == "MaxPool" else Rule(ulp=8, slack=16, scale="magnitude", wide=True, zero=False)
    return case(d, [x], attributes, rule=rule, oracle=_pooled(d.operator, attributes))


@row("MaxUnpool")
def max_unpool(d):
    x = d.values(d.type("T1", ("float",)), [1, 2, 2, 3], "tame")
    flat = np.stack([d.rng.permutation(24)[:6].reshape(2, 3) + 24 * c for c in range(2)])[None]
    return case(d, [x, flat.astype(np.int64)], {"kernel_shape": [2, 2], "strides": [2, 2]})


@row("Resize")
def resize(d):
    kind = d.type("T1" if d.opset >= 11 else "T", ("float", "double", "int8", "uint8", "int32"))
    mode = d.choice(["nearest", "linear", "cubic"] if d.opset >= 11 else ["nearest", "linear"])
    spatial = 2 if mode == "cubic" else d.integer(1, 2)
    shape = [d.integer(1, 2), d.integer(1, 3)] + [d.integer(2, 7) for _ in range(spatial)]
    x = d.values(kind, shape, "tame")
    if mode != "nearest" and kind.kind != "f":
        x = d.values(np.float32, shape, "tame")
    scales = np.array([1, 1] + [d.choice([0.5, 0.75, 1, 1.5, 2, 3]) for _ in range(spatial)], np.float32)
    if any(int(size * scale) < 1 for size, scale in zip(shape, scales)):
        return None
    if d.opset < 11:
        return case(d, [x, scales], {"mode": mode}, constants=constant(1), rule=NORMALIZED if mode == "linear" else EXACT)
    transform = d.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
    attributes = {"mode": mode, "coordinate_transformation_mode": transform}
    if mode == "nearest":
        attributes["nearest_mode"] = d.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        attributes |= {"cubic_coeff_a": d.choice([-0.5, -0.75]), "exclude_outside": d.integer(0, 1)}
    if mode != "nearest" and d.opset >= 18 and d.often(0.4):
        attributes["antialias"] = 1
    empty = np.zeros([0], np.float32)
    if d.often(0.5):
        sizes = ints([size if i < 2 else d.integer(1, 12) for i, size in enumerate(shape)])
        inputs = [x, empty if d.opset < 13 else None, empty if d.opset < 13 else None, sizes]
    else:
        inputs = [x, empty if d.opset < 13 else None, scales]
    sizes = inputs[3] if len(inputs) > 3 else None
    factors = scales.astype(np.float64) if sizes is None else sizes / np.array(shape)
    if mode == "nearest" and sizes is not None and d.opset >= 13 and d.often(0.4):  # regions whose ends meet elements and halves
        region = [[0, 0] + [d.choice(ends) for _ in range(spatial)] for ends in ([0, 0.1, 0.25], [0.9, 1, 1.2])]
        region[1][:2] = 1, 1
        inputs[1] = np.array(region, np.float32).reshape(-1)
        attributes |= {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0}
    if mode == "nearest":  # the official tests take the length that the scale says, not the one that is rounded down
        rounds = transform == "align_corners" and sizes is None and np.any(shape * scales % 1)
        return case(d, inputs, attributes, constants=constant(1, 2, 3), avoid="onnxruntime" if rounds else "")
    oracle = _resized(factors, sizes, transform, attributes.get("cubic_coeff_a"), attributes.get("exclude_outside"), attributes.get("antialias"))
    largest = lambda v, *_: float(np.abs(v.astype(np.float64)).max(initial=1))
    return case(d, inputs, attributes, constants=constant(1, 2, 3), oracle=oracle, rule=Rule(ulp=16, slack=64, scale=largest, wide=True, zero=False),
                closed=lambda i, axis, size: "antialias" in attributes)  # which needs sizes


def _resized(scales, sizes, transform, a, excludes, widens):
    """Interpolation by two taps, or by four of Keys's cubic with the coefficient `a`, along each axis, in f64; `widens`: by more where
    the result is smaller."""
    def along(v, axis, scale, out):
        size = v.shape[axis]
        length, i = size * scale, np.arange(out)  # the length may be a fraction; an axis of one element is asked by its own
        at = {"half_pixel": (i + 0.5) / scale - 0.5, "asymmetric": i / scale,
              "align_corners": i * (size - 1) / (length - 1) if length != 1 else np.zeros(out),
              "pytorch_half_pixel": (i + 0.5) / scale - 0.5 if out > 1 else np.zeros(1)}[transform]
        width = min(scale, 1) if widens else 1
        reach = int(np.ceil((1 if a is None else 2) / width))
        taps = np.floor(at).astype(int)[:, None] + np.arange(1 - reach, reach + 1)
        t = np.abs(at[:, None] - taps) * width
        near = 1 - t if a is None else ((a + 2) * t - (a + 3)) * t * t + 1
        weights = np.where(t <= 1, near, 0 if a is None else np.where(t < 2, ((a * t - 5 * a) * t + 8 * a) * t - 4 * a, 0))
        if excludes:
            weights = np.where((taps >= 0) & (taps < size), weights, 0)
        if excludes or widens:
            weights = weights / weights.sum(1, keepdims=True)
        moved = np.moveaxis(v, axis, -1)[..., np.clip(taps, 0, size - 1)]
        return np.moveaxis((moved * weights).sum(-1), -1, axis)

    def oracle(v, *_):
        out = v.astype(np.float64)
        for axis in range(2, v.ndim):
            length = int(np.floor(v.shape[axis] * float(scales[axis]))) if sizes is None else int(sizes[axis])
            if length != v.shape[axis] or float(scales[axis]) != 1:
                out = along(out, axis, float(scales[axis]), length)
        return out

    return oracle


@row("GridSample")
def grid_sample(d):
    kind = d.type("T2", ("float", "double"))
    names = {"linear": "bilinear", "cubic": "bicubic"} if d.opset < 20 else {}
    mode = d.choice(["linear", "nearest", "cubic"])
    batch, channels, height, width = d.integer(1, 2), d.integer(1, 3), d.integer(2, 6), d.integer(2, 6)
    most = 4
    if d.moved.random() < 0.3:  # as many channels as vectors have lanes, which are innermost then
        channels, most = int(d.moved.integers(16, 40)), 9
    x = d.values(kind, [batch, channels, height, width], "tame")
    grid = (d.rng.random((batch, d.integer(1, most), d.integer(1, most), 2)) * 2.6 - 1.3).astype(kind)
    attributes = {"mode": names.get(mode, mode), "padding_mode": d.choice(["zeros", "border", "reflection"]), "align_corners": d.integer(0, 1)}
    largest = lambda v, *_: 64 * float(np.abs(v.astype(np.float64)).max(initial=1))
    made = case(d, [x, grid], attributes, rule=Rule(ulp=16, slack=16, scale=largest, zero=False))
    if kind == np.float64 and names:  # onnxruntime has f32 alone of these versions, the reference none of their names
        newer = Case(**{**made.__dict__, "opset": 20, "attributes": attributes | {"mode": mode}})
        made.oracle = lambda *v: oracles.by_onnxruntime(replace(newer, inputs=list(v)))
    return made


@row("RoiAlign")
def roi_align(d):
    kind = d.type("T1", ("float", "double"))
    x = d.values(kind, [2, d.integer(1, 3), d.integer(4, 9), d.integer(4, 9)], "tame")
    corners = np.sort(d.rng.random((3, 2, 2)) * 9, axis=1).reshape(3, 4).astype(kind)
    attributes = {"output_height": d.integer(1, 3), "output_width": d.integer(1, 3), "sampling_ratio": d.integer(1, 3), "mode": "avg"}
    if d.moved.random() < 0.3:
        attributes["sampling_ratio"] = 0
    if d.opset >= 16:
        attributes["coordinate_transformation_mode"] = d.choice(["half_pixel", "output_half_pixel"])
    largest = lambda v, *_: 16 * float(np.abs(v.astype(np.float64)).max(initial=1))
    return case(d, [x, corners, ints([0, 1, 1])], attributes, rule=Rule(ulp=16, slack=16, scale=largest, zero=False))


def _gates(d, count):
    seq, batch, inputs, hidden = d.integer(1, 4), d.integer(1, 3), d.integer(1, 5), d.integer(1, 5)
    direction = d.choice(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    kind = TYPES["float"]
    small = lambda *shape: (d.rng.standard_normal(shape) * 0.5).astype(kind)
    tensors = [small(seq, batch, inputs), small(ways, count * hidden, inputs), small(ways, count * hidden, hidden),
               small(ways, 2 * count * hidden) if d.often(0.7) else None,
               ints([d.integer(1, seq) for _ in range(batch)], np.int32) if d.often(0.4) else None,
               small(ways, batch, hidden) if d.often(0.5) else None]
    return tensors, {"hidden_size": hidden, "direction": direction}, lambda: small(ways, batch, hidden), lambda: small(ways, 3 * hidden)


@row("RNN GRU LSTM")
def recurrence(d):
    inputs, attributes, state, peephole = _gates(d, {"RNN": 1, "GRU": 3, "LSTM": 4}[d.operator])
    if d.operator == "GRU" and d.often(0.5):
        attributes["linear_before_reset"] = 1
    if d.operator == "LSTM":
        if d.often(0.5):
            inputs[5] = inputs[5] if inputs[5] is not None else state()
            inputs.append(state())
            if d.often(0.5):
                inputs.append(peephole())
    if d.often(0.2):
        attributes["clip"] = d.number(0.3, 2)
    rule = Rule(ulp=64, slack=64, scale="output", zero=False)
    return case(d, inputs, attributes, outputs=3 if d.operator == "LSTM" else 2, rule=rule,
                constants=constant(1, 2, 3) if d.often(0.6) else frozenset())


@row("Dropout")
def dropout(d):
    x = d.values(d.type("T", FLOATS), d.shape())
    if d.opset < 12:
        return case(d, [x], {"ratio": d.number(0, 0.9)}, oracle=lambda v: v)
    return case(d, [x, np.array(0.3, np.float32) if d.often(0.5) else None], outputs=2,
                oracle=lambda v, *_: [v, np.ones(v.shape, bool)], constants=constant(1))


@row("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss")
def loss(d):
    kind = d.type("T", ("float", "double"))
    n, c, rest = d.integer(1, 4), d.integer(1, 5), d.shape(0, 2, most=12, zero=0)
    target = d.rng.integers(0, c, (n, *rest)).astype(np.int64)
    attributes = {"reduction": d.choice(["none", "mean", "sum"])}
    if d.often(0.3):
        attributes["ignore_index"] = d.integer(-1, c - 1)
    weight = d.values(kind, [c], "positive") if d.often(0.4) else None
    if "ignore_index" in attributes and attributes["reduction"] == "mean" and np.all(target == attributes["ignore_index"]):
        return None  # 0 / 0
    return case(d, [d.values(kind, [n, c, *rest], "tame"), target, weight], attributes, rule=NORMALIZED)


@row("HannWindow HammingWindow BlackmanWindow")
def window(d):
    return case(d, [np.array(d.integer(1, 33), d.choice([np.int32, np.int64]))], {"periodic": d.integer(0, 1)},
                constants=constant(0), rule=Rule(ulp=64, slack=8, scale=lambda _: 1.0, zero=False))


@row("DFT")
def dft(d):
    kind = d.type("T1", ("float", "double"))
    onesided, inverse = d.choice([(0, 0), (0, 1), (1, 0)])
    x = d.values(kind, [d.integer(1, 2), d.integer(1, 17), d.integer(1, 4), 1 if onesided else d.integer(1, 2)], "tame")
    axis = d.choice([1, 2, -2, -3])
    attributes = {"onesided": onesided, "inverse": inverse}
    inputs = [x]
    if d.opset >= 20:
        inputs += [None, np.array(axis, np.int64)]
    else:
        attributes["axis"] = axis % 4
    if x.shape[axis] < 2 and onesided:
        return None

    def oracle(v, *_):
        wide = v.astype(np.float64)
        z = wide[..., 0] + 1j * (wide[..., 1] if v.shape[-1] == 2 else 0)
        at = axis % 4
        out = np.fft.rfft(z.real, axis=at) if onesided else (np.fft.ifft if inverse else np.fft.fft)(z, axis=at)
        return np.stack([out.real, out.imag], -1)

    return case(d, inputs, attributes, constants=constant(1, 2), rule=Rule(ulp=64, slack=256, scale="output", wide=True, zero=False),
                oracle=oracle, closed=lambda i, axis, size: axis == 3)  # one part or two


@row("CenterCropPad")
def center_crop_pad(d):
    x = d.values(d.type("T"), d.shape(1, 3, most=200, zero=0))
    made = case(d, [x, ints([d.integer(1, 9) for _ in x.shape])], constants=constant(1))
    if is_string(x.dtype):  # the reference puts the number 0 between strings: it is asked where the elements go
        places = ints(np.arange(1, x.size + 1)).reshape(x.shape)
        made.oracle = lambda v, shape: np.array(["", *v.ravel()], STRING)[oracles.by_reference(replace(made, inputs=[places, shape], oracle=None))[0]]
    return made


@row("AffineGrid")
def affine_grid(d):
    n, h, w = d.integer(1, 3), d.integer(1, 5), d.integer(1, 5)
    theta = d.values(d.type("T1", ("float", "double")), [n, 2, 3], "tame")
    align = d.integer(0, 1)

    def oracle(t, *_):
        at = lambda size: (2 * np.arange(size) + 1 - size) / (max(size - 1, 1) if align else size)
        y, x = np.meshgrid(at(h), at(w), indexing="ij")
        return np.einsum("nij,hwj->nhwi", t.astype(np.float64), np.stack([x, y, np.ones_like(x)], -1))

    return case(d, [theta, ints([n, 3, h, w])], {"align_corners": align}, constants=constant(1), oracle=oracle,
                rule=Rule(ulp=16, slack=64, scale="output", wide=True, zero=False))


@row("Col2Im")
def col_to_im(d):
    height, width, kh, kw, c = d.integer(2, 6), d.integer(2, 6), d.integer(1, 2), d.integer(1, 2), d.integer(1, 3)
    blocks = (height - kh + 1) * (width - kw + 1)
    x = d.values(d.type("T", FLOATS), [d.integer(1, 2), c * kh * kw, blocks], "tame")
    return case(d, [x, ints([height, width]), ints([kh, kw])], constants=constant(1, 2), rule=Rule(ulp=4, slack=16, scale="output", zero=False))


@row("RotaryEmbedding")
def rotary(d):
    kind = d.type("T", ("float",))
    batch, heads, seq, half = d.integer(1, 2), d.integer(1, 3), d.integer(1, 4), d.choice([1, 2, 4])
    x = d.values(kind, [batch, heads, seq, 2 * half], "tame")
    caches = [d.values(kind, [8, half], "tame") for _ in range(2)]
    return case(d, [x, *caches, d.rng.integers(0, 8, (batch, seq)).astype(np.int64)], {"interleaved": d.integer(0, 1)},
                rule=Rule(ulp=8, slack=8, scale="output", zero=False))


@row("Attention")
def attention(d):
    kind = d.type("T1", ("float",))
    batch, heads, q, k, size = d.integer(1, 2), d.choice([1, 2, 4]), d.integer(1, 5), d.integer(1, 6), d.choice([1, 4, 8])
    shared = d.choice([g for g in (1, 2, 4) if heads % g == 0])
    values = lambda *shape: d.values(kind, shape, "tame")
    mask = None
    if d.often(0.4):
        mask = values(q, k) if d.often(0.5) else (lambda m: m | (np.arange(k) == 0))(d.values(bool, [q, k]))
    attributes = {"is_causal": 1} if d.often(0.3) and mask is None and q <= k else {}
    if d.often(0.3):
        attributes["scale"] = d.number(0.1, 1)
    if d.often(0.2):
        attributes["softcap"] = d.number(1, 5)
    return case(d, [values(batch, heads, q, size), values(batch, heads // shared, k, size), values(batch, heads // shared, k, 3), mask], attributes,
                rule=Rule(ulp=64, slack=256, scale="output", zero=False), avoid="onnxruntime")
