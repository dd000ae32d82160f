"""Reductions, scans, sorts, matrix products and normalisations."""

from dataclasses import replace

import numpy as np

from case import EXACT, Rule
from draw import FLOATS, integer_range, is_float, is_integer
from elementwise import ROUNDED
from movement import constant, ints
from rows import COMPOSED, SUMS, case, row

# Normalised by sums over rows of at most a few hundred elements.
NORMALIZED = Rule(ulp=16, slack=32, scale="output", wide=True, zero=False)



@row("ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare")
def reduction(d):
    kind = d.type("T")
    special = d.operator in ("ReduceMax", "ReduceMin")
    shape = d.shape(0, 4, zero=0.04 if d.opset >= 18 and is_float(kind) and d.operator in ("ReduceSum", "ReduceProd", "ReduceSumSquare", "ReduceL1", "ReduceL2") else 0)
    if d.operator == "ReduceProd":
        shape = [min(size, 4) for size in shape]
    style = {"ReduceMax": "wild", "ReduceMin": "wild", "ReduceLogSum": "positive"}.get(d.operator, "tame")
    x = d.values(kind, shape, style)
    if special and is_float(kind):
        x = np.where(np.isnan(x), np.ones_like(x), x)
    axes = d.axes(len(shape), 1) if d.often(0.8) and shape else None
    attributes = {"keepdims": d.integer(0, 1)}
    inputs, constants = [x], frozenset()
    if d.opset >= (13 if d.operator == "ReduceSum" else 18):
        noop = d.often(0.2)
        if noop:
            attributes["noop_with_empty_axes"] = 1
            axes = axes if d.often(0.5) else None
            if axes is None and d.operator not in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd"):
                return None  # whether the function applies is said in words from 28 on only
        if axes is not None:
            inputs, constants = [x, ints(axes)], constant(1)
    else:
        if axes is not None:
            attributes["axes"] = axes if d.opset >= 11 else [axis % len(shape) for axis in axes]
    keep, taken = bool(attributes["keepdims"]), None if axes is None else tuple(axis % len(shape) for axis in axes)
    is_copy = axes is None and attributes.get("noop_with_empty_axes") == 1
    oracle = lambda v, *_: _reduced(d.operator, v, taken, keep) if not is_copy else v
    if not is_float(kind):
        return case(d, inputs, attributes, constants=constants, oracle=oracle) if d.operator in _INTEGER else None
    rule = EXACT if special else Rule(ulp=4, slack=16, scale="magnitude", wide=True, zero=False)
    return case(d, inputs, attributes, constants=constants, rule=rule, oracle=oracle)


_INTEGER = ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "ReduceL1")


def _reduced(operator, v, axes, keep):
    """In f64 for floats; in the type itself, where it wraps, for integers."""
    of = dict(axis=axes, keepdims=keep)
    kind = np.float64 if is_float(v.dtype) else v.dtype
    if operator in ("ReduceMax", "ReduceMin"):
        return np.asarray((np.max if operator == "ReduceMax" else np.min)(v, **of))
    x = v.astype(kind)
    total = lambda terms: np.asarray(np.sum(terms, dtype=kind, **of))
    return {
        "ReduceSum": lambda: total(x), "ReduceProd": lambda: np.asarray(np.prod(x, dtype=kind, **of)),
        "ReduceSumSquare": lambda: total(x * x), "ReduceL1": lambda: total(np.abs(x)), "ReduceL2": lambda: np.sqrt(total(x * x)),
        "ReduceMean": lambda: np.asarray(np.mean(x, **of)), "ReduceLogSum": lambda: np.log(total(x)),
        "ReduceLogSumExp": lambda: np.log(total(np.exp(x))),
    }[operator]()


@row("ArgMax ArgMin")
def arg_extreme(d):
    kind = d.type("T")
    x = d.values(kind, d.shape(1, 4, zero=0), "tame")
    axis = d.axis(x.ndim) if d.opset >= 11 else d.integer(0, x.ndim - 1)
    keep = d.integer(0, 1)
    attributes = {"axis": axis, "keepdims": keep}
    last = d.opset >= 12 and d.often(0.4)
    if last:
        attributes["select_last_index"] = 1
    function = np.argmax if d.operator == "ArgMax" else np.argmin

    def oracle(v):
        wide = v.astype(np.float64) if v.dtype.kind == "V" else v
        found = v.shape[axis] - 1 - function(np.flip(wide, axis), axis) if last else function(wide, axis)
        return np.expand_dims(found, axis).astype(np.int64) if keep else np.asarray(found, np.int64)

    return case(d, [x], attributes, oracle=oracle)


