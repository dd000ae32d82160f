"""Other libraries' tensors through DLPack, without a copy: arrays over those in the host's memory, and buffers of the ABI in a CUDA
device's.

numpy.from_dlpack would do for numpy's own types; tensors of bfloat16 and float8 need the structs themselves. The exporter's
deleter runs when the last array over the memory is gone.
"""

import ctypes
from typing import Any

import numpy as np

from . import _abi, _dtypes

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
_DEVICES = {CUDA: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", CUDA_MANAGED: "CUDA managed memory", 14: "oneAPI"}
DEFAULT_STREAM = 1  # CUDA's legacy default stream, for DLPack and for the driver


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


class _Borrowed:
    """A tensor of another library, which lives until this is gone. `stream`: which of CUDA's will use it next."""

    def __init__(self, tensor, stream=None):
        self._managed = None
        capsule = tensor.__dlpack__() if stream is None else tensor.__dlpack__(stream=stream)
        self._managed = ctypes.cast(_pointer(capsule, b"dltensor"), ctypes.POINTER(_ManagedTensor))
        _rename(capsule, _USED)
        self.tensor = self._managed.contents.tensor

    def __del__(self):
        if self._managed and self._managed.contents.deleter:
            self._managed.contents.deleter(self._managed)


class _Memory:
    """What a tensor points to, for numpy's array interface."""

    def __init__(self, borrowed, dtype):
        self._borrowed = borrowed
        tensor = borrowed.tensor
        shape = tuple(tensor.shape[: tensor.rank])
        strides = tuple(n * dtype.itemsize for n in tensor.strides[: tensor.rank]) if tensor.strides else None
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "strides": strides,
            "typestr": f"|V{dtype.itemsize}" if dtype.kind == "V" else dtype.str,
            "data": ((tensor.data or 0) + tensor.byte_offset, True),  # read only: inputs are never changed
        }


class DeviceBuffer:
    """A tensor in a CUDA device's memory and the ABI's struct of it."""

    def __init__(self, given, stream):
        self.data, self._borrowed = given, _Borrowed(given, stream)
        self.tensor = self._borrowed.tensor
        self.shape = self.tensor.shape


def is_tensor(given: Any) -> bool:
    """Whether it is another library's tensor."""
    return not isinstance(given, np.ndarray) and hasattr(given, "__dlpack__") and hasattr(given, "__dlpack_device__")


def to_plain_array(given: Any) -> np.ndarray | None:
    """A tensor in the host's memory by its library's own conversion, a third of the time; None: it is none, or has no such
    conversion, of which `to_array` says why."""
    try:
        return given.__array__() if is_tensor(given) and given.__dlpack_device__()[0] == CPU else None
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
        return None


def is_on_device(given: Any) -> bool:
    """Whether it is a tensor in the memory of a CUDA device."""
    return is_tensor(given) and given.__dlpack_device__()[0] in (CUDA, CUDA_MANAGED)


def to_array(tensor: Any, what: str) -> np.ndarray:
    """A read-only array over the memory of any object with `__dlpack__`; `what` names it in errors."""
    device, ordinal = tensor.__dlpack_device__()
    if device not in (CPU, CUDA_HOST):
        place = f"{_DEVICES.get(int(device), f'a device of the kind {int(device)}')}, number {ordinal}"
        raise TypeError(f"{what} is in the memory of {place}; the model runs on the CPU: copy it there first (tensor.cpu())")
    borrowed = _Borrowed(tensor)
    kind = borrowed.tensor.dtype
    if kind.lanes != 1 or (kind.bits < 8 and kind.code != _dtypes.BOOL):
        raise TypeError(f"{what} has vectors or parts of bytes as elements, which DLPack has no layout for here")
    dtype = _dtypes.numpy_type(kind.code, kind.bits)
    bits = dtype if dtype.kind != "V" else np.dtype(f"uint{dtype.itemsize * 8}")
    array = np.asarray(_Memory(borrowed, bits))
    return array.view(dtype) if bits is not dtype else array
