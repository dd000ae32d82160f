"""Runs models compiled by ptc from Python.

    import numpy, ptc
    model = ptc.load("resnet50.so")
    print(model.inputs)                       # [Value(name='x', dtype='float32', shape=('batch', 3, 224, 224))]
    logits = model(x=numpy.zeros((1, 3, 224, 224), numpy.float32))["logits"]

It needs numpy and the library, nothing of the compiler; `compile` alone calls the program ptc. Inputs are arrays, or any
tensors that speak DLPack (torch, jax, ...), on the CPU or on the model's GPU, whose memory is read in place. Outputs are numpy
arrays, which speak it too: torch.from_dlpack(logits). Calls may come from several threads at once; each uses a context of its
own. Inputs are never changed: the array of an alias pair is copied, and the output is the updated copy.

`run` writes outputs where the caller wants them, in tensors on a GPU say, on a stream of the caller's:

    model.run({"x": x}, {"logits": logits}, stream=torch.cuda.current_stream())
"""

import ctypes
import math
import os
import threading
import weakref
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from . import _abi, _dlpack, _dtypes, _values
from ._plain import PlainCalls
from ._program import CompileError, compile, program

__all__ = ["CompileError", "Error", "Function", "Model", "Span", "Symbol", "Tap", "Value", "compile", "load", "program"]


class Error(RuntimeError):
    """A call that the library refused. `status` is the number of abi.h."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence or _abi.STATUS.get(status, f"status {status}"))
        self.status = status


@dataclass(frozen=True)
class Symbol:
    """A free size: min <= value <= max (None: no limit), a multiple of divisor."""

    name: str
    min: int
    max: int | None
    divisor: int
    hint: int


@dataclass(frozen=True)
class Value:
    """An input or output. `shape` has numbers, and texts for sizes that depend on symbols, or that a run finds. A sequence
    (dtype 'sequence') has an `element`, which says what its tensors are (shape None: nothing is known of it), and is
    `optional` if it stands for a value that may be absent."""

    name: str
    dtype: str
    shape: tuple
    c_name: str
    alias: int | None
    _type: tuple  # code and bits
    _found: bool = False  # its shape is known only when the model has run
    element: "Value | None" = None
    optional: bool = False
    _map: str | None = None  # of the two values of a map: "keys" or "values"


_SPAN_KINDS = ("run", "launch", "piece")


@dataclass(frozen=True)
class Span:
    """What a run, a launch or a piece of a launch on one thread took; `nodes` is None for a run, and `kernel` the
    variant that ran, None for the general one."""

    kind: str
    begin_ns: int
    end_ns: int
    kernel: str | None
    nodes: str | None
    launch: int
    thread: int


@dataclass(frozen=True)
class Tap:
    """A value inside the model, as `ptc compile --tap` asked for it. `array` is a copy; `kernel` wrote it in launch
    `launch` of the run, which does the work of `nodes`; `number` is its place in the order of the model's graph."""

    node: str
    op: str
    output: str
    kernel: str
    nodes: str
    launch: int | None
    number: int
    array: np.ndarray


def _tap(raw):
    tensor = raw.tensor.contents
    kind = _dtypes.numpy_type(tensor.dtype.code, tensor.dtype.bits)
    shape, steps = tensor.shape[: tensor.rank], tensor.strides[: tensor.rank]
    if 0 in shape:
        array = np.zeros(shape, kind)
    else:  # strides may be negative: the memory begins before the first element then
        low = sum((size - 1) * step for size, step in zip(shape, steps) if step < 0)
        count = 1 + sum((size - 1) * abs(step) for size, step in zip(shape, steps))
        start = tensor.data + tensor.byte_offset + low * kind.itemsize
        memory = np.frombuffer((ctypes.c_char * (count * kind.itemsize)).from_address(start), kind)[-low:]
        array = np.lib.stride_tricks.as_strided(memory, shape, [step * kind.itemsize for step in steps]).copy()
    texts = [text.decode() for text in (raw.node, raw.op, raw.output, raw.kernel, raw.nodes)]
    return Tap(*texts, None if raw.launch == 2**32 - 1 else raw.launch, raw.number, array)


