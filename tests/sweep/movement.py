"""Operators that move elements: shapes, views, joins, gathers and scatters, in every type."""

import numpy as np

from case import EXACT, Rule
from draw import MOVED, NAMES, TYPES, is_float, is_integer, onnx_type, zero
from rows import case, row

I64 = np.dtype(np.int64)


def ints(values, kind=I64):
    return np.array(values, dtype=kind)


def constant(*indices):
    return frozenset(indices)


@row("Reshape")
def reshape(d):
    x = d.values(d.type("T"), d.shape(zero=0.02))
    target, left = [], [int(size) for size in x.shape]
    while left:  # merge neighbours, or split off a factor
        size = left.pop(0)
        if left and d.often(0.4):
            left[0] *= size
        elif size > 1 and d.often(0.3) and (factor := next((f for f in (2, 3, 5, 7) if size % f == 0), 0)):
            target += [factor, size // factor]
        else:
            target.append(size)
    target = target or ([1] if d.often(0.5) else [])
    if x.size and target and d.often(0.5):
        target[d.integer(0, len(target) - 1)] = -1
    attributes = {"allowzero": 1} if d.opset >= 14 and 0 in x.shape else {}
    if 0 in x.shape and not attributes:
        target = list(x.shape)
    return case(d, [x, ints(target)], attributes, constants=constant(1))


@row("Flatten")
def flatten(d):
    shape = d.shape(0 if d.opset >= 13 else 1)
    axis = d.integer(-len(shape) if d.opset >= 11 else 0, len(shape))
    return case(d, [d.values(d.type("T"), shape)], {"axis": axis} if d.often(0.8) and shape else {"axis": 0})


@row("Transpose")
def transpose(d):
    x = d.values(d.type("T"), d.shape(0, 5))
    perm = {"perm": [int(a) for a in d.rng.permutation(x.ndim)]} if d.often(0.8) and x.ndim else {}
    return case(d, [x], perm)


@row("Squeeze Unsqueeze")
def squeeze(d):
    kind = d.type("T")
    shape = d.shape(1, 4)
    ones = sorted(int(a) for a in d.rng.permutation(len(shape))[: d.integer(1, len(shape))])
    full = [1 if axis in ones else size for axis, size in enumerate(shape)]
    negative = d.opset >= 11 and d.often(0.5)
    axes = [axis - len(full) if negative else axis for axis in ones]
    small = [size for axis, size in enumerate(full) if axis not in ones]
    x = d.values(kind, full if d.operator == "Squeeze" else small)
    if d.operator == "Squeeze" and d.often(0.2):
        return case(d, [x], closed=lambda i, axis, size: size == 1)  # an open dim is none of those that go
    if d.opset < 13:
        return case(d, [x], {"axes": axes})
    return case(d, [x, ints(axes)], constants=constant(1))


@row("Shape Size")
def shape_of(d):
    x = d.values(d.type("T"), d.shape(), "tame")
    attributes = {}
    if d.operator == "Shape" and d.opset >= 15:
        attributes = {name: d.integer(-5, 5) for name in ("start", "end") if d.often(0.5)}
    return case(d, [x], attributes, oracle=lambda v: _extent(v, d.operator, attributes))


def _extent(x, operator, attributes):
    if operator == "Size":
        return np.array(x.size, np.int64)
    rank = x.ndim
    bound = lambda value: min(max(value + rank if value < 0 else value, 0), rank)
    start, end = bound(attributes.get("start", 0)), bound(attributes.get("end", rank))
    return ints(x.shape[start:max(start, end)])


@row("Concat")
def concat(d):
    kind, shape = d.type("T"), d.shape(1, 4)
    axis = d.axis(len(shape)) if d.opset >= 11 else d.integer(0, len(shape) - 1)
    arrays = []
    for _ in range(d.integer(1, 5)):
        part = list(shape)
        part[axis] = d.integer(0, 9)
        arrays.append(d.values(kind, part))
    return case(d, arrays, {"axis": axis}, oracle=lambda *a: np.concatenate(a, axis))


@row("Split")
def split(d):
    kind, shape = d.type("T"), d.shape(1, 4, zero=0)
    axis = d.axis(len(shape)) if d.opset >= 11 else d.integer(0, len(shape) - 1)
    count = d.integer(1, 4)
    sizes = [d.integer(0 if d.opset >= 13 else 1, 5) for _ in range(count)]
    attributes, inputs, constants = {"axis": axis}, [], frozenset()
    if d.opset >= 18 and d.often(0.4):
        shape[axis] = d.integer(count, 4 * count)
        step = -(-shape[axis] // count)
        if step * (count - 1) >= shape[axis]:  # the last part would be empty, which the specification leaves open
            shape[axis] = step * count
        attributes["num_outputs"] = count
        sizes = [min(step, shape[axis] - step * i) for i in range(count)]
    else:
        shape[axis] = sum(sizes)
        if d.opset < 13:
            attributes["split"] = sizes
        else:
            inputs, constants = [ints(sizes)], constant(1)
    points = np.cumsum(sizes)[:-1]
    return case(d, [d.values(kind, shape), *inputs], attributes, outputs=count, constants=constants,
                oracle=lambda x, *_: list(np.split(x, points, axis)))


@row("Slice")
def slices(d):
    x = d.values(d.type("T"), d.shape(1, 4))
    if d.opset < 10:
        axes = sorted(set(axis % x.ndim for axis in d.axes(x.ndim, 1)))
        starts = [d.integer(-x.shape[a] - 1, x.shape[a]) for a in axes]
        ends = [d.choice([d.integer(-x.shape[a] - 1, x.shape[a] + 3), 2**31 - 1]) for a in axes]
        return case(d, [x], {"axes": axes, "starts": starts, "ends": ends})
    axes = d.axes(x.ndim, 1)
    steps = [d.choice([1, 1, 1, 2, 3, -1, -1, -2, 7, -9]) for _ in axes]
    starts = [d.choice([d.integer(-x.shape[a] - 2, x.shape[a] + 2), 0, 2**62, -(2**62)]) for a in axes]
    ends = [d.choice([d.integer(-x.shape[a] - 2, x.shape[a] + 2), 2**63 - 1, -(2**63) + 1]) for a in axes]
    kind = d.choice([I64, np.dtype(np.int32)])
    bounded = lambda values: ints([max(min(v, 2**31 - 1), -(2**31)) if kind == np.int32 else v for v in values], kind)
    inputs = [x, bounded(starts), bounded(ends), ints(axes, kind)] + ([ints(steps, kind)] if d.often(0.8) else [])
    taken = steps if len(inputs) == 5 else [1] * len(axes)

    def oracle(v, *_):
        index = [slice(None)] * v.ndim
        for axis, start, end, step in zip(axes, starts, ends, taken):
            size = v.shape[axis]
            start, end = (start + size if start < 0 else start), (end + size if end < 0 else end)
            low, high = (0, size) if step > 0 else (0, size - 1)
            start = min(max(start, low), high)
            end = min(max(end, 0), size) if step > 0 else min(max(end, -1), size - 1)
            index[axis] = slice(start, None if end < 0 else end, step)
        return v[tuple(index)]

    return case(d, inputs, oracle=oracle, constants=constant(1, 2, 3, 4))


@row("Expand")
def expand(d):
    a, b = d.broadcast(2)
    return case(d, [d.values(d.type("T"), a), ints(b)], constants=constant(1),
                oracle=lambda x, s: np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(s))).copy())


