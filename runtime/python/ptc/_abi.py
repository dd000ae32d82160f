"""The structs of ptc/abi.h for ctypes. Same names, same order; `check` compares sizes with the library's own."""

import ctypes as c
from functools import partial

ABI_VERSION = 1
OK = 0
NO_SIZE = c.c_size_t(-1).value
CPU = 1
DIM_FOUND = 1
OPTIONAL, MAP_KEYS, MAP_VALUES = 1, 2, 3

STATUS = {
    1: "invalid argument",
    2: "type mismatch",
    3: "shape mismatch",
    4: "guard failed",
    5: "index out of range",
    6: "out of memory",
    7: "CPU unsupported",
    8: "weights unavailable",
    9: "unsupported",
    10: "device error",
    11: "internal error",
    12: "no device",
    13: "custom operator failed",
}


class DType(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class Device(c.Structure):
    _fields_ = [("type", c.c_int32), ("id", c.c_int32)]


class Tensor(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("device", Device),
        ("rank", c.c_int32),
        ("dtype", DType),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("byte_offset", c.c_uint64),
    ]


class Allocator(c.Structure):
    _fields_ = [("allocate", c.c_void_p), ("release", c.c_void_p), ("state", c.c_void_p)]


class ThreadPool(c.Structure):
    _fields_ = [("parallel_for", c.c_void_p), ("state", c.c_void_p)]


class Span(c.Structure):
    _fields_ = [
        ("begin_ns", c.c_uint64),
        ("end_ns", c.c_uint64),
        ("ctx", c.c_void_p),
        ("kernel", c.c_char_p),
        ("nodes", c.c_char_p),
        ("begin", c.c_int64),
        ("end", c.c_int64),
        ("kind", c.c_uint32),
        ("function", c.c_uint32),
        ("launch", c.c_uint32),
        ("thread", c.c_uint32),
    ]


class Profile(c.Structure):
    _fields_ = [
        ("span_size", c.c_size_t),
        ("spans", c.POINTER(Span)),
        ("capacity", c.c_size_t),
        ("count", c.c_size_t),
    ]


class Tap(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("node", c.c_char_p),
        ("op", c.c_char_p),
        ("output", c.c_char_p),
        ("kernel", c.c_char_p),
        ("nodes", c.c_char_p),
        ("launch", c.c_uint32),
        ("number", c.c_uint32),
        ("tensor", c.POINTER(Tensor)),
    ]


Observer = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(Tap))


class Options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("error", c.c_char_p),
        ("error_size", c.c_size_t),
        ("threads", c.c_uint32),
        ("device", c.c_int32),
        ("cpu_level", c.c_char_p),
        ("weights_path", c.c_char_p),
        ("allocator", Allocator),
        ("pool", ThreadPool),
        ("log", c.c_void_p),
        ("log_state", c.c_void_p),
        ("profile", c.POINTER(Profile)),
        ("tap", Observer),
        ("tap_state", c.c_void_p),
        ("custom_op_folder", c.c_char_p),
        ("device_type", c.c_int32),
    ]


class Dim(c.Structure):
    _fields_ = [("extent", c.c_int64), ("symbol", c.c_int32), ("flags", c.c_uint32), ("text", c.c_char_p)]


class Symbol(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("min", c.c_int64),
        ("max", c.c_int64),
        ("divisor", c.c_int64),
        ("hint", c.c_int64),
    ]


class Value(c.Structure):
    pass


Value._fields_ = [
    ("name", c.c_char_p),
    ("c_name", c.c_char_p),
    ("dtype", DType),
    ("rank", c.c_int32),
    ("dims", c.POINTER(Dim)),
    ("alias", c.c_int32),
    ("role", c.c_int32),
    ("element", c.POINTER(Value)),
]


class Function(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("input_count", c.c_uint32),
        ("output_count", c.c_uint32),
        ("inputs", c.POINTER(Value)),
        ("outputs", c.POINTER(Value)),
        ("symbol_count", c.c_uint32),
        ("guard_count", c.c_uint32),
        ("symbols", c.POINTER(Symbol)),
        ("guards", c.POINTER(c.c_char_p)),
    ]