def _value(raw):
    dims = None if raw.rank < 0 else tuple(d.extent if d.extent >= 0 else d.text.decode() for d in raw.dims[: raw.rank])
    kind = (raw.dtype.code, raw.dtype.bits)
    alias = raw.alias if raw.alias >= 0 else None
    found = any(d.flags & _abi.DIM_FOUND for d in raw.dims[: max(raw.rank, 0)])
    element = _value(raw.element.contents) if raw.element else None
    name, c_name = raw.name.decode(), raw.c_name.decode()
    part = {_abi.MAP_KEYS: "keys", _abi.MAP_VALUES: "values"}.get(raw.role)
    return Value(name, _dtypes.name_of(*kind), dims, c_name, alias, kind, found, element, raw.role == _abi.OPTIONAL, part)


def _symbol(raw):
    limit = None if raw.max == 2**63 - 1 else raw.max
    return Symbol(raw.name.decode(), raw.min, limit, raw.divisor, raw.hint)


_free = ctypes.CDLL(None).free
_free.argtypes, _free.restype = [ctypes.c_void_p], None
_FEW_BYTES = 1 << 16


def _taken(address, size):
    """A run's own memory as a buffer: of few bytes a copy, else the memory itself, which is freed behind the last array on it."""
    if size <= _FEW_BYTES:
        few = bytearray(ctypes.string_at(address, size))
        _free(address)
        return few
    memory = (ctypes.c_char * size).from_address(address)
    weakref.finalize(memory, _free, address).atexit = False
    return memory


def _is_packed(value):
    """Whether several of its elements share a byte."""
    code, bits = value._type
    return bits < 8 and code != _dtypes.BOOL


def _is_converted(value):
    """Whether a result is not the run's own memory."""
    return value._type[0] in (_dtypes.STRING, _dtypes.SEQUENCE) or _is_packed(value)


def _memory(value, array, copy):
    """Dense bytes of `array` as the ABI wants them."""
    if _is_packed(value):
        return _dtypes.pack(array, value._type[1])
    return np.array(array, order="C", copy=True) if copy else np.ascontiguousarray(array)


def _array(value, given):
    """The input as an array: itself, a view of another library's tensor, or made of numbers."""
    if _dlpack.is_tensor(given):
        return _dlpack.to_array(given, f"input '{value.name}'")
    return np.asarray(given)


