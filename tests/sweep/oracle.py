"""What a case's results should be, from programs that are not ours.

In this order: a function of the row's, written from the specification in numpy; onnxruntime where its provider has the
type; the reference evaluator of the onnx package. Rules that are `wide` ask for the results in f64, from f64 inputs, so that
an oracle's own rounding does not count. A model is given to onnxruntime with the version in which its operator was last
changed: it refuses opsets that are newer than itself.
"""

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

from case import ML, MS, Case, build, feeds
from draw import STRING, is_float, is_string, opset_in

_OPTIONS = onnxruntime.SessionOptions()
_OPTIONS.log_severity_level = 4
_OPTIONS.intra_op_num_threads = _OPTIONS.inter_op_num_threads = 1
_OPTIONS.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
_REFUSALS = (runtime.Fail, runtime.NotImplemented, runtime.InvalidGraph, runtime.InvalidArgument, runtime.RuntimeException,
             RuntimeError, TypeError, ValueError)


def widened(case):
    """The case on f64, None if its operator does not compute that."""
    types = [None] * len(case.inputs)
    if case.domain != MS:
        schema = onnx.defs.get_schema(case.operator, opset_in(case.domain, case.opset), case.domain)
        allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
        for i in range(len(case.inputs)):
            parameter = schema.inputs[min(i, len(schema.inputs) - 1)]
            if parameter.type_str in allowed and "tensor(double)" in allowed[parameter.type_str]:
                types[i] = np.float64
    inputs = [array.astype(kind) if kind and array is not None and is_float(array.dtype) else array
              for array, kind in zip(case.inputs, types)]
    return Case(**{**case.__dict__, "inputs": inputs})


def by_onnxruntime(case):
    opset = case.opset
    if not case.domain:
        opset = onnx.defs.get_schema(case.operator, case.opset, "").since_version
    versions = [opset] if case.domain == "" else [17]
    model = build([case], versions[0], ir_version=10)
    for i in model.opset_import:
        if i.domain == ML:
            i.version = onnx.defs.get_schema(case.operator, i.version, ML).since_version
    session = onnxruntime.InferenceSession(model.SerializeToString(), _OPTIONS, providers=["CPUExecutionProvider"])
    results = session.run(None, feeds(case))
    kinds = [helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type) for value in model.graph.output]
    # It gives types of 8 bits that numpy lacks as their bytes.
    return [a.view(kind) if a.dtype == np.uint8 and kind.kind == "V" and kind.itemsize == 1 else a for a, kind in zip(results, kinds)]


def by_reference(case):
    if case.domain == MS:
        raise NotImplementedError(case.operator)
    with np.errstate(all="ignore"):
        return [np.asarray(value) for value in ReferenceEvaluator(build([case])).run(None, feeds(case))]


PROGRAMS = {"onnxruntime": by_onnxruntime, "reference": by_reference}


def evaluate(case):
    """What `_evaluate` says, asked once a case."""
    if case.wanted is None:
        case.wanted = _evaluate(case)
    return case.wanted


def knows_results(case):
    """Whether the element types and ranks of the outputs are known, if need be from the oracle."""
    if all(value.type.tensor_type.HasField("shape") for value in build([case]).graph.output):
        return True
    name, wanted = evaluate(case)
    if name is not None:
        given = next(array.dtype for array in case.inputs if array is not None)
        kind = lambda a: STRING if a.dtype.kind == "U" else given if case.rule.wide and is_float(a.dtype) else a.dtype
        case.results = tuple((kind(a), a.ndim) for a in map(np.asarray, wanted))
    return name is not None


def _result_types(case):
    """Where a program is asked in another type, its floats are of that."""
    wide = lambda kind: case.stand_in if case.stand_in and is_float(np.dtype(kind)) else kind
    return tuple((wide(kind), rank) for kind, rank in case.results)


def _in_place(case, array):
    is_number = array is not None and (is_float(array.dtype) or case.domain == ML and not is_string(array.dtype))
    return array.astype(case.stand_in) if case.stand_in and is_number else array


def _attribute_in_place(case, value):
    if not case.stand_in or not isinstance(value, onnx.TensorProto):
        return value
    array = numpy_helper.to_array(value)
    return numpy_helper.from_array(array.astype(case.stand_in), value.name) if is_float(array.dtype) else value


def stand_in(case):
    """The case as programs are asked: with its sizes, and in a type that they have."""
    return Case(**{**case.__dict__, "open": {}, "results": _result_types(case), "inputs": [_in_place(case, array) for array in case.inputs],
                   "attributes": {name: _attribute_in_place(case, value) for name, value in case.attributes.items()}})


def _evaluate(case):
    """Name of the oracle and its results; None and the refusals where no oracle has an answer."""
    if case.oracle:
        with np.errstate(all="ignore"):
            results = case.oracle(*case.inputs)
        return "specification", results if isinstance(results, list) else [results]
    refusals = []
    case = stand_in(case)
    for asked in ([widened(case)] if case.rule.wide else []) + [case]:
        for name, program in PROGRAMS.items():
            if name == case.avoid:
                continue
            try:
                return name, program(asked)
            except _REFUSALS as error:
                refusals.append(f"{name}: {str(error)[:200]}")
            except Exception as error:  # the reference evaluator raises what it likes
                refusals.append(f"{name}: {type(error).__name__} {str(error)[:200]}")
    return None, refusals


def magnitude(case):
    """The results of the same operator on absolute values, in f64: what the terms of its sums add up to."""
    absolute = [np.abs(array) if array is not None and is_float(array.dtype) else array for array in case.inputs]
    with np.errstate(all="ignore"):
        wide = widened(Case(**{**case.__dict__, "inputs": absolute}))
        if case.oracle:
            results = case.oracle(*wide.inputs)
            return results if isinstance(results, list) else [results]
    for name, program in PROGRAMS.items():
        try:
            return program(wide)
        except Exception:
            continue
    return None
