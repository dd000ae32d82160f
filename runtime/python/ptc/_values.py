"""Strings, sequences and maps: the ABI's structs and what they are in Python.

A tensor of strings is an array of type object whose elements are str; bytes that are no UTF-8 become surrogate escapes, and
back. A sequence is a list of arrays. A value that may be absent is None, an array or a list. The two values of a map, its keys and its
values, are one dict, or a list of dicts where a map has several rows of values.
"""

import ctypes as c
import math

import numpy as np

from . import _abi, _dtypes


_LINE = 64
_LARGE = 1 << 14  # bytes, which take longer to store than a place to find


class String(c.Structure):
    _fields_ = [("data", c.c_void_p), ("bytes", c.c_int64)]


class Sequence(c.Structure):
    _fields_ = [("count", c.c_int64), ("tensors", c.POINTER(_abi.Tensor))]


def address_of(array):
    """Where its elements begin. `array.ctypes`, an object, takes eight times as long where memory may be written."""
    try:
        return c.addressof(c.c_char.from_buffer(array))
    except (TypeError, ValueError):  # read only, empty, or of a type without a buffer
        return array.ctypes.data


def empty(shape, kind):
    """Memory for an output. Large ones begin with a line of the cache, which numpy's own do not: stores that each cross
    into another line take up to 1.35 times as long."""
    size = math.prod(shape) * kind.itemsize
    if size < _LARGE:
        return np.empty(shape, kind)
    memory = np.empty(size + _LINE, np.uint8)
    start = -address_of(memory) % _LINE
    return memory[start : start + size].view(kind).reshape(shape)


class Buffer:
    """A tensor of the ABI and the memory that it points to. `parts` keeps alive what that memory points to."""

    def __init__(self, kind, shape, data, parts=None):
        self.data, self.parts = data, parts
        self.shape = (c.c_int64 * max(len(shape), 1))(*shape)
        pointer = address_of(data) if isinstance(data, np.ndarray) else None if data is None else c.addressof(data)
        self.tensor = _abi.Tensor(pointer, _abi.Device(_abi.CPU, 0), len(shape), _abi.DType(*kind, 1), self.shape, None, 0)


def tensors(buffers):
    return (_abi.Tensor * max(len(buffers), 1))(*[buffer.tensor for buffer in buffers])


def _encode(text):
    return text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogateescape")


def strings_in(value, array):
    """A buffer of views of the array's elements."""
    if array.dtype.kind not in "OUST":
        raise TypeError(f"input '{value.name}' must be an array of strings, not of {array.dtype}")
    texts = [_encode(text) for text in array.reshape(-1).tolist()]
    joined = b"".join(texts)
    memory = c.create_string_buffer(joined, len(joined) + 1)
    views = (String * max(len(texts), 1))()
    place = c.addressof(memory)
    for view, text in zip(views, texts):
        view.data, view.bytes = place, len(text)
        place += len(text)
    return Buffer(value._type, array.shape, views, memory)


def strings_out(value, shape):
    return Buffer(value._type, shape, (String * max(math.prod(shape), 1))())


def _texts(views, shape):
    count = math.prod(shape)
    views = views[:count] if count else []
    texts = [c.string_at(v.data, v.bytes).decode("utf-8", "surrogateescape") if v.bytes else "" for v in views]
    result = np.empty(count, object)
    result[:] = texts
    return result.reshape(shape)


def strings_result(tensor, shape):
    return _texts(c.cast(tensor.data, c.POINTER(String)), shape)


def sequence_in(value, given, convert):
    """A buffer of the tensors in a list (of an optional value: of the one that it is, or of none). `convert` makes the
    buffer of an array."""
    if value.optional:
        items = [] if given is None else [given]
    elif isinstance(given, (list, tuple)):
        items = given
    else:
        raise TypeError(f"input '{value.name}' must be a list of arrays")
    parts = [convert(value.element, item) for item in items]
    tensors = (_abi.Tensor * max(len(parts), 1))(*[part.tensor for part in parts])
    return Buffer(value._type, (), Sequence(len(parts), tensors), (parts, tensors))


def sequence_out(value):
    return Buffer(value._type, (), Sequence())


def sequence_result(value, sequence):
    """Copies: what the library shows is gone with the next run."""
    items = [_item(value.element, sequence.tensors[i]) for i in range(sequence.count)]
    if value.optional:
        return items[0] if items else None
    return items


def _item(value, tensor):
    shape = tuple(tensor.shape[: tensor.rank])
    code, bits = value._type
    count = math.prod(shape)
    if code == _dtypes.SEQUENCE:
        return sequence_result(value, c.cast(tensor.data, c.POINTER(Sequence)).contents)
    if code == _dtypes.STRING:
        return strings_result(tensor, shape)
    memory = np.frombuffer(c.string_at(tensor.data, (count * bits + 7) // 8) if count else b"", np.uint8)
    if bits < 8:
        return _dtypes.unpack(memory, code, bits, shape)
    return memory.view(_dtypes.numpy_type(code, bits)).reshape(shape).copy()


def grouped(values):
    """{name: [value]}, and {name: [keys, values]} of maps, under the name that the model has."""
    groups = {}
    for value in values:
        groups.setdefault(value.name.removesuffix(f".{value._map}") if value._map else value.name, []).append(value)
    return groups


def map_in(name, parts, given):
    """(value, argument) for each of them."""
    if len(parts) == 1:
        return [(parts[0], given)]
    if not isinstance(given, dict):
        raise TypeError(f"input '{name}' must be a dict")
    sides = zip(parts, (given.keys(), given.values()))
    return [(part, np.array(list(side), _dtypes.numpy_type(*part._type))) for part, side in sides]


def maps_out(values, results):
    """The results with dicts in the places of the two values of each map."""
    if not any(value._map for value in values):
        return results
    joined = {}
    for name, parts in grouped(values).items():
        keys, *rest = (results[part.name] for part in parts)
        if not rest:
            joined[name] = keys
            continue
        keys, rows = keys.tolist(), rest[0].tolist()
        joined[name] = [dict(zip(keys, row)) for row in rows] if rest[0].ndim == 2 else dict(zip(keys, rows))
    return joined
