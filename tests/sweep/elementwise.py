"""Pointwise operators: arithmetic, elementary functions, activations, comparisons, bits, conversions."""

import math

import ml_dtypes
import numpy as np

from case import EXACT, Rule
from draw import FLOATS, NAMES, TYPES, integer_range, is_float, is_integer, is_string, onnx_type
from rows import ULPS, case, row

# Results that IEEE 754 rounds correctly.
ROUNDED = Rule(ulp=0, wide=True)


def _wrapped(function):
    """Integers as the specification's: computed without bounds, then wrapped."""

    def oracle(*arrays):
        out = np.broadcast_shapes(*[a.shape for a in arrays])
        dtype = arrays[0].dtype
        bits = 8 * dtype.itemsize
        flat = [np.broadcast_to(a, out).ravel().tolist() for a in arrays]
        low = integer_range(dtype)[0]
        values = [((function(*x) - low) % (1 << bits)) + low for x in zip(*flat)]
        return np.array(values, dtype=object).reshape(out).astype(np.uint64 if low == 0 else np.int64).astype(dtype)

    return oracle


def _nonzero(values):
    return np.where(values == 0, np.ones_like(values), values)


@row("Add Sub Mul")
def arithmetic(d):
    kind = d.type("T")
    shapes = d.broadcast(2)
    function = {"Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b}[d.operator]
    oracle = _wrapped(function) if is_integer(kind) else None
    return case(d, [d.values(kind, shape) for shape in shapes], rule=ROUNDED, oracle=oracle)


def _truncated(a, b):
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


@row("Div")
def division(d):
    kind = d.type("T")
    a, b = [d.values(kind, shape) for shape in d.broadcast(2)]
    if is_integer(kind):
        return case(d, [a, _nonzero(b)], oracle=_wrapped(_truncated))
    return case(d, [a, b], rule=ROUNDED)


@row("Mod")
def modulo(d):
    kind = d.type("T")
    a, b = [d.values(kind, shape) for shape in d.broadcast(2)]
    if is_integer(kind):
        fmod = d.integer(0, 1)
        python = lambda x, y: x % y
        c = lambda x, y: int(math.copysign(abs(x) % abs(y), x)) if abs(x) < 2**53 else x - _truncated(x, y) * y
        return case(d, [a, _nonzero(b)], {"fmod": fmod}, oracle=_wrapped(c if fmod else python))
    # fmod is exact in every format; f64 gives the same.
    exact = lambda x, y: np.fmod(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)
    return case(d, [a, b], {"fmod": 1}, oracle=exact)


@row("Pow")
def power(d):
    kind = d.type("T")
    exponents = d.type("T1") if d.opset >= 12 else kind
    shapes = d.broadcast(2)
    if is_integer(kind):
        base = d.values(kind, shapes[0], "tame")
        exponent = np.abs(d.values(exponents, shapes[1], "tame").astype(np.float64)) % 10
        exponent = np.floor(exponent).astype(exponents)
        return case(d, [base, exponent], oracle=lambda x, y: _wrapped(lambda a, b: a ** int(b))(x, y.astype(np.int64)))
    base = d.values(kind, shapes[0], "special")
    exponent = d.values(exponents, shapes[1], "tame" if is_integer(exponents) else "special")
    oracle = lambda x, y: np.power(x.astype(np.float64), y.astype(np.float64))
    return case(d, [base, exponent], rule=Rule(ulp=ULPS["pow"], wide=True), oracle=oracle)


@row("Abs Neg Sign Relu")
def exact_unary(d):
    kind = d.type("T")
    x = d.values(kind, d.shape())
    functions = {"Abs": abs, "Neg": lambda v: -v, "Sign": lambda v: (v > 0) - (v < 0), "Relu": lambda v: max(v, 0)}
    oracle = _wrapped(functions[d.operator]) if is_integer(kind) else None
    if d.operator == "Sign" and is_float(kind):  # of NaN the specification says nothing
        x = np.where(np.isnan(x), np.zeros_like(x), x)
    return case(d, [x], oracle=oracle, rule=Rule(zero=d.operator not in ("Relu", "Sign")))


@row("Ceil Floor Sqrt Reciprocal Round Identity")
def rounded_unary(d):
    kind = d.type("V" if d.operator == "Identity" and d.opset >= 14 else "T", None if d.operator == "Identity" else FLOATS)
    return case(d, [d.values(kind, d.shape())], rule=EXACT if d.operator == "Identity" else ROUNDED)


@row("Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Erf Sigmoid")
def elementary(d):
    parameter = d.schema.type_constraints[0].type_param_str
    kind = d.type(parameter, FLOATS)
    x = d.values(kind, d.shape(), d.choice(["wild", "special"]))
    vector = np.vectorize(math.erf, otypes=[np.float64])
    names = {"Asin": "arcsin", "Acos": "arccos", "Atan": "arctan", "Asinh": "arcsinh", "Acosh": "arccosh", "Atanh": "arctanh"}
    special = {"Erf": vector, "Sigmoid": lambda v: np.where(v >= 0, 1 / (1 + np.exp(-np.abs(v))), np.exp(-np.abs(v)) / (1 + np.exp(-np.abs(v))))}
    function = special.get(d.operator) or getattr(np, names.get(d.operator, d.operator.lower()))
    own = 2 if kind == np.float64 else 0  # of numpy's functions
    rule = Rule(ulp=ULPS[d.operator.lower()] + own, wide=True)
    return case(d, [x], rule=rule,
                oracle=lambda v: function(v.astype(np.float64)) if v.size else v.astype(np.float64))


# Activations: each a composition of a few rows. What they may lose is stated against the larger of operand and result.
def _reach(x, *_):
    return np.maximum(1, np.nan_to_num(np.abs(x.astype(np.float64)), nan=0, posinf=0))


ACTIVATION = Rule(ulp=8, slack=4, scale=_reach, wide=True, zero=False)
_PARAMETERS = {"Celu": ("alpha",), "Elu": ("alpha",), "LeakyRelu": ("alpha",), "Selu": ("alpha", "gamma"),
               "ThresholdedRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "Swish": ("alpha",)}


@row("Celu Elu LeakyRelu Selu ThresholdedRelu HardSigmoid HardSwish Softplus Softsign Mish Gelu Swish")
def activation(d):
    parameter = d.schema.type_constraints[0].type_param_str
    kind = d.type(parameter, FLOATS)
    attributes = {name: d.number(0.1, 2) for name in _PARAMETERS.get(d.operator, ()) if d.often(0.5)}
    if d.operator == "HardSwish":  # the reference evaluator takes 1/6 in f32, in f64 too
        return case(d, [d.values(kind, d.shape(), "special")], rule=ACTIVATION,
                    oracle=lambda x: (w := x.astype(np.float64)) * np.maximum(0, np.minimum(1, w / 6 + 0.5)))
    if d.operator == "Softsign":
        return case(d, [d.values(kind, d.shape(), "special")], rule=ACTIVATION, oracle=lambda x: (w := x.astype(np.float64)) / (1 + np.abs(w)))
    if d.operator == "Gelu":  # both oracles take the constants in f32, in f64 too
        attributes = {"approximate": d.choice(["none", "tanh"])}
        return case(d, [d.values(kind, d.shape(), "special")], attributes, rule=ACTIVATION, oracle=_gelu(attributes["approximate"]))
    return case(d, [d.values(kind, d.shape(), "special")], attributes, rule=ACTIVATION)


def _gelu(approximate):
    erf = np.vectorize(math.erf, otypes=[np.float64])

    def oracle(v):
        x = v.astype(np.float64)
        if not x.size:
            return x
        return x / 2 * (1 + (erf(x / math.sqrt(2)) if approximate == "none" else np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))

    return oracle


@row("PRelu")
def prelu(d):
    kind = d.type("T")
    x, slope = d.values(kind, d.shape(1), "tame"), None
    shape = [1 if d.often(0.4) else size for size in x.shape][d.integer(0, x.ndim - 1):]
    slope = d.values(kind, shape, "tame")
    if is_integer(kind):
        return case(d, [x, slope], oracle=lambda a, s: np.where(a < 0, a * s, a).astype(a.dtype))
    return case(d, [x, slope], rule=ROUNDED)


@row("Shrink")
def shrink(d):
    kind = d.type("T")
    x = d.values(kind, d.shape(), "special" if is_float(kind) else "tame")
    attributes = {"lambd": d.integer(0, 3) / 2, "bias": d.integer(0, 2) * (1.0 if kind.kind == "u" else 0.75)}
    return case(d, [x], attributes, rule=ROUNDED if is_float(kind) else EXACT,
                oracle=(lambda v: _shrunk_real(v.astype(np.float64), **attributes)) if is_float(kind) else lambda v: _shrunk(v, **attributes))


def _shrunk_real(v, lambd, bias):
    return np.where(v < -lambd, v + bias, np.where(v > lambd, v - bias, 0.0))


def _shrunk(v, lambd, bias):
    low, high = integer_range(v.dtype)
    move = lambda x: int(x + bias) if x < -lambd else int(x - bias) if x > lambd else 0
    return np.array([(move(x) - low) % (high - low + 1) + low for x in v.ravel().tolist()], object).reshape(v.shape).astype(v.dtype)


@row("Clip")
def clip(d):
    kind = d.type("T")
    x = d.values(kind, d.shape())
    finite = lambda: d.values(kind, [], "tame")
    if d.opset < 11:
        bounds = sorted([d.number(-3, 3), d.number(-3, 3)])
        given = {name: value for name, value in zip(("min", "max"), bounds) if d.often(0.8)}
        return case(d, [x], given)
    low, high = sorted([finite(), finite()], key=float)
    return case(d, [x, low if d.often(0.8) else None, high if d.often(0.8) else None],
                constants=frozenset({1, 2}) if d.often(0.5) else frozenset())


@row("Equal Greater GreaterOrEqual Less LessOrEqual")
def comparison(d):
    kind = d.type("T")
    a, b = [d.values(kind, shape, d.choice(["wild", "special"])) for shape in d.broadcast(2)]
    names = {"Equal": "equal", "Greater": "greater", "GreaterOrEqual": "greater_equal", "Less": "less", "LessOrEqual": "less_equal"}
    return case(d, [a, b], oracle=getattr(np, names[d.operator]))


@row("And Or Xor")
def logical(d):
    function = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}[d.operator]
    return case(d, [d.values(bool, shape) for shape in d.broadcast(2)], oracle=function)


@row("Not")
def logical_not(d):
    return case(d, [d.values(bool, d.shape())])


@row("BitwiseAnd BitwiseOr BitwiseXor")
def bitwise(d):
    kind = d.type("T")
    function = getattr(np, {"BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor"}[d.operator])
    return case(d, [d.values(kind, shape) for shape in d.broadcast(2)], oracle=function)


@row("BitwiseNot")
def bitwise_not(d):
    return case(d, [d.values(d.type("T"), d.shape())], oracle=np.invert)


@row("BitShift")
def bit_shift(d):
    kind = d.type("T")
    a, b = [d.values(kind, shape) for shape in d.broadcast(2)]
    b = (np.abs(b.astype(np.float64)) % (8 * kind.itemsize)).astype(kind)
    left = d.often(0.5)
    return case(d, [a, b], {"direction": "LEFT" if left else "RIGHT"}, oracle=np.left_shift if left else np.right_shift)


@row("IsNaN IsInf")
def classification(d):
    x = d.values(d.type(d.schema.type_constraints[0].type_param_str), d.shape())
    if d.operator == "IsNaN":
        return case(d, [x], oracle=lambda v: np.isnan(v.astype(np.float64)))
    sides = {"detect_negative": d.integer(0, 1), "detect_positive": d.integer(0, 1)}

    def found(v):
        wide = v.astype(np.float64)
        return (np.isneginf(wide) & bool(sides["detect_negative"])) | (np.isposinf(wide) & bool(sides["detect_positive"]))

    return case(d, [x], sides, oracle=found)


def _extreme(operator):
    def oracle(*arrays):
        found = arrays[0]
        for other in arrays[1:]:
            found = (np.maximum if operator == "Max" else np.minimum)(found, other)
        return found

    return oracle


def variadic_shapes(d):
    """They broadcast from version 8."""
    return d.broadcast(d.integer(1, 4)) if d.opset >= 8 else [d.shape()] * d.integer(1, 4)


@row("Max Min")
def extremes(d):
    kind = d.type("T")
    arrays = [d.values(kind, shape) for shape in variadic_shapes(d)]
    return case(d, arrays, oracle=_extreme(d.operator), rule=Rule(zero=False))


@row("Sum Mean")
def sums(d):
    kind = d.type("T")
    arrays = [d.values(kind, shape, "special") for shape in variadic_shapes(d)]
    oracle = lambda *v: sum(a.astype(np.float64) for a in v) / (len(v) if d.operator == "Mean" else 1)
    return case(d, arrays, rule=Rule(ulp=1, slack=4, scale="magnitude", wide=True, zero=False), oracle=oracle)


@row("Where")
def where(d):
    kind = d.type("T")
    condition, a, b = d.broadcast(3)
    return case(d, [d.values(bool, condition), d.values(kind, a), d.values(kind, b)], oracle=np.where)


# ---- Conversions -----------------------------------------------------------------------------------------------------


def _converted(values, to, saturate):
    """The rules of Cast: floats round to nearest even; float 8 saturates or not; floats that no integer is are not tried."""
    wide = values.astype(np.float64) if values.dtype.kind not in "iub" else values
    if to == np.bool_:
        return values != 0
    if is_integer(to) and values.dtype.kind != "V" and is_integer(values.dtype):
        bits = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}.get(NAMES[to], 8 * to.itemsize)
        low = integer_range(to)[0]
        flat = [((int(v) - low) % (1 << bits)) + low for v in values.ravel().tolist()]
        return np.array(flat, dtype=np.uint64 if low == 0 else np.int64).astype(to).reshape(values.shape)
    if is_integer(to):
        return np.trunc(wide).astype(np.int64 if integer_range(to)[0] < 0 else np.uint64).astype(to)
    if NAMES[to].startswith("float8") and saturate:
        limit = float(ml_dtypes.finfo(to).max)
        return np.where(np.isnan(wide), wide, np.clip(wide, -limit, limit)).astype(to)
    return wide.astype(to)


