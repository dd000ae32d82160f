"""Random shapes, values and types of one case. Everything comes from one generator, so that a number replays a case."""

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

ML, MS = "ai.onnx.ml", "com.microsoft"
FLOATS = ("float16", "float", "double", "bfloat16")
_NAMED = {
    "float": np.float32, "double": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "bool": np.bool_,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn, "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2, "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8e8m0": ml_dtypes.float8_e8m0fnu, "float4e2m1": ml_dtypes.float4_e2m1fn,
    "int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4, "int2": ml_dtypes.int2, "uint2": ml_dtypes.uint2,
}
_MOVED = {"complex64": np.complex64, "complex128": np.complex128, "float6e2m3": ml_dtypes.float6_e2m3fn, "float6e3m2": ml_dtypes.float6_e3m2fn}
for _kind in ("int", "uint"):
    for _bits in (8, 16, 32, 64):
        _NAMED[f"{_kind}{_bits}"] = np.dtype(f"{_kind}{_bits}").type
STRING = np.dtype(object)
TYPES = {name: np.dtype(kind) for name, kind in _NAMED.items()} | {"string": STRING}
MOVED = {name: np.dtype(kind) for name, kind in _MOVED.items()}  # what few operators take but those that move elements
NAMES = {kind: name for name, kind in (TYPES | MOVED).items()}
SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33)


def is_float(dtype):
    return dtype.kind == "f" or (dtype.kind == "V" and NAMES[dtype].startswith(("float", "bfloat")))


def is_integer(dtype):
    return dtype.kind in "iu" or (dtype.kind == "V" and NAMES[dtype].startswith(("int", "uint")))


def is_string(dtype):
    return np.dtype(dtype) == STRING


def zero(dtype):
    """What fills where nothing is said: 0 or an empty string."""
    return np.array("", STRING) if is_string(dtype) else np.zeros((), dtype)


def integer_range(dtype):
    limits = ml_dtypes.iinfo(dtype)
    return int(limits.min), int(limits.max)


def opset_in(domain, opset):
    """The version of a domain that goes with an opset of ai.onnx; its own operators of trees end with version 4."""
    if domain == ML:
        return next(version for least, version in ((25, 5), (21, 4), (18, 3), (11, 2), (0, 1)) if opset >= least)
    return 1 if domain == MS else opset