@row("Tile")
def tile(d):
    x = d.values(d.type("T"), d.shape(1, 4, most=300))
    return case(d, [x, ints([d.integer(0 if d.often(0.1) else 1, 3) for _ in x.shape])], constants=constant(1), oracle=np.tile)


@row("Pad")
def pad(d):
    kind = d.type("T")
    mode = d.choice(["constant", "constant", "reflect", "edge"] + (["wrap"] if d.opset >= 19 else []))
    shape = d.shape(1, 4, most=600, zero=0.02 if mode == "constant" else 0)
    axes = d.axes(len(shape), 1) if d.opset >= 18 and d.often(0.4) else list(range(len(shape)))
    low = lambda size: -min(2, size) if mode == "constant" and d.often(0.2) else 0
    limit = lambda size: {"reflect": size - 1, "wrap": size}.get(mode, 4)
    before = [d.integer(low(shape[a]), min(4, limit(shape[a]))) for a in axes]
    after = [d.integer(0, min(4, limit(shape[a]))) for a in axes]
    attributes = {"mode": mode}
    x = d.values(kind, shape)
    if d.opset < 11:
        if any(p < 0 for p in before):
            return None
        value = d.number(-3, 3)
        return case(d, [x], {**attributes, "pads": before + after, "value": value})
    value = d.values(kind, [], "tame") if mode == "constant" and d.often(0.7) else None
    inputs = [x, ints(before + after), value] + ([ints(axes)] if len(axes) < len(shape) or axes != list(range(len(shape))) else [])

    def oracle(v, pads, fill=None, *_):
        widths, cut = [(0, 0)] * v.ndim, [slice(None)] * v.ndim
        for i, axis in enumerate(axes):
            cut[axis] = slice(max(0, -before[i]), None)
            widths[axis % v.ndim] = (max(0, before[i]), after[i])
        if mode != "constant":
            return np.pad(v[tuple(cut)], widths, mode)
        return _filled(v[tuple(cut)], widths, zero(v.dtype) if fill is None else fill)

    return case(d, inputs, attributes, oracle=oracle, constants=constant(1, 3))