def _within(d, values, to):
    """Floats whose truncation the integer type `to` has."""
    low, high = integer_range(to)
    wide = values.astype(np.float64)
    inside = np.isfinite(wide) & (np.trunc(np.nan_to_num(wide)) >= low) & (np.trunc(np.nan_to_num(wide)) <= high * (1 - 2**-50))
    return np.where(inside, values, d.integer(0, 1) * np.ones_like(values))


@row("Cast CastLike")
def cast(d):
    source = d.type(d.schema.type_constraints[0].type_param_str)
    target = d.type(d.schema.type_constraints[1].type_param_str)
    small = ("float8", "float4")
    if is_string(source) or is_string(target):
        from text import text_cast
        return text_cast(d, source, target)
    if NAMES[target] == "float8e8m0" or NAMES[source] == "float8e8m0":
        if not is_float(source) or not is_float(target) or source.itemsize > 4:
            return None
    x = d.values(source, d.shape())
    if is_integer(target) and is_float(source):
        x = _within(d, x, target)
    if NAMES[target] == "float8e8m0":  # of negative numbers the specification says nothing
        x = np.abs(x)
    attributes = {}
    saturate = 1
    if NAMES[target].startswith("float8") and d.opset >= 19 and NAMES[target] != "float8e8m0":
        saturate = d.integer(0, 1)
        attributes["saturate"] = saturate
    narrow = NAMES[target].startswith(small) or NAMES[source].startswith(small)
    if NAMES[source] == "float8e8m0" and NAMES[target] != "float8e8m0":  # which few programs read; powers of two
        narrow = False
    oracle = None if narrow else lambda v, *_: _converted(v, target, saturate)
    rule = Rule(zero=False) if NAMES[target] == "float4e2m1" else EXACT
    if d.operator == "Cast":
        return case(d, [x], {"to": onnx_type(target), **attributes}, oracle=oracle, rule=rule)
    return case(d, [x, d.values(target, [2])], attributes, oracle=oracle, rule=rule)
