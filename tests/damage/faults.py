"""What may be wrong with a file of an official test, and which files of a run of many get it.

    cut      the file ends early
    changed  one byte is another
    huge     of a model: a dim, an integer attribute or an element of an integer constant is enormous or negative
    outside  of a model: its weights lie in a file beside it (ONNX's external data), which ends early or which the model describes wrongly
"""

import io
from collections import namedtuple
from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper
from onnx.external_data_helper import set_external_data

import suite

Fault = namedtuple("Fault", "case index way")  # index: of an input, None for the model
SAMPLE, WITH_NUMBERS = 5000, 200  # files of the bounded sample; models with each of the last two faults in it
HUGE = (2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -1, -(2**31), -(2**63))
DATA = "model.data"


def plan(cases, seed):
    """Every model and every input, each cut and changed, and the models with the other faults. The first SAMPLE have all models
    cut and changed. A prefix of them has some of everything."""
    rng = np.random.default_rng([seed])
    shuffled = lambda faults: [faults[i] for i in rng.permutation(len(faults))]
    models = [Fault(case, None, way) for case in cases for way in ("cut", "changed")]
    others = [shuffled([Fault(case, None, way) for case in cases]) for way in ("huge", "outside")]
    inputs = shuffled([Fault(case, i, way) for case in cases if case.sets for i in range(len(case.sets[0][0])) for way in ("cut", "changed")])
    numbers = [fault for faults in others for fault in faults[:WITH_NUMBERS]]
    some = max(0, SAMPLE - len(models) - len(numbers))
    rest = inputs[some:] + [fault for faults in others for fault in faults[WITH_NUMBERS:]]
    return shuffled(models + numbers + inputs[:some]) + shuffled(rest)


def apply(fault, number, seed):
    """What was done, and the files by name: the model's first, or the input's."""
    rng = np.random.default_rng([seed, number])
    if fault.index is not None:
        return _input(fault, rng)
    if fault.way == "huge" and (made := _huge(onnx.load(fault.case.model), rng)):
        return made
    if fault.way == "outside" and (made := _outside(onnx.load(fault.case.model), rng)):
        return made
    text, content = _damaged(fault.way, rng, Path(fault.case.model).read_bytes())
    return text, {"model.onnx": content}


def _damaged(way, rng, content):
    content = bytearray(content)
    place = int(rng.integers(len(content) or 1))
    if way == "cut" or not content:
        return f"cut off at {place} of {len(content)}", bytes(content[:place])
    # Half of the changed bytes lie in the first 200, which rarely are weights.
    place = int(rng.integers(min(len(content), 200))) if rng.integers(2) else place
    value = int(rng.integers(1, 256)) ^ content[place]
    text = f"byte {place} is {value:#04x} instead of {content[place]:#04x}"
    content[place] = value
    return text, bytes(content)


def _input(fault, rng):
    """An official input in a format that `ptc run` reads."""
    path = fault.case.sets[0][0][fault.index]
    value, suffix = suite.read(path), (".pb", ".pb", ".npy", ".npz")[int(rng.integers(4))]
    if suffix == ".pb" or not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub":
        text, content = _damaged(fault.way, rng, Path(path).read_bytes())
        return text, {f"input{Path(path).suffix}": content}
    held = io.BytesIO()
    np.save(held, value) if suffix == ".npy" else (np.savez_compressed if rng.integers(2) else np.savez)(held, x=value)
    text, content = _damaged(fault.way, rng, held.getvalue())
    return text, {f"input{suffix}": content}


def _tensors(model):
    def constants(graph):
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == AttributeProto.TENSOR:
                    yield attribute.t
                elif attribute.type == AttributeProto.GRAPH:
                    yield from constants(attribute.g)

    return [*model.graph.initializer, *constants(model.graph)]


def _huge(model, rng):
    value = HUGE[int(rng.integers(len(HUGE)))]
    values = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    dims = [(f"a dim of '{v.name}'", dim) for v in values if v.type.HasField("tensor_type") for dim in v.type.tensor_type.shape.dim]
    attributes = [(f"{node.op_type}.{a.name}", a) for node in model.graph.node for a in node.attribute if a.type in (AttributeProto.INT, AttributeProto.INTS)]
    tensors = [(f"the tensor '{t.name}'", t) for t in _tensors(model)]
    kinds = [kind for kind in (dims, attributes, tensors) if kind]
    if not kinds:
        return None
    kind = kinds[int(rng.integers(len(kinds)))]
    where, one = kind[int(rng.integers(len(kind)))]
    if kind is dims:
        one.dim_value = value
    elif kind is attributes and one.type == AttributeProto.INT:
        one.i = value
    elif kind is attributes:
        one.ints[:] = [value if rng.integers(2) else i for i in one.ints] or [value]
    else:
        _huge_tensor(one, value, rng)
    return f"{where} has {value}", {"model.onnx": model.SerializeToString()}


def _huge_tensor(tensor, value, rng):
    """An element of integers, or a dim."""
    if tensor.data_type == TensorProto.INT64 and np.prod(tensor.dims):
        array = numpy_helper.to_array(tensor).copy()
        array.flat[int(rng.integers(array.size))] = value
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    elif tensor.dims:
        tensor.dims[int(rng.integers(len(tensor.dims)))] = value
    else:
        tensor.dims.append(value)


def _outside(model, rng):
    """All weights in a file beside the model, which is cut off, missing, or not where or what the model says."""
    held = io.BytesIO()
    moved = [t for t in _tensors(model) if t.data_type not in (TensorProto.STRING, TensorProto.UNDEFINED) and np.prod(t.dims)]
    for tensor in moved:
        whole = numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name)
        tensor.CopyFrom(whole)
        set_external_data(tensor, DATA, held.tell(), len(whole.raw_data))
        tensor.ClearField("raw_data")
        held.write(whole.raw_data)
    if not moved:
        return None
    content, tensor = held.getvalue(), moved[int(rng.integers(len(moved)))]
    way = int(rng.integers(4))
    if way == 0:
        text, content = _damaged("cut", rng, content)
    elif way == 1:
        text, content = "no file", None
    else:
        key, value = _misdescribed(rng)
        text = f"'{tensor.name}' has {key} '{value}'"
        next(entry for entry in tensor.external_data if entry.key == key).value = value
    files = {"model.onnx": model.SerializeToString()}
    return f"weights outside, {text}", files if content is None else files | {DATA: content}


def _misdescribed(rng):
    key = ("location", "offset", "length")[int(rng.integers(3))]
    if key == "location":
        return key, ("", "..", "/dev/zero", "/", "../model.data", ".", "model.onnx")[int(rng.integers(7))]
    return key, ("", "x", "1e9", "1", "3", *map(str, HUGE))[int(rng.integers(5 + len(HUGE)))]