def _filled(x, widths, value):
    out = np.full([size + sum(width) for size, width in zip(x.shape, widths)], value, x.dtype)
    out[tuple(slice(width[0], width[0] + size) for size, width in zip(x.shape, widths))] = x
    return out


@row("Trilu")
def trilu(d):
    x = d.values(d.type("T"), d.shape(2, 4))
    k = d.choice([None, d.integer(-6, 6), 2**40, -(2**40)])
    upper = d.integer(0, 1)

    def oracle(v, k=None):
        bound = int(np.clip(0 if k is None else k, -2000, 2000))
        rows, columns = np.indices(v.shape[-2:])
        keep = columns - rows >= bound if upper else columns - rows <= bound
        return np.where(keep, v, zero(v.dtype))

    return case(d, [x] + ([] if k is None else [ints(k)]), {"upper": upper}, oracle=oracle,
                constants=constant(1) if d.often(0.5) else frozenset())


@row("EyeLike")
def eye_like(d):
    x = d.values(d.type("T1"), d.shape(2, 2), "tame")
    attributes = {"k": d.integer(-5, 5)} if d.often(0.6) else {}
    if d.often(0.5):
        attributes["dtype"] = onnx_type(d.type("T2"))
    return case(d, [x], attributes)


@row("ConstantOfShape")
def constant_of_shape(d):
    from onnx import numpy_helper
    kind = d.type("T2")
    attributes = {"value": numpy_helper.from_array(d.values(kind, [1]))} if d.often(0.8) else {}
    return case(d, [ints(d.shape())], attributes, constants=constant(0))


@row("DepthToSpace SpaceToDepth")
def depth_space(d):
    block, kind = d.integer(1, 3), d.type("T")
    n, c, h, w = [d.integer(1, 4) for _ in range(4)]
    attributes = {"blocksize": block}
    if d.operator == "SpaceToDepth":
        return case(d, [d.values(kind, [n, c, h * block, w * block])], attributes,
                    oracle=lambda x: x.reshape(n, c, h, block, w, block).transpose(0, 3, 5, 1, 2, 4).reshape(n, c * block**2, h, w))
    crd = d.opset >= 11 and d.often(0.5)
    if d.opset >= 11:
        attributes["mode"] = "CRD" if crd else "DCR"

    def oracle(x):
        if crd:
            return x.reshape(n, c, block, block, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c, h * block, w * block)
        return x.reshape(n, block, block, c, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, c, h * block, w * block)

    return case(d, [d.values(kind, [n, c * block**2, h, w])], attributes, oracle=oracle)


@row("ReverseSequence")
def reverse_sequence(d):
    shape = d.shape(2, 4, zero=0)
    time = d.integer(0, 1)
    lengths = ints([d.integer(1, shape[time]) for _ in range(shape[1 - time])])

    def oracle(x, lengths):
        out = x.copy()
        for b, n in enumerate(lengths):
            at = lambda rows: (rows, b) if time == 0 else (b, rows)
            out[at(slice(0, n))] = x[at(slice(0, n))][::-1]
        return out

    return case(d, [d.values(d.type("T"), shape), lengths], {"time_axis": time, "batch_axis": 1 - time}, oracle=oracle)


# ---- Gathers and scatters --------------------------------------------------------------------------------------------


def _index_type(d):
    return d.choice([np.dtype(np.int64), np.dtype(np.int32)])