class Draw:
    """What a row of the tables draws a case from."""

    def __init__(self, seed, number, operator, domain, opset):
        self.rng = np.random.default_rng([seed, number])
        self.moved = np.random.default_rng([seed, number, 1])
        self.operator, self.domain, self.opset = operator, domain, opset
        self.version = opset_in(domain, opset)
        self.schema = onnx.defs.get_schema(operator, self.version, domain) if domain != MS else None
        self.version = self.schema.since_version if self.schema else 1

    # ---- choices ----

    def integer(self, low, high):
        """low <= result <= high."""
        return int(self.rng.integers(low, high + 1))

    def choice(self, options):
        return options[int(self.rng.integers(len(options)))]

    def often(self, share):
        return bool(self.rng.random() < share)

    def number(self, low, high):
        """A float that f32 holds exactly, as attributes do."""
        return float(np.float32(self.rng.uniform(low, high)))

    # ---- types ----

    def allowed(self, parameter):
        return next(c.allowed_type_strs for c in self.schema.type_constraints if c.type_param_str == parameter)

    def types(self, parameter):
        """Names of the element types that the schema allows for a type parameter."""
        names = [text[7:-1] for text in self.allowed(parameter) if text.startswith("tensor(")]
        return sorted(name for name in names if name in TYPES)

    def type(self, parameter="T", among=None):
        names = [name for name in self.types(parameter) if among is None or name in among]
        name = "float" if "float" in names and self.often(0.25) else self.choice(names)
        moved = [other for other in MOVED if among is None and f"tensor({other})" in self.allowed(parameter)]
        if moved and self.moved.random() < 0.15:  # of a generator of its own: all other cases are as without these types
            return MOVED[moved[int(self.moved.integers(len(moved)))]]
        return TYPES[name]

    # ---- shapes ----

    def dim(self, most=33):
        return self.choice([size for size in SIZES if size <= most])

    def shape(self, low=0, high=4, most=1500, zero=0.04):
        rank, shape = self.integer(low, high), []
        for _ in range(rank):
            shape.append(self.dim(max(1, most // max(1, int(np.prod(shape))))))
        if shape and self.often(zero):
            shape[self.integer(0, rank - 1)] = 0
        self.rng.shuffle(shape)
        return shape

    def broadcast(self, count, **limits):
        """Shapes that broadcast together."""
        whole = self.shape(**limits)
        shapes = [list(whole)]
        for _ in range(count - 1):
            shape = [1 if self.often(0.2) else size for size in whole]
            if self.often(0.3):
                shape = shape[self.integer(0, len(shape)):]
            shapes.append(shape)
        self.rng.shuffle(shapes)
        return shapes

    def axis(self, rank):
        """Any axis of a tensor of this rank, counted from either end."""
        return self.integer(-rank, rank - 1)

    def axes(self, rank, low=0):
        chosen = self.rng.permutation(rank)[: self.integer(min(low, rank), rank)]
        return [int(axis) - (rank if self.often(0.4) else 0) for axis in chosen]

    # ---- values ----

    def values(self, dtype, shape, kind="wild"):
        """An array. Kinds: wild (all a type has), special (NaN, infinities, denormals and zeros among ordinary numbers),
        tame (ordinary numbers), positive, small (integers that do not overflow when a few are multiplied)."""
        dtype, shape = np.dtype(dtype), tuple(shape)
        if dtype.kind == "b":
            return self.rng.random(shape) < 0.5
        if is_string(dtype):
            return np.array([self.word() for _ in range(int(np.prod(shape)))], STRING).reshape(shape)
        if dtype.kind == "c":
            parts = self._floats(np.dtype(f"f{dtype.itemsize // 2}"), (*shape, 2), kind)
            return np.ascontiguousarray(parts).view(dtype).reshape(shape)
        return self._integers(dtype, shape, kind) if is_integer(dtype) else self._floats(dtype, shape, kind)

    def _integers(self, dtype, shape, kind):
        low, high = integer_range(dtype)
        small = self.rng.integers(max(low, -9), min(high, 9) + 1, shape)
        if kind == "positive":
            small = np.abs(small) + (small == 0)
        if kind not in ("wild", "special"):
            return np.asarray(np.minimum(small, min(high, 9))).astype(dtype)
        extremes = np.array([low, low + 1, high - 1, high, 0, high // 2 + 1], dtype=object)
        spread = np.array([int(low + (high - low) * float(u)) for u in self.rng.random(int(np.prod(shape)))], dtype=object)
        mixed = np.where(self.rng.random(shape) < 0.5, small.astype(object), spread.reshape(shape))
        mixed = np.where(self.rng.random(shape) < 0.15, self.rng.choice(extremes, shape), mixed)
        wide = np.uint64 if low == 0 else np.int64
        return np.asarray(np.clip(mixed, low, high), dtype=object).astype(wide).astype(dtype)

    def _floats(self, dtype, shape, kind):
        limits = ml_dtypes.finfo(dtype)
        values = self.rng.standard_normal(shape) * 10.0 ** self.rng.uniform(-1, 1)
        if kind == "positive" or NAMES[dtype] == "float8e8m0":
            values = np.abs(values) + 2.0**-6
        if kind == "wild":
            exponents = self.rng.uniform(int(limits.minexp), int(limits.maxexp) - 1, shape)
            values = np.where(self.rng.random(shape) < 0.3, np.sign(values) * np.exp2(exponents), values)
        if kind in ("wild", "special") and NAMES[dtype] not in ("float8e8m0", "float4e2m1", "float6e2m3", "float6e3m2"):
            tiny = float(limits.smallest_subnormal)
            points = [0.0, -0.0, tiny, -tiny, 5 * tiny, float(limits.tiny), 1.0, -1.0, 0.5, -0.5, 1.5, 2.5]
            points += [np.nan] * 2 + ([np.inf, -np.inf] if np.isinf(np.array(np.inf).astype(dtype).astype(np.float64)) else [])
            points += [float(limits.max), -float(limits.max)] if kind == "wild" else []
            values = np.where(self.rng.random(shape) < 0.15, self.rng.choice(np.array(points), shape), values)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(values).astype(dtype)

    def word(self):
        """A string: mostly of a few, so that some are equal; empty ones, ones of several bytes a letter, long ones."""
        if self.often(0.7):
            return self.choice(["", "a", "b", "cat", "dog", "Dog", "über", "日本", "x y", " a  b ", "0"])
        return "".join(self.choice("abcXYZ äß€😀,.-") for _ in range(self.choice([1, 2, 5, 12, 40, 300])))

    def indices(self, dtype, shape, size, negative=True):
        """Indices into an axis of `size` elements."""
        low = -size if negative and np.dtype(dtype).kind == "i" else 0
        return self.rng.integers(low, max(size, 1), tuple(shape)).astype(dtype)


def onnx_type(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