def _input(value, array):
    code, _ = value._type
    if code == _dtypes.SEQUENCE:
        return _values.sequence_in(value, array, _input)
    array = _array(value, array)
    if code == _dtypes.STRING:
        return _values.strings_in(value, array)
    if not _dtypes.accepts(*value._type, array.dtype):
        raise TypeError(f"input '{value.name}' must be an array of {value.dtype}, not {array.dtype}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return _values.Buffer(value._type, array.shape, _memory(value, array, copy=value.alias is not None))


def _stream_number(stream):
    """What the driver knows a stream by: a number, torch's Stream, or an object with `__cuda_stream__`."""
    if stream is None:
        return None
    if hasattr(stream, "__cuda_stream__"):
        _, stream = stream.__cuda_stream__()
    return int(getattr(stream, "cuda_stream", stream)) or _dlpack.DEFAULT_STREAM


def _stream_of(buffers):
    """What a run goes to whose caller names no stream; None: one of the library's own, for which run waits."""
    return _dlpack.DEFAULT_STREAM if any(isinstance(buffer, _dlpack.DeviceBuffer) for buffer in buffers) else None


class Function:
    """One function of a model; call it with arrays, by position or by name."""

    def __init__(self, model, index, raw):
        self._model, self._index = model, index
        self.name = raw.name.decode()
        self.inputs = [_value(v) for v in raw.inputs[: raw.input_count]]
        self.outputs = [_value(v) for v in raw.outputs[: raw.output_count]]
        self.symbols = [_symbol(s) for s in raw.symbols[: raw.symbol_count]]
        self.guards = [g.decode() for g in raw.guards[: raw.guard_count]]
        self._plain = None

    def __repr__(self):
        values = lambda all: ", ".join(f"{v.name}: {v.dtype}{list(v.shape)}" for v in all)
        return f"{self.name}({values(self.inputs)}) -> ({values(self.outputs)})"

    def _device_buffer(self, kind, value, given, stream):
        if self._model.device == "cpu":
            _dlpack.to_array(given, f"{kind} '{value.name}'")  # refuses it
        return _dlpack.DeviceBuffer(given, _dlpack.DEFAULT_STREAM if stream is None else stream)

    def _in_place(self, kind, value, given, stream):
        """The buffer of memory of the caller's that the run writes."""
        code, bits = value._type
        if _dlpack.is_on_device(given):
            return self._device_buffer(kind, value, given, stream)
        array = _array(value, given)
        writable = array.flags.writeable or _dlpack.is_tensor(given)
        if not _dtypes.accepts(code, bits, array.dtype) or not array.flags.c_contiguous or not writable:
            raise TypeError(f"{kind} '{value.name}' must be a dense writable array of {value.dtype}")
        return _values.Buffer(value._type, array.shape, array)

    def _input(self, value, given, stream, updates):
        if updates:
            return self._in_place("input", value, given, stream)
        if not _dlpack.is_on_device(given):
            return _input(value, given)
        if value.alias is not None:
            raise TypeError(f"input '{value.name}' and output '{self.outputs[value.alias].name}' share one buffer, which is updated: run() with the "
                            "tensor in both places does that")
        return self._device_buffer("input", value, given, stream)

    def _arguments(self, args, kwargs, stream=None, updated=()):
        """Buffers of all inputs. `updated`: inputs that the run may change."""
        groups = _values.grouped(self.inputs)
        if len(args) > len(groups):
            raise TypeError(f"'{self.name}' takes {len(groups)} inputs, {len(args)} were given")
        arguments = dict(zip(groups, args))
        for name in [name for name in kwargs if name in groups]:
            if name in arguments:
                raise TypeError(f"input '{name}' was given twice")
            arguments[name] = kwargs.pop(name)
        given = {part.name: array for name, argument in arguments.items()
                 for part, array in _values.map_in(name, groups[name], argument)}
        names = {value.c_name: value.name for value in self.inputs} | {value.name: value.name for value in self.inputs}
        for key, array in kwargs.items():
            if key not in names:
                raise TypeError(f"'{self.name}' has no input '{key}'; it has {', '.join(v.name for v in self.inputs)}")
            if names[key] in given:
                raise TypeError(f"input '{key}' was given twice")
            given[names[key]] = array
        missing = [value.name for value in self.inputs if value.name not in given]
        if missing:
            raise TypeError(f"'{self.name}' misses {', '.join(missing)}")
        return [self._input(value, given[value.name], stream, value.name in updated) for value in self.inputs]

    def _check(self, ctx, status):
        if status != _abi.OK:
            raise Error(status, self._model._table.last_error(ctx).decode())

    def _output_shapes(self, ctx, tensors):
        extents = [(ctypes.c_int64 * max(len(value.shape), 1))() for value in self.outputs]
        pointers = (ctypes.POINTER(ctypes.c_int64) * max(len(extents), 1))(
            *[ctypes.cast(extent, ctypes.POINTER(ctypes.c_int64)) for extent in extents]
        )
        self._check(ctx, self._model._table.output_shapes(ctx, self._index, tensors, pointers))
        return [tuple(extent[: len(value.shape)]) for value, extent in zip(self.outputs, extents)]

    def _output(self, value, shape, inputs):
        code, bits = value._type
        if value._found:
            return _values.Buffer(value._type, shape, None)
        if code == _dtypes.SEQUENCE:
            return _values.sequence_out(value)
        if code == _dtypes.STRING:
            return _values.strings_out(value, shape)
        if value.alias is not None:
            return _values.Buffer(value._type, shape, inputs[value.alias].data)
        if _is_packed(value):
            count = math.prod(shape)
            return _values.Buffer(value._type, shape, np.zeros((count * bits + 7) // 8, np.uint8))
        size = [max(extent, 0) for extent in shape]  # a negative one fails a guard of the run, which says why
        return _values.Buffer(value._type, shape, _values.empty(size, _dtypes.numpy_type(code, bits)))

    def _target(self, value, given, inputs, stream):
        """The buffer of an output that the caller has memory for."""
        if value._found or _is_converted(value):
            raise TypeError(f"output '{value.name}' ({value.dtype}) is made by the run: leave it out of the outputs")
        return self._in_place("output", value, given, stream) if value.alias is None else inputs[value.alias]

    def _result(self, value, buffer, tensor):
        code, bits = value._type
        if code == _dtypes.SEQUENCE:
            return _values.sequence_result(value, buffer.data)
        if code == _dtypes.STRING:
            texts = _values.strings_result(tensor, tuple(buffer.shape[: len(value.shape)]))
            if value._found:
                _free(tensor.data)
                tensor.data = None
            return texts
        shape, data = tuple(buffer.shape[: len(value.shape)]), buffer.data
        if value._found:
            size = (math.prod(shape) * bits + 7) // 8
            kind = np.uint8 if _is_packed(value) else _dtypes.numpy_type(code, bits)
            data = np.frombuffer(_taken(tensor.data, size), kind)
            tensor.data = None
        if _is_packed(value):
            return _dtypes.unpack(data, code, bits, shape)
        return data.reshape(shape)

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, np.ndarray]:
        """Runs the function; returns a dict from output names to new arrays, in the order of the outputs."""
        results = self._call_plainly(args, kwargs, {})
        return self._run(self._arguments(args, kwargs), {}, None) if results is None else results

    def _call_plainly(self, args, kwargs, given):
        if self._plain is None:
            self._plain = PlainCalls(self)
        return self._plain(args, kwargs, given)

    def run(self, inputs: dict[str, Any], outputs: dict[str, Any] | None = None, stream: Any = None) -> dict[str, Any]:
        """Runs the function into `outputs`, arrays or DLPack's tensors by name, dense and of the shapes of output_shapes; those
        that are not there are new arrays, and the result has all. An input and an output that share a buffer (--alias) are
        updated in place if both are given as the same tensor.

        stream: of a model on a GPU, what its work is put on: torch's Stream, any object with `__cuda_stream__`, or the
        driver's number of one. With tensors on the device alone the results are there when the stream has come so far,
        and the tensors must live until then. Default: CUDA's legacy default stream if some tensor is on the device."""
        if stream is None and (results := self._call_plainly((), inputs, outputs or {})) is not None:
            return results
        given, number = dict(outputs or {}), _stream_number(stream)
        if number is not None and self._model.device == "cpu":
            raise TypeError("a stream is of a model on a GPU; this one is on the CPU")
        if unknown := given.keys() - {value.name for value in self.outputs}:
            raise TypeError(f"'{self.name}' has no output '{min(unknown)}'; it has {', '.join(v.name for v in self.outputs)}")
        pairs = [(self.inputs[v.alias].name, v.name) for v in self.outputs if v.alias is not None and v.name in given]
        if torn := [output for input, output in pairs if inputs.get(input) is not given[output]]:
            raise TypeError(f"output '{torn[0]}' shares the buffer of an input: it must be given as the same tensor")
        return self._run(self._arguments((), dict(inputs), number, [input for input, _ in pairs]), given, number)

    def _run(self, inputs, given, stream):
        tensors = _values.tensors(inputs)
        with self._model._context() as ctx:
            shapes = self._output_shapes(ctx, tensors)
            outputs = [self._target(value, given[value.name], inputs, stream) if value.name in given else self._output(value, shape, inputs)
                       for value, shape in zip(self.outputs, shapes)]
            out = _values.tensors(outputs)
            self._check(ctx, self._model._table.run(ctx, self._index, tensors, out, None, stream or _stream_of(inputs + outputs)))
            # While the context is ours: strings and sequences lie in it.
            results = {value.name: given[value.name] if value.name in given else self._result(value, *pair)
                       for value, *pair in zip(self.outputs, outputs, out)}
            return _values.maps_out(self.outputs, results)

    def prepare(self, *args: Any, **kwargs: Any) -> Callable[[], dict[str, np.ndarray]]:
        """A function without arguments that runs on these inputs into buffers made once, for timing: it returns the
        same dict of arrays each time, with the results of the last run; outputs whose shape only a run knows, strings,
        sequences and numbers of less than 8 bits are new values in it. Alias pairs go on from their last state.
        Each run reads the inputs where they are; what must be copied (strings, numbers of less than 8 bits, alias pairs,
        arrays that are not dense) is copied once. It keeps a context while it lives; one thread at a time may call it."""
        inputs = self._arguments(args, kwargs)
        tensors = _values.tensors(inputs)
        model, table = self._model, self._model._table
        context = _HeldContext(model)
        ctx = context.ctx
        self._check(ctx, table.warmup(ctx, self._index, tensors))
        outputs = [
            self._output(value, shape, inputs) for value, shape in zip(self.outputs, self._output_shapes(ctx, tensors))
        ]
        out = _values.tensors(outputs)
        all = list(zip(self.outputs, outputs, out))
        late = [entry for entry in all if entry[0]._found or _is_converted(entry[0])]
        results = {entry[0].name: None if entry in late else self._result(*entry) for entry in all}
        has_maps = any(value._map for value in self.outputs)
        call = _abi.bound_run(table, ctx, self._index, tensors, out, _stream_of(inputs))

        def run(_keep=(inputs, outputs, context)):
            if model._handle is None:  # a closed model has freed the context
                model._open()
            if status := call():
                self._check(ctx, status)
            return results

        if not late and not has_maps:
            return run  # of a model of half a microsecond the lines below are a tenth

        def run_late():
            for value, *_ in late:
                results[value.name] = None  # its memory, unless somebody has the array, is what the run is given next
            run()
            for value, *pair in late:
                results[value.name] = self._result(value, *pair)
            return _values.maps_out(self.outputs, results) if has_maps else results

        return run_late

    def output_shapes(self, *args: Any, **kwargs: Any) -> dict[str, tuple]:
        """The shapes that a call on these inputs gives, by the outputs' names, without the call: only the inputs' shapes
        count. Of an extent that a run finds: the most that it can be, or -1 where nothing bounds it; None for the shape of
        a sequence. Of a map, those of its keys and its values, by the names of these. Guards between sizes are not checked: a
        call may still be refused."""
        inputs = self._arguments(args, kwargs)
        with self._model._context() as ctx:
            shapes = self._output_shapes(ctx, _values.tensors(inputs))
        return {value.name: None if value._type[0] == _dtypes.SEQUENCE else shape for value, shape in zip(self.outputs, shapes)}

    def workspace_size(self, *args: Any, **kwargs: Any) -> int:
        """Bytes of memory that a call on inputs of these shapes needs."""
        inputs = self._arguments(args, kwargs)
        with self._model._context() as ctx:
            bytes = self._model._table.workspace_size(ctx, self._index, _values.tensors(inputs))
            if bytes == _abi.NO_SIZE:
                raise Error(4, self._model._table.last_error(ctx).decode())
        return bytes


class _Context:
    """Takes a context of the model for the time of a call."""

    def __init__(self, model):
        self.model = model

    def __enter__(self):
        self.ctx = self.model._take()
        return self.ctx

    def __exit__(self, *unused):
        self.model._give_back(self.ctx)


class _HeldContext(_Context):
    """Has one for as long as it lives."""

    ctx = None

    def __init__(self, model):
        super().__init__(model)
        self.__enter__()

    def __del__(self):
        if self.ctx is not None:
            self.__exit__()


def _device(text):
    """Type and ordinal of 'cpu', 'cuda' or 'cuda:1'; None: no wish."""
    if text is None:
        return 0, 0
    name, _, ordinal = text.partition(":")
    types = {"cpu": _dlpack.CPU, "cuda": _dlpack.CUDA}
    if name not in types or (ordinal and (name == "cpu" or not ordinal.isdecimal())):
        raise ValueError(f"no device '{text}': cpu, cuda or cuda:N")
    return types[name], int(ordinal or 0)


class Model:
    """A created model. It behaves as its first function; `functions` has all of them by name."""

    def __init__(self, library, threads=0, cpu_level=None, weights=None, profile=0, tap=None, custom_op_folder=None, device=None):
        self._handle = None
        self._library = library
        try:
            self._table = table = _abi.ModelTable.in_dll(library, "ptc_model_v1")
        except ValueError:
            raise ValueError(f"'{library._name}' is no library of a model: it does not have the symbol ptc_model_v1") from None
        _abi.check(table)
        error = ctypes.create_string_buffer(1024)
        options = _abi.Options(struct_size=ctypes.sizeof(_abi.Options), error_size=len(error), threads=threads)
        options.error = ctypes.cast(error, ctypes.c_char_p)
        options.device_type, self._ordinal = _device(device)
        options.device = self._ordinal
        options.cpu_level = cpu_level.encode() if cpu_level else None
        options.weights_path = os.fsencode(weights) if weights else None
        options.custom_op_folder = os.fsencode(custom_op_folder) if custom_op_folder else None
        if profile:
            self._spans = (_abi.Span * profile)()
            self._profile = _abi.Profile(ctypes.sizeof(_abi.Span), self._spans, profile, 0)
            options.profile = ctypes.pointer(self._profile)
        if tap:
            options.tap = self._observer = _abi.Observer(lambda _, raw: tap(_tap(raw.contents)))
        handle = ctypes.c_void_p()
        status = table.create(ctypes.byref(options), ctypes.byref(handle))
        if status != _abi.OK:
            raise Error(status, error.value.decode())
        self._handle = handle.value
        self._idle, self._contexts = [], []
        self._lock = threading.RLock()  # a prepared run may be collected while this thread has it
        self.name = table.name.decode()
        self.compiler = table.compiler.decode()
        self.levels = [level.decode() for level in table.levels[: table.level_count]]
        self.weights = [w.name.decode() for w in table.weights[: table.weight_count]] if table.weight_count else []
        self.functions = {}
        for index in range(table.function_count):
            function = Function(self, index, table.functions[index])
            self.functions[function.name] = function
        main = next(iter(self.functions.values()))
        self.inputs, self.outputs, self.symbols, self.guards = main.inputs, main.outputs, main.symbols, main.guards
        self._main = main

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, np.ndarray]:
        """Runs the first function."""
        return self._main(*args, **kwargs)

    def prepare(self, *args: Any, **kwargs: Any) -> Callable[[], dict[str, np.ndarray]]:
        """The first function's prepare."""
        return self._main.prepare(*args, **kwargs)

    def output_shapes(self, *args: Any, **kwargs: Any) -> dict[str, tuple]:
        """The first function's output_shapes."""
        return self._main.output_shapes(*args, **kwargs)

    def workspace_size(self, *args: Any, **kwargs: Any) -> int:
        """The first function's workspace_size."""
        return self._main.workspace_size(*args, **kwargs)

    def run(self, inputs: dict[str, Any], outputs: dict[str, Any] | None = None, stream: Any = None) -> dict[str, Any]:
        """The first function's run."""
        return self._main.run(inputs, outputs, stream)

    @property
    def device(self) -> str:
        """What the model runs on: "cpu", or "cuda:0"."""
        return f"cuda:{self._ordinal}" if self.cpu_level.startswith(("ptx", "sm_")) else "cpu"

    @property
    def cpu_level(self) -> str:
        """The CPU level that was chosen."""
        return self._table.cpu_level(self._open()).decode()

    @property
    def threads(self) -> int:
        """The number of threads that a run may use."""
        return self._table.threads(self._open())

    def take_spans(self) -> list[Span]:
        """What the runs since the last call took, in the order of their ends; for models loaded with `profile`. Call it
        while no call runs."""
        count, self._profile.count = min(self._profile.count, len(self._spans)), 0
        decode = lambda text: text.decode(errors="replace") if text is not None else None
        return [
            Span(_SPAN_KINDS[s.kind], s.begin_ns, s.end_ns, decode(s.kernel), decode(s.nodes), s.launch, s.thread)
            for s in self._spans[:count]
        ]

    def set_weight(self, name: str, array: Any) -> None:
        """Replaces a weight, while no call runs."""
        array = np.ascontiguousarray(array)
        status = self._table.set_weight(self._open(), name.encode(), array.ctypes.data, array.nbytes)
        if status != _abi.OK:
            raise Error(status, self._why_not_set(name, array.nbytes))

    def _why_not_set(self, name: str, size: int) -> str:
        weights = {weight.name.decode(): weight.bytes for weight in self._table.weights[: self._table.weight_count]}
        if name in weights:
            return f"weight '{name}' has {weights[name]} bytes, not {size}"
        return f"'{name}' is no weight that can be replaced: the model has none of this name, or the compiler has computed with it"

    def _context(self):
        return _Context(self)

    def _open(self):
        """What the library knows the model by, which it must not be given any more once that is freed."""
        if self._handle is None:
            raise ValueError(f"model '{self.name}' is closed")
        return self._handle

    def _take(self):
        handle = self._open()
        with self._lock:
            if self._idle:
                return self._idle.pop()
        ctx = ctypes.c_void_p()
        status = self._table.ctx_create(handle, ctypes.byref(ctx))
        if status != _abi.OK:
            raise Error(status, "")
        with self._lock:
            self._contexts.append(ctx.value)
        return ctx.value

    def _give_back(self, ctx):
        with self._lock:
            self._idle.append(ctx)

    def close(self) -> None:
        """Frees the model, while no call runs; also done when it is collected. Later calls are a ValueError. The library
        stays loaded."""
        if self._handle is None:
            return
        for ctx in self._contexts:
            self._table.ctx_destroy(ctx)
        self._table.destroy(self._handle)
        self._idle, self._contexts, self._handle = [], [], None

    def __del__(self):
        self.close()


def load(
    path: str | os.PathLike,
    threads: int = 0,
    cpu_level: str | None = None,
    weights: str | os.PathLike | None = None,
    profile: int = 0,
    tap: Callable | None = None,
    custom_op_folder: str | os.PathLike | None = None,
    device: str | None = None,
) -> Model:
    """Loads a library and creates its model.

    threads: that a run may use (0: one per processor); cpu_level: one of Model.levels; weights: path of the weights file
    if it is not beside the library; profile: how many spans Model.take_spans can give, 0: nothing is timed; tap: called
    with a Tap for each tapped value of each run; custom_op_folder: where libraries of custom operators are if they are not
    beside the library; device: "cpu", "cuda" or "cuda:N", what a library for both runs on (None: a GPU that its code runs
    on, else the CPU). A path that this process has loaded before gives the same library again, even if the file has changed
    since: the C library's dlopen works that way.
    """
    library = ctypes.CDLL(os.path.abspath(os.fspath(path)))
    return Model(library, threads, cpu_level, weights, profile, tap, custom_op_folder, device)
