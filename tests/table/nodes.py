"""One small node of each operator, in each type that its schema allows: many of them in one model.

The nodes are those of ONNX's own tests. Of a node, one type constraint is varied at a time; inputs of rank 0 and 1 that are not
of the first input's type are constants, since they decide shapes.
"""

import copy
import re
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ELEMENTS = {name.lower().replace("_", ""): number for name, number in TensorProto.DataType.items()}
ELEMENTS |= {"float8e8m0": TensorProto.FLOAT8E8M0, "float4e2m1": TensorProto.FLOAT4E2M1}
NAMES = {number: name for name, number in ELEMENTS.items()}


@dataclass
class Variant:
    domain: str
    op: str
    version: int
    constraint: str
    type: str
    model: onnx.ModelProto  # of this node alone

    @property
    def key(self):
        return self.domain or "ai.onnx", self.op, self.version, self.constraint, self.type


def type_proto(text):
    """The TypeProto of "seq(tensor(float))"."""
    kind, inner = re.fullmatch(r"(\w+)\((.*)\)", text).groups()
    proto = onnx.TypeProto()
    if kind == "tensor":
        proto.tensor_type.elem_type = ELEMENTS[inner]
    elif kind == "seq":
        proto.sequence_type.elem_type.CopyFrom(type_proto(inner))
    else:
        proto.optional_type.elem_type.CopyFrom(type_proto(inner))
    return proto


def element_of(text):
    return re.search(r"tensor\((\w+)\)", text)[1]


def retype(proto, element):
    """The same type with another element type, dims as they are."""
    while not proto.HasField("tensor_type"):
        proto = proto.sequence_type.elem_type if proto.HasField("sequence_type") else proto.optional_type.elem_type
    proto.tensor_type.elem_type = ELEMENTS[element]


def cast(array, element):
    number = ELEMENTS[element]
    if number == TensorProto.STRING:
        return numpy_helper.from_array(np.array([str(v) for v in array.reshape(-1)], object).reshape(array.shape))
    if array.dtype == object:
        array = np.arange(array.size).reshape(array.shape)
    return numpy_helper.from_array(array.astype(helper.tensor_dtype_to_np_dtype(number)))


def single_nodes(cases, read):
    """The smallest case of each operator's newest version: model, arrays of its inputs."""
    best = {}
    for case in cases:
        if case.suite != "node" or not case.sets:
            continue
        model = onnx.load(case.model)
        if len(model.graph.node) != 1 or model.functions or model.graph.initializer:
            continue
        node = model.graph.node[0]
        opsets = {o.domain: o.version for o in model.opset_import}
        try:
            schema = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain)
        except onnx.defs.SchemaError:
            continue
        key, rank = (node.domain, node.op_type), (-schema.since_version, len(node.input), model.ByteSize(), case.name)
        if key not in best or rank < best[key][0]:
            best[key] = rank, model, schema, case
    for (_, _), (_, model, schema, case) in sorted(best.items()):
        yield model, schema, [read(path) for path in case.sets[0][0]]


def formal_of(schema, index):
    return schema.inputs[min(index, len(schema.inputs) - 1)]


def variants(model, schema, arrays):
    node = model.graph.node[0]
    used = {formal_of(schema, i).type_str for i, name in enumerate(node.input) if name}
    constraints = [c for c in schema.type_constraints if c.type_param_str in used]
    for constraint in constraints:
        for text in sorted(constraint.allowed_type_strs):
            made = vary(model, schema, arrays, constraint.type_param_str, text)
            if made is not None:
                yield Variant(node.domain, node.op_type, schema.since_version, constraint.type_param_str, text, made)


def vary(model, schema, arrays, constraint, text):
    made = copy.deepcopy(model)
    graph, node = made.graph, made.graph.node[0]
    first = formal_of(schema, 0).type_str if schema.inputs else ""
    values = dict(zip([value.name for value in graph.input], zip(graph.input, arrays)))
    kept = []
    for i, name in enumerate(node.input):
        if not name or name not in values:
            continue
        value, array = values[name]
        formal = formal_of(schema, i).type_str
        mine = formal == constraint
        if mine and text.split("(")[0] != {"tensor_type": "tensor", "sequence_type": "seq", "optional_type": "optional",
                                           "map_type": "map", "sparse_tensor_type": "sparse_tensor"}[value.type.WhichOneof("value")]:
            return None  # another kind of value than the test has
        is_constant = isinstance(array, np.ndarray) and array.ndim <= 1 and formal != first
        if is_constant:
            tensor = cast(array, element_of(text)) if mine else numpy_helper.from_array(array)
            tensor.name = name
            graph.initializer.append(tensor)
        else:
            if mine:
                retype(value.type, element_of(text))
            kept.append(value)
    inputs = [copy.deepcopy(value) for value in kept]
    declared = {value.name: copy.deepcopy(value) for value in graph.output}
    del graph.input[:], graph.output[:], graph.value_info[:]
    graph.input.extend({value.name: value for value in inputs}.values())
    try:
        inferred = onnx.shape_inference.infer_shapes(made)
    except Exception:
        inferred = made
    for value in inferred.graph.value_info:  # the type is what the node makes; the test says the shape
        if value.name in declared:
            if value.type.HasField("tensor_type"):
                retype(declared[value.name].type, NAMES[value.type.tensor_type.elem_type])
            graph.output.append(declared[value.name])
    return made


def rename(graph, prefix):
    for value in [*graph.input, *graph.output, *graph.value_info, *graph.initializer]:
        value.name = prefix + value.name
    for node in graph.node:
        node.input[:] = [name and prefix + name for name in node.input]
        node.output[:] = [name and prefix + name for name in node.output]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                rename(attribute.g, prefix)


def joined(variants):
    """(model, variants by node's name): all nodes of the same opsets in one model."""
    groups = defaultdict(list)
    for variant in variants:
        groups[tuple(sorted((o.domain, o.version) for o in variant.model.opset_import))].append(variant)
    for opsets, members in groups.items():
        whole = onnx.GraphProto(name="all")
        names = {}
        for number, variant in enumerate(members):
            graph = copy.deepcopy(variant.model.graph)
            rename(graph, f"n{number}_")
            graph.node[0].name = f"node{number}"
            names[f"node{number}"] = variant
            for field in ("node", "input", "output", "initializer"):
                getattr(whole, field).extend(getattr(graph, field))
        made = helper.make_model(whole, opset_imports=[helper.make_opsetid(*row) for row in opsets],
                                 ir_version=max(10, *(v.model.ir_version for v in members)))  # constants need not be inputs
        yield made, names
