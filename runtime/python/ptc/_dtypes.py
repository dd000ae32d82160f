"""Element types: the ABI's codes and numpy's types.

Types that numpy lacks (bfloat16, float8, int4) are those of the package ml_dtypes if it is installed. Without it an array
of unsigned integers of the same size stands for them, bit by bit. Elements below one byte are packed at the ABI and one a
byte in an array.
"""

import numpy as np

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

INT, UINT, FLOAT, BFLOAT, COMPLEX, BOOL = 0, 1, 2, 4, 5, 6
STRING, SEQUENCE = 200, 201
_SMALL = {
    (BFLOAT, 16): "bfloat16",
    (10, 8): "float8_e4m3fn",
    (11, 8): "float8_e4m3fnuz",
    (12, 8): "float8_e5m2",
    (13, 8): "float8_e5m2fnuz",
    (14, 8): "float8_e8m0fnu",
    (15, 6): "float6_e2m3fn",
    (16, 6): "float6_e3m2fn",
    (17, 4): "float4_e2m1fn",
    (INT, 4): "int4",
    (UINT, 4): "uint4",
    (INT, 2): "int2",
    (UINT, 2): "uint2",
}
_KINDS = {INT: "int", UINT: "uint", FLOAT: "float", COMPLEX: "complex"}


def name_of(code, bits):
    """'float32', 'bfloat16', 'int4', 'bool', 'string', 'sequence'."""
    if code in (BOOL, STRING, SEQUENCE):
        return {BOOL: "bool", STRING: "string", SEQUENCE: "sequence"}[code]
    return _SMALL.get((code, bits)) or f"{_KINDS.get(code, f'type{code}_')}{bits}"


def numpy_type(code, bits):
    """The numpy type that an array of these elements has here."""
    name = name_of(code, bits)
    if code == STRING:
        return np.dtype(object)
    if (code, bits) not in _SMALL:
        return np.dtype(name)
    if ml_dtypes is not None and hasattr(ml_dtypes, name):
        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(f"uint{max(bits, 8)}")


def accepts(code, bits, dtype):
    """Whether an array of `dtype` holds these elements: the type itself, or its bits."""
    if dtype == numpy_type(code, bits):
        return True
    return (code, bits) in _SMALL and dtype == np.dtype(f"uint{max(bits, 8)}")


def pack(array, bits):
    """The array's elements with `bits` (2, 4 or 6) each in one stream of bits, the first element in the low ones."""
    codes = array.reshape(-1).view(np.uint8)
    stream = np.unpackbits(codes[:, None], axis=1, count=bits, bitorder="little")
    return np.packbits(stream.reshape(-1), bitorder="little")


def unpack(packed, code, bits, shape):
    count = int(np.prod(shape, dtype=np.int64))
    stream = np.unpackbits(packed, count=count * bits, bitorder="little").reshape(count, bits)
    codes = np.packbits(stream, axis=1, bitorder="little").reshape(-1)
    if code == INT:  # sign bits above the element, as ml_dtypes keeps them
        codes = ((codes ^ (1 << (bits - 1))) - (1 << (bits - 1))).astype(np.uint8)
    return codes.view(numpy_type(code, bits)).reshape(shape)
