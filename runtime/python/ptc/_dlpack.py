"""Arrays over the memory of other libraries' tensors, through DLPack, without a copy.

numpy.from_dlpack would do for numpy's own types; tensors of bfloat16 and float8 need the structs themselves. The exporter's
deleter runs when the last array over the memory is gone.
"""

import ctypes
from typing import Any

import numpy as np

from . import _abi, _dtypes

CPU, CUDA, CUDA_HOST = 1, 2, 3
_DEVICES = {CUDA: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 13: "CUDA managed memory", 14: "oneAPI"}


class _ManagedTensor(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_ManagedTensor))
# DLManagedTensor; DLTensor has the layout of the ABI's tensor.
_ManagedTensor._fields_ = [("tensor", _abi.Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


def _api(name, result, *arguments):
    function = getattr(ctypes.pythonapi, name)
    function.restype, function.argtypes = result, arguments
    return function


_pointer = _api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_rename = _api("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_USED = b"used_dltensor"  # lives as long as the capsules that it names


class _Memory:
    """What a tensor points to, for numpy's array interface; the tensor lives until it is gone."""

    def __init__(self, managed, dtype):
        self._managed = managed
        tensor = managed.contents.tensor
        shape = tuple(tensor.shape[: tensor.rank])
        strides = tuple(n * dtype.itemsize for n in tensor.strides[: tensor.rank]) if tensor.strides else None
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "strides": strides,
            "typestr": f"|V{dtype.itemsize}" if dtype.kind == "V" else dtype.str,
            "data": ((tensor.data or 0) + tensor.byte_offset, True),  # read only: inputs are never changed
        }

    def __del__(self):
        if self._managed.contents.deleter:
            self._managed.contents.deleter(self._managed)


def to_array(tensor: Any, what: str) -> np.ndarray:
    """A read-only array over the memory of any object with `__dlpack__`; `what` names it in errors."""
    device, ordinal = tensor.__dlpack_device__()
    if device not in (CPU, CUDA_HOST):
        place = f"{_DEVICES.get(int(device), f'a device of the kind {int(device)}')}, number {ordinal}"
        raise TypeError(f"{what} is in the memory of {place}; ptc runs on the CPU: copy it there first (tensor.cpu())")
    capsule = tensor.__dlpack__()
    managed = ctypes.cast(_pointer(capsule, b"dltensor"), ctypes.POINTER(_ManagedTensor))
    _rename(capsule, _USED)
    kind = managed.contents.tensor.dtype
    if kind.lanes != 1 or (kind.bits < 8 and kind.code != _dtypes.BOOL):
        memory = _Memory(managed, np.dtype(np.uint8))
        del memory
        raise TypeError(f"{what} has vectors or parts of bytes as elements, which DLPack has no layout for here")
    dtype = _dtypes.numpy_type(kind.code, kind.bits)
    bits = dtype if dtype.kind != "V" else np.dtype(f"uint{dtype.itemsize * 8}")
    array = np.asarray(_Memory(managed, bits))
    return array.view(dtype) if bits is not dtype else array