@row("Gather")
def gather(d):
    x = d.values(d.type("T"), d.shape(1, 4, most=600, zero=0))
    axis = d.axis(x.ndim)
    indices = d.indices(_index_type(d), d.shape(0, 2, most=12), x.shape[axis], d.opset >= 11)
    return case(d, [x, indices], {"axis": axis}, oracle=lambda v, i: np.take(v, i, axis))


@row("GatherElements")
def gather_elements(d):
    x = d.values(d.type("T"), d.shape(1, 4, most=600, zero=0))
    axis = d.axis(x.ndim)
    shape = [d.integer(0 if d.often(0.05) else 1, size) if a != axis % x.ndim else d.integer(1, 6) for a, size in enumerate(x.shape)]
    indices = d.indices(_index_type(d), shape, x.shape[axis])

    def oracle(v, i):
        grid = list(np.indices(i.shape))
        grid[axis] = np.where(i < 0, i + v.shape[axis], i)
        return v[tuple(grid)]

    return case(d, [x, indices], {"axis": axis}, oracle=oracle)


def _nd_indices(d, x, batch, low=0):
    depth = d.integer(1, x.ndim - batch)
    lead = list(x.shape[:batch]) + d.shape(0 if batch else 1, 2, most=8, zero=low)
    sizes = x.shape[batch:batch + depth]
    return np.stack([d.indices(np.int64, lead, size) for size in sizes], -1)


@row("GatherND")
def gather_nd(d):
    x = d.values(d.type("T"), d.shape(1, 4, most=600, zero=0))
    batch = d.integer(0, x.ndim - 1) if d.opset >= 12 else 0
    indices = _nd_indices(d, x, batch)

    def oracle(v, i):
        lead = np.indices(i.shape[:-1])[:batch]
        return v[tuple(lead) + tuple(np.moveaxis(i, -1, 0))]

    return case(d, [x, indices], {"batch_dims": batch} if d.opset >= 12 else {}, oracle=oracle)


def _reduced(d, kind):
    """A reduction that the type and the version have."""
    options = ["none"]
    if kind.kind not in "bcO" and d.opset >= 16:
        options += ["add", "mul"]
    if kind.kind not in "bcO" and d.opset >= 18:
        options += ["max", "min"]
    return d.choice(options)


def _range(kind, reduction):
    """Sums stay small; of integers the largest may be any."""
    return "wild" if reduction == "none" or is_integer(kind) and reduction in ("max", "min") else "small"


def _scattered(out, index, updates, reduction):
    at = tuple(int(i) for i in index)
    function = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "max": np.maximum, "min": np.minimum}
    out[at] = updates if reduction == "none" else function[reduction](out[at], updates)


@row("Scatter ScatterElements")
def scatter_elements(d):
    kind = d.type("T")
    reduction = _reduced(d, kind) if d.operator == "ScatterElements" else "none"
    x = d.values(kind, d.shape(1, 3, most=300, zero=0), _range(kind, reduction))
    axis = d.axis(x.ndim)
    shape = [d.integer(1, size) for size in x.shape]
    indices = d.indices(_index_type(d), shape, x.shape[axis], d.opset >= 11)
    if reduction == "none":  # each element at most once: the order is not specified
        order = np.argsort(d.rng.random([x.shape[axis] if a == axis % x.ndim else s for a, s in enumerate(shape)]), axis)
        indices = np.take(order, np.arange(shape[axis]), axis).astype(indices.dtype)
    updates = d.values(kind, shape, _range(kind, reduction))

    def oracle(v, i, u):
        out = v.copy()
        for at in np.ndindex(*i.shape):
            spot = list(at)
            spot[axis] = int(i[at]) % v.shape[axis]
            _scattered(out, spot, u[at], reduction)
        return out

    attributes = {"axis": axis} | ({"reduction": reduction} if reduction != "none" else {})
    return case(d, [x, indices, updates], attributes, oracle=oracle, rule=_scatter_rule(kind, reduction))


def _scatter_rule(kind, reduction):
    """Sums may be taken in any order, and in f32 for the smaller types."""
    return Rule(ulp=8, slack=16, scale="output", zero=False) if is_float(kind) and reduction in ("add", "mul") else EXACT


