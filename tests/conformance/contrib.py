"""Operators that ONNX does not define and onnxruntime does: a case for each row of OnnxOps.def in such a domain.

onnxruntime tells the schema of its operators, which is enough to try them: with as few and as many inputs as they take, the
first [3, 4, 8], the others vectors of its last dim, in each type that it computes. Its results are what is expected.
"""

import json
import subprocess

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnxruntime.capi import onnxruntime_pybind11_state as runtime
from suite import Case

DOMAINS = ("com.microsoft",)
SHAPE = (3, 4, 8)
TOLERANCES = {np.float32: (1e-3, 1e-5), np.float16: (4e-3, 1e-3)}  # relative, absolute


def rows(ptc):
    """Domain and name of each such row."""
    listed = json.loads(subprocess.run([ptc, "ops", "--json"], check=True, capture_output=True).stdout)["operators"]
    return sorted({(row["domain"], row["name"]) for row in listed if row["domain"] in DOMAINS})


def _model(schema, arrays):
    kind = helper.np_dtype_to_tensor_dtype(arrays[0].dtype)
    names = [parameter.name for parameter in schema.inputs][: len(arrays)]
    inputs = [helper.make_tensor_value_info(name, kind, array.shape) for name, array in zip(names, arrays)]
    node = helper.make_node(schema.name, names, ["result"], name="node", domain=schema.domain)
    graph = helper.make_graph([node], schema.name, inputs, [helper.make_tensor_value_info("result", kind, None)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(schema.domain, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _expected(model, arrays):
    """None if onnxruntime does not compute the type."""
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, {value.name: array for value, array in zip(model.graph.input, arrays)})[0]
    except (runtime.Fail, runtime.NotImplemented, runtime.InvalidGraph):
        return None


def _case(schema, count, kind, home):
    name = f"{schema.name}_{count}_{kind.__name__}"
    rng = np.random.default_rng(len(name))
    arrays = [(3 * rng.standard_normal(SHAPE if i == 0 else SHAPE[-1:])).astype(kind) for i in range(count)]
    model = _model(schema, arrays)
    expected = _expected(model, arrays)
    if expected is None:
        return None
    model.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("result", helper.np_dtype_to_tensor_dtype(expected.dtype), expected.shape))
    folder = home / "contrib" / name
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    sides = {"input": arrays, "output": [expected]}
    for stem, values in sides.items():
        for i, array in enumerate(values):
            (folder / f"{stem}_{i}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    data = tuple(tuple(str(folder / f"{stem}_{i}.pb") for i in range(len(values))) for stem, values in sides.items())
    return Case(f"contrib/{name}", str(folder / "model.onnx"), (data,), *TOLERANCES[kind], False)


def load(ptc, home):
    schemas = {(schema.domain, schema.name): schema for schema in runtime.get_all_operator_schema()}
    cases = []
    for row in rows(ptc):
        schema = schemas[row]
        for count in sorted({schema.min_input, min(schema.max_input, len(schema.inputs))}):
            made = [_case(schema, count, kind, home) for kind in TOLERANCES]
            if not any(made):
                raise LookupError(f"onnxruntime computes {schema.name} in none of the types that are tried")
            cases += filter(None, made)
    return cases
