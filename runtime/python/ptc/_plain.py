"""Calls whose inputs and outputs are all dense arrays of numpy's own types, or tensors that become such at once.

A small model runs for less than a microsecond, and the structs of the ABI around it take ten: types, shapes, what shapes the
outputs have. All of these follow from the shapes of the inputs, so each context keeps them for the shapes that it has seen,
and a call sets pointers alone. Whatever is not such a call (arrays that are not dense, tensors on a device, strings,
sequences, maps, packed elements, wrong arguments) is left to the general one, which also says what is wrong.
"""

import numpy as np

from . import _abi, _dlpack, _dtypes, _values

_MOST_CALLS = 64  # a model may meet any number of shapes


def _is_plain(value):
    code, bits = value._type
    return code in (_dtypes.INT, _dtypes.UINT, _dtypes.FLOAT, _dtypes.COMPLEX, _dtypes.BOOL) and bits >= 8 and value._map is None


def _is_dense(array, kind):
    return type(array) is np.ndarray and array.dtype == kind and array.flags.c_contiguous


class _Call:
    """What one context needs for inputs of given shapes; whoever has the context has this."""

    def __init__(self, function, ctx, arrays):
        self._function, self._ctx = function, ctx
        inputs = [_values.Buffer(value._type, array.shape, array) for value, array in zip(function.inputs, arrays)]
        tensors = _values.tensors(inputs)
        shapes = [tuple(max(extent, 0) for extent in shape) for shape in function._output_shapes(ctx, tensors)]
        outputs = [_values.Buffer(value._type, shape, None) for value, shape in zip(function.outputs, shapes)]
        out = _values.tensors(outputs)
        self._kept = [buffer.shape for buffer in inputs + outputs]  # the tensors point to them
        self._inputs = [tensors[place] for place in range(len(inputs))]
        self._outputs = [
            (value.name, shape, _dtypes.numpy_type(*value._type), out[place], value.alias)
            for place, (value, shape) in enumerate(zip(function.outputs, shapes))
            if not value._found
        ]
        self._found = [entry for entry in zip(function.outputs, outputs, out) if entry[0]._found]  # the run brings memory
        self._names = [value.name for value in function.outputs] if self._found else None
        self._run = _abi.bound_run(function._model._table, ctx, function._index, tensors, out, None)

    def takes(self, given):
        """Whether these outputs can be written as they are."""
        entries = {name: (shape, kind) for name, shape, kind, _, _ in self._outputs}
        return all(
            name in entries and _is_dense(array, entries[name][1]) and array.shape == entries[name][0] and array.flags.writeable
            for name, array in given.items()
        )

    def __call__(self, arrays, given):
        for tensor, array in zip(self._inputs, arrays):
            tensor.data = _values.address_of(array)
        results = {}
        for name, shape, kind, tensor, pair in self._outputs:
            array = given.get(name) if pair is None else arrays[pair]
            results[name] = array = _values.empty(shape, kind) if array is None else array
            tensor.data = _values.address_of(array)
        if status := self._run():
            self._function._check(self._ctx, status)
        if not self._found:
            return results
        for value, buffer, tensor in self._found:
            results[value.name] = self._function._result(value, buffer, tensor)
        return {name: results[name] for name in self._names}


class PlainCalls:
    """Those of one function, on the CPU."""

    def __init__(self, function):
        self._function, self._calls = function, {}
        is_any = function._model.device == "cpu" and all(map(_is_plain, function.inputs + function.outputs))
        self._kinds = [_dtypes.numpy_type(*value._type) for value in function.inputs] if is_any else None
        places = list(enumerate(function.inputs))
        self._places = {value.c_name: place for place, value in places} | {value.name: place for place, value in places}
        self._pairs = [(value.alias, value.name) for value in function.outputs if value.alias is not None]

    def _arrays(self, args, kwargs):
        """The inputs in their order; None: this is a call of another kind."""
        given = [*args, *[None] * (len(self._kinds) - len(args))]
        for name, array in kwargs.items():
            place = self._places.get(name, -1)
            if place < len(args) or given[place] is not None:
                return None
            given[place] = array
        if len(given) != len(self._kinds):
            return None
        for place, kind in enumerate(self._kinds):
            if type(array := given[place]) is not np.ndarray:
                given[place] = array = _dlpack.to_plain_array(array)
            if not _is_dense(array, kind):
                return None
        return given

    def _separate(self, arrays, given):
        """Copies inputs that share their buffers with outputs, but for those that the caller wants to be updated. False:
        what the caller wants is another kind of call."""
        for place, name in self._pairs:
            if name not in given:
                arrays[place] = arrays[place].copy()
            elif given[name] is not arrays[place]:
                return False
        return True

    def __call__(self, args, kwargs, given):
        """The results, `given` the arrays of some; None: this is a call of another kind."""
        arrays = self._arrays(args, kwargs) if self._kinds is not None else None
        if arrays is None or not self._separate(arrays, given):
            return None
        model, shapes = self._function._model, tuple([array.shape for array in arrays])
        ctx = model._take()
        try:
            call = self._calls.get((ctx, shapes))
            if call is None:
                call = _Call(self._function, ctx, arrays)
                if len(self._calls) >= _MOST_CALLS:
                    self._calls.clear()
                self._calls[ctx, shapes] = call
            return call(arrays, given) if not given or call.takes(given) else None
        finally:
            model._give_back(ctx)