@row("ScatterND")
def scatter_nd(d):
    kind = d.type("T")
    reduction = _reduced(d, kind)
    x = d.values(kind, d.shape(1, 3, most=300, zero=0), _range(kind, reduction))
    indices = _nd_indices(d, x, 0)
    if reduction == "none":
        flat = indices.reshape(-1, indices.shape[-1])
        unique = np.unique(np.where(flat < 0, flat + np.array(x.shape[: flat.shape[1]]), flat), axis=0)
        indices = d.rng.permutation(unique).astype(np.int64)
    updates = d.values(kind, list(indices.shape[:-1]) + list(x.shape[indices.shape[-1]:]), _range(kind, reduction))

    def oracle(v, i, u):
        out = v.copy()
        for at in np.ndindex(*i.shape[:-1]):
            _scattered(out, i[at], u[at], reduction)
        return out

    attributes = {"reduction": reduction} if reduction != "none" else {}
    return case(d, [x, indices, updates], attributes, oracle=oracle, rule=_scatter_rule(kind, reduction))


@row("OneHot")
def one_hot(d):
    indices = d.indices(d.choice([np.int64, np.int32, np.float32]), d.shape(1, 3, most=60), 9)
    depth, kind = d.integer(1, 9), d.type("T3")
    axis = d.integer(-indices.ndim - 1, indices.ndim)
    return case(d, [indices, np.array(depth, np.int64), d.values(kind, [2])], {"axis": axis}, constants=constant(1),
                oracle=lambda i, n, v: np.where(np.expand_dims(np.where(i < 0, i + depth, i), axis) == _range_at(depth, i.ndim + 1, axis), v[1], v[0]))


def _range_at(size, rank, axis):
    shape = [1] * rank
    shape[axis] = size
    return np.arange(size).reshape(shape)


@row("TensorScatter")
def tensor_scatter(d):
    kind, mode = d.type("T"), d.choice(["linear", "circular"])
    shape = d.shape(3, 4, most=600, zero=0)
    axis = d.integer(1, len(shape) - 1)
    update = list(shape)
    update[axis] = d.integer(1, shape[axis])
    most = shape[axis] - update[axis] if mode == "linear" else shape[axis] - 1
    indices = ints([d.integer(0, most) for _ in range(shape[0])]) if d.often(0.8) else None

    def oracle(v, u, i=None):
        out = v.copy()
        for b in range(v.shape[0]):
            for row in range(u.shape[axis]):
                target = (row + (0 if i is None else int(i[b]))) % v.shape[axis]
                out[b].swapaxes(0, axis - 1)[target] = u[b].swapaxes(0, axis - 1)[row]
        return out

    return case(d, [d.values(kind, shape), d.values(kind, update), indices], {"axis": axis, "mode": mode}, oracle=oracle)


@row("Range")
def ranges(d):
    kind = d.type("T", ("float", "double", "int16", "int32", "int64"))
    start, delta = d.integer(-9, 9), d.choice([1, 2, 3, -1, -4])
    limit = start + delta * d.integer(0, 9) + (d.integer(-1, 1) if abs(delta) > 1 else 0)
    return case(d, [np.array(v, kind) for v in (start, limit, delta)], constants=constant(0, 1, 2),
                rule=Rule(ulp=1) if is_float(kind) else EXACT)


@row("Compress NonZero")
def data_dependent(d):
    """With a condition that the model holds: sizes that a run decides are tested in tests/conformance."""
    kind = d.type("T")
    x = d.values(kind, d.shape(1, 3, most=200, zero=0))
    if d.operator == "NonZero":
        return case(d, [x], constants=constant(0), oracle=lambda v: np.array(np.nonzero(v), np.int64))
    axis = d.axis(x.ndim) if d.often(0.7) else None
    size = x.size if axis is None else x.shape[axis]
    condition = d.values(bool, [d.integer(1, size)])
    return case(d, [x, condition], {} if axis is None else {"axis": axis}, constants=constant(1),
                oracle=lambda v, c: np.compress(c, v, axis))


@row("BitCast")
def bit_cast(d):
    kind = d.type("T1")
    is_packed = lambda name: name.startswith(("int4", "uint4", "int2", "uint2", "float4", "float6"))
    width = lambda name: name[-1] if is_packed(name) else np.dtype((TYPES | MOVED)[name]).itemsize
    same = [name for name in d.types("T2") if width(name) == width(NAMES[kind])]
    if not same:
        return None
    target = TYPES[d.choice(same)]
    if kind == np.bool_ or target == np.bool_ or is_packed(NAMES[kind]):
        return None
    return case(d, [d.values(kind, d.shape())], {"to": onnx_type(target)}, oracle=lambda v: v.view(target))