@row("CumSum CumProd")
def cumulative(d):
    kind = d.type("T")
    shape = d.shape(1, 3)
    if d.operator == "CumProd":
        shape = [min(size, 9) for size in shape]
    x = d.values(kind, shape, "tame" if is_float(kind) else "wild")
    axis = d.axis(x.ndim)
    attributes = {name: d.integer(0, 1) for name in ("exclusive", "reverse")}
    function, identity = (np.cumsum, 0) if d.operator == "CumSum" else (np.cumprod, 1)

    def oracle(v, *_):
        wide = v.astype(np.float64) if is_float(v.dtype) else v
        wide = np.flip(wide, axis) if attributes["reverse"] else wide
        out = function(wide, axis, dtype=wide.dtype)
        if attributes["exclusive"]:
            out = np.concatenate([np.full_like(np.take(out, [0], axis), identity), np.delete(out, -1, axis)], axis) if out.shape[axis] else out
        return np.flip(out, axis) if attributes["reverse"] else out

    rule = Rule(ulp=2, slack=40, scale="magnitude", wide=True, zero=False) if is_float(kind) else EXACT
    return case(d, [x, np.array(axis, d.choice([np.int64, np.int32]))], attributes, constants=constant(1), oracle=oracle, rule=rule)


@row("TopK")
def top_k(d):
    kind = d.type("T", ("float", "double", "float16", "int64", "int32", "uint8", "int8", "uint64"))
    shape = d.shape(1, 3, zero=0)
    axis = d.axis(len(shape)) if d.opset >= 11 else d.integer(0, len(shape) - 1)
    isLong = d.often(0.3)
    if isLong:  # few of many are found another way
        shape = [min(size, 3) for size in shape]
        shape[axis] = d.integer(200, 5000) if kind.itemsize > 2 else d.integer(200, 600)
    x = d.rng.permutation(np.arange(-(int(np.prod(shape)) // 2), -(int(np.prod(shape)) // 2) + int(np.prod(shape))))
    if is_integer(kind) and (kind.itemsize == 1 or integer_range(kind)[0] == 0):
        x = x - x.min()
    if is_integer(kind) and kind.itemsize == 1:
        x = x % 100  # ties: the smaller index first
    x = x.reshape(shape)
    if isLong:
        x = d.choice([lambda: x, lambda: np.sort(x, axis), lambda: x // 50])()  # in any order, in order, and equal ones
    x = x.astype(kind)
    k = d.integer(0 if d.often(0.05) else 1, x.shape[axis] // d.choice([1, 8, 16, 64]) if isLong else x.shape[axis])
    attributes = {"axis": axis}
    largest = 1
    if d.opset >= 11:
        largest = attributes["largest"] = d.integer(0, 1)
        attributes["sorted"] = 1

    def oracle(v, *_):
        keys = v.astype(np.float64)
        order = np.argsort(-keys if largest else keys, axis, kind="stable")
        taken = np.take(order, np.arange(k), axis)
        return [np.take_along_axis(v, taken, axis), taken.astype(np.int64)]

    if d.opset < 10:
        return case(d, [x], {**attributes, "k": k}, outputs=2, oracle=oracle) if k else None
    return case(d, [x, ints([k])], attributes, outputs=2, constants=constant(1), oracle=oracle)


# ---- Products --------------------------------------------------------------------------------------------------------


def _product_rule(kind):
    return SUMS if is_float(kind) else EXACT


def _wide(function):
    """numpy's function, on f64 for floats of any kind."""
    def oracle(*arrays):
        if is_float(arrays[0].dtype):
            arrays = [None if a is None else a.astype(np.float64) for a in arrays]
        return function(*arrays)
    return oracle


@row("MatMul")
def mat_mul(d):
    kind = d.type("T")
    m, k, n = d.dim(), d.choice([0, 1, 2, 3, 7, 16, 17, 33, 64]) if d.often(0.9) else 1, d.dim()
    lead = d.shape(0, 2, most=6, zero=0)
    a_lead = [1 if d.often(0.3) else size for size in lead]
    b_lead = lead[d.integer(0, len(lead)):] if a_lead == lead and d.often(0.5) else lead
    a = [k] if d.often(0.1) else [*a_lead, m, k]
    b = [k] if d.often(0.1) else [*b_lead, k, n]
    streams = d.often(0.2)
    if streams:  # a weight that few rows read from memory
        k = d.choice([300, 517])
        a, b = [d.integer(1, 6), k], [k, d.choice([640, 1029])]
    style = "tame" if is_float(kind) else "wild"
    return case(d, [d.values(kind, a, style), d.values(kind, b, style)], rule=_product_rule(kind), oracle=_wide(np.matmul),
                constants=constant(1) if streams or d.often(0.4) else frozenset())


@row("Gemm")
def gemm(d):
    kind = d.type("T")
    m, k, n = d.dim(), d.choice([1, 2, 3, 7, 16, 17, 33, 64]), d.dim()
    ta, tb = d.integer(0, 1), d.integer(0, 1)
    style = "tame" if is_float(kind) else "small"
    a, b = d.values(kind, [k, m] if ta else [m, k], style), d.values(kind, [n, k] if tb else [k, n], style)
    c = d.values(kind, d.choice([[m, n], [n], [1, n], [m, 1], [], [1, 1]] + ([[1]])), style) if d.often(0.7) or d.opset < 11 else None
    attributes = {"transA": ta, "transB": tb}
    if is_float(kind):
        attributes |= {name: d.number(-2, 2) for name in ("alpha", "beta") if d.often(0.5)}
    alpha, beta = attributes.get("alpha", 1), attributes.get("beta", 1)

    def oracle(a, b, c=None):
        product = (a.T if ta else a) @ (b.T if tb else b)
        product = alpha * product if alpha != 1 else product
        return product if c is None else product + (beta * c if beta != 1 else c)

    def terms(a, b, c=None):  # the factors may be negative
        a, b = (np.abs(v.astype(np.float64)) for v in (a, b))
        product = abs(alpha) * ((a.T if ta else a) @ (b.T if tb else b))
        return product if c is None else product + abs(beta) * np.abs(c.astype(np.float64))

    rule = _product_rule(kind)
    return case(d, [a, b, c], attributes, rule=replace(rule, scale=terms) if rule.scale else rule, oracle=_wide(oracle),
                constants=constant(1) if d.often(0.4) else frozenset())


EQUATIONS = ["ij,jk->ik", "ij->ji", "ii->i", "ij->", "bij,bjk->bik", "...ij,...jk->...ik", "i,j->ij", "ij,ij->i", "bhwc,hkc->bhwk",
             "abc,cd,de->abe", "i,i", "bn,anm,bm->ba", "ij,kj->ik", "...i->...", "ijk->kij", "ab,cd->abcd"]


@row("Einsum")
def einsum(d):
    kind = d.type("T")
    equation = d.choice(EQUATIONS)
    sizes = {letter: d.choice([1, 2, 3, 5, 8]) for letter in "abcdehijkmnw"}
    arrays = []
    for term in equation.split("->")[0].split(","):
        shape = [2, 3] if "..." in term else []
        arrays.append(d.values(kind, shape + [sizes[letter] for letter in term.replace("...", "")], "tame" if is_float(kind) else "small"))
    return case(d, arrays, {"equation": equation}, rule=_product_rule(kind), oracle=_wide(lambda *a: np.asarray(np.einsum(equation, *a))))


@row("Det")
def det(d):
    kind = d.type("T", ("float", "double"))
    n = d.integer(1, 4)
    x = d.values(kind, d.shape(0, 2, most=6, zero=0) + [n, n], "tame")
    return case(d, [x], rule=Rule(ulp=64, slack=64, scale=lambda v: np.abs(v).max(initial=1).astype(float) ** n * 10, wide=True, zero=False),
                oracle=lambda v: np.asarray(np.linalg.det(v.astype(np.float64))))


# ---- Normalisations --------------------------------------------------------------------------------------------------


@row("Softmax LogSoftmax Hardmax")
def softmax(d):
    kind = d.type("T", FLOATS)
    x = d.values(kind, d.shape(1, 4, zero=0), "tame")
    axis = d.axis(x.ndim) if d.opset >= 11 else d.integer(0, x.ndim - 1)
    attributes = {"axis": axis} if x.ndim == 1 or d.often(0.8) else {}
    axis = attributes.get("axis", -1 if d.opset >= 13 else 1)

    def oracle(v):
        wide = v.astype(np.float64)
        if d.opset < 13:  # a matrix of what stands before the axis and what stands from there on
            wide = wide.reshape(int(np.prod(v.shape[: axis % v.ndim])), -1)
        over = axis if d.opset >= 13 else 1
        if d.operator == "Hardmax":
            best = np.expand_dims(wide.argmax(over), over)
            made = (np.indices(wide.shape)[over] == best).astype(np.float64)
        else:
            shifted = wide - wide.max(over, keepdims=True)
            total = np.exp(shifted).sum(over, keepdims=True)
            made = shifted - np.log(total) if d.operator == "LogSoftmax" else np.exp(shifted) / total
        return made.reshape(v.shape)

    return case(d, [x], attributes, rule=Rule(wide=True) if d.operator == "Hardmax" else NORMALIZED, oracle=oracle)


@row("LayerNormalization RMSNormalization")
def layer_norm(d):
    kind = d.type("T", FLOATS)
    x = d.values(kind, d.shape(1, 4, zero=0), "tame")
    axis = d.axis(x.ndim)
    rest = list(x.shape[axis % x.ndim:])
    inputs = [x, d.values(kind, rest, "tame")]
    if d.operator == "LayerNormalization" and d.often(0.7):
        inputs.append(d.values(kind, rest, "tame"))
    return case(d, inputs, {"axis": axis, "epsilon": d.number(1e-3, 1e-1)}, rule=NORMALIZED)


@row("InstanceNormalization")
def instance_norm(d):
    kind = d.type("T", FLOATS)
    x = d.values(kind, d.shape(3, 4, zero=0), "tame")
    per_channel = [d.values(kind, [x.shape[1]], "tame") for _ in range(2)]
    return case(d, [x, *per_channel], {"epsilon": d.number(1e-3, 1e-1)}, rule=NORMALIZED)


@row("GroupNormalization")
def group_norm(d):
    kind, groups = d.type("T", FLOATS), d.integer(1, 3)
    shape = d.shape(3, 4, most=500, zero=0)
    shape[1] = groups * d.integer(1, 3)
    size, epsilon = shape[1] if d.opset >= 21 else groups, d.number(1e-3, 1e-1)

    def oracle(x, scale, bias):
        x, scale, bias = [a.astype(np.float64) for a in (x, scale, bias)]
        parts = x.reshape(shape[0], groups, -1)
        normal = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + epsilon)
        spread = lambda a: (a if d.opset >= 21 else np.repeat(a, shape[1] // groups)).reshape(-1, *[1] * (len(shape) - 2))
        return normal.reshape(x.shape) * spread(scale) + spread(bias)

    return case(d, [d.values(kind, shape, "tame"), d.values(kind, [size], "tame"), d.values(kind, [size], "tame")],
                {"num_groups": groups, "epsilon": epsilon}, rule=NORMALIZED, oracle=oracle)


@row("BatchNormalization")
def batch_norm(d):
    kind = d.type("T", FLOATS)
    x = d.values(kind, d.shape(2, 4, zero=0), "tame")
    channel = lambda style: d.values(kind, [x.shape[1]], style)
    return case(d, [x, channel("tame"), channel("tame"), channel("tame"), channel("positive")], {"epsilon": d.number(1e-3, 1e-1)},
                rule=NORMALIZED, constants=constant(1, 2, 3, 4) if d.often(0.5) else frozenset())


@row("LRN")
def lrn(d):
    x = d.values(d.type("T", FLOATS), d.shape(3, 4, zero=0), "tame")
    size, alpha, beta, bias = d.choice([1, 2, 3, 4, 5]), d.number(0, 1), d.number(0.1, 1), d.number(0.5, 2)

    def oracle(v):
        v = v.astype(np.float64)
        channels, sums = v.shape[1], np.zeros_like(v)
        for c in range(channels):
            window = slice(max(0, c - (size - 1) // 2), min(channels - 1, c + size // 2) + 1)
            sums[:, c] = (v[:, window] ** 2).sum(1)
        return v / (bias + alpha / size * sums) ** beta

    return case(d, [x], {"size": size, "alpha": alpha, "beta": beta, "bias": bias}, rule=NORMALIZED, oracle=oracle)


@row("LpNormalization")
def lp_normalization(d):
    x = d.values(d.type("T", FLOATS), d.shape(1, 4, zero=0), "tame")
    return case(d, [x], {"axis": d.axis(x.ndim), "p": d.integer(1, 2)}, rule=NORMALIZED)


@row("MeanVarianceNormalization")
def mean_variance(d):
    x = d.values(d.type("T", FLOATS), d.shape(4, 4, zero=0), "tame")
    axes = d.choice([[0, 2, 3], [0, 1, 2, 3], [2, 3]])
    if np.prod([x.shape[axis] for axis in axes]) < 4:
        return None  # of one or two equal elements only what rounding leaves would be normalised

    def oracle(v):
        centered = v.astype(np.float64) - v.astype(np.float64).mean(tuple(axes), keepdims=True)
        return centered / (np.sqrt((centered**2).mean(tuple(axes), keepdims=True)) + 1e-9)

    return case(d, [x], {"axes": axes}, rule=NORMALIZED, oracle=oracle)


@row("GlobalAveragePool GlobalMaxPool GlobalLpPool")
def global_pool(d):
    x = d.values(d.type("T", FLOATS), d.shape(3, 5, zero=0), "tame")
    over = dict(axis=tuple(range(2, x.ndim)), keepdims=True)
    p = d.integer(1, 3)
    functions = {"GlobalAveragePool": lambda v: v.mean(**over), "GlobalMaxPool": lambda v: v.max(**over),
                 "GlobalLpPool": lambda v: (np.abs(v) ** p).sum(**over) ** (1 / p)}
    return case(d, [x], {"p": p} if d.operator == "GlobalLpPool" else {}, oracle=lambda v: functions[d.operator](v.astype(np.float64)),
                rule=ROUNDED if d.operator == "GlobalMaxPool" else NORMALIZED)
