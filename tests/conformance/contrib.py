"""Operators of onnxruntime and of ai.onnx.ml, tried against onnxruntime.

Rows of contrib_cases.py say what to try. An operator of onnxruntime's without such rows is tried by its schema: with as few
and as many inputs as it takes, the first [3, 4, 8], the others vectors of its last dim, in each type that it computes.
"""

import json
import subprocess

import contrib_cases
import numpy as np
import onnx
import onnxruntime
from contrib_cases import ML, MS
from onnx import helper, numpy_helper
from onnxruntime.capi import onnxruntime_pybind11_state as runtime
from suite import Case

SHAPE = (3, 4, 8)
TOLERANCES = {np.float32: (1e-3, 1e-5), np.float16: (4e-3, 1e-3)}  # relative, absolute
OPSETS = {"": 17, MS: 1, ML: 3}


def operators(ptc):
    """Domain and name of each row of OnnxOps.def."""
    listed = json.loads(subprocess.run([ptc, "ops", "--json"], check=True, capture_output=True).stdout)["operators"]
    return sorted({("" if row["domain"] == "ai.onnx" else row["domain"], row["name"]) for row in listed})


def _opsets(newest=17):
    return [helper.make_opsetid(domain, version) for domain, version in (OPSETS | {"": newest}).items()]


# ---- By schema -------------------------------------------------------------------------------------------------------


def _model(schema, arrays):
    kind = helper.np_dtype_to_tensor_dtype(arrays[0].dtype)
    names = [parameter.name for parameter in schema.inputs][: len(arrays)]
    inputs = [helper.make_tensor_value_info(name, kind, array.shape) for name, array in zip(names, arrays)]
    node = helper.make_node(schema.name, names, ["result"], name="node", domain=schema.domain)
    graph = helper.make_graph([node], schema.name, inputs, [helper.make_tensor_value_info("result", kind, None)])
    return helper.make_model(graph, opset_imports=_opsets(), ir_version=8)


def _run(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def _expected(model, arrays):
    """None if onnxruntime does not compute the type."""
    try:
        return _run(model, {value.name: array for value, array in zip(model.graph.input, arrays)})[0]
    except (runtime.Fail, runtime.NotImplemented, runtime.InvalidGraph):
        return None


def _by_schema(schema, count, kind, home):
    name = f"{schema.name}_{count}_{kind.__name__}"
    rng = np.random.default_rng(len(name))
    arrays = [(3 * rng.standard_normal(SHAPE if i == 0 else SHAPE[-1:])).astype(kind) for i in range(count)]
    model = _model(schema, arrays)
    expected = _expected(model, arrays)
    return None if expected is None else _write(name, model, arrays, [expected], *TOLERANCES[kind], False, home)


# ---- By rows ---------------------------------------------------------------------------------------------------------


def _by_row(row, home):
    name = f"{row.operator}_{row.name}"
    names = [f"x{i}" if array is not None else "" for i, array in enumerate(row.inputs)]
    given = [i for i, array in enumerate(row.inputs) if array is not None]
    fed = [i for i in given if i not in row.constants]
    results = [f"y{i}" for i in range(row.outputs)]
    attributes = {key: value for key, value in row.attributes.items()}
    node = helper.make_node(row.operator, names, results, name="node", domain=row.domain, **attributes)

    def argument(i):
        shape = [row.free.get(i, {}).get(axis, size) for axis, size in enumerate(row.inputs[i].shape)]
        return helper.make_tensor_value_info(names[i], helper.np_dtype_to_tensor_dtype(row.inputs[i].dtype), shape)

    constants = [numpy_helper.from_array(row.inputs[i], names[i]) for i in row.constants]
    outputs = [onnx.ValueInfoProto(name=result) for result in results]
    graph = helper.make_graph([node], row.operator, [argument(i) for i in fed], outputs, constants)
    model = helper.make_model(graph, opset_imports=_opsets(row.opset), ir_version=10 if row.opset > 17 else 8)
    arrays = [row.inputs[i] for i in fed]
    if row.reference:
        expected = row.reference(*(row.inputs[i] for i in given))
    else:
        expected = _run(model, {names[i]: row.inputs[i] for i in fed})
    return _write(name, model, arrays, expected, row.rtol, row.atol, bool(row.free), home)


def _write(name, model, arrays, expected, rtol, atol, is_free, home):
    for value, array in zip(model.graph.output, expected):
        shape = [None] * array.ndim if is_free else array.shape
        value.CopyFrom(helper.make_tensor_value_info(value.name, helper.np_dtype_to_tensor_dtype(array.dtype), shape))
    folder = home / "contrib" / name
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    for stem, values in {"input": arrays, "output": expected}.items():
        for i, array in enumerate(values):
            (folder / f"{stem}_{i}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    data = tuple(tuple(str(folder / f"{stem}_{i}.pb") for i in range(len(values)))
                 for stem, values in {"input": arrays, "output": expected}.items())
    return Case(f"contrib/{name}", str(folder / "model.onnx"), (data,), rtol, atol, False, is_free)


def load(ptc, home):
    known = operators(ptc)
    rows = list(contrib_cases.rows())
    cases = [_by_row(row, home) for row in rows if (row.domain, row.operator) in known]
    if stray := {(row.domain, row.operator) for row in rows} - set(known):
        raise LookupError(f"contrib_cases.py tries what ptc does not have: {sorted(stray)}")
    schemas = {(schema.domain, schema.name): schema for schema in runtime.get_all_operator_schema()}
    tried = {(row.domain, row.operator) for row in rows}
    for row in known:
        if row[0] != MS or row in tried:
            continue
        schema = schemas[row]
        for count in sorted({schema.min_input, min(schema.max_input, len(schema.inputs))}):
            made = [_by_schema(schema, count, kind, home) for kind in TOLERANCES]
            if not any(made):
                raise LookupError(f"onnxruntime computes {schema.name} in none of the types that are tried")
            cases += filter(None, made)
    return cases