class Weight(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("dtype", DType),
        ("rank", c.c_int32),
        ("shape", c.POINTER(c.c_int64)),
        ("bytes", c.c_uint64),
    ]


_model, _ctx, _tensors = c.c_void_p, c.c_void_p, c.POINTER(Tensor)
_shapes = c.POINTER(c.POINTER(c.c_int64))


class Call(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("ctx", _ctx),
        ("inputs", _tensors),
        ("outputs", _tensors),
        ("workspace", c.c_void_p),
        ("stream", c.c_void_p),
        ("function", c.c_uint32),
        ("reserved", c.c_uint32),
    ]


class ModelTable(c.Structure):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("abi_version", c.c_uint32),
        ("name", c.c_char_p),
        ("compiler", c.c_char_p),
        ("function_count", c.c_uint32),
        ("level_count", c.c_uint32),
        ("functions", c.POINTER(Function)),
        ("levels", c.POINTER(c.c_char_p)),
        ("weight_count", c.c_uint32),
        ("reserved", c.c_uint32),
        ("weights", c.POINTER(Weight)),
        ("create", c.CFUNCTYPE(c.c_int32, c.POINTER(Options), c.POINTER(_model))),
        ("destroy", c.CFUNCTYPE(None, _model)),
        ("ctx_create", c.CFUNCTYPE(c.c_int32, _model, c.POINTER(_ctx))),
        ("ctx_destroy", c.CFUNCTYPE(None, _ctx)),
        ("workspace_size", c.CFUNCTYPE(c.c_size_t, _ctx, c.c_uint32, _tensors)),
        ("output_shapes", c.CFUNCTYPE(c.c_int32, _ctx, c.c_uint32, _tensors, _shapes)),
        ("warmup", c.CFUNCTYPE(c.c_int32, _ctx, c.c_uint32, _tensors)),
        ("run", c.CFUNCTYPE(c.c_int32, _ctx, c.c_uint32, _tensors, _tensors, c.c_void_p, c.c_void_p)),
        ("set_weight", c.CFUNCTYPE(c.c_int32, _model, c.c_char_p, c.c_void_p, c.c_size_t)),
        ("last_error", c.CFUNCTYPE(c.c_char_p, _ctx)),
        ("cpu_level", c.CFUNCTYPE(c.c_char_p, _model)),
        ("threads", c.CFUNCTYPE(c.c_uint32, _model)),
        ("run_call", c.CFUNCTYPE(c.c_int32, c.POINTER(Call))),  # not in libraries of earlier compilers: see bound_run
    ]


def check(table):
    if table.abi_version != ABI_VERSION:
        raise ImportError(f"the library has ABI version {table.abi_version}; this module knows {ABI_VERSION}")
    if table.struct_size < ModelTable.run_call.offset:
        raise ImportError("the library is of an older ptc, whose ABI lacks what this module drives; compile the model again")


_unchecked_run = c.CFUNCTYPE(c.c_int32)  # its arguments have the types of the table's function already


def bound_run(table, ctx, function, inputs, outputs, stream):
    """`run` with these arguments, converted once: ctypes takes 0.3 microseconds for them, as long as a small model's product.
    What from_param and byref make goes to the C function as it is; of an object of ctypes each call would make one such anew.
    Of a library with run_call it is one: each takes 20 nanoseconds."""

    def bound(member, *arguments):
        return partial(_unchecked_run(c.cast(member, c.c_void_p).value), *arguments)

    if table.struct_size > ModelTable.run_call.offset:
        return bound(table.run_call, c.byref(Call(c.sizeof(Call), ctx, inputs, outputs, None, stream, function)))
    pointer = c.c_void_p.from_param
    return bound(table.run, pointer(ctx), c.c_uint32.from_param(function), c.byref(inputs), c.byref(outputs), None, pointer(stream))
